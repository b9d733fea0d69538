"""The public functions: documentation, and one call each. The work is in tri_apsp.csgraph.solve."""

from numbers import Real
from typing import Any

import numpy as np

from tri_apsp.arguments import as_float_or_inf
from tri_apsp.csgraph.solve import solve
from tri_apsp.errors import InputError, error_for
from tri_apsp.messages import shown

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
    """Compute the distances of all pairs of vertices, or those from some of them, as
    scipy.sparse.csgraph.shortest_path does.

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

    Cost:
        That of `tri_apsp.shortest_paths`, which solves a graph of few edges row by row and any
        other with n^3 min-plus operations and one or two dense (n, n) matrices. With `indices`, a
        graph of few edges takes no matrix, but a search from each of them; for a single one, SciPy
        is faster. If a weight is negative, Bellman-Ford precedes, and with `indices` once more to
        find negative cycles that no source reaches, except with "BF".

    Examples:
        >>> import numpy as np
        >>> from tri_apsp.csgraph import shortest_path
        >>> graph = np.array([[0, 3, 0], [0, 0, -1], [2, 0, 0]])  # 0 means no edge
        >>> distances, predecessors = shortest_path(graph, return_predecessors=True)
        >>> distances.tolist()
        [[0.0, 3.0, 2.0], [1.0, 0.0, -1.0], [2.0, 5.0, 0.0]]
        >>> predecessors.tolist()
        [[-9999, 0, 1], [2, -9999, 1], [2, 0, -9999]]
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
    """Compute the distances of all pairs of vertices, as scipy.sparse.csgraph.floyd_warshall does:
    shortest_path with method="FW".

    Args:
        csgraph: (n, n) of real numbers, as for `shortest_path`.
        directed: whether an edge leads from i to j only.
        return_predecessors: return the predecessors too.
        unweighted: every edge weighs 1.
        overwrite: solve in the memory of a writable C-contiguous array of float64.

    Returns:
        (n, n) of float64, or a tuple with the predecessors, (n, n) of int32.

    Raises:
        InputError: as for `shortest_path`.
        NegativeCycleError: there is a cycle of negative weight, a negative loop too.
        TooLargeError: the result does not fit the memory.

    Cost:
        As for `shortest_path`; a graph of few edges is solved row by row.

    Examples:
        >>> import numpy as np
        >>> from tri_apsp.csgraph import floyd_warshall
        >>> graph = np.array([[0, 3, 0], [0, 0, 1], [2, 0, 0]])
        >>> floyd_warshall(graph, directed=False).tolist()
        [[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
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
    """Compute the distances from sources, as far as `limit`, or from the nearest of them, as
    scipy.sparse.csgraph.dijkstra does.

    Unlike SciPy's, it takes negative weights too.

    Args:
        csgraph: (n, n) of real numbers, as for `shortest_path`.
        directed: whether an edge leads from i to j only.
        indices: sources, integers of any shape in [-n, n); None: all vertices.
        return_predecessors: return the predecessors too.
        unweighted: every edge weighs 1.
        limit: a number of at least 0; a distance beyond it becomes inf, its predecessor -9999
            unless, with negative weights, a path within the limit leads through the vertex.
        min_only: return for each vertex the distance from the nearest source in place of those from
            every source.

    Returns:
        As for `shortest_path`. With `min_only`, the distances are float64 of shape (n,); with
        `return_predecessors` a tuple of these, the predecessors and the nearest sources, both int32
        of shape (n,), -9999 where no source has a path. The predecessor of a source is -9999. Of
        several nearest sources, it is the one to which the predecessors lead.

    Raises:
        InputError: as for `shortest_path`; a limit below 0, or NaN.
        NegativeCycleError: as for `shortest_path`.
        TooLargeError: as for `shortest_path`.

    Cost:
        As for `shortest_path`; with `min_only` one search, and with `limit` and `indices` one from
        each source, as far as `limit`.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> from tri_apsp.csgraph import dijkstra
        >>> graph = csr_array(([3.0, 1.0, 5.0], ([0, 1, 2], [1, 2, 3])), shape=(4, 4))
        >>> dijkstra(graph, indices=[0, 2], limit=6).tolist()
        [[0.0, 3.0, 4.0, inf], [inf, inf, 0.0, 5.0]]
        >>> dijkstra(graph, indices=[0, 2], min_only=True).tolist()
        [0.0, 3.0, 0.0, 5.0]
    """
    if np.ndim(limit) == 0 and hasattr(limit, "item"):
        limit = limit.item()
    if not isinstance(limit, Real) or not limit >= 0:
        raise error_for(limit, Real)(
            f"`limit` must be a number of at least 0, but is {shown(limit)}; give inf for no limit."
        )
    return solve(
        csgraph,
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        indices=indices,
        limit=as_float_or_inf(limit),
        min_only=bool(min_only),
    )


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Compute the distances from sources, with weights of any sign, as
    scipy.sparse.csgraph.bellman_ford does: shortest_path with method="BF".

    Args:
        csgraph: (n, n) of real numbers, as for `shortest_path`.
        directed: whether an edge leads from i to j only.
        indices: sources, integers of any shape in [-n, n); None: all vertices.
        return_predecessors: return the predecessors too.
        unweighted: every edge weighs 1.

    Returns:
        As for `shortest_path`: float64 of shape indices.shape + (n,), or a tuple with the
        predecessors, int32 of the same shape.

    Raises:
        InputError: as for `shortest_path`.
        NegativeCycleError: a vertex of `indices` reaches a cycle of negative weight.
        TooLargeError: as for `shortest_path`.

    Cost:
        As for `shortest_path`.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> from tri_apsp.csgraph import NegativeCycleError, bellman_ford
        >>> graph = csr_array(([3.0, -1.0, -3.0], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
        >>> try:
        ...     bellman_ford(graph, indices=0)
        ... except NegativeCycleError as error:
        ...     print(sorted(error.vertices), error.weight)
        [1, 2] -4.0
    """
    return shortest_path(csgraph, "BF", directed, return_predecessors, unweighted, indices=indices)


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Compute the distances from sources, with weights of any sign, as
    scipy.sparse.csgraph.johnson does: shortest_path with method="J".

    Args:
        csgraph: (n, n) of real numbers, as for `shortest_path`.
        directed: whether an edge leads from i to j only.
        indices: sources, integers of any shape in [-n, n); None: all vertices.
        return_predecessors: return the predecessors too.
        unweighted: every edge weighs 1.

    Returns:
        As for `shortest_path`: float64 of shape indices.shape + (n,), or a tuple with the
        predecessors, int32 of the same shape.

    Raises:
        InputError: as for `shortest_path`.
        NegativeCycleError: there is a cycle of negative weight.
        TooLargeError: as for `shortest_path`.

    Cost:
        As for `shortest_path`.

    Examples:
        >>> from scipy.sparse import csr_array
        >>> from tri_apsp.csgraph import johnson
        >>> graph = csr_array(([3.0, -1.0, 2.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
        >>> johnson(graph, indices=[1]).tolist()
        [[1.0, 0.0, -1.0]]
    """
    return shortest_path(csgraph, "J", directed, return_predecessors, unweighted, indices=indices)
