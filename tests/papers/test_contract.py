"""The systems of the papers keep the contract of every method: on a GPU, and those in plain Triton
in Triton's interpreter.
"""

from __future__ import annotations

import os

import cases
import pytest
import torch
from methods.contract import MethodContract

import tri_apsp
from tri_apsp.methods import METHODS, SYSTEMS, auto, require_runnable

pytest.importorskip("triton", reason="the systems of the papers need Triton")

IN_TRITON = tuple(name for name, system in SYSTEMS.items() if not system.in_gluon)
VARIANTS = [
    (name, value)
    for name, system in SYSTEMS.items()
    if system.parameter
    for value in system.parameter.choices
]


@pytest.mark.gpu
class TestPapersOnGpu(MethodContract):
    engine, device = "nvidia", "cuda"
    methods = tuple(SYSTEMS)
    sizes = (0, 1, 2, 65, 131, 257)
    dtypes = (torch.float32, torch.int16)  # each dtype takes seconds to compile

    @pytest.mark.parametrize(("name", "parameter"), VARIANTS)
    def test_every_parameter(self, name: str, parameter: int) -> None:
        dtype = SYSTEMS[name].dtypes[0]
        for n in (100, 1000):
            weights = cases.random_graph(n, degree=5)
            config = tri_apsp.Config(method_parameter=parameter)
            result = tri_apsp.shortest_paths(
                cases.tensor(weights, dtype, "cuda"), method=name, config=config
            )
            assert (result.method, result.config.method_parameter) == (name, parameter)
            expected = tri_apsp.shortest_paths(cases.tensor(weights, dtype)).distances
            assert torch.equal(result.distances.cpu(), expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.int64], ids=str)
    def test_other_dtypes(self, dtype: torch.dtype) -> None:
        weights = cases.negative_graph(100)
        for name in ("harish_narayanan", "katz_kider", "staged_load", "recursive_plain"):
            cases.assert_distances(
                self.solve(cases.tensor(weights, dtype, "cuda"), name).distances, weights
            )


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
class TestPapersInterpreted(MethodContract):
    engine, device = "portable", "cpu"
    methods = ("simple", "vectorised")
    sizes = (0, 1, 2, 9, 18)
    dtypes = (torch.float32,)
    predecessor_cases = ("zero weights",)

    @pytest.mark.parametrize(
        ("name", "parameter"),
        [
            pytest.param(
                name,
                value,
                marks=pytest.mark.slow if name == "pseudo_blocked" and value > 4 else (),
            )
            for name, value in VARIANTS
            if name in IN_TRITON
        ],
    )
    def test_every_parameter(self, name: str, parameter: int) -> None:
        if name not in self.methods:
            pytest.skip("is tested with its other tests")
        weights = cases.random_graph(9 if parameter > 4 else 35)
        config = tri_apsp.Config(engine="portable", method_parameter=parameter)
        result = tri_apsp.shortest_paths(
            cases.tensor(weights, torch.int16), method=name, config=config
        )
        cases.assert_distances(result.distances, weights)


@pytest.mark.slow
class TestOthersInterpreted(TestPapersInterpreted):
    methods = ("harish_narayanan", "pseudo_blocked")


def test_every_system_in_triton_is_interpreted() -> None:
    assert {*TestPapersInterpreted.methods, *TestOthersInterpreted.methods} == {*IN_TRITON}


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1",
    reason="the interpreter runs some of the systems on the CPU",
)
@pytest.mark.parametrize("name", SYSTEMS)
def test_on_a_cpu_the_error_names_the_gpu_and_the_methods_that_run(name: str) -> None:
    weights = torch.zeros((3, 3), dtype=SYSTEMS[name].dtypes[0])
    with pytest.raises(
        tri_apsp.EngineError, match=rf"method {name} needs a GPU.*{', '.join(METHODS)}"
    ):
        tri_apsp.shortest_paths(weights, method=name)
    with pytest.raises(tri_apsp.EngineError, match=name):
        tri_apsp.select(weights, method=name)


def test_parameters_and_dtypes_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.methods.papers._require_gpu", lambda *args: None)

    def refused(dtype: torch.dtype, method: str, parameter: int | None, message: str) -> None:
        with pytest.raises(tri_apsp.InputError, match=message):
            require_runnable(method, torch.device("cuda"), dtype, parameter)

    refused(
        torch.float32,
        "kleene",
        4,
        "method_parameter must come with a method of the papers, but the method is kleene",
    )
    refused(
        torch.float32,
        "blocked_int16",
        None,
        "method blocked_int16 takes weights of int16, but these are float32",
    )
    refused(
        torch.float32,
        "staged_load",
        3,
        "method_parameter must be one of 1, 2, 4, 8, 16, 32 for staged_load, but is 3",
    )
    refused(torch.float32, "simple", 2, "method_parameter must be left out for simple, but is 2")


def test_auto_never_takes_them() -> None:
    assert {rule.method for rule in auto.RULES} <= set(METHODS)
    with pytest.raises(tri_apsp.InputError, match="method must be one of"):
        tri_apsp.select(torch.zeros((3, 3)), config=tri_apsp.Config(method="simple"))  # type: ignore[arg-type]
