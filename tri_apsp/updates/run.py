"""An update as a whole: edges that rise, then edges that fall; a solve where that takes less time.

The new distances become those of the caller only once they are known to be right.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp import calls, engines
from tri_apsp.arguments import as_integer, check_flags, check_writable
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import DenseGraph
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import memory_for
from tri_apsp.messages import counted
from tri_apsp.plan import Plan
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.updates.cuts import lower_edges
from tri_apsp.updates.graphs import (
    DenseWeights,
    Edges,
    HeldGraph,
    SparseWeights,
    changes_of,
    direction_of,
    grown_result,
    held_graphs,
    steps_of,
    sums_fit,
)
from tri_apsp.updates.raises import raise_edges

# Edges that fall, from which on a solve takes less time, on a GPU and on a CPU: as a share of the
# vertices of dense weights, or as a multiple of the edges at each vertex; of a graph with an order
# any that are not few. On two cores, n = 2500, 4 edges at each vertex, 100 edges that fall take 143
# ms and a solve 128; of dense weights 618 and 345; of roads 32 take 165 and a solve 10.
_FEW, _SHARE_OF_VERTICES, _TIMES_DEGREE = 8, (1 / 2, 1 / 40), (300, 20)


class Updated(NamedTuple):
    """A result and its graph after a change.

    Attributes:
        result: the distances and, if they were there, the predecessors; its `plan` says what ran.
        graph: with the new weights: dense weights, a SparseGraph or a PreparedGraph.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
        >>> updated = tri_apsp.update(tri_apsp.shortest_paths(weights), weights, [(0, 1)], [2.0])
        >>> updated.result.distances[0, 1].item(), updated.graph[0, 1].item()
        (2.0, 2.0)
    """

    result: Result
    graph: Any


def update(
    result: Result,
    graph: Any,
    edges: Any,
    weights: Any,
    *,
    closed: Any,
    vertices: int | None,
    directed: bool | None,
    in_place: bool,
) -> Updated:
    """Return a result after a change of its graph; see tri_apsp.update."""
    check_flags(in_place=in_place)
    held = held_graphs(result, graph, in_place=in_place)
    directed = direction_of(result, graph, directed)
    if vertices is not None:
        n = as_integer(vertices, "vertices", result.distances.shape[-1])
        if in_place:
            raise InputError(
                "`in_place` must be False with `vertices`, for which the matrices are too small, "
                "but is True; leave one out."
            )
        size = len(held.graphs) * n * n * result.distances.itemsize
        with memory_for("the larger matrices", 3 * size, result.distances.device, "add fewer"):
            result, held = grown_result(result, n), held.grown(n)
    sets = zip(held.graphs, *held.sets_of(edges, weights), strict=True)
    changes = [changes_of(*each, closed, directed=directed) for each in sets]

    d, pred = result.distances, result.predecessors
    if in_place:
        _check_writable(result, graph)
    is_plain = d.is_contiguous() and (pred is None or pred.is_contiguous())
    copies = (
        not in_place
        or not is_plain
        or len(changes) > 1
        or any(map(_may_fail, held.graphs, changes))
    )
    size = sum(x.numel() * x.itemsize for x in (d, pred) if x is not None)
    plans, whys = list[Plan](), list[str]()
    remedy = "give `in_place=True`" if copies and not in_place else "solve anew"
    with memory_for("an update", copies * size, d.device, remedy):
        if copies and vertices is None:
            layout = torch.contiguous_format
            d = d.clone(memory_format=layout)
            pred = None if pred is None else pred.clone(memory_format=layout)
        for i, (one, change) in enumerate(zip(held.graphs, changes, strict=True)):
            mine, before = (x if x is None or held.batch is None else x[i] for x in (d, pred))
            assert mine is not None
            why = _bring_up_to_date(mine, before, one, change)
            if why:
                request = Request.of(one.with_edges(change).given, predecessors=pred is not None)
                try:
                    solved = calls.solve(request)
                except NegativeCycleError as error:
                    raise error.reworded("") from None
                _copy((mine, before), (solved.distances, solved.predecessors))
                plans.append(solved.plan)
                whys.append(f"; solved anew: {why}")
    if copies and in_place:
        _copy((result.distances, result.predecessors), (d, pred))
        d, pred = result.distances, result.predecessors
    all_solved = len(plans) == len(changes) > 0
    counts = [sum(len(getattr(x, name)) for x in changes) for name in ("raised", "lowered")]
    plan = Plan(
        way="update",
        method=plans[0].method if all_solved else "update",
        engine=engines.choose_unconfigured(d.device, d.dtype),
        config=None,
        reason=f"{counted(counts[0], 'edge')} raised, {counts[1]} lowered" + "".join(whys[:1]),
        memory=size if copies else 0,
    )
    changed = held.with_changes(changes, in_place=in_place)
    has_lists = result.edge_lists is not None and isinstance(changed, SparseGraph)
    lists = changed.by_source if has_lists else None
    found = dataclasses.replace(result, distances=d, predecessors=pred, plan=plan, edge_lists=lists)
    return Updated(found, changed)


def _check_writable(result: Result, graph: Any) -> None:
    """Refuse to write to matrices that share memory, or that are read-only."""
    if isinstance(graph, np.ndarray) and not graph.flags.writeable:
        raise InputError(
            "`graph` must not be read-only with `in_place`, but is; give a copy, or leave it out."
        )
    given = graph.weights if isinstance(graph, DenseGraph) else graph
    matrices = {"graph": given, "result.distances": result.distances}
    for name, matrix in (matrices | {"result.predecessors": result.predecessors}).items():
        if isinstance(matrix, torch.Tensor) and matrix.layout == torch.strided:
            check_writable(matrix, name)


def _copy(
    to: tuple[torch.Tensor, torch.Tensor | None], of: tuple[torch.Tensor, torch.Tensor | None]
) -> None:
    """Copy distances and, if there are any, predecessors."""
    for target, source in zip(to, of, strict=True):
        if target is not None and source is not None:
            target.copy_(source)


def _may_fail(graph: HeldGraph, edges: Edges) -> bool:
    """Return whether an update may fail after it has written some distances."""
    raised, lowered = edges.raised, edges.lowered
    if len(raised) and not sums_fit(graph, raised):
        return True
    if not len(lowered) or len(steps_of(lowered)) + (len(raised) > 0) == 1:
        return False
    # Copies of the distances take less time than reading dense weights for an answer.
    is_dense = isinstance(graph, DenseWeights)
    return is_dense or _has_negative(graph, lowered) or not sums_fit(graph, lowered)


def _has_negative(graph: HeldGraph, lowered: Edges) -> bool:
    return bool((lowered.new < 0).any()) or graph.lowest < 0


def _prefers_solve(graph: HeldGraph, lowered: Edges) -> bool:
    """Return whether a solve takes less time than passes over the distances."""
    edges = sum(1 if vertex is not None else len(some) for vertex, some in steps_of(lowered))
    if edges <= _FEW:
        return False
    on_cpu = graph.device.type == "cpu"
    if isinstance(graph, DenseWeights):
        return edges > graph.n * _SHARE_OF_VERTICES[on_cpu]
    if graph.has_order:
        return True
    return edges > graph.graph.edges / max(1, graph.n) * _TIMES_DEGREE[on_cpu]


def _bring_up_to_date(
    d: torch.Tensor, pred: torch.Tensor | None, graph: HeldGraph, edges: Edges
) -> str:
    """Write new distances and predecessors; return why a solve is needed instead, or ""."""
    if why := raise_edges(d, pred, graph, edges.raised):
        return why
    lowered = edges.lowered
    if not len(lowered):
        return ""
    if _prefers_solve(graph, lowered):
        return "many edges fall"
    # Without predecessors, reading dense floats would take longer than knowing their sign saves.
    is_dense = isinstance(graph, DenseWeights) and d.dtype.is_floating_point
    reads = pred is not None or not is_dense
    nonnegative = reads and not _has_negative(graph, lowered)
    lists = None
    if isinstance(graph, SparseWeights) and d.is_cpu and not len(edges.raised):
        lists = graph.graph.by_destination
    return lower_edges(d, pred, lowered, lists, nonnegative=nonnegative)
