"""The public functions: documentation, and one call each. The work is in tri_apsp.csgraph.solve."""

from typing import Any

import numpy as np

from tri_apsp.csgraph.solve import solve
from tri_apsp.errors import InputError

_METHODS = ("auto", "FW", "D", "BF", "J")


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """Compute the distances of all pairs of vertices, or those from some of them:
    scipy.sparse.csgraph.shortest_path.

    Args:
        csgraph: (n, n) of real numbers, solved in float64; csgraph[i, j] is the weight of the edge
            from i to j. In an array or a list, 0, NaN and infinities are no edges; in a masked
            array, masked values, NaN and inf; in a sparse matrix, which may have any format, what
            is not stored, NaN and inf: a stored 0 is an edge of weight 0.
        method: "auto", "FW", "D", "BF" or "J", as in SciPy. All run tri_apsp.shortest_paths and
            take weights of every sign; "FW" takes no `indices`, and "BF" reports only negative
            cycles that a vertex of `indices` reaches.
        directed: whether an edge leads from i to j only; if not, the lighter one of csgraph[i, j]
            and csgraph[j, i] leads both ways, so that an edge of negative weight is a negative
            cycle.
        return_predecessors: return the predecessors too.
        unweighted: every edge weighs 1.
        overwrite: with "auto" or "FW", without `indices`, if `csgraph` is a writable C-contiguous
            array of float64: solve in its memory, which then holds the distances (undefined values
            after an error). Ignored for other graphs.
        indices: sources, integers of any shape in [-n, n), negative ones counted from the end;
            None: all vertices.

    Returns:
        The distances: float64 of shape indices.shape + (n,), (n, n) for all vertices; inf where
        there is no path. With `return_predecessors`, a tuple of these and the predecessors: int32
        of the same shape, the vertex before j on a shortest path from i to j, -9999 where there is
        no path and where i is j.

    Raises:
        InputError: a ValueError: a graph that is not square or not of real numbers, -inf as a
            masked or sparse weight, an unknown method, indices out of range, "FW" with indices.
        NegativeCycleError: there is a cycle of negative weight, beyond rounding as in
            tri_apsp.shortest_paths; it is SciPy's error and that of tri_apsp.
        TooLargeError: the result, or the dense matrix if one is solved, does not fit the memory.

    Cost: that of tri_apsp.shortest_paths, which solves a graph of few edges row by row and any
    other with n^3 min-plus operations and one or two dense (n, n) matrices. With `indices`, a graph
    of few edges takes no matrix, but a search from each of them; for a single one, SciPy is faster.
    If a weight is negative, Bellman-Ford precedes, and with `indices` once more to find negative
    cycles that no source reaches, except with "BF".
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(
            f"`method` must be one of {', '.join(_METHODS)}, but is {method!r}; give one of these."
        )
    if method == "FW" and indices is not None:
        raise InputError(
            f'`indices` must be None with method="FW", but is {indices!r}; use method="auto", or '
            "take rows of the result."
        )
    return solve(
        csgraph,
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        indices=indices,
        overwrite=overwrite and method in ("auto", "FW") and indices is None,
        ignore_unreached_cycles=method == "BF",
    )


def floyd_warshall(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
) -> Any:
    """Compute the distances of all pairs of vertices: scipy.sparse.csgraph.floyd_warshall.

    Args, results, errors and cost: as for shortest_path with method="FW".
    """
    return shortest_path(csgraph, "FW", directed, return_predecessors, unweighted, overwrite)


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """Compute the distances from sources, as far as `limit`, or from the nearest of them:
    scipy.sparse.csgraph.dijkstra.

    Unlike SciPy's, it takes negative weights too.

    Args:
        csgraph, directed, indices, return_predecessors, unweighted: as for shortest_path.
        limit: a number of at least 0; a distance beyond it becomes inf, its predecessor -9999.
        min_only: return for each vertex the distance from the nearest source in place of those from
            every source.

    Returns:
        As shortest_path. With `min_only`: the distances as float64 of shape (n,); with
        `return_predecessors` a tuple of these, the predecessors and the nearest sources, both int32
        of shape (n,), -9999 where no source has a path. The predecessor of a source is -9999. Of
        several nearest sources, it is the one to which the predecessors lead.

    Raises:
        InputError, NegativeCycleError, TooLargeError: as shortest_path; InputError also for a limit
            below 0 and for NaN.

    Cost: as shortest_path; with `min_only` one search, and with `limit` and `indices` one from each
    source, as far as `limit`.
    """
    if not limit >= 0:
        raise InputError(
            f"`limit` must be a number of at least 0, but is {limit!r}; give inf for no limit."
        )
    return solve(
        csgraph,
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        indices=indices,
        limit=float(limit),
        min_only=bool(min_only),
    )


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Compute the distances from sources, with weights of any sign:
    scipy.sparse.csgraph.bellman_ford.

    Args, results, errors and cost: as for shortest_path with method="BF".
    """
    return shortest_path(csgraph, "BF", directed, return_predecessors, unweighted, indices=indices)


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Compute the distances from sources, with weights of any sign: scipy.sparse.csgraph.johnson.

    Args, results, errors and cost: as for shortest_path with method="J".
    """
    return shortest_path(csgraph, "J", directed, return_predecessors, unweighted, indices=indices)
