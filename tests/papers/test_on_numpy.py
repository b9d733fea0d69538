"""The systems in Gluon, their host code included, with kernels that run on NumPy arrays: nothing
past the end is touched.
"""

from typing import Any

import cases
import numpy as np
import pytest
import torch
from kernels.gluon_stand_in import Pointer, import_kernels, launch
from papers.substitutes import Engine

from tri_apsp.methods import Observer
from tri_apsp.papers import SYSTEMS
from tri_apsp.semirings import distance_range, no_edge


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


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.blocked])
def test_distances(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = SYSTEMS[name]
    module = import_kernels(f"papers.{system.module}")
    monkeypatch.setattr("tri_apsp.gpu.launcher.Launcher", Launcher)
    parameters = system.parameter.choices if system.parameter else (0,)
    for parameter in parameters:
        method = getattr(module, system.class_name)(parameter)
        for n in (0, 32, 70) if parameter == parameters[-1] else (33,):
            for make in (cases.random_graph, cases.negative_graph):
                weights, nonnegative = make(n), make is cases.random_graph
                for dtype in {torch.float32, torch.int16}.intersection(system.dtypes):
                    d = cases.tensor(np.stack([weights, weights]), dtype)
                    d.diagonal(dim1=1, dim2=2).clamp_(max=0)
                    method.solve(d, Engine(dtype, nonnegative=nonnegative), Observer())
                    d[d >= distance_range(dtype, negative=not nonnegative).beyond] = no_edge(dtype)
                    cases.assert_distances(d[0], weights)
                    assert torch.equal(d[0], d[1])
