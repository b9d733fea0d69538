"""A call of SciPy's functions: weights, one solve for all pairs, and its rows in SciPy's form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csgraph as scipy_csgraph

from tri_apsp import errors
from tri_apsp.api import Result, shortest_paths
from tri_apsp.csgraph.weights import sources_of, weights_of

__all__ = ["NO_PREDECESSOR", "NegativeCycleError", "nearest", "solve"]

NO_PREDECESSOR = -9999
"""SciPy's mark of a pair without a predecessor, and of a vertex without a source."""


class NegativeCycleError(errors.NegativeCycleError, scipy_csgraph.NegativeCycleError):  # type: ignore[misc]
    """The error of tri_apsp, with its attributes, and that of scipy.sparse.csgraph: handlers of either catch it."""


def solve(
    csgraph: Any,
    *,
    directed: bool,
    return_predecessors: bool,
    unweighted: bool,
    indices: Any,
    overwrite: bool = False,
    ignore_unreached_cycles: bool = False,
    limit: float = np.inf,
) -> Any:
    """Return the distances, with `return_predecessors` in a tuple with the predecessors; see shortest_path and dijkstra.

    `ignore_unreached_cycles`: raise only if a source reaches a negative cycle.
    """
    return_predecessors = bool(return_predecessors)  # SciPy takes any value
    weights = weights_of(csgraph, directed=directed, unweighted=unweighted, overwrite=overwrite)
    sources = None if indices is None else sources_of(indices, len(weights))
    # Without negative weights no cycle can be negative, so that nothing is lost by solving in the memory of the weights.
    in_place = not return_predecessors and not bool((weights < 0).any())
    try:
        result = shortest_paths(weights, overwrite=in_place, predecessors=return_predecessors)
    except errors.NegativeCycleError as error:
        if sources is None or not ignore_unreached_cycles:
            raise NegativeCycleError(error.vertices, weight=error.weight) from None
        result = _solve_around_cycles(weights, sources, error, return_predecessors)
    solved = weights.copy_(result.distances) if overwrite and not in_place else result.distances
    distances = solved.numpy() if sources is None else solved.numpy()[sources]
    if limit < np.inf:
        distances[distances > limit] = np.inf
    if result.predecessors is None:
        return distances
    predecessors = result.predecessors.numpy()
    predecessors = predecessors if sources is None else predecessors[sources]
    predecessors[(predecessors < 0) | (distances == np.inf)] = NO_PREDECESSOR
    return distances, predecessors


def _solve_around_cycles(
    weights: torch.Tensor, sources: npt.NDArray[np.int64], error: errors.NegativeCycleError, predecessors: bool
) -> Result:
    """Return the result of a graph with negative cycles, none of which a source reaches; else raise."""
    result = shortest_paths(weights, predecessors=predecessors, negative_cycles="mark")
    if (result.distances.numpy()[sources] == -np.inf).any():
        raise NegativeCycleError(error.vertices, weight=error.weight)
    return result


def nearest(
    csgraph: Any, *, directed: bool, unweighted: bool, indices: Any, limit: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return for each vertex the distance from the nearest source, the predecessor on that path, and the source.

    A further vertex gets an edge of weight 0 to each source: the paths from it are a tree, so that following the predecessors
    leads to the source that is returned also where several are equally near.
    """
    weights = weights_of(csgraph, directed=directed, unweighted=unweighted, overwrite=False)
    n = len(weights)
    extended = weights.new_full((n + 1, n + 1), np.inf)
    extended[:n, :n] = weights
    extended[n, torch.from_numpy(sources_of(indices, n)).flatten()] = 0
    del weights
    try:
        result = shortest_paths(extended, predecessors=True)
    except errors.NegativeCycleError as error:
        raise NegativeCycleError(error.vertices, weight=error.weight) from None
    assert result.predecessors is not None
    distances, before = result.distances[n, :n].numpy().copy(), result.predecessors[n, :n].numpy()
    inner = (before >= 0) & (before < n)
    roots = np.where(inner, before, np.arange(n, dtype=np.int32))
    while not np.array_equal(further := roots[roots], roots):
        roots = further
    beyond = (distances > limit) | (distances == np.inf)
    distances[beyond] = np.inf
    predecessors = np.where(inner & ~beyond, before, np.int32(NO_PREDECESSOR))
    return distances, predecessors, np.where(beyond, np.int32(NO_PREDECESSOR), roots)
