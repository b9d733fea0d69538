"""Calls that several devices share: each solves some rows of a graph, or some graphs of a batch, as
a call of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tri_apsp.arguments import check_weights
from tri_apsp.dense.packed_graphs import check_packed
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError
from tri_apsp.messages import counted
from tri_apsp.plan import Plan, Progress
from tri_apsp.ranks.threads import run_ranks
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.sparse.share import Share

SolveOne = Callable[[Request, Plan, Progress | None], Result]


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """The share of one device: its first row or graph, what it is asked for, and its plan."""

    first: int
    request: Request = field(repr=False)
    plan: Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPlan(Plan):
    """How several devices share a call; `parts` are the shares."""

    parts: tuple[Part, ...]


def plan(request: Request, plan_of: Callable[[Request], Plan]) -> SharedPlan:
    """Return the plan of a request for several devices, by those of its equal shares; devices
    beyond the number of rows or graphs have none.
    """
    if request.offsets is not None:
        check_packed(request.weights, request.offsets, "graph")
    has_graphs = request.graph_count is not None
    count = request.rows if request.graph_count is None else request.graph_count
    devices = request.devices[: max(1, count)]
    parts = list[Part]()
    for rank, device in enumerate(devices):
        own = Share(rank, len(devices)).of(count)
        part = _part(request, device, own.start, own.stop)
        parts.append(Part(first=own.start, request=part, plan=plan_of(part)))
    one, what = parts[0].plan, "graphs" if has_graphs else "rows"
    return SharedPlan(
        way="shared",
        method=one.method,
        engine=one.engine,
        config=one.config,
        reason=f"{one.reason}; {counted(len(parts), 'device')} for the {what}",
        memory=max(part.plan.memory for part in parts),
        parts=tuple(parts),
    )


def run(request: Request, plan: SharedPlan, solve: SolveOne, progress: Progress | None) -> Result:
    """Return the results of all shares as one, in `out` or in blocks; `progress` is that of the
    first.
    """
    devices = [part.request.devices[0] for part in plan.parts]
    solved = run_ranks(
        devices,
        lambda ranks: _solve_part(plan.parts[ranks.rank], solve, None if ranks.rank else progress),
    )
    if errors := [each for each in solved if isinstance(each, NegativeCycleError)]:
        graphs = [graph for error in errors for graph in error.graphs]
        raise errors[0].of_graphs(errors[0].batch, graphs)
    found = [each for each in solved if isinstance(each, Result)]
    parts = tuple(
        replace(part, plan=each.plan) for part, each in zip(plan.parts, found, strict=True)
    )
    first = parts[0].plan
    common: dict[str, Any] = {
        "plan": replace(plan, method=first.method, engine=first.engine, parts=parts),
        "negative_cycle": next((x.negative_cycle for x in found if x.negative_cycle), None),
        "sources": request.own_sources,
    }
    out = request.weights if request.options.overwrite else request.out
    if out is None:
        return Result.in_blocks(found, **common)
    if not isinstance(out, torch.Tensor):  # a file, which is written once all are known
        out = torch.cat([each.distances.cpu() for each in found])
    pred = [each.predecessors.to(out.device) for each in found if each.predecessors is not None]
    common |= {"distances": out, "predecessors": torch.cat(pred) if pred else None}
    return replace(found[0], **common)


def _solve_part(
    part: Part, solve: SolveOne, progress: Progress | None
) -> Result | NegativeCycleError:
    """Return the result of one device, or the error for a negative cycle; graphs have their numbers
    in the whole batch.
    """
    first, has_graphs = part.first, part.request.graph_count is not None
    try:
        found = solve(part.request, part.plan, progress)
    except NegativeCycleError as error:
        if not has_graphs:
            return error
        return error.of_graphs((error.batch or 0) + first, [first + each for each in error.graphs])
    except (InputError, DistanceRangeError) as error:
        if not has_graphs:
            raise
        raise type(error)(f"of the graphs from {first} on, counted from there: {error}") from None
    cycle = found.negative_cycle
    if cycle is None or not has_graphs:
        return found
    return replace(found, negative_cycle=replace(cycle, graph=cycle.graph + first))


def _part(request: Request, device: torch.device, begin: int, end: int) -> Request:
    """Return what a device is asked for: the rows or graphs from `begin` to `end`."""
    own, weights, batch = slice(begin, end), request.weights, request.batch
    options, changes = request.options, dict[str, Any](devices=(device,), out=None)
    if request.offsets is not None:
        assert weights is not None
        ends = request.offsets[begin : end + 1]
        own = slice(*ends[[0, -1]].tolist())
        changes |= {"weights": weights[own].to(device), "offsets": ends.cpu() - own.start}
    elif request.graph is None:
        assert weights is not None
        assert batch is not None
        moved = (weights if request.graph_count is None else weights[own]).to(device)
        sizes = None if batch.sizes is None else batch.sizes[own].to(device)
        changes |= {"weights": moved, "batch": replace(check_weights(moved), sizes=sizes)}
    else:
        changes |= {"graph": request.graph.to(device)}
    if request.graph_count is None:
        vertices = torch.arange(request.n) if request.sources is None else request.sources
        changes |= {"sources": vertices[own]}
    if options.overwrite and weights is not None and weights.device != device:
        changes |= {"options": options._replace(overwrite=False), "out": weights[own]}
    elif isinstance(request.out, torch.Tensor):
        changes |= {"out": request.out[own]}
    return replace(request, **changes)
