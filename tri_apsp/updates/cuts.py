"""Distances after edges fell or opened: the minimum of D and of products of a small depth.

If K are the distances between the ends of the edges, the new distances are D[:, tails] + K +
D[heads, :], whose depth is the number of edges. Many edges at one vertex, as those of a new vertex,
need the depth 1: all new paths lead through it.
"""

from __future__ import annotations

import numpy as np
import torch

from tri_apsp import engines, tuned
from tri_apsp.dense.product import product
from tri_apsp.device import current
from tri_apsp.engines import MatrixSpec, Update
from tri_apsp.engines.cpu_tasks import CpuTask, run_tasks, thread_count
from tri_apsp.graphs.sparse import EdgeLists
from tri_apsp.paths.predecessors import tolerance_of
from tri_apsp.semirings import largest_distance, no_edge
from tri_apsp.updates.graphs import Edges, steps_of
from tri_apsp.updates.raises import BEYOND, LOOP, has_loop
from tri_apsp.value_range import largest_magnitude

# Rows whose predecessors are found at a time on a GPU; rows of a task on a CPU.
_ROWS, _ROWS_PER_TASK = 2048, 512

_NEGATIVE, _ZERO = "a cycle may be negative", "a cycle of weight 0"


def lower_edges(
    d: torch.Tensor,
    pred: torch.Tensor | None,
    lowered: Edges,
    lists: EdgeLists | None,
    *,
    nonnegative: bool,
) -> str:
    """Bring distances up to date after edges fell; return why a solve is needed instead, or "".

    Args:
        lists: the edges by destination before they fell; None: the graph has no lists.
        nonnegative: whether it is known that no weight is negative.
    """
    for vertex, edges in steps_of(lowered):
        given = edges.to(d.device)
        if vertex is None:
            why = _lower_some(d, pred, given, lists, nonnegative=nonnegative)
            lists = None  # the distances are those of other edges now
        else:
            why = _lower_at(d, pred, given, vertex, nonnegative=nonnegative)
        if why:
            return why
    return ""


def _lower_some(
    d: torch.Tensor,
    pred: torch.Tensor | None,
    edges: Edges,
    lists: EdgeLists | None,
    *,
    nonnegative: bool,
) -> str:
    count = len(edges)
    to_tails, from_heads = d[:, edges.tails], d[edges.heads]
    before_heads, after = _largest(to_tails) + _largest(edges.new[None]), _largest(from_heads)
    if count * before_heads + after > largest_distance(d.dtype):
        return BEYOND
    to_heads = _plus(to_tails, edges.new)
    # Along an edge after another: from the head of the first to that of the second.
    across = to_heads[edges.heads].cpu()
    between = _closure(across)
    if between is None:
        return _NEGATIVE
    cycles = _plus(across, between.mT)
    if why := _cycle(cycles, pred, nonnegative):
        return why
    if count > 1:
        to_heads = product(to_heads, between.to(d.device), None, check=False)[0]
    before = None
    if pred is not None:
        before = pred[edges.heads]
        before[torch.arange(count, device=d.device), edges.heads] = edges.tails.to(pred.dtype)
    _join(d, pred, to_heads, from_heads, edges.heads, before, nonnegative, lists)
    return _loop(pred, cycles, before_heads + after)


def _lower_at(
    d: torch.Tensor,
    pred: torch.Tensor | None,
    edges: Edges,
    vertex: int,
    *,
    nonnegative: bool,
) -> str:
    """Lower edges from and to one vertex."""
    into, out = edges.heads == vertex, edges.tails == vertex
    column, row = d.new_full((2, len(d)), no_edge(d.dtype))
    column[edges.tails[into]], row[edges.heads[out]] = edges.new[into], edges.new[out]
    longest = 2 * _largest(d) + _largest(column[None]) + _largest(row[None])
    if longest > largest_distance(d.dtype):
        return BEYOND
    wanted = pred is not None
    to_vertex, tails = product(
        d, column[:, None], d[:, vertex, None], arguments=wanted, check=False
    )
    cycles = torch.stack((_plus(to_vertex[:, 0], row), _plus(d[vertex], column)))
    if why := _cycle(cycles, pred, nonnegative):
        return why
    from_vertex, heads = product(row[None], d, d[None, vertex], arguments=wanted, check=False)
    d[:, vertex, None], d[None, vertex] = to_vertex, from_vertex
    before = None
    if pred is not None and tails is not None and heads is not None:
        tails, heads = tails[:, 0], heads[0]
        pred[:, vertex] = torch.where(tails < 0, pred[:, vertex], tails.to(pred.dtype))
        columns = torch.arange(len(d), device=d.device)
        new = pred[heads.clamp(min=0), columns].masked_fill(heads == columns, vertex)
        pred[vertex] = torch.where(heads < 0, pred[vertex], new)
        before = pred[None, vertex]
    _join(d, pred, to_vertex, from_vertex, None, before, nonnegative)
    return _loop(pred, cycles, longest)


def _closure(across: torch.Tensor) -> torch.Tensor | None:
    """Return the distances between a few vertices, from the weights of the edges (k, k) on the CPU;
    None if a cycle is negative. Until one is, all values are those of simple paths.
    """
    found = across.clone()
    diagonal = found.diagonal().clamp_(max=0)
    for through in range(len(found)):
        torch.minimum(found, _plus(found[:, through, None], found[through]), out=found)
        if bool((diagonal < 0).any()):
            return None
    return found


def _cycle(weights: torch.Tensor, pred: torch.Tensor | None, nonnegative: bool) -> str:
    """Return why cycles of these weights need a solve, or ""; those of weight 0 where predecessors
    may form a loop along them.
    """
    if nonnegative and pred is None:
        return ""
    least = weights.min().item()
    return _NEGATIVE if least < 0 else _ZERO if pred is not None and least == 0 else ""


def _loop(pred: torch.Tensor | None, cycles: torch.Tensor, longest: float) -> str:
    """Return why predecessors need a solve, or "": those of distances up to `longest`, whose
    rounding may hide the weight of a cycle.
    """
    if pred is None or not cycles.is_floating_point():
        return ""
    hidden = tolerance_of(cycles.dtype, len(pred), None).cycle_relative * longest
    may_loop = cycles.min().item() <= hidden
    return LOOP if may_loop and has_loop(pred) else ""


def _join(
    d: torch.Tensor,
    pred: torch.Tensor | None,
    left: torch.Tensor,
    right: torch.Tensor,
    heads: torch.Tensor | None,
    before: torch.Tensor | None,
    nonnegative: bool,
    lists: EdgeLists | None = None,
) -> None:
    """Take the minimum of d and of left (n, k) + right (k, n).

    Args:
        heads: (k,), if known: a row gains by a k only if it is then nearer to this vertex.
        before: (k, n), the predecessors on the paths of `right`.
        lists: the edges by destination of the graph of `right`, if it has lists.
    """
    n = len(d)
    if d.is_cpu:
        from tri_apsp.kernels.cpu.updates import grow_trees, join  # which imports Numba

        d_ = d.numpy()
        none = d_.dtype.type(no_edge(d.dtype))
        reached = d.new_empty((0, 0)) if heads is None else d[:, heads]
        empty = torch.empty((0, 0), dtype=torch.int32)
        known, written = (empty if x is None else x for x in (before, pred))
        trees = [empty.numpy()] * 2
        if lists is not None and heads is not None:
            trees = [np.empty((len(right), n + i), np.int32) for i in (1, 0)]
            rounding = d_.dtype.type(tolerance_of(d.dtype, n, None).relative)
            grow_trees(*lists.arrays(), none, rounding, right.numpy(), *trees)
        arrays = [left.numpy(), right.numpy(), reached.numpy(), *trees, none]
        arrays += [known.numpy(), d_, written.numpy()]
        tasks: list[CpuTask] = [
            (*arrays, first, min(n, first + _ROWS_PER_TASK))
            for first in range(0, n, _ROWS_PER_TASK)
        ]
        run_tasks(
            join, tasks, n * len(right) if len(trees[0]) else d.numel() * len(right), thread_count()
        )
    elif pred is None and (nonnegative or d.dtype.is_floating_point):
        # A sum with no_edge is not less than it, so that the product works in place.
        name = engines.choose_unconfigured(d.device, d.dtype)
        call = tuned.call_of(name, d.device, d.dtype, n=n, nonnegative=nonnegative, product=True)
        spec = MatrixSpec(len(right), d.dtype, d.device, nonnegative)
        engine = engines.make(spec, tuned.config_for_call(call))
        with current(d.device):
            engine.product(Update(d[None], left[None], right[None]))
    else:
        for first in range(0, n, _ROWS):
            some = slice(first, first + _ROWS)
            d[some], chosen = product(
                left[some], right, d[some], arguments=pred is not None, check=False
            )
            if pred is not None and before is not None and chosen is not None:
                new = before.gather(0, chosen.clamp(min=0))
                pred[some] = torch.where(chosen < 0, pred[some], new)


def _largest(matrix: torch.Tensor) -> float | int:
    """Return the largest magnitude of a distance in a matrix."""
    return largest_magnitude(matrix[None]).item()


def _plus(distances: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return sums of distances and weights, no_edge where one of them is none."""
    none = no_edge(distances.dtype)
    found = distances + weights
    if found.is_floating_point():
        return found
    return found.masked_fill_((distances >= none) | (weights >= none), none)
