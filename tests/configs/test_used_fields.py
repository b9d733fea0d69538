"""A field of a configuration that has no effect on what was asked is refused."""

import re
from dataclasses import fields

import pytest
import torch

import tri_apsp
from tri_apsp import Config, GpuTiles, InputError
from tri_apsp.configs import USED_FIELDS, default_config
from tri_apsp.methods import METHODS


@pytest.mark.parametrize(
    ("method", "config", "message"),
    [
        ("auto", Config(panel=16), "panel must be left out for the cpu engine"),
        ("kleene", Config(small_product=GpuTiles(32, 32)), "small_product must be left out for"),
        (
            "floyd_warshall",
            Config(cutoff=64),
            "cutoff must be left out with method 'floyd_warshall', which does not use it, but",
        ),
        ("squaring", Config(block_size=64), "block_size must be left out with method 'squaring'"),
        (
            "auto",
            Config(method="rank_one_updates", cutoff=9),
            "cutoff must be left out with method 'rank",
        ),
        (
            "kleene",
            Config(method="squaring"),
            "config.method must be left out with method 'kleene', which takes its place, but is",
        ),
        ("auto", Config(sweep_warps=2), "sweep_warps must be left out of `config`, since no dense"),
    ],
)
def test_a_field_without_effect_is_refused(method: str, config: Config, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        tri_apsp.shortest_paths(torch.zeros(3, 3), method=method, config=config)


@pytest.mark.parametrize("method", METHODS)
def test_the_configuration_of_a_result_serves_every_method(method: str) -> None:
    weights = torch.rand(80, 80)
    config = tri_apsp.shortest_paths(weights, method="kleene").config
    assert tri_apsp.shortest_paths(weights, method=method, config=config).method == method


@pytest.mark.parametrize("engine", USED_FIELDS)
def test_defaults_set_the_fields_that_an_engine_uses(engine: str) -> None:
    default = default_config(engine, torch.float32)
    found = {field.name for field in fields(Config) if getattr(default, field.name) is not None}
    assert found | {"method"} == USED_FIELDS[engine]


def test_forced_fields_of_sweeps_leave_the_choice_of_a_method_alone() -> None:
    graph = tri_apsp.graphs.generate("roads", 3000, seed=0)
    chosen = tri_apsp.select(graph)
    assert chosen.method not in METHODS  # of dense graphs
    with tri_apsp.tuned.using(Config(sweep_warps=2)):
        assert tri_apsp.select(graph) == chosen
    with pytest.raises(InputError, match="sweep_warps must be left out"):
        tri_apsp.select(graph, config=Config(sweep_warps=2))


def test_a_caller_cannot_set_the_source() -> None:
    with pytest.raises(TypeError):
        Config(source="given")  # type: ignore[call-arg]
