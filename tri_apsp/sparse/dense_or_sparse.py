"""Shortest paths of any graph, given as dense weights or as a sparse graph: by a dense method, or by Johnson's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch

from tri_apsp import tuned
from tri_apsp.configs import Config, MethodChoice
from tri_apsp.device import fits_memory
from tri_apsp.errors import InputError
from tri_apsp.semirings import dtype_name, no_edge
from tri_apsp.solver.arguments import check_flags, check_negative_cycles, check_weights
from tri_apsp.solver.result import Result, Selection
from tri_apsp.solver.run import NegativeCycles
from tri_apsp.solver.run import solve as solve_dense
from tri_apsp.solver.selection import select_dense
from tri_apsp.sparse.choice import JOHNSON, Choice, dense_or_johnson, most_edges
from tri_apsp.sparse.graph import SPARSE_DTYPES, SparseGraph, is_sparse, sparse_graph
from tri_apsp.sparse.johnson import johnson
from tri_apsp.sparse.single_source import starts_of
from tri_apsp.sparse.solve import SparseSolver, engine_of

__all__ = ["AnyMethod", "select", "solve"]

AnyMethod: TypeAlias = Literal[MethodChoice, "johnson"]
"""The methods of shortest_paths."""

# Values that are counted at a time.
_AT_A_TIME = 1 << 26


def solve(
    weights: Any,
    *,
    sources: int | Sequence[int] | torch.Tensor | None = None,
    sizes: torch.Tensor | None = None,
    method: AnyMethod = "auto",
    config: Config | None = None,
    overwrite: bool = False,
    check: bool = True,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    report: Callable[[float], None] | None = None,
) -> Result:
    """As shortest_paths; `report` receives the fraction done from time to time, for which the host blocks each time."""
    _check_method(method)
    graph = sparse_graph(weights, name="weights") if is_sparse(weights) else None
    only_dense = sizes is not None or overwrite is not False or check is not True
    if only_dense and (graph is not None or method == JOHNSON or sources is not None):
        raise InputError(
            "`sizes`, `overwrite` and `check` are for dense methods that solve all of dense weights, but one is given with a "
            f"sparse graph, with `sources`, or with method={JOHNSON!r}; leave it out."
        )
    starts = None if sources is None else starts_of(sources, _vertices(weights, graph))
    rows = None if starts is None else starts.rows
    if only_dense or _choose(weights, graph, rows, method, config).method != JOHNSON:
        assert method != JOHNSON
        result = solve_dense(
            weights if graph is None else graph.dense(), sizes=sizes, method=method, config=config, overwrite=overwrite,
            check=check, predecessors=predecessors, negative_cycles=negative_cycles, report=report,
        )  # fmt: skip
        return result if starts is None else _rows_of(result, starts.vertices)
    check_flags(predecessors=predecessors)
    check_negative_cycles(negative_cycles, check=True, overwrite=False)
    graph = graph or sparse_graph(weights, name="weights")
    if starts is None:
        return johnson(graph, predecessors=predecessors, negative_cycles=negative_cycles, report=report)
    solved = SparseSolver(graph, "auto", negative_cycles).solve(starts, predecessors=predecessors)
    return Result(
        solved.distances, JOHNSON, solved.engine, None, solved.predecessors, solved.negative_cycle, sources=starts.vertices
    )


def select(weights: Any, *, method: AnyMethod, config: Config | None, read_values: bool) -> Selection:
    """As tri_apsp.select."""
    _check_method(method)
    check_flags(read_values=read_values)
    graph = sparse_graph(weights, name="weights") if is_sparse(weights) else None
    if graph is not None:
        # A matrix of one value in memory has what the choice of a dense method reads: shape, dtype and device.
        like = torch.empty((1, 1), dtype=graph.dtype, device=graph.device).expand(graph.n, graph.n)
    else:
        like = weights
    if graph is not None or read_values or method == JOHNSON:
        choice = _choose(weights, graph, None, method, config)
        if choice.method == JOHNSON:
            return Selection(JOHNSON, engine_of(like.device), None, choice.reason)
    assert method != JOHNSON
    nonnegative = not read_values or (bool(weights.amin() >= 0) if graph is None and weights.numel() else True)
    return select_dense(like, method, config, nonnegative=nonnegative)


def _check_method(method: object) -> None:
    names = get_args(AnyMethod)
    if method not in names:
        raise InputError(f"method must be one of {', '.join(names)}, but is {method!r}; choose one of these.")


def _choose(weights: Any, graph: SparseGraph | None, rows: int | None, method: AnyMethod, config: Config | None) -> Choice:
    """Choose between dense methods and Johnson's algorithm for so many rows of the distances; None: all."""
    if graph is None:
        problem = check_weights(weights)
        dtype, n, device = problem.weights.dtype, problem.n, problem.weights.device
    else:
        problem, dtype, n, device = None, graph.dtype, graph.n, graph.device
    if problem is not None and problem.batched:
        why = "a batch is for dense methods"
    elif dtype not in SPARSE_DTYPES:
        why = f"{dtype_name(dtype)} is for dense methods"
    elif method == JOHNSON:
        return Choice(JOHNSON, "asked for by name")
    elif method != "auto" or tuned.with_forced(config) not in (None, Config()):
        return Choice("dense", "asked for by name")
    elif not fits_memory(n * n * dtype.itemsize, device):
        return Choice("dense" if graph is None and rows is None else JOHNSON, "no matrix fits the memory")
    else:
        row_count = n if rows is None else rows
        edges = graph.edges if graph is not None else _count_edges(weights, most_edges(n, row_count, device))
        return dense_or_johnson(n, edges, row_count, device)
    if method == JOHNSON:
        names = ", ".join(map(dtype_name, SPARSE_DTYPES))
        raise InputError(f"method {JOHNSON!r} needs one graph in {names}, but {why}; give one of these.")
    return Choice("dense", why)


def _count_edges(weights: torch.Tensor, most: float) -> int | None:
    """Return the number of edges of dense weights (n, n), or None if there are more than `most`, or that is 0."""
    if not most:
        return None
    n, missing = max(1, len(weights)), no_edge(weights.dtype) if weights.dtype != torch.bool else False
    edges, first = 0, 0
    most_rows = max(1, _AT_A_TIME // n)
    step = min(most_rows, int(most / n) + 2)  # so many rows tell a complete graph
    while first < len(weights):
        rows = weights[first : first + step]
        edges += int((rows != missing).sum()) - int((rows.diagonal(first) != missing).sum())
        if edges > most:
            return None
        first += step
        step = most_rows
    return edges


def _vertices(weights: Any, graph: SparseGraph | None) -> int:
    if graph is not None:
        return graph.n
    problem = check_weights(weights)
    if problem.batched:
        raise InputError(f"`sources` need one graph, (n, n), but `weights` have shape {tuple(weights.shape)}; leave them out.")
    return problem.n


def _rows_of(result: Result, sources: torch.Tensor) -> Result:
    """Return the rows of a result from `sources`."""
    rows = sources.to(result.distances.device)
    predecessors = None if result.predecessors is None else result.predecessors[rows]
    return Result(
        result.distances[rows],
        result.method,
        result.engine,
        result.config,
        predecessors,
        result.negative_cycle,
        sources=sources,
    )
