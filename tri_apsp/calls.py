"""A call of shortest_paths: as an operation of torch, by a new plan, or by the plan of an earlier
call like it.
"""

import dataclasses
from typing import Any, NamedTuple

import torch

from tri_apsp import planning
from tri_apsp.arguments import (
    as_batch,
    as_tensor,
    check_flags,
    check_out_tensor,
    check_overwrite,
    numbers_of,
    with_sizes,
)
from tri_apsp.dense.packed_graphs import PackedPlan
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dispatch import needs_operation
from tri_apsp.errors import InputError
from tri_apsp.graphs import DenseGraph
from tri_apsp.messages import shown
from tri_apsp.plan import Options, Plan
from tri_apsp.progress import progress_bar
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name
from tri_apsp.shared_memory import overlaps
from tri_apsp.sparse.plan import SparsePlan


def solve(request: Request, *, progress: bool = False, plan: Plan | None = None) -> Result:
    """Return the result of a request by a plan; None: by a new one."""
    check_flags(progress=progress)
    sizes = None if request.batch is None else request.batch.sizes
    if request.weights is not None and needs_operation(request.weights, sizes):
        from tri_apsp import ops  # which imports the compiler of torch

        return ops.shortest_paths(request)
    with progress_bar(progress) as report:
        return planning.run(request, plan or planning.plan_of(request), progress=report)


def solve_by_known_plan(
    graph: Any, sizes: Any, out: Any, method: Any, config: Any, options: Options
) -> Result | None:
    """Return the result of a call that has no other arguments, by the plan of an earlier call with
    the same options, which were checked then.

    None: there was no such call; or derivatives, shared memory or distances out of range need more.
    """
    if needs_operation(graph, sizes):
        return None
    graph = as_tensor(graph, "graph")
    # In the key 1 equals True, but as a flag it is refused.
    kinds = type(options.check), type(options.predecessors), type(options.weight_error)
    if not _is_plain(graph) or kinds != (bool, bool, float):
        return None
    if out is not None and (out is graph or not _is_plain(out) or out.device != graph.device):
        return None
    known = planning.known_plan(graph, sizes, out, method, config, options)
    if known is None or known.plan.by_density:
        return None
    if sizes is not None:
        sizes = with_sizes(as_batch(graph), sizes, check=options.check).sizes
    if out is not None:
        if overlaps(graph, out):
            return None
        check_out_tensor(out, graph.shape, graph.dtype)
    return known.run(graph, sizes, out)


class PlanRunner(NamedTuple):
    """Carries out the plan of `select` for other weights; see Plan.run.

    Attributes:
        request: of `select`, without its weights.
        sizes: a copy of those that `select` was given.
        plan: for weights of any values.
        ready: the plan, if it is dense, for all rows in new memory, and its result needs no more.
        layout: shape, strides, dtype and device of the weights.
    """

    request: Request
    sizes: torch.Tensor | None
    plan: Plan
    ready: planning.ReadyPlan | None
    layout: tuple[object, ...]

    def run(self, graph: Any, sizes: Any, out: Any) -> Result:
        if self.ready is not None and sizes is None and self.sizes is None and out is None:
            is_like = _is_plain(graph) and _layout(graph) == self.layout
            if is_like and not needs_operation(graph):
                result = self.ready.run(graph)
                if result is not None:
                    return result
        given, request, plan = graph, self.request, self.plan
        graph = as_tensor(given.weights if isinstance(given, DenseGraph) else given, "graph")
        is_dense = isinstance(graph, torch.Tensor) and graph.layout is torch.strided
        if not is_dense or _layout(graph) != self.layout:
            found = _in_words(_layout(graph)) if is_dense else shown(graph)
            raise InputError(
                f"`graph` must be like the weights of this plan, {_in_words(self.layout)}, but is "
                f"{found}; call select again."
            )
        if request.options.overwrite:
            if graph is not given:
                raise InputError(
                    "`graph` must be a tensor where it is overwritten, but is "
                    f"{shown(given)}; give torch.from_numpy() of an array that may change."
                )
            check_overwrite(graph)
        if sizes is not None and request.offsets is not None:
            raise InputError(
                "`sizes` must not be given with a plan of packed graphs; leave it out."
            )
        batch = None if request.offsets is not None else as_batch(numbers_of(graph, "graph"))
        sizes = self.sizes if sizes is None else sizes
        if batch is not None and sizes is not None:
            batch = with_sizes(batch, sizes, check=request.options.check)
        request = dataclasses.replace(request, weights=graph, batch=batch, out=out)
        if out is not None:
            if not isinstance(out, torch.Tensor) or request.options.overwrite:
                raise InputError(
                    "`out` must be a tensor, and only of a plan that does not overwrite `graph`, "
                    f"but is {shown(out)}; leave it out."
                )
            if overlaps(graph, out):
                raise InputError(
                    "`out` must share no memory with `graph`, but does; give another tensor."
                )
            request.check_out()
            if isinstance(plan, DensePlan):
                plan = planning.ready_plan(request).plan  # which may solve in `out`
        return solve(request, plan=plan)


def select(request: Request, *, read_values: bool, directed: bool) -> Plan:
    """Return the plan of a request, which can be run again if it is of dense weights."""
    plan, weights = planning.select(request, read_values=read_values), request.weights
    is_dense = isinstance(plan, (DensePlan, PackedPlan, SparsePlan)) and weights is not None
    if not (is_dense and directed) or len(request.devices) > 1:
        return plan
    assert weights is not None
    sizes = None if request.batch is None else request.batch.sizes
    sizes = None if sizes is None else sizes.clone()
    base, ready = plan, None
    if isinstance(plan, DensePlan):
        known = planning.ready_plan(dataclasses.replace(request, out=None))
        is_whole = request.sources is None and request.labels is None and not request.unused_devices
        # Weights of bool are converted.
        is_plain = is_whole and not request.options.overwrite and weights.dtype == request.dtype
        base, ready = known.plan, known if is_plain else None
    request = dataclasses.replace(request, weights=None, batch=None, out=None)
    runner = PlanRunner(request, sizes, base, ready, _layout(weights))
    plan = dataclasses.replace(plan)  # that of the table is shared
    object.__setattr__(plan, "_runner", runner.run)
    return plan


def _is_plain(value: object) -> bool:
    return type(value) is torch.Tensor and value.layout is torch.strided


def _in_words(layout: tuple[Any, ...]) -> str:
    shape, strides, dtype, device = layout
    return f"{dtype_name(dtype)} {tuple(shape)} with strides {strides} on {device}"


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device
