"""All distances by Johnson's algorithm, against the dense solve."""

from __future__ import annotations

import cases
import pytest
import torch
from tri_apsp.sparse.johnson import johnson

import tri_apsp
from tri_apsp.errors import NegativeCycleError
from tri_apsp.graphs.sparse import SPARSE_DTYPES, sparse_graph
from tri_apsp.sparse import johnson as module


@pytest.mark.parametrize("dtype", SPARSE_DTYPES)
@pytest.mark.parametrize("name", ["random", "zero weights", "negative", "disconnected", "edgeless"])
def test_distances_and_predecessors(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS", 33)
    weights = cases.tensor(cases.CASES[name](70), dtype)
    found = johnson(sparse_graph(weights), predecessors=True)
    assert torch.equal(found.distances, tri_apsp.shortest_paths(weights).distances)
    cases.assert_predecessors(found, weights)


def test_fractions_are_rounded_a_little() -> None:
    generator = torch.Generator().manual_seed(0)
    potentials = torch.rand(60, generator=generator, dtype=torch.float64)
    weights = (
        torch.rand(60, 60, generator=generator, dtype=torch.float64)
        + potentials[:, None]
        - potentials
    )
    weights.fill_diagonal_(0)
    found = johnson(sparse_graph(weights))
    torch.testing.assert_close(
        found.distances, tri_apsp.shortest_paths(weights).distances, rtol=1e-13, atol=1e-13
    )


def test_negative_cycles_and_no_vertex() -> None:
    weights = torch.tensor([[0.0, -2.0, 3.0], [1.0, 0.0, torch.inf], [torch.inf, torch.inf, 0.0]])
    with pytest.raises(NegativeCycleError):
        johnson(sparse_graph(weights))
    found = johnson(sparse_graph(weights), negative_cycles="mark")
    assert torch.equal(
        found.distances, tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    )
    assert found.negative_cycle is not None
    assert johnson(sparse_graph(torch.empty(0, 0))).distances.shape == (0, 0)
