"""Shortest paths of any graph, given as dense weights or as a sparse graph: by a dense method, or
by Johnson's algorithm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch

from tri_apsp import tuned
from tri_apsp.configs import Config, MethodChoice
from tri_apsp.device import fits_memory
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.semirings import dtype_name, minus_infinity, no_edge
from tri_apsp.solver.arguments import (
    Problem,
    check_config,
    check_flags,
    check_method,
    check_negative_cycles,
    check_weights,
    with_sizes,
)
from tri_apsp.solver.exponents import may_multiply_by_exponents, with_exponents
from tri_apsp.solver.packed import refuse_with_offsets, solve_packed
from tri_apsp.solver.result import Result, Selection
from tri_apsp.solver.run import NegativeCycles, solve_problem
from tri_apsp.solver.run import solve as solve_dense
from tri_apsp.solver.selection import select_dense
from tri_apsp.sparse.choice import JOHNSON, Comparison, dense_or_johnson, most_edges
from tri_apsp.sparse.graph import SPARSE_DTYPES, SparseGraph, is_sparse, sparse_graph
from tri_apsp.sparse.johnson import johnson
from tri_apsp.sparse.single_source import sources_of
from tri_apsp.sparse.solve import SparseSolver, chosen_rows, engine_name

__all__ = ["ShortestPathsMethod", "select", "solve"]

ShortestPathsMethod: TypeAlias = Literal[MethodChoice, "johnson"]
"""The methods of shortest_paths."""

_METHODS = get_args(ShortestPathsMethod)
# Values that are counted at a time.
_AT_A_TIME = 1 << 26


class _Given(NamedTuple):
    """What a caller gave, checked: dense weights, or a sparse graph.

    Attributes:
        weights: dense weights (n, n) or (batch, n, n) as they were given; None of a sparse graph.
        graph: the sparse graph; None of dense weights.
        n, dtype, device: of either; the dtype that it is solved in.
        batched: whether the weights are a batch.
        problem: what check_weights made of dense weights.
    """

    weights: torch.Tensor | None
    graph: SparseGraph | None
    n: int
    dtype: torch.dtype
    device: torch.device
    batched: bool
    problem: Problem | None = None

    @classmethod
    def of(cls, weights: Any) -> _Given:
        if is_sparse(weights):
            graph = sparse_graph(weights, name="weights")
            return cls(None, graph, graph.n, graph.dtype, graph.device, False)
        problem = check_weights(weights)
        return cls(
            weights,
            None,
            problem.n,
            problem.weights.dtype,
            problem.weights.device,
            problem.batched,
            problem,
        )

    def sparse(self) -> SparseGraph:
        return self.graph if self.graph is not None else sparse_graph(self.weights, name="weights")

    def dense(self) -> torch.Tensor:
        if self.weights is not None:
            return self.weights
        assert self.graph is not None
        return self.graph.dense()

    def like_dense(self) -> torch.Tensor:
        """Return a tensor of the shape, dtype and device of the dense weights; for a sparse graph
        one value in memory.
        """
        if self.weights is not None:
            return self.weights
        return torch.empty((1, 1), dtype=self.dtype, device=self.device).expand(self.n, self.n)


def solve(
    weights: Any,
    *,
    sources: int | Sequence[int] | torch.Tensor | None = None,
    sizes: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    method: ShortestPathsMethod = "auto",
    config: Config | None = None,
    overwrite: bool = False,
    check: bool = True,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    report: Callable[[float], None] | None = None,
) -> Result:
    """As shortest_paths; `report` receives the fraction done from time to time, for which the host
    blocks each time.
    """
    check_method(method, _METHODS)
    check_config(config)
    check_flags(overwrite=overwrite, check=check, predecessors=predecessors)
    if offsets is not None:
        beside = {
            "sources": sources is not None,
            "sizes": sizes is not None,
            "overwrite": overwrite,
        }
        refuse_with_offsets(beside | {f"method={JOHNSON!r}": method == JOHNSON})
        return solve_packed(
            weights,
            offsets,
            solve_dense,
            predecessors=predecessors,
            method=method,
            config=config,
            check=check,
            negative_cycles=negative_cycles,
        )
    given = _Given.of(weights)
    only_dense = {"sizes": sizes is not None, "overwrite": overwrite, "check=False": not check}
    for option in (name for name, is_given in only_dense.items() if is_given):
        _require_dense(option, given, method, sources)
    vertices = None if sources is None else _sources(sources, given)
    rows = given.n if vertices is None else len(vertices)
    if any(only_dense.values()) or not _compare(given, rows, method, config).sparse:
        assert method != JOHNSON
        dense = given.dense()
        problem = given.problem or check_weights(dense)
        solve_this = partial(
            solve_problem,
            dense,
            problem if sizes is None else with_sizes(problem, sizes, check=check),
            method=method,
            config=config,
            overwrite=overwrite,
            check=check,
            predecessors=predecessors,
            report=report,
        )
        return (
            solve_this(negative_cycles=negative_cycles)
            if vertices is None
            else _dense_rows(solve_this, vertices, negative_cycles)
        )
    check_negative_cycles(negative_cycles, check=True, overwrite=False)
    if vertices is None:
        return johnson(
            given.sparse(),
            predecessors=predecessors,
            negative_cycles=negative_cycles,
            report=report,
        )
    solved = SparseSolver(given.sparse(), "auto", negative_cycles).solve(
        vertices, predecessors=predecessors
    )
    return Result(
        solved.distances,
        JOHNSON,
        solved.engine,
        None,
        solved.predecessors,
        solved.negative_cycle,
        sources=vertices,
    )


def select(
    weights: Any,
    *,
    sources: int | Sequence[int] | torch.Tensor | None = None,
    method: ShortestPathsMethod,
    config: Config | None,
    read_values: bool,
) -> Selection:
    """As tri_apsp.select."""
    check_method(method, _METHODS)
    check_config(config)
    check_flags(read_values=read_values)
    given = _Given.of(weights)
    vertices = None if sources is None else _sources(sources, given)
    if given.graph is not None or read_values or method == JOHNSON:
        compared = _compare(given, given.n if vertices is None else len(vertices), method, config)
        if compared.sparse:
            if vertices is None:
                return Selection(JOHNSON, engine_name(given.device), None, compared.reason)
            rows, engine = chosen_rows(given.sparse(), len(vertices))
            return Selection(JOHNSON, engine, None, f"{compared.reason}; rows by {rows}")
    assert method != JOHNSON
    nonnegative = True
    if given.graph is not None:
        nonnegative = given.graph.lowest >= 0
    elif read_values and given.dense().numel():
        nonnegative = bool(given.dense().amin() >= 0)
    selection = select_dense(given.like_dense(), method, config, nonnegative=nonnegative)
    like = given.like_dense() if given.problem is None else given.problem.weights
    if not (read_values and nonnegative and may_multiply_by_exponents(selection, given.n, like)):
        return selection
    problem = given.problem or check_weights(given.dense())
    return with_exponents(selection, problem.weights)


def _require_dense(option: str, given: _Given, method: str, sources: object) -> None:
    others = {
        "a sparse graph": given.graph is not None,
        "`sources`": sources is not None,
        f"method={JOHNSON!r}": method == JOHNSON,
    }
    for other in (name for name, is_given in others.items() if is_given):
        raise InputError(
            f"`{option}` is for dense methods that solve all rows of dense weights, but is given with {other}; leave one of "
            "them out."
        )


def _sources(sources: Any, given: _Given) -> torch.Tensor:
    if given.batched:
        raise InputError(
            "`sources` need one graph, (n, n), but `weights` are a batch; leave them out."
        )
    return sources_of(sources, given.n)


def _compare(
    given: _Given, rows: int, method: ShortestPathsMethod, config: Config | None
) -> Comparison:
    """Compare dense methods with Johnson's algorithm for so many rows of the distances."""
    n, device = given.n, given.device
    only_dense = (
        "a batch"
        if given.batched
        else ""
        if given.dtype in SPARSE_DTYPES
        else dtype_name(given.dtype)
    )
    if method == JOHNSON and only_dense:
        names = ", ".join(map(dtype_name, SPARSE_DTYPES))
        raise InputError(
            f"method {JOHNSON!r} needs one graph in {names}, but {only_dense} is for dense methods; give one of these."
        )
    if method != JOHNSON and (only_dense or method != "auto"):
        return Comparison(False, "asked for")
    # A configuration is for dense methods, unless it only names the engine that solves sparse
    # graphs too.
    engine = engine_name(device)
    if method == JOHNSON:
        if not _only_names(config, engine):
            given_fields = {
                name: value
                for name, value in vars(config).items()
                if name != "source" and value is not None
            }
            raise InputError(
                f"`config` may only name the engine {engine!r} with method {JOHNSON!r}, but sets {given_fields}; leave it out, "
                "or choose a dense method."
            )
        return Comparison(True, "asked for by name")
    if not _only_names(tuned.with_forced(config), engine):
        return Comparison(False, "asked for")
    if not fits_memory(n * n * given.dtype.itemsize, device):
        return Comparison(given.graph is not None or rows < n, "no dense matrix fits the memory")
    if given.graph is not None:
        return dense_or_johnson(n, given.graph.edges, rows, device, has_lists=True)
    edges = _count_edges(given.dense(), most_edges(n, rows, device, has_lists=False))
    return dense_or_johnson(n, edges, rows, device, has_lists=False)


def _only_names(config: Config | None, engine: str) -> bool:
    """Return whether a configuration sets nothing but perhaps this engine."""
    return config is None or config in (Config(), Config(engine=engine))


def _count_edges(weights: torch.Tensor, most: float) -> int | None:
    """Return the number of edges of dense weights (n, n), or None if there are more than `most`, or
    that is 0.
    """
    if not most:
        return None
    n, missing = (
        max(1, len(weights)),
        no_edge(weights.dtype) if weights.dtype != torch.bool else False,
    )
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


def _dense_rows(
    solve_this: Callable[..., Result], sources: torch.Tensor, negative_cycles: NegativeCycles
) -> Result:
    """Return the rows of a dense solve from `sources`; only a negative cycle that one of them
    reaches counts.
    """
    try:
        return _rows_of(solve_this(negative_cycles=negative_cycles), sources)
    except NegativeCycleError:
        result = _rows_of(solve_this(negative_cycles="mark"), sources)
        if result.negative_cycle is not None:
            raise
        return result


def _rows_of(result: Result, sources: torch.Tensor) -> Result:
    """Return the rows of a result from `sources`."""
    rows = sources.to(result.distances.device)
    predecessors = None if result.predecessors is None else result.predecessors[rows]
    distances = result.distances[rows]
    marked = result.negative_cycle is not None and bool(
        (distances == minus_infinity(distances.dtype)).any()
    )
    cycle = result.negative_cycle if marked else None
    return dataclasses.replace(
        result,
        distances=distances,
        predecessors=predecessors,
        negative_cycle=cycle,
        sources=sources,
    )
