"""Weight matrices built on a GPU equal those built on the CPU."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs import EdgeList, cast_weights, from_edge_index, generate

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
def test_to_weights(dtype: torch.dtype) -> None:
    graph = generate("erdos_renyi", 700, p=0.05, seed=4)
    assert isinstance(graph, EdgeList)
    edges = zip(
        (graph.sources, graph.targets, graph.weights), ([0, 0], [1, 1], [2, 1]), strict=True
    )
    twice = EdgeList(graph.n, *(np.append(values, more) for values, more in edges))
    weights = twice.to_weights(dtype)
    assert weights[0, 1] == 1
    on_gpu = twice.to_weights(dtype, "cuda")
    assert on_gpu.device.type == "cuda"
    assert torch.equal(on_gpu.cpu(), weights)
    assert torch.equal(
        cast_weights(on_gpu, torch.float64).cpu(), cast_weights(weights, torch.float64)
    )


def test_edges_of_another_device() -> None:
    edges = torch.zeros(2, 1, dtype=torch.int64, device="cuda")
    with pytest.raises(InputError, match="must be on the device of `edge_index`, cuda:0, but is"):
        from_edge_index(edges, torch.ones(1))
