"""From a request to its plan, and from the plan to the result."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tri_apsp import tuned
from tri_apsp.arguments import DenseBatch, as_batch, check_flags
from tri_apsp.configs import SWEEP_FIELDS, Config
from tri_apsp.dense import run as dense
from tri_apsp.dense.exponents import may_multiply_by_exponents, with_exponents
from tri_apsp.dense.one_launch import OneLaunchSolver
from tri_apsp.dense.packed_graphs import PackedPlan, plan_packed, run_packed
from tri_apsp.dense.plan import DensePlan, plan_dense
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.elimination.restricted import named_cycles
from tri_apsp.errors import DistanceRangeError, InputError, NegativeCycleError
from tri_apsp.graphs import SPARSE_DTYPES, SparseGraph, write_distances
from tri_apsp.memory import fits_memory
from tri_apsp.methods import METHODS
from tri_apsp.plan import BY_NAME, Options, Plan, Progress
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import distance_range, dtype_name, no_edge
from tri_apsp.sparse import run as sparse
from tri_apsp.sparse.choice import most_edges, reason_for_sparse
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS, SparsePlan, engine_name, plan_sparse
from tri_apsp.value_range import clear_padding, padding_of

# Weights that are read at once to count edges.
_WEIGHTS_PER_BLOCK = 1 << 26
# The plans of earlier calls for dense weights, by _key; and the most that are kept.
_PLANS: dict[Any, "ReadyPlan"] = {}
_MAX_PLANS = 1024
# Bytes to which `out` may be aligned, which decides whether a solve works there.
_ALIGNED = 16
_TOO_LARGE = "no dense matrix fits the memory"


class ReadyPlan:
    """The plan of dense weights of one layout and any values, with what earlier solves by it have
    made.
    """

    def __init__(self, plan: DensePlan) -> None:
        self.plan = plan
        self._solver: OneLaunchSolver | None = None

    def run(
        self,
        graph: torch.Tensor,
        sizes: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
    ) -> Result | None:
        """Return all distances of weights (batch, n, n) or (n, n) whose values are not checked yet.
        None: some are out of range, and a sparse method may hold them.

        Args:
            graph: the weights.
            sizes: of a padded batch, checked.
            out: for the distances, on the device of the weights; None: new memory.
        """
        try:
            solved = None
            if self.plan.way == "one launch" and out is None:
                if self._solver is None:
                    self._solver = OneLaunchSolver(self.plan, as_batch(graph).weights, sizes)
                solved = self._solver.attempt_if_small(graph, sizes)
                if solved is not None and not solved.is_negative:
                    return Result(solved.distances, solved.plan, solved.predecessors)
            batch = dataclasses.replace(as_batch(graph), sizes=sizes)
            if solved is not None:
                solved = solved._replace(distances=as_batch(solved.distances).weights)
            result = dense.run(batch, self.plan, out=_as_matrices(out), solved=solved)
        except DistanceRangeError:
            return None
        return result if out is None else _placed(result, out)


def plan_of(request: Request) -> Plan:
    """Return what solves a request; edges of dense weights are counted if the rules need that.

    Raises:
        As shortest_paths; other values are not checked.
    """
    return _explained(request, _plan_of(request))


def _explained(request: Request, plan: Plan) -> Plan:
    """Return a plan whose reason says if devices that were named are not used."""
    if not request.unused_devices:
        return plan
    return dataclasses.replace(plan, reason=f"{plan.reason}; more devices would be slower")


def _plan_of(request: Request) -> Plan:
    if request.block_rows_because:
        from tri_apsp.distributed import devices  # which few calls need

        return devices.plan(request)
    if len(request.devices) > 1:
        from tri_apsp import shares

        return shares.plan(request, plan_of)
    if request.offsets is not None:
        return plan_packed(
            request.weights, request.offsets, request.method, request.config, request.options
        )
    reason = _reason_for_sparse(request)
    return ready_plan(request).plan if reason is None else _sparse_plan(request, reason)


def run(request: Request, plan: Plan, *, progress: Callable[[float], None] | None = None) -> Result:
    """Return the result of a request by its plan; `progress` receives the fraction done."""
    try:
        with named_cycles(request.restricted):
            result = _run(request, plan, progress)
    except NegativeCycleError as error:
        raise error.reworded(error.mark, request.labels) from None
    if request.block_rows_because or result.blocks:
        return result
    if len(request.devices) == 1:  # else each share has these
        if request.targets is not None or request.labels is not None:
            lists = None if request.graph is None else request.graph.by_source
            result = dataclasses.replace(
                result, targets=request.targets, labels=request.labels, edge_lists=lists
            )
        if request.restricted is not None:
            result = request.restricted.result(result)
    if not request.directed:
        result = dataclasses.replace(result, directed=False)
    out = request.weights if request.options.overwrite else request.out
    if isinstance(out, torch.Tensor):
        return _placed(result, out)
    if out is not None and not (isinstance(result.plan, SparsePlan) and request.writes_blocks):
        write_distances(result.distances, out)
    elif request.unused_devices:  # a caller who names several devices reads `blocks`
        return Result.in_blocks([dataclasses.replace(result, sources=torch.arange(request.n))])
    return result


def _placed(result: Result, out: torch.Tensor) -> Result:
    """Return a result whose distances are in `out`."""
    if out.data_ptr() != result.distances.data_ptr():
        out.copy_(result.distances)
    return dataclasses.replace(result, distances=out)


def _run(request: Request, plan: Plan, progress: Progress | None) -> Result:
    if isinstance(plan, SparsePlan):
        return _run_sparse(request, plan, progress)
    if request.block_rows_because:
        from tri_apsp.distributed import devices

        return devices.run(request, plan, progress)  # type: ignore[arg-type]
    if len(request.devices) > 1:
        from tri_apsp import shares

        return shares.run(request, plan, _run_share, progress)  # type: ignore[arg-type]
    if isinstance(plan, PackedPlan):
        assert request.weights is not None
        return run_packed(request.weights, plan)
    assert isinstance(plan, DensePlan)
    try:
        result = dense.run(
            request.as_batch(),
            plan,
            sources=request.sources,
            out=_matrices(request),
            progress=progress,
        )
        return _columns(result, request.targets)
    except DistanceRangeError:
        if not _may_fit_sparse(request):
            raise
    # A dense solve holds all pairs, in a range that negative weights make narrower.
    rest = _sparse_plan(request, "a dense solve does not hold these distances")
    return _run_sparse(request, rest, progress)


def _run_sparse(request: Request, plan: SparsePlan, progress: Progress | None) -> Result:
    solve = partial(sparse.run, request.by_edges, plan, progress=progress)
    if not request.writes_blocks:
        return solve(out=request.out_there)
    from tri_apsp.distributed.rows import TensorRows
    from tri_apsp.distributed.target import OutFile

    if isinstance(request.out, torch.Tensor):
        return dataclasses.replace(
            solve(write=TensorRows(request.out).write), distances=request.out
        )
    assert request.out is not None
    rows, columns = request.shape
    file = OutFile(Path(request.out))
    file.create((rows, columns), request.dtype)
    try:
        result = solve(write=file.open(0, rows).write)
        file.complete()
    except BaseException:
        file.discard()
        raise
    return dataclasses.replace(result, distances=file.distances(0, rows))


def _run_share(request: Request, plan: Plan, progress: Progress | None) -> Result:
    return run(request, plan, progress=progress)


def _columns(result: Result, targets: torch.Tensor | None) -> Result:
    """Return a result with the columns of some targets."""
    if targets is None:
        return result
    columns = result.distances[:, targets.to(result.distances.device)]
    return dataclasses.replace(result, distances=columns)


def select(request: Request, *, read_values: bool = False) -> Plan:
    """Return what solves a request: without `read_values`, dense weights are taken to have many
    edges and no negative weight.
    """
    check_flags(read_values=read_values)
    if request.block_rows_because:
        from tri_apsp.distributed import devices

        return devices.predicted(request, devices.plan(request))
    graph, is_dense = request.graph, request.batch is not None
    is_shared = len(request.devices) > 1
    if is_dense and not (read_values or request.needs_sparse or is_shared):
        return _explained(request, ready_plan(request).plan)
    plan = plan_of(request)
    if not isinstance(plan, DensePlan):
        return plan
    if graph is not None:
        negative, like = graph.lowest < 0, graph.by_source.weights
    else:
        like = _without_padding(request.as_batch())
        negative = like.numel() > 0 and bool(like.amin() < 0)
    if negative:
        return plan.for_any_sign()
    if not (read_values and may_multiply_by_exponents(plan, request.n, like)):
        return plan
    return with_exponents(plan, like if graph is None else request.as_batch().weights)


def _without_padding(batch: DenseBatch) -> torch.Tensor:
    """Return the weights, without edges of padding."""
    weights = batch.weights
    if batch.sizes is None:
        return weights
    weights = weights.clone()
    clear_padding(weights, padding_of(weights, batch.sizes))
    return weights


def ready_plan(request: Request) -> ReadyPlan:
    """Return the plan for dense weights whose values are not read: that of an earlier call, if
    there was one.
    """
    batch = request.batch
    if batch is None:  # of which only shape, dtype and device count
        like = torch.empty((1, 1, 1), dtype=request.dtype, device=request.device)
        batch = DenseBatch(like.expand(1, request.n, request.n), batched=False)
    weights = batch.weights if batch.batched else batch.weights[0]
    asked, out = (request.method, request.config, request.options), _matrices(request)
    key = _key(weights, batch.sizes, out, *asked)
    known = _PLANS.get(key)
    if known is None:
        n = batch.n
        most = most_edges(n, n, weights.device, has_lists=False) if _may_be_sparse(request) else 0
        plan = plan_dense(batch, *asked, out)
        plan = dataclasses.replace(plan, by_density=most > 0)
        if len(_PLANS) >= _MAX_PLANS:
            _PLANS.clear()
        known = _PLANS[key] = ReadyPlan(plan)
    return known


def known_plan(
    weights: torch.Tensor, sizes: Any, out: Any, method: Any, config: Any, options: Options
) -> "ReadyPlan | None":
    """Return the plan of an earlier call with such weights and these options, which were checked
    then; None: there was none.
    """
    try:
        return _PLANS.get(_key(weights, sizes, _as_matrices(out), method, config, options))
    except TypeError:  # an option that is not hashable, which is refused
        return None


def _key(
    weights: torch.Tensor, sizes: Any, out: Any, method: Any, config: Any, options: Options
) -> tuple[object, ...]:
    """Return all that the plan of dense weights depends on, besides their values; `out` is (batch,
    n, n).
    """
    return (
        weights.shape,
        weights.stride(),
        weights.dtype,
        weights.device,
        sizes is None,
        None if out is None else (out.stride(), out.data_ptr() % _ALIGNED),
        method,
        None if config is None else repr(config),
        options,
        tuned.environment(),
    )


def _matrices(request: Request) -> torch.Tensor | None:
    """Return `out` as (batch, n, n), if all distances can be solved there."""
    return None if request.sources is not None else _as_matrices(request.out_there)


def _as_matrices(out: torch.Tensor | None) -> torch.Tensor | None:
    return out if out is None or out.dim() == 3 else out[None]


def _sparse_plan(request: Request, reason: str) -> SparsePlan:
    return plan_sparse(
        request.by_edges,
        reason=reason,
        choice=request.method if request.method in ROW_METHODS else "auto",
        sources=request.sources,
        targets=request.targets,
        limit=request.limit,
        nearest=request.nearest,
        in_out=request.out_there is not None or request.writes_blocks,
        options=request.options,
    )


def _reason_for_sparse(request: Request) -> str | None:
    """Return why a plan for the rows that are wanted is sparse; None if it is dense."""
    if request.needs_sparse:
        _require_sparse(request)
        by_choice = {"auto": "for chosen rows", JOHNSON: "of the methods of sparse graphs"}
        return by_choice.get(request.method, BY_NAME)
    if not _may_be_sparse(request):
        return None
    if request.graph is None:
        return _reason_by_density(request.as_batch(), request.rows)
    n, device = request.n, request.device
    if isinstance(request.graph, PreparedGraph) and request.graph.sweeps is not None:
        return "rows of a prepared graph"
    if not _holds_dense(request.graph):
        return "a dense solve does not hold these integers"
    reason = reason_for_sparse(n, request.graph.edges, request.rows, device, has_lists=True)
    fits = fits_memory(n * n * request.dtype.itemsize, device)
    return reason if reason or fits else _TOO_LARGE


def _may_be_sparse(request: Request) -> bool:
    """Return whether a request that does not need a sparse plan may have one for its number of
    edges.
    """
    if request.needs_dense or request.method != "auto" or request.is_batch:
        return False
    # A configuration is for dense methods, unless it only names the engine of sparse graphs too, or
    # forces fields of sweeps.
    config = tuned.with_forced(request.config)
    if config is not None and (request.config is None or _sets_no_sweeps(request.config)):
        config = dataclasses.replace(config, **dict.fromkeys(SWEEP_FIELDS))
    return request.dtype in SPARSE_DTYPES and _only_names(config, engine_name(request.device))


def _reason_by_density(batch: DenseBatch, rows: int) -> str | None:
    """Return why a sparse plan solves `rows` rows of one dense graph; None: a dense one does."""
    n, weights = batch.n, batch.weights
    if not fits_memory(n * n * weights.itemsize, weights.device):
        return _TOO_LARGE if rows < n else None
    most = most_edges(n, rows, weights.device, has_lists=False)
    if not most:
        return None
    edges = count_edges(batch, most)
    return reason_for_sparse(n, edges, rows, weights.device, has_lists=False)


def _holds_dense(graph: SparseGraph) -> bool:
    """Return whether a dense solve takes the weights of a graph: negative integers only beside
    some.
    """
    if graph.dtype.is_floating_point or graph.lowest >= 0:
        return True
    allowed = distance_range(graph.dtype, negative=True)
    return bool(allowed.lowest <= graph.lowest and graph.heaviest < allowed.beyond)


def _require_sparse(request: Request) -> None:
    """Refuse what sparse methods do not take."""
    option = f"method={request.method!r}"
    if request.limit is not None or request.nearest:
        option = "nearest" if request.nearest else "limit"
    if request.method in METHODS:
        raise InputError(
            f"`{option}` is for methods of sparse graphs, but method {request.method!r} is dense; "
            'give method="auto".'
        )
    if request.is_batch:
        raise InputError(
            f"`{option}` needs one graph, but `graph` is a batch; solve its graphs one by one."
        )
    if request.dtype not in SPARSE_DTYPES:
        names = ", ".join(map(dtype_name, SPARSE_DTYPES))
        raise InputError(
            f"`{option}` needs weights of {names}, but `graph` has {dtype_name(request.dtype)}; "
            "convert it to one of these."
        )
    engine, config = engine_name(request.device, request.method), request.config
    if config is not None and not _only_names(config, engine):
        fields = {name: value for name, value in vars(config).items() if value is not None}
        raise InputError(
            f"`config` may only name the engine {engine!r} with `{option}`, but sets {fields}; "
            "leave it out, or choose a dense method."
        )


def _may_fit_sparse(request: Request) -> bool:
    """Return whether the distances that are asked for may fit where a dense solve of all pairs, by
    the choice of "auto", does not.
    """
    if request.method != "auto" or request.needs_dense or request.is_batch:
        return False
    if request.dtype not in SPARSE_DTYPES:
        return False
    if request.sources is not None:
        return True
    weights = request.weights
    return request.by_edges.lowest < 0 if weights is None else bool(weights.amin() < 0)


def _sets_no_sweeps(config: Config) -> bool:
    return all(getattr(config, name) is None for name in SWEEP_FIELDS)


def _only_names(config: Config | None, engine: str) -> bool:
    """Return whether a configuration sets nothing but perhaps this engine."""
    return config is None or config in (Config(), Config(engine=engine))


def count_edges(batch: DenseBatch, most: float) -> int | None:
    """Return the number of edges of one dense graph, or None if there are more than `most`."""
    weights, n = batch.weights[0], max(1, batch.n)
    missing = no_edge(weights.dtype)
    edges, first = 0, 0
    most_rows = max(1, _WEIGHTS_PER_BLOCK // n)
    step = min(most_rows, int(most / n) + 2)  # enough rows to recognise a complete graph
    while first < len(weights):
        rows = weights[first : first + step]
        edges += int((rows != missing).sum()) - int((rows.diagonal(first) != missing).sum())
        if edges > most:
            return None
        first += step
        step = most_rows
    return edges
