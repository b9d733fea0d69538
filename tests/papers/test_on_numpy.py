"""The systems in Gluon, their host code included, with kernels that run on NumPy arrays: nothing
past the end is touched.
"""

from __future__ import annotations

from typing import Any

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch
from methods.papers.substitutes import Engine
from tri_apsp.methods.papers import SYSTEMS

from tri_apsp.methods import Observer
from tri_apsp.semirings import distance_range, no_edge

IN_GLUON = [name for name, system in SYSTEMS.items() if system.in_gluon]
SIZES = (0, 1, 5, 31, 32, 33, 70)
FEW_SIZES = (5, 33)


class Launcher:
    """Runs a kernel of the stand-in on the memory of its tensors."""

    def __init__(self, kernel: Any, constants: dict[str, Any]) -> None:
        self.kernel = kernel
        self.constants = {name: value for name, value in constants.items() if name != "num_warps"}

    def __call__(self, grid: tuple[int, int, int], *args: torch.Tensor | int) -> None:
        values = [
            Pointer(arg.numpy(), arg.stride()) if isinstance(arg, torch.Tensor) else arg
            for arg in args
        ]
        launch(self.kernel, grid[:2], *values, **self.constants)


def _method(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = import_kernels(f"methods.papers.{SYSTEMS[name].module}")
    for base in type.mro(getattr(module, SYSTEMS[name].class_name)):
        solve = vars(base).get("solve") or vars(base).get("_multiply")
        for function in (
            (solve.__globals__.get("launcher"), solve.__globals__.get("launch")) if solve else ()
        ):
            if function is not None:
                monkeypatch.setitem(function.__globals__, "Launcher", Launcher)
    return getattr(module, SYSTEMS[name].class_name)()


@pytest.mark.parametrize("name", IN_GLUON)
def test_distances(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = SYSTEMS[name]
    solver = _method(name, monkeypatch)
    parameters = system.parameter.choices if system.parameter else (None,)
    for parameter in parameters:
        for n in SIZES if parameter == parameters[-1] else FEW_SIZES:
            for make in (cases.random_graph, cases.negative_graph):
                weights = make(n)
                for dtype in (torch.float32, torch.int16):
                    if dtype not in system.dtypes:
                        continue
                    d = cases.tensor(np.stack([weights, weights]), dtype)
                    d.diagonal(dim1=1, dim2=2).clamp_(max=0)
                    nonnegative = make is cases.random_graph
                    solver.solve(d, Engine(dtype, parameter, nonnegative=nonnegative), Observer())
                    d[d >= distance_range(dtype, negative=not nonnegative).beyond] = no_edge(dtype)
                    cases.assert_distances(d[0], weights)
                    assert torch.equal(d[0], d[1])
