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
    numbers_of,
    with_sizes,
)
from tri_apsp.dense.packed_graphs import PackedPlan
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dispatch import needs_operation
from tri_apsp.errors import DistanceRangeError, InputError
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


def solve_again(
    graph: Any, sizes: Any, out: Any, method: Any, config: Any, options: Options
) -> Result | None:
    """Return the result of a call with these arguments alone, by the plan of an earlier one which
    checked the options.

    None: there was none; or the values, the derivatives or the memory of the tensors need more.
    """
    if needs_operation(graph, sizes):
        return None
    graph = as_tensor(graph, "graph")
    kinds = type(options.check), type(options.predecessors), type(options.weight_error)
    if not _is_plain(graph) or kinds != (bool, bool, float):  # 1 is True, of which it is the key
        return None
    if out is not None and (out is graph or not _is_plain(out) or out.device != graph.device):
        return None
    plan = planning.known_plan(graph, sizes, out, method, config, options)
    if plan is None:
        return None
    batch = as_batch(graph)
    if sizes is not None:
        batch = with_sizes(batch, sizes, check=options.check)
    if out is not None:
        if overlaps(graph, out):
            return None
        check_out_tensor(out, graph.shape, graph.dtype)
    if plan.by_density and planning.reason_by_density(batch, batch.n) is not None:
        return None
    try:
        return planning.run_dense(batch, plan, out)
    except DistanceRangeError:  # a sparse method may hold these distances
        return None


class Again(NamedTuple):
    """Carries out the plan of `select` for other weights; see Plan.run.

    Attributes:
        request: of `select`, without its weights.
        sizes: that `select` was given.
        plan: for weights of any values.
        is_plain: whether it is a dense one of all rows, in new memory.
        like: shape, strides, dtype and device of the weights.
    """

    request: Request
    sizes: torch.Tensor | None
    plan: Plan
    is_plain: bool
    like: tuple[object, ...]

    def run(self, graph: Any, sizes: Any, out: Any) -> Result:
        graph, request, plan = as_tensor(graph, "graph"), self.request, self.plan
        is_dense = isinstance(graph, torch.Tensor) and graph.layout is torch.strided
        if not is_dense or _facts(graph) != self.like:
            found = _in_words(_facts(graph)) if is_dense else shown(graph)
            raise InputError(
                f"`graph` must be like the weights of `select`, {_in_words(self.like)}, but is "
                f"{found}; call select again."
            )
        batch = None if request.offsets is not None else as_batch(numbers_of(graph, "graph"))
        sizes = self.sizes if sizes is None else sizes
        if batch is not None and sizes is not None:
            batch = with_sizes(batch, sizes, check=request.options.check)
        if self.is_plain and out is None and not needs_operation(graph, sizes):
            assert batch is not None
            assert isinstance(plan, DensePlan)
            try:
                return planning.run_dense(batch, plan, None)
            except DistanceRangeError:  # a sparse method may hold these distances
                pass
        request = dataclasses.replace(request, weights=graph, batch=batch, out=out)
        if out is not None:
            if not _is_plain(out) or request.options.overwrite or overlaps(graph, out):
                raise InputError(
                    "`out` of `run` must be a tensor apart from the weights, and none where "
                    f"`select` has the weights as `out`, but is {shown(out)}; leave it out."
                )
            request.check_out()
            if isinstance(plan, DensePlan):
                plan = planning.dense_plan(request)  # which may solve in `out`
        return solve(request, plan=plan)


def select(request: Request, *, read_values: bool, directed: bool) -> Plan:
    """Return the plan of a request, which can be run again if it is of dense weights."""
    check_flags(read_values=read_values)
    plan, weights = planning.select(request, read_values=read_values), request.weights
    is_dense = isinstance(plan, (DensePlan, PackedPlan, SparsePlan)) and weights is not None
    if not (is_dense and directed) or len(request.devices) > 1:
        return plan
    assert weights is not None
    sizes = None if request.batch is None else request.batch.sizes
    is_plain = isinstance(plan, DensePlan)
    base = planning.dense_plan(dataclasses.replace(request, out=None)) if is_plain else plan
    is_plain = is_plain and request.sources is None and not request.options.overwrite
    request = dataclasses.replace(request, weights=None, batch=None, out=None)
    again = Again(request, sizes, base, is_plain, _facts(weights))
    return dataclasses.replace(plan, again=again.run)


def _is_plain(value: object) -> bool:
    return type(value) is torch.Tensor and value.layout is torch.strided


def _in_words(facts: tuple[Any, ...]) -> str:
    shape, strides, dtype, device = facts
    return f"{dtype_name(dtype)} {tuple(shape)} with strides {strides} on {device}"


def _facts(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device
