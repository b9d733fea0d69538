"""A call of SciPy's functions: weights, one solve for all pairs or some rows, and the result in
SciPy's form.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse.csgraph import NegativeCycleError

from tri_apsp import errors
from tri_apsp.api import distance_blocks, shortest_paths
from tri_apsp.csgraph.weights import sources_of, weights_of

__all__ = ["NO_PREDECESSOR", "ScipyNegativeCycle", "nearest", "solve"]

NO_PREDECESSOR = -9999
"""SciPy's mark of a pair without a predecessor, and of a vertex without a source."""


class ScipyNegativeCycle(errors.NegativeCycleError, NegativeCycleError):  # type: ignore[misc]
    """The error of tri_apsp, with its attributes, which handlers of SciPy's catch too."""


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
    """Return the distances, with `return_predecessors` in a tuple with the predecessors; see
    shortest_path and dijkstra.

    `ignore_unreached_cycles`: raise only if a source reaches a negative cycle.
    """
    return_predecessors = bool(return_predecessors)  # SciPy takes any value
    weights = weights_of(csgraph, directed=directed, unweighted=unweighted, overwrite=overwrite)
    sources = None if indices is None else sources_of(indices, len(weights))
    if sources is not None:
        if not ignore_unreached_cycles:
            _require_no_negative_cycle(weights)
        return _rows(weights, sources, return_predecessors, limit)
    dense = weights.layout == torch.strided
    # Without negative weights no cycle can be negative, so that nothing is lost by solving in the
    # memory of the weights.
    in_place = dense and not return_predecessors and not _has_negative(weights)
    with _errors():
        result = shortest_paths(weights, overwrite=in_place, predecessors=return_predecessors)
    solved = (
        weights.copy_(result.distances)
        if dense and overwrite and not in_place
        else result.distances
    )
    return _as_scipy(solved, result.predecessors, limit)


def _rows(
    weights: torch.Tensor, sources: npt.NDArray[np.int64], predecessors: bool, limit: float
) -> Any:
    """Return the rows of some sources; a negative cycle counts only if one of them leads to it."""
    shape, vertices = (*sources.shape, len(weights)), torch.from_numpy(sources.ravel())
    if not len(vertices):
        none = torch.empty(shape, dtype=torch.int32) if predecessors else None
        return _as_scipy(torch.empty(shape, dtype=torch.float64), none, limit)
    with _errors():
        result = shortest_paths(
            weights,
            sources=vertices,
            predecessors=predecessors,
            limit=limit if limit < np.inf else None,
        )
    before = None if result.predecessors is None else result.predecessors.view(shape)
    return _as_scipy(result.distances.view(shape), before, limit)


def _as_scipy(distances: torch.Tensor, predecessors: torch.Tensor | None, limit: float) -> Any:
    """Return distances up to a limit, and predecessors if they are given, in SciPy's form."""
    found = distances.numpy()
    if limit < np.inf:
        found[found > limit] = np.inf
    if predecessors is None:
        return found
    before = predecessors.numpy()
    before[(before < 0) | (found == np.inf)] = NO_PREDECESSOR
    return found, before


def nearest(
    csgraph: Any, *, directed: bool, unweighted: bool, indices: Any, limit: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return for each vertex the distance from the nearest source, the predecessor on that path,
    and the source.
    """
    weights = weights_of(csgraph, directed=directed, unweighted=unweighted, overwrite=False)
    sources = torch.from_numpy(sources_of(indices, len(weights)).ravel())
    _require_no_negative_cycle(weights)
    if not len(sources):
        none = np.full(len(weights), NO_PREDECESSOR, np.int32)
        return np.full(len(weights), np.inf), none, none.copy()
    result = shortest_paths(
        weights,
        sources=sources,
        min_only=True,
        predecessors=True,
        limit=None if limit == np.inf else limit,
    )
    assert result.predecessors is not None
    assert result.nearest is not None
    origins = result.nearest.numpy().astype(np.int32)
    origins[origins < 0] = NO_PREDECESSOR
    distances, predecessors = _as_scipy(result.distances[0], result.predecessors[0], limit)
    return distances, predecessors, origins


def _has_negative(weights: torch.Tensor) -> bool:
    values = weights if weights.layout == torch.strided else weights._values()
    return bool((values < 0).any())


def _require_no_negative_cycle(weights: torch.Tensor) -> None:
    """Raise if there is a negative cycle, even if no source leads to it."""
    if _has_negative(weights):
        with _errors():
            distance_blocks(weights)  # which raises before it solves the first block


@contextmanager
def _errors() -> Iterator[None]:
    """Raise the error of a negative cycle as one of this module."""
    try:
        yield
    except errors.NegativeCycleError as error:
        raise ScipyNegativeCycle(error.vertices, weight=error.weight, mark="") from None
