"""Weight matrices built on the GPU are those built on the CPU."""

from __future__ import annotations

import cases
import pytest
import torch

from tri_apsp.graphs import EdgeList, cast_weights, generate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
def test_to_weights(dtype: torch.dtype) -> None:
    graph = generate("erdos_renyi", 700, p=0.05, seed=4)
    assert isinstance(graph, EdgeList)
    twice = EdgeList(graph.n, [*graph.sources, 0, 0], [*graph.targets, 1, 1], [*graph.weights, 2, 1])
    weights = twice.to_weights(dtype)
    assert weights[0, 1] == 1
    on_gpu = twice.to_weights(dtype, "cuda")
    assert on_gpu.device.type == "cuda"
    assert torch.equal(on_gpu.cpu(), weights)
    assert torch.equal(cast_weights(on_gpu, torch.float64).cpu(), cast_weights(weights, torch.float64))
