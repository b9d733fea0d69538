"""Graphs that change, and what must hold of a result that was brought up to date."""

from typing import Any

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import Result
from tri_apsp.graphs.sparse import SPARSE_DTYPES

KINDS = [
    (kind, dtype)
    for dtype in cases.DTYPES
    for kind in ("dense", "sparse", "prepared")
    if kind == "dense" or dtype in SPARSE_DTYPES
]
"""The pairs of a kind of graph and a dtype."""
FEW_DTYPES = (torch.float32,)
FEW_KINDS = [("dense", torch.float32), ("sparse", torch.float32)]
"""Those whose kernels README's tests compile; others are of the slow tier."""
DTYPE_PARAMETERS = [
    x if x in FEW_DTYPES else pytest.param(x, marks=pytest.mark.slow) for x in cases.DTYPES
]
KIND_PARAMETERS = [
    each if each in FEW_KINDS else pytest.param(*each, marks=pytest.mark.slow) for each in KINDS
]


def graph_of(
    weights: cases.Matrix, kind: str, dtype: torch.dtype, device: str = "cpu"
) -> torch.Tensor | tri_apsp.PreparedGraph:
    """A graph of a kind: "dense", "sparse", or "prepared", which has an order."""
    dense = cases.tensor(weights, dtype, device)
    if kind == "dense":
        return dense
    order: Any = "none" if kind == "sparse" else list(range(len(weights)))
    return tri_apsp.prepare(dense, order=order)


def weights_of(graph: Any) -> cases.Matrix:
    """The weights of any graph, 0 on the diagonal."""
    weights = cases.values(graph if isinstance(graph, torch.Tensor) else graph.dense())
    np.fill_diagonal(weights, 0)
    return weights


def check(result: Result, graph: Any, weights: cases.Matrix) -> None:
    """Assert that a result and its graph are those of `weights`, bit for bit."""
    np.testing.assert_array_equal(weights_of(graph), weights)
    cases.assert_distances(result.distances, weights)
    if result.predecessors is not None and weights.size:
        dtype, device = result.distances.dtype, result.distances.device
        cases.assert_predecessors(result, cases.tensor(weights, dtype).to(device))


def changed(weights: cases.Matrix, edges: Any, new: Any, *, directed: bool = True) -> cases.Matrix:
    """Weights with others of some edges; the diagonal is 0, or that of a negative loop."""
    weights = weights.copy()
    np.fill_diagonal(weights, 0)
    for (u, v), weight in zip(edges, new, strict=True):
        weights[u, v] = weight if u != v else min(0, weight)
        if not directed:
            weights[v, u] = weights[u, v]
    return weights
