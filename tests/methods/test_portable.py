"""Every method on the portable engine: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py).
"""

from __future__ import annotations

import os

import cases
import pytest
import torch
from methods.contract import MethodContract

import tri_apsp
from tri_apsp.methods import METHODS

pytest.importorskip("triton", reason="the portable engine needs Triton")


@pytest.mark.gpu
class TestMethodsOnGpu(MethodContract):
    engine, device = "portable", "cuda"
    config = tri_apsp.Config(cutoff=100)

    @pytest.mark.parametrize("n", [1, 63, 100, 257, 1000, 3353, 4097])
    def test_bit_for_bit_with_the_cpu_engine(self, n: int) -> None:
        weights = cases.random_graph(n, degree=5)
        for dtype in cases.DTYPES:
            expected = tri_apsp.shortest_paths(cases.tensor(weights, dtype)).distances
            for method in METHODS:
                if method in ("iterative", "squaring") and n > 1000 and dtype != torch.float32:
                    continue
                found = self.solve(cases.tensor(weights, dtype, "cuda"), method)
                assert found.engine == "portable"
                assert torch.equal(found.distances.cpu(), expected), (method, dtype)

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
    def test_a_tensor_on_another_than_the_current_gpu(self) -> None:
        weights = cases.random_graph(200)
        result = tri_apsp.shortest_paths(cases.tensor(weights, torch.float32, "cuda:1")).distances
        assert result.device == torch.device("cuda:1")
        cases.assert_distances(result, weights)
        assert torch.equal(tri_apsp.min_plus(result, result), result)
        assert torch.cuda.current_device() == 0

    @pytest.mark.parametrize("n", [1000, 4097])
    @pytest.mark.parametrize("name", ["floyd_warshall", "kleene"])
    def test_workspace_is_at_most_a_twentieth(
        self, monkeypatch: pytest.MonkeyPatch, name: str, n: int
    ) -> None:
        """Without memory for a padded copy of the matrix, the workspace is at most a twentieth of
        the matrix.
        """
        monkeypatch.setattr("tri_apsp.gpu.padding.fits_memory", lambda size, device: False)
        monkeypatch.setattr("tri_apsp.engines.triton_base.EXTRA_WORKSPACE", 0.0)
        workspace, matrix = self.workspace(
            cases.tensor(cases.random_graph(n), torch.float32, "cuda"), name
        )
        assert workspace <= 0.05 * matrix + 4096  # a few scalars for the checks


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
class TestMethodsInterpreted(MethodContract):
    engine, device = "portable", "cpu"
    config = tri_apsp.Config(
        block_size=8, cutoff=8, panel=16, product=tri_apsp.GpuTiles(32, 32, 2, group_m=2)
    )
    sizes = (0, 1, 2, 9, 18)
    dtypes = (torch.float32,)
    predecessor_cases = ("zero weights",)


@pytest.mark.slow
class TestInt16Interpreted(TestMethodsInterpreted):
    dtypes = (torch.int16,)
