"""The two calls: shortest_paths() and min_plus(). Check, choose, run, wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tri_apsp import device, engines, tuned
from tri_apsp.configs import Config
from tri_apsp.engines.triton_base import TritonEngine
from tri_apsp.errors import InputError
from tri_apsp.gpu.padding import for_product, stored
from tri_apsp.gpu.value_range import Findings, Scan, has_kernels, read_at_once
from tri_apsp.methods import METHODS, Method, Watch, auto
from tri_apsp.semirings import no_edge
from tri_apsp.solver import arguments as checks
from tri_apsp.solver import verification as audit
from tri_apsp.solver.staging import start

__all__ = ["Result", "Selection", "min_plus", "select", "shortest_paths", "solve"]

# Least operations between two looks for a negative cycle: half a millisecond of an H200 and more of others, in which the host
# reads what the look before found, and queues what comes next.
LOOK_EVERY = 1 << 33

# Rows farther apart than this, or than dense ones, are copied on a GPU: its kernels count in 32 bits within a tile, of which
# none has as many rows as 2^31 values have such rows.
_FARTHEST = 1 << 18


@dataclass(frozen=True)
class Selection:
    """What a solve would run, and why: see select()."""

    method: str
    engine: str
    config: Config
    reason: str


@dataclass(frozen=True)
class Result:
    """All shortest distances, and how they were computed.

    Attributes:
        distances: same shape, dtype and device as the weights; no_edge (inf) where there is no path.
        method: the method that ran, never "auto".
        engine: the engine that ran.
        config: its tile sizes and cut-offs, with their source.
    """

    distances: torch.Tensor
    method: str
    engine: str
    config: Config


def select(weights: torch.Tensor, *, method: str = "auto", config: Config | None = None) -> Selection:
    """Say what shortest_paths(weights) would run, without running it; the rules are tri_apsp.methods.auto.RULES.

    Args and errors: as for shortest_paths; the values of `weights` are not read, and taken not to be negative.
    """
    return _select(checks.check_weights(weights), method, config)


def shortest_paths(
    weights: torch.Tensor,
    *,
    sizes: torch.Tensor | None = None,
    method: str = "auto",
    config: Config | None = None,
    overwrite: bool = False,
    check: bool = True,
) -> Result:
    """Return D = W*: D[i, j] is the weight of the lightest path from i to j, over paths of any number of edges.

    Args:
        weights: (n, n) or (batch, n, n) of float32, float64, int16, int32 or int64, on the CPU or a CUDA device, with
            any strides. weights[i, j] is the weight of the edge from i to j; inf, or no_edge(dtype) for integers, means
            no edge. The diagonal counts as 0 unless it is negative.
        sizes: for a batch of graphs of different sizes, (batch,) of int32 or int64 on the device of the weights, with
            0 <= sizes[i] <= n: graph i is the leading sizes[i] x sizes[i] block of weights[i]. What stands beside and
            below that is ignored, whatever it is, and the result is no_edge there, on the diagonal too. None: all n.
        method: "auto", "floyd_warshall", "kleene", "squaring" or "iterative"; see select() for what "auto" takes.
        config: engine, tiles and cut-offs to use instead of the tuned or default ones; unset fields are filled in.
        overwrite: solve in the memory of `weights`, which then holds the distances (or, after an error, rubbish).
        check: look for bad values, negative cycles and integer distances out of range. Without it the call neither
            reads a value nor waits for the GPU; then NaN gives rubbish, a negative cycle goes unnoticed, and integer
            weights must not be negative. Of `sizes`, shape, dtype and device are checked all the same; a size out of
            range then counts as the nearest that is in range.

    Returns:
        Result; `distances` is `weights` itself with overwrite, else a new contiguous tensor.

    Raises:
        InputError: weights that are no square real matrix, NaN or minus infinity, sizes that do not fit the weights, an
            unknown method or engine. The weights are then untouched, with overwrite too.
        NegativeCycleError: a cycle of negative weight; carries vertices on it.
        DistanceRangeError: a distance does not fit the integer dtype. Distances and sums may reach, exclusively,
            no_edge(dtype); if any integer weight is negative, distances must lie in [-q, no_edge - 2q) with
            q = no_edge // 4, so that none is confused with a walk over a missing edge.
        TooLargeError: the result does not fit the memory of the device.
        EngineError: the engine that config names cannot run here.

    Cost: n^3 min-plus operations a graph ("squaring": up to log2 n times as many); besides the result at most 5% of
    the matrix, or 1% of a GPU's memory, as workspace ("squaring": one more matrix). On a GPU also one more matrix, where 16
    does not divide n, unless `overwrite` or want of memory forbids: a solve in rows that are aligned is much faster.
    """
    return solve(weights, sizes=sizes, method=method, config=config, overwrite=overwrite, check=check)


def solve(
    weights: torch.Tensor,
    *,
    sizes: torch.Tensor | None = None,
    method: str = "auto",
    config: Config | None = None,
    overwrite: bool = False,
    check: bool = True,
    report: Callable[[float], None] | None = None,
) -> Result:
    """shortest_paths, telling `report` the fraction done now and then (which waits for the device each time)."""
    problem = checks.check_weights(weights, sizes=sizes, values=check)
    selection = _select(problem, method, config)
    if overwrite:
        checks.check_overwrite(problem.weights)
    algorithm = METHODS[selection.method]
    in_place = overwrite and _is_addressable(problem.weights)
    with checks.copies_fit(problem, (0 if in_place else 1) + algorithm.workspace), device.current(problem.weights.device):
        distances, selection = _solve(problem, selection, (method, config), overwrite, in_place, check, report)
    if overwrite:
        if distances.data_ptr() != problem.weights.data_ptr():
            problem.weights.copy_(distances)
        result = weights
    else:
        result = distances if problem.batched else distances[0]
    return Result(result, selection.method, selection.engine, selection.config)


def _solve(
    problem: checks.Problem,
    selection: Selection,
    asked: tuple[str, Config | None],
    overwrite: bool,
    in_place: bool,
    check: bool,
    report: Callable[[float], None] | None,
) -> tuple[torch.Tensor, Selection]:
    """Return the distances (batch, n, n), in the memory of the weights if `in_place`, and what ran; see solve().

    `selection` is what was `asked` for (method and config) made definite for weights without negative values.
    """
    weights, sizes = problem.weights, problem.sizes
    untouched = None if overwrite else weights
    engine, bounds = None, None
    one_closure = selection.method == "floyd_warshall" and problem.n <= _block_size(selection)
    if check and one_closure and not overwrite and report is None and has_kernels(weights):
        return _solve_at_once(problem, selection), selection
    if in_place or not has_kernels(weights):
        matrix, bounds = start(weights, sizes, in_place, check)
        distances = matrix
    else:
        findings = Findings(weights, unread=not check)
        matrix = findings.copy(weights, sizes, stored(weights, 2 + METHODS[selection.method].workspace))
        distances = matrix[:, : problem.n, : problem.n]
        if check:
            engine = _engine(problem, selection, matrix, nonnegative=True)  # as most weights need it, while the GPU reads them
            bounds = checks.check_graphs(weights, sizes, findings.read()[0])
    negative = bounds is not None and bounds.lowest < 0
    if negative or not check:
        selection = _select(problem, *asked, nonnegative=False)
    if negative or engine is None:
        engine = _engine(problem, selection, matrix, nonnegative=check and not negative)
    algorithm = METHODS[selection.method]
    _watched(problem, (algorithm, engine), matrix, untouched, negative, report)
    if matrix.shape != distances.shape:
        distances = distances.contiguous()
    del matrix  # before more memory is asked for

    def close(matrix: torch.Tensor) -> None:
        algorithm.solve(matrix, engine, Watch(0))

    if bounds is not None:
        audit.audit(distances, untouched, negative, bounds.longest, close, sizes)
    return distances, selection


def _watched(
    problem: checks.Problem,
    solver: tuple[Method, engines.Engine],
    matrix: torch.Tensor,
    untouched: torch.Tensor | None,
    negative: bool,
    report: Callable[[float], None] | None,
) -> None:
    """Solve a matrix (batch, n or more, n or more) in place; look for negative cycles and tell what is done now and then."""
    algorithm, engine = solver

    def tell(fraction: float) -> None:
        assert report is not None
        device.wait(matrix.device)
        report(fraction)

    total = problem.batch * algorithm.operations(problem.n)
    look = audit.EarlyLook(matrix[:, : problem.n, : problem.n], untouched, problem.sizes)
    every = total // 100 if report is not None else max(total // 16, LOOK_EVERY)
    watch = Watch(total, look if negative else None, tell if report is not None else None, every)
    algorithm.solve(matrix, engine, watch)
    look.finish()


def _solve_at_once(problem: checks.Problem, selection: Selection) -> torch.Tensor:
    """Return the distances (batch, n, n) of graphs on a GPU that one closure solves, checked, for one wait.

    Nobody waits for what the weights hold before it is launched: it may then work on rubbish, in a copy, for less time than a
    wait takes.
    """
    engine = _engine(problem, selection, problem.weights, nonnegative=False)
    assert isinstance(engine, TritonEngine)
    distances, pending = engine.solve(problem.weights)
    found, last = pending.read()
    bounds = checks.check_graphs(problem.weights, problem.sizes, found)
    audit.audit(distances, problem.weights, bounds.lowest < 0, bounds.longest, engine.closure, problem.sizes, last)
    return distances


def _engine(problem: checks.Problem, selection: Selection, matrix: torch.Tensor, *, nonnegative: bool) -> engines.Engine:
    traits = engines.Weights(matrix.shape[-1], matrix.dtype, matrix.device, nonnegative, problem.sizes)
    return engines.make(selection.engine, traits, selection.config)


def min_plus(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    """Return the min-plus product C[i, j] = min over k of A[i, k] + B[k, j], and of c[i, j] if c is given.

    Args:
        a: (m, k) or (batch, m, k), with any strides; dtypes, devices and no_edge as for shortest_paths.
        b: (k, n) or (batch, k, n), of the same dtype and device.
        c: (m, n) or (batch, m, n) to take the minimum with; untouched. None: nothing, all no_edge.

    Returns:
        A new contiguous tensor; no_edge where every sum involves no_edge.

    Raises:
        InputError: shapes, dtypes or devices that do not fit; NaN or minus infinity.
        DistanceRangeError: a sum of two integer weights that a result depends on does not fit the dtype.
        TooLargeError: the result does not fit the memory of the device.

    Cost: m * n * k min-plus operations; for integers whose sums come near no_edge, up to twice that. Large operands on a GPU
    are copied where 16 does not divide k or n, if there is memory for that: a product of aligned rows is faster.
    """
    left, right, start, batched = checks.check_operands(a, b, c)
    columns = right.shape[2]
    named = {"a": left, "b": right} | ({} if start is None else {"c": start})
    found: Sequence[Scan | None] = read_at_once(list(named.values()), no_edge(left.dtype)) or [None] * len(named)
    bounds = [checks.check_values(tensor, name, found=scan) for (name, tensor), scan in zip(named.items(), found, strict=True)]
    nonnegative = all(bound.lowest >= 0 for bound in bounds)
    forced = tuned.with_forced(None)
    size = round((left.shape[1] * left.shape[2] * right.shape[2]) ** (1 / 3))
    config = tuned.find(
        engines.choose(left.device, forced, left.dtype), left.device, left.dtype, n=size, batch=left.shape[0],
        nonnegative=nonnegative, product=True,
    )  # fmt: skip
    traits = engines.Weights(left.shape[-1], left.dtype, left.device, nonnegative)
    assert config.engine is not None
    engine = engines.make(config.engine, traits, config)
    batch, rows, _ = left.shape
    with checks.product_fits((batch, rows, columns), left), device.current(left.device):
        left, right, start = for_product(left, right, start)
        shape = (batch, rows, right.shape[2])
        result = left.new_empty(shape) if start is None else start.clone(memory_format=torch.contiguous_format)
        engine.product(engines.Update(result, left, right, fresh=start is None))
        if not left.is_floating_point():
            _audit_product(result, left, right, start, engine, bounds)
        result = result[:, :, :columns].contiguous()
    return result if batched else result[0]


def _audit_product(
    result: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    engine: engines.Engine,
    bounds: list[checks.Bounds],
) -> None:
    """Tell integer sums apart from walks over a missing edge, which lie at `beyond` or above; raise if that fails.

    `bounds` are those of a, b and, if given, c; where they exclude that a sum is out of range, nothing is read.
    """
    dtype, infinity = result.dtype, int(no_edge(result.dtype))
    if not result.numel() or not a.numel():
        return
    lowest_a, lowest_b, *lowest_c = (int(bound.lowest) for bound in bounds)
    beyond = infinity + min(0, lowest_a, lowest_b)
    largest = [bound.longest for bound in bounds[:2]]
    if None not in largest and sum(int(v) for v in largest if v is not None) >= beyond:
        left, right = (torch.zeros_like(t).masked_fill_(t == infinity, infinity) for t in (a, b))
        path = torch.full_like(result, infinity)
        engine.product(engines.Update(path, left, right))
        known = infinity if c is None else c
        unsure = (result >= beyond) & ((result < known) | (result == infinity))
        if bool((unsure & (path == 0)).any()):
            audit.raise_out_of_range(dtype, f"a sum weighs {beyond} or more")
    if min(lowest_a + lowest_b, *lowest_c, infinity) <= -infinity and int(result.amin()) <= -infinity:
        audit.raise_out_of_range(dtype, f"a sum weighs {-infinity} or less")
    if beyond < infinity:
        missing = result >= beyond
        result.masked_fill_(missing, infinity)
        if c is not None:
            result.copy_(torch.where(missing, c, result))


def _select(problem: checks.Problem, method: str, config: Config | None, *, nonnegative: bool = True) -> Selection:
    if method != "auto" and method not in METHODS:
        raise InputError(f"method must be one of auto, {', '.join(METHODS)}, but is {method!r}; choose one of these.")
    if config is not None and not isinstance(config, Config):
        raise InputError(f"config must be a tri_apsp.Config, but is {type(config).__name__}; give a Config or leave it out.")
    weights, config = problem.weights, tuned.with_forced(config)
    engine = engines.choose(weights.device, config, weights.dtype)
    found = tuned.find(engine, weights.device, weights.dtype, config, n=problem.n, batch=problem.batch, nonnegative=nonnegative)
    if method == "auto":
        rule = auto.choose(problem.n, found)
        return Selection(rule.method, engine, found, rule.reason)
    return Selection(method, engine, found, "asked for by name")


def _is_addressable(weights: torch.Tensor) -> bool:
    """Return whether engines can work on weights (batch, n, n) where they lie."""
    near = weights.stride(-2) <= max(_FARTHEST, weights.shape[-1])
    return weights.stride(-1) == 1 and (near or weights.device.type == "cpu")


def _block_size(selection: Selection) -> int:
    size = selection.config.block_size
    assert size is not None
    return size
