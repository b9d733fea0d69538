"""The systems keep the contract of every algorithm: on a GPU, and those in plain Triton in Triton's
interpreter.
"""

import os
import re

import cases
import pytest
import torch
from methods.contract import SolveContract

import tri_apsp
from tri_apsp import Config, EngineError, InputError, papers
from tri_apsp.papers import SYSTEMS

pytest.importorskip("triton", reason="the systems of the papers need Triton")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
IN_TRITON = tuple(name for name, system in SYSTEMS.items() if not system.blocked)
VARIANTS = [
    (name, value)
    for name, system in SYSTEMS.items()
    if system.parameter
    for value in system.parameter.choices
]


class SystemContract(SolveContract):
    methods = tuple(SYSTEMS)

    def solve(self, weights: torch.Tensor, method: str, *, check: bool = True) -> tri_apsp.Result:
        return papers.solve(weights, method, config=Config(engine=self.engine), check=check)

    def dtypes_of(self, method: str) -> list[torch.dtype]:
        return [dtype for dtype in self.dtypes if dtype in SYSTEMS[method].dtypes]


@pytest.mark.gpu
class TestOnGpu(SystemContract):
    engine, device = "nvidia", "cuda"
    sizes = (0, 1, 2, 65, 131, 257)
    dtypes = (torch.float32, torch.int16)  # each dtype takes seconds to compile

    @pytest.mark.parametrize(("name", "parameter"), VARIANTS)
    def test_every_parameter(self, name: str, parameter: int) -> None:
        dtype = SYSTEMS[name].dtypes[0]
        for n in (100, 1000):
            weights = cases.tensor(cases.random_graph(n, degree=5), dtype)
            found = papers.solve(weights.cuda(), name, parameter=parameter)
            expected = tri_apsp.shortest_paths(weights).distances
            assert torch.equal(found.distances.cpu(), expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.int64], ids=str)
    def test_other_dtypes(self, dtype: torch.dtype) -> None:
        weights = cases.negative_graph(100)
        for name in ("harish_narayanan", "katz_kider", "staged_load", "recursive_plain"):
            found = self.solve(cases.tensor(weights, dtype, "cuda"), name)
            cases.assert_distances(found.distances, weights)

    def test_what_does_not_fit(self) -> None:
        weights = torch.zeros((3, 3), device="cuda")
        with pytest.raises(InputError, match="blocked_int16 takes weights of int16, but these are"):
            papers.solve(weights, "blocked_int16")
        tiles = tri_apsp.GpuTiles(64, 64, 16, num_stages=2)
        config = Config(product=tiles, small_product=tiles)
        papers.solve(weights, "recursive_tuned", config=config)
        with pytest.raises(InputError, match="product must be left out with method 'simple'"):
            papers.solve(weights, "simple", config=config)


@cases.interpreted
class TestInterpreted(SystemContract):
    engine, device = "portable", "cpu"
    methods = ("vectorised",)
    sizes = (0, 1, 2, 9, 18)
    dtypes = (torch.float32,)

    def test_every_parameter(self, method: str) -> None:
        parameter = SYSTEMS[method].parameter
        for value in parameter.choices if parameter is not None else ():
            weights = cases.random_graph(9 if value > 4 else 35)
            tensor = cases.tensor(weights, torch.int16)
            found = papers.solve(tensor, method, parameter=value, config=Config(engine="portable"))
            cases.assert_distances(found.distances, weights)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"system": "simple", "parameter": 2}, "`parameter` must be left out for simple"),
            (
                {"system": "vectorised", "parameter": 3},
                "`parameter` must be one of 1, 2, 4, 8, 16, 32 for vectorised, but is 3",
            ),
            (
                {"system": "simple", "config": Config(cutoff=64)},
                "cutoff must be left out with method 'simple', which does not use it, but is 64",
            ),
            (
                {"system": "simple", "config": Config(method="kleene")},
                "config.method must be left out with method 'simple'",
            ),
        ],
    )
    def test_what_does_not_fit(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(InputError, match=re.escape(message)):
            papers.solve(torch.zeros(3, 3), **options)  # type: ignore[arg-type]


@cases.interpreted
@pytest.mark.parametrize("name", [name for name in IN_TRITON if name != "vectorised"])
def test_other_systems_interpreted(name: str) -> None:
    weights = cases.negative_graph(18)
    config = Config(engine="portable")
    found = papers.solve(cases.tensor(weights, torch.int16), name, config=config)
    cases.assert_distances(found.distances, weights)


@pytest.mark.skipif(INTERPRETED, reason="the interpreter runs some of the systems on the CPU")
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_cpu_runs_no_system(name: str) -> None:
    with pytest.raises(EngineError, match=rf"system {name} needs .*GPU.*, but the device is"):
        papers.solve(torch.zeros((3, 3), dtype=SYSTEMS[name].dtypes[0]), name)


def test_names_that_are_not_known() -> None:
    with pytest.raises(InputError, match=r"`system` must be one of harish_narayanan, .*'kleene'"):
        papers.solve(torch.zeros(3, 3), "kleene")
    with pytest.raises(InputError, match="`method` must be one of auto, floyd_warshall"):
        tri_apsp.shortest_paths(torch.zeros(3, 3), method="simple")  # type: ignore[arg-type]
