"""Every method on the portable engine: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py).
"""

import os

import cases
import pytest
import torch
from methods.contract import GpuMethodContract, MethodContract

import tri_apsp

pytest.importorskip("triton", reason="the portable engine needs Triton")


@pytest.mark.gpu
class TestMethodsOnGpu(GpuMethodContract):
    engine = "portable"
    config = tri_apsp.Config(cutoff=100)

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
    def test_a_tensor_on_another_than_the_current_gpu(self) -> None:
        weights = cases.random_graph(200)
        result = tri_apsp.shortest_paths(cases.tensor(weights, torch.float32, "cuda:1")).distances
        assert result.device == torch.device("cuda:1")
        cases.assert_distances(result, weights)
        assert torch.equal(tri_apsp.min_plus(result, result), result)
        assert torch.cuda.current_device() == 0


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
class TestMethodsInterpreted(MethodContract):
    engine, device = "portable", "cpu"
    methods = ("kleene",)  # with products, panels and closures; the cpu engine has every method
    config = tri_apsp.Config(
        block_size=8, cutoff=8, panel=16, product=tri_apsp.GpuTiles(32, 32, 2, group_m=2)
    )
    sizes = (0, 1, 2, 9, 18)
    dtypes = (torch.float32,)
    predecessor_cases = ("zero weights",)
