"""Every method on the nvidia engine."""

from __future__ import annotations

import cases
import pytest
import torch
from methods.contract import MethodContract

import tri_apsp
from tri_apsp.methods import METHODS

pytest.importorskip("triton", reason="the nvidia engine needs Triton")


@pytest.mark.gpu
class TestMethodsOnNvidia(MethodContract):
    engine, device = "nvidia", "cuda"
    config = tri_apsp.Config(cutoff=100)
    dtypes = (torch.float32, torch.int32)

    @pytest.mark.parametrize("n", [1, 63, 100, 257, 1000, 3353, 4097])
    def test_bit_for_bit_with_the_cpu_engine(self, n: int) -> None:
        for weights in (cases.random_graph(n, degree=5), cases.negative_graph(n, degree=5)):
            for dtype in self.dtypes:
                expected = tri_apsp.shortest_paths(cases.tensor(weights, dtype)).distances
                for method in METHODS if n <= 1000 else ("floyd_warshall", "kleene"):
                    found = self.solve(cases.tensor(weights, dtype, "cuda"), method).distances
                    assert torch.equal(found.cpu(), expected), (method, dtype)
