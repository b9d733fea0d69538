"""A dense plan carried out: from weights to Result, step by step."""

from collections.abc import Callable
from functools import lru_cache, partial

import torch

from tri_apsp import engines
from tri_apsp.arguments import DenseBatch, check_size_values, check_weights
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.cycles.dense import without_unreached
from tri_apsp.dense.exponents import by_exponents, queue_edges_per_vertex, solve_threshold
from tri_apsp.dense.negative_diagonal import Attempt, DenseAttempts
from tri_apsp.dense.one_launch import OneLaunchSolver
from tri_apsp.dense.plan import DensePlan, plan_dense
from tri_apsp.dense.verification import EarlyCheck, NegativeDiagonalError, verify
from tri_apsp.device import current, synchronize
from tri_apsp.engines import Engine, MakeEngine, MatrixSpec
from tri_apsp.engines.base import Staging
from tri_apsp.gpu.launcher import compiling_side_by_side
from tri_apsp.memory import memory_for_matrices
from tri_apsp.methods import Method, Observer
from tri_apsp.paths.predecessors import find_predecessors
from tri_apsp.plan import Options, Progress
from tri_apsp.result import Result
from tri_apsp.semirings import no_edge
from tri_apsp.value_checks import check_graphs
from tri_apsp.value_range import ValueRange, clear_padding, padding_of, value_range


def solve(
    weights: torch.Tensor,
    *,
    sizes: torch.Tensor | None = None,
    method: str = "auto",
    config: Config | None = None,
    options: Options = Options(),
    progress: Progress | None = None,
) -> Result:
    """Solve dense weights by a dense method; see tri_apsp.shortest_paths."""
    batch = check_weights(weights, sizes=sizes, check=options.check)
    return run(batch, plan_dense(batch, method, config, options), progress=progress)


def run(
    batch: DenseBatch,
    plan: DensePlan,
    *,
    sources: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    progress: Progress | None = None,
    make: MakeEngine = engines.make,
    solved: Attempt | None = None,
) -> Result:
    """Solve graphs; where a diagonal value becomes negative, find out why, and go on if that is
    possible.

    Args:
        batch: the graphs, whose values are not checked yet.
        plan: of the solve.
        sources: the vertices of one graph whose rows are wanted, as int64 on the CPU; only a
            negative cycle that one of them reaches counts. None: all.
        out: (batch, n, n), in which a plan with `in_out` solves.
        progress: receives the fraction done.
        make: makes the engine.
        solved: what a first solve returned, of all rows; None: there was none.

    Raises:
        As shortest_paths.
    """
    options, device = plan.options, batch.weights.device
    with memory_for_matrices(batch.weights, plan.matrices), current(device):
        allowance = None
        if sources is not None:
            batch, allowance = without_unreached(batch, sources, options.weight_error)
        solved, first = solved or _solve(batch, plan, out, progress, make), None
        if solved.is_negative:
            solve_once = partial(_solve, plan=plan, out=out, progress=progress, make=make)
            attempts = DenseAttempts(batch, solve_once, solved, allowance)
            del solved  # the next attempt frees its memory
            attempts.settle()
            solved, first = attempts.solved, attempts.finish()
        distances, predecessors = solved.distances, solved.predecessors
        if options.overwrite and not plan.in_place:
            distances = batch.weights.copy_(distances)
        if sources is not None:
            rows = sources.to(device)
            distances = distances[:, rows]
            predecessors = None if predecessors is None else predecessors[:, rows]
    if not batch.batched:
        distances = distances[0]
        predecessors = None if predecessors is None else predecessors[0]
    return Result(distances, solved.plan, predecessors, first, sources)


def _solve(
    batch: DenseBatch,
    plan: DensePlan,
    out: torch.Tensor | None,
    progress: Progress | None,
    make: MakeEngine,
) -> Attempt:
    """Solve once. The engine is made, and edges are counted, while a GPU reads the values."""
    if plan.way == "one launch":
        solver = OneLaunchSolver(plan, batch.weights, batch.sizes, make)
        return solver.attempt(batch.weights, batch.sizes)
    options, make_engine = plan.options, partial(_engine, batch, make)
    if options.check and batch.sizes is not None:
        check_size_values(batch.sizes, batch.n)
    matrix, read_values = stage(
        batch,
        engines.type_of(plan.engine),
        into=out if plan.in_out else None,
        in_place=plan.in_place,
        check=options.check,
        matrices=2 + plan.implementation.workspace,
    )
    n = batch.n  # staging may have added vertices
    distances = matrix if matrix.shape[-1] == n else matrix[:, :n, :n]
    # Edges are counted while a GPU reads the values, before it is known whether one is
    # negative.
    pending = queue_edges_per_vertex(plan, distances) if options.check else None
    engine = make_engine(plan, matrix, plan.nonnegative)
    # Before the values, which may be invalid: reading the count frees its result buffer.
    edges_per_vertex = None if pending is None else pending()
    checked = read_values()
    if checked is not None and checked.lowest < 0:
        plan = plan.for_any_sign()
        engine = make_engine(plan, matrix, False)
    elif checked is not None:
        plan = plan.by_exponents(solve_threshold(edges_per_vertex, checked.highest_below))
        engine = by_exponents(engine, plan.threshold)
    compile_solve(batch, plan, matrix)
    early = EarlyCheck(engine)
    checks = early if checked is not None and checked.lowest < 0 else None
    try:
        method = plan.implementation
        method.solve(matrix, engine, _observer(batch, plan, engine, checks, progress))
        early.finish()
    except NegativeDiagonalError:
        return Attempt(distances, True, None, plan)
    distances = distances if plan.in_place or plan.in_out else distances.contiguous()
    del matrix, read_values  # frees a padded matrix before verification may allocate
    if checked is not None and not verify(
        distances, checked, engine, lambda closed: method.solve(closed, engine, Observer())
    ):
        return Attempt(distances, True, None, plan)
    found = find_predecessors(batch, distances, checked, engine) if options.predecessors else None
    return Attempt(distances, False, found, plan)


def stage(
    batch: DenseBatch,
    engine: type[Staging],
    *,
    into: torch.Tensor | None = None,
    in_place: bool,
    check: bool,
    matrices: float,
) -> tuple[torch.Tensor, Callable[[], ValueRange | None]]:
    """Return the initial matrix of a solve, and a function that returns the value range of the
    weights, which a GPU may still be computing.

    Args:
        batch: the weights.
        engine: the class of the engine that will solve.
        into: memory for the copy; None: new memory.
        in_place: use the memory of the weights, which change once they are checked.
        check: check the values; without it, the value range is None.
        matrices: how many matrices of the size of the copy the solve needs, the copy included.

    Returns:
        (batch, m, m) with m >= n: a copy of the weights, or the weights themselves, with no
        positive diagonal and with no_edge in all padding. The function blocks until the value range
        is computed, and is called at most once.

    Raises:
        InputError, DistanceRangeError: as check_graphs, if in place, before the weights change;
            otherwise the function raises them.
    """
    weights, sizes = batch.weights, batch.sizes
    if not in_place:
        matrix, pending = engine.initial_matrix(
            weights, sizes, matrices=matrices, check=check, into=into
        )
        return (
            matrix,
            lambda: None if pending is None else check_graphs(weights, sizes, pending.read()[0]),
        )
    infinity, checked = no_edge(weights.dtype), None
    padding = None if sizes is None else padding_of(weights, sizes)
    if check and padding is None:
        checked = check_graphs(weights, sizes, engine.value_ranges([weights], infinity)[0])
    elif check:
        checked = check_graphs(weights, sizes, value_range(weights, infinity, padding=padding))
    weights.diagonal(dim1=-2, dim2=-1).clamp_(max=0)
    if padding is not None:
        clear_padding(weights, padding)
    return weights, lambda: checked


def compile_solve(batch: DenseBatch, plan: DensePlan, matrix: torch.Tensor) -> None:
    """Compile or load what a method launches, and what follows it, unless an earlier call has.

    Args:
        batch: the graphs.
        plan: of the solve; only a method whose launches do not depend on values is run ahead.
        matrix: that the solve starts from.

    Cost: microseconds if an earlier call had the same arguments; else one look-up in Triton's
    cache, or one compilation, for each kernel.
    """
    if not plan.implementation.launches_are_fixed or matrix.device.type != "cuda":
        return
    _compile(
        plan.implementation,
        plan.config,
        matrix.device,
        matrix.dtype,
        batch.n,
        plan.nonnegative,
        matrix.shape,
        matrix.stride(),
        None if batch.sizes is None else batch.sizes.dtype,
        plan.threshold,
    )


@lru_cache(maxsize=1024)
def _compile(
    method: Method,
    config: CompleteConfig,
    device: torch.device,
    dtype: torch.dtype,
    n: int,
    nonnegative: bool,
    shape: torch.Size,
    strides: tuple[int, ...],
    sizes_dtype: torch.dtype | None,
    threshold: int | None,
) -> None:
    """Run the method on a matrix of the device "meta", which has no memory: nothing is launched."""
    matrix = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    sizes = None if sizes_dtype is None else torch.empty(shape[0], dtype=sizes_dtype, device="meta")
    spec = MatrixSpec(shape[-1], dtype, device, nonnegative, sizes)
    engine = by_exponents(engines.make(spec, config), threshold)
    with compiling_side_by_side():
        early = EarlyCheck(engine)
        total = shape[0] * method.operations(n)
        check = None if nonnegative else early
        method.solve(matrix, engine, Observer(total, check, None, total // 16))
        early.finish()
        weights_range = ValueRange(0 if nonnegative else -1, 0)
        verify(matrix[:, :n, :n].contiguous(), weights_range, engine, engine.closure)


def _observer(
    batch: DenseBatch,
    plan: DensePlan,
    engine: Engine,
    check: EarlyCheck | None,
    progress: Progress | None,
) -> Observer:
    total = batch.count * plan.implementation.operations(batch.n)
    if progress is None:
        return Observer(total, check, None, max(total // 16, engine.check_interval))
    return Observer(total, check, partial(_report, progress, batch.weights.device), total // 100)


def _report(progress: Progress, device: torch.device, fraction: float) -> None:
    synchronize(device)
    progress(fraction)


def _engine(
    batch: DenseBatch, make: MakeEngine, plan: DensePlan, matrix: torch.Tensor, nonnegative: bool
) -> Engine:
    spec = MatrixSpec(matrix.shape[-1], matrix.dtype, matrix.device, nonnegative, batch.sizes)
    return make(spec, plan.config)
