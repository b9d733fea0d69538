"""A call of SciPy's functions: weights, one solve for all pairs or some rows, and the result in
SciPy's form.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import NegativeCycleError

from tri_apsp import errors
from tri_apsp.api import distance_blocks, nearest, shortest_paths
from tri_apsp.csgraph.weights import sources_of, weights_of
from tri_apsp.engines.cpu_tasks import run_pass, thread_count
from tri_apsp.graphs.sparse import SparseGraph

# SciPy's mark of a pair without a predecessor, and of a vertex without a source.
_NO_PREDECESSOR = -9999


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
    min_only: bool = False,
) -> Any:
    """Return the distances, with `return_predecessors` in a tuple with the predecessors, and with
    `min_only` the sources; see shortest_path and dijkstra.

    `ignore_unreached_cycles`: raise only if a source reaches a negative cycle.
    """
    predecessors = bool(return_predecessors)  # SciPy takes any value
    weights = weights_of(csgraph, directed=directed, unweighted=unweighted, overwrite=overwrite)
    if indices is None and not min_only and limit == np.inf:
        return _as_scipy(*_all_pairs(weights, predecessors, overwrite), None)
    if not ignore_unreached_cycles and _has_negative(weights):  # also one that no source reaches
        with _errors():
            distance_blocks(weights)  # which raises before it solves the first block
    n = weights.n if isinstance(weights, SparseGraph) else len(weights)
    sources = sources_of(indices, n)
    shape = (n,) if min_only else (*sources.shape, n)
    if not sources.size:
        none = torch.full(shape, -1, dtype=torch.int32) if predecessors else None
        distances = torch.full(shape, np.inf, dtype=torch.float64)
        return _as_scipy(distances, none, none if min_only else None)
    with _errors():
        call = nearest if min_only else shortest_paths
        result = call(
            weights,
            sources=torch.from_numpy(sources.ravel()),
            predecessors=predecessors,
            limit=limit if limit < np.inf else None,
        )
    before = None if result.predecessors is None else result.predecessors.view(shape)
    return _as_scipy(result.distances.view(shape), before, result.nearest)


def _all_pairs(
    weights: torch.Tensor | SparseGraph, predecessors: bool, overwrite: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return distances, with `overwrite` in the memory of dense weights, and predecessors."""
    dense = isinstance(weights, torch.Tensor)
    # Without negative weights no cycle can be negative, so that nothing is lost by solving in the
    # memory of the weights.
    in_place = dense and not predecessors and not _has_negative(weights)
    with _errors():
        out = weights if in_place else None
        result = shortest_paths(weights, out=out, predecessors=predecessors)  # type: ignore[arg-type]
    if isinstance(weights, torch.Tensor) and overwrite and not in_place:
        return weights.copy_(result.distances), result.predecessors
    return result.distances, result.predecessors


def _as_scipy(
    distances: torch.Tensor,
    predecessors: torch.Tensor | None,
    sources: torch.Tensor | None,
) -> Any:
    """Return distances, and predecessors and sources if they are given, in SciPy's form."""
    from tri_apsp.kernels.cpu.sparse import mark_missing  # with Numba: half a second

    found = distances.numpy()
    if predecessors is None:
        return found
    given = [x.to(torch.int32).numpy() for x in (predecessors, sources) if x is not None]
    for array in given:
        parts = np.array_split(array.reshape(-1), thread_count())
        run_pass(mark_missing, [(part, _NO_PREDECESSOR) for part in parts], array.size)
    return (found, *given)


def _has_negative(weights: torch.Tensor | SparseGraph) -> bool:
    if isinstance(weights, SparseGraph):
        return weights.lowest < 0
    return bool((weights < 0).any())


@contextmanager
def _errors() -> Iterator[None]:
    """Raise the error of a negative cycle as one of this module."""
    try:
        yield
    except errors.NegativeCycleError as error:
        raise ScipyNegativeCycle(error.vertices, weight=error.weight, mark="") from None
