"""Operations per second of the public calls on random graphs; each result is checked before its
call is timed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from tri_apsp import engines, papers, tuned
from tri_apsp.api import min_plus, reachability
from tri_apsp.bench.cases import Case, check_closure, edges_of, runs_scipy, scipy_distances
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import Config
from tri_apsp.console.output import amount
from tri_apsp.dense.product import tries_exponents
from tri_apsp.dense.run import solve
from tri_apsp.device import Device, describe
from tri_apsp.engines import boolean
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name, no_edge

_LAYOUT = "{:16}  {:7}  {:11}  {:>6}  {:>5}  {:8}  {:>8}  {:>8}  {:>8}  {:>7}  {:>6}  {:>7}  {:>6}"
TITLES = _LAYOUT.format(
    *("operation", "dtype", "sign", "n", "batch", "engine"),
    *("median s", "p20 s", "p80 s", "ops/s", "bound", "scipy", "ratio"),
)
"""The line of the titles of the table that `bench` prints."""

BOUND = (
    "what adds and mins, or ands and ors, alone would reach on compute capability 9: 128 "
    "instructions per clock and multiprocessor, of which the ALU (min, fused add-min, compare, "
    "select, and with or) takes 64 and the float64 unit 64"
)
"""The definition of the bound, for help texts. Loads, addresses and loops count nothing, so no
kernel of these instructions reaches it.
"""

# The rate of the busiest unit: 128 instructions are issued per clock, once per thread, of which the
# ALU takes 64, and the float64 unit 64.
_PER_CLOCK = {
    torch.float32: 64.0,  # FADD FMNMX: the ALU takes the minimum
    torch.float64: 32.0,  # DADD DSETP FSEL FSEL
    torch.int16: 128.0,  # VIADDMNMX.S16x2, two values per word, on the ALU
    torch.int32: 64.0,  # VIADDMNMX, on the ALU
    # Two each of add, compare (ISETP) and select (SEL), for the halves of a value; adds may run off
    # the ALU, as IMAD.
    torch.int64: 16.0,
    torch.bool: 2048.0,  # LOP3, for an "or" and an "and" of words of 32: reachability
}
# Nonnegative float32 values are ordered as their bits are as integers, so one integer minimum of
# three takes two sums: FADD FADD VIMNMX3 are issued for two operations.
_NONNEGATIVE_FLOAT32 = 2 * 128 / 3

RATES = ", ".join(f"{dtype_name(dtype)} {rate:g}" for dtype, rate in _PER_CLOCK.items()) + (
    f", float32 nonnegative {_NONNEGATIVE_FLOAT32:.3g}"
)
"""Operations per clock and multiprocessor of each dtype, for help texts."""


@dataclass(frozen=True)
class BenchRow:
    """One measurement.

    Attributes:
        operation: min_plus, the product of the weights with themselves; a method; or reachability.
        dtype: of the weights; bool for reachability.
        sign: of the weights: nonnegative, or any.
        n: vertices per graph.
        batch: graphs per call.
        engine: the engine that ran.
        p20_seconds: the 20th percentile of the runs.
        p50_seconds: their median.
        p80_seconds: their 80th percentile.
        ops_per_second: batch * n^3 / p50_seconds, however many operations the method does.
        bound_fraction: the fraction reached of BOUND; None where there is none, and where large
            products run on tensor cores, to which it does not apply.
        scipy_seconds: of SciPy's Floyd-Warshall on the same graphs in float64; None where it did
            not run.
        ratio: scipy_seconds / p50_seconds.
    """

    operation: str
    dtype: str
    sign: str
    n: int
    batch: int
    engine: str
    p20_seconds: float
    p50_seconds: float
    p80_seconds: float
    ops_per_second: float
    bound_fraction: float | None
    scipy_seconds: float | None
    ratio: float | None


@dataclass(frozen=True)
class _CheckedCall:
    """A public call on a dtype, whose result was checked.

    `tensor_cores`: whether large products run on tensor cores, to which the bound does not apply.
    """

    operation: str
    dtype: torch.dtype
    engine: str
    run: Callable[[], object]
    tensor_cores: bool = False


def measure(
    runs: Sequence[tuple[Case, Sequence[str]]],
    device: torch.device,
    *,
    config: Config,
    repeat: int,
    scipy_up_to: int,
    closures: bool = False,
) -> Iterator[BenchRow]:
    """Yield a row for the product and for each method, for each case; and one for reachability, for
    each size and batch.

    Args:
        runs: the graphs with their dtype, and names of METHODS or of papers.SYSTEMS, or auto.
        device: where to run.
        config: for the methods and reachability; min_plus takes none, and runs on the best engine
            of the device.
        repeat: runs timed, after one that is checked and, on a GPU, others until its clock has
            settled.
        scipy_up_to: the largest n that SciPy runs, once; of a batch, the n of one graph that takes
            as many operations.
        closures: measure the transitive closure too; and no product of a case without methods.
    """
    baselines: dict[tuple[int, int, str], tuple[torch.Tensor, float]] = {}
    closed: set[tuple[int, int]] = set()
    for case, methods in runs:
        time_call = partial(_row, case, device, repeat)
        if methods or not closures:
            if runs_scipy(case, scipy_up_to) and case.graphs not in baselines:
                baselines[case.graphs] = scipy_distances(case)
            expected, scipy_seconds = baselines.get(case.graphs, (None, None))
            for call in _checked_calls(case.weights(device), methods, config, expected):
                yield time_call(call, scipy_seconds)
        if closures and (case.n, case.batch) not in closed:
            closed.add((case.n, case.batch))
            yield time_call(_checked_closure(case, config, device), None)


def _row(
    case: Case,
    device: torch.device,
    repeat: int,
    call: _CheckedCall,
    scipy_seconds: float | None,
) -> BenchRow:
    """Time `call` on the graphs of `case`."""
    warm_up(call.run, device)
    seconds = [timed(call.run, device)[1] for _ in range(repeat)]
    p20, p50, p80 = np.percentile(seconds, [20, 50, 80]).tolist()
    rate = case.operations / p50
    limit = None if call.tensor_cores else bound(describe(device), call.dtype, case.nonnegative)
    return BenchRow(
        operation=call.operation,
        dtype=dtype_name(call.dtype),
        sign=case.sign,
        n=case.n,
        batch=case.batch,
        engine=call.engine,
        p20_seconds=p20,
        p50_seconds=p50,
        p80_seconds=p80,
        ops_per_second=rate,
        bound_fraction=None if limit is None else rate / limit,
        scipy_seconds=scipy_seconds,
        ratio=None if scipy_seconds is None else scipy_seconds / p50,
    )


def bound_clock_hz(device: Device) -> float | None:
    """Return the clock of the bound; None where there is none: on other devices than those of
    compute capability 9, on which the rates of the instructions differ.
    """
    return device.clock_hz if device.has_wgmma else None


def bound(device: Device, dtype: torch.dtype, nonnegative: bool) -> float | None:
    """Return the nominal bound of operations per second on a GPU; None as for bound_clock_hz.

    Args:
        device: a GPU.
        dtype: of the weights; bool: of Boolean operations, as in reachability.
        nonnegative: no weight is negative.
    """
    clock_hz = bound_clock_hz(device)
    if clock_hz is None:
        return None
    per_clock = _PER_CLOCK[dtype]
    if nonnegative and dtype == torch.float32:
        per_clock = _NONNEGATIVE_FLOAT32
    return per_clock * device.units * clock_hz


def solve_by(name: str, weights: torch.Tensor, config: Config) -> Result:
    """Solve by "auto", by a method of METHODS, or by a system of a paper."""
    if name in papers.SYSTEMS:
        return papers.solve(weights, name, config=config)
    return solve(weights, method=name, config=config)


def _closure(edges: torch.Tensor, config: Config) -> torch.Tensor:
    """Return the closure on the engine that `config` names."""
    with tuned.using(config):
        return reachability(edges)


def _checked_calls(
    weights: torch.Tensor,
    methods: Sequence[str],
    config: Config,
    expected: torch.Tensor | None,
) -> Iterator[_CheckedCall]:
    """Yield the call of each operation after a first call returned the right result.

    `expected` are the distances, if known. If not, the first method is checked for two sources of
    each graph, and the others must agree with it.
    """
    _check_product(min_plus(weights, weights), weights)
    engine = engines.choose(weights.device, dtype=weights.dtype)
    by_exponents = tries_exponents(weights, weights)
    yield _CheckedCall(
        "min_plus",
        weights.dtype,
        engine,
        partial(min_plus, weights, weights),
        tensor_cores=by_exponents,
    )
    if expected is not None:
        expected = expected.to(weights)
    for method in methods:
        run = partial(solve_by, method, weights, config)
        result = run()
        if expected is None:
            check_sources(result.distances, weights, method)
            expected = result.distances
        assert torch.equal(result.distances, expected), (
            f"{method} is wrong for {weights.shape} in {weights.dtype}"
        )
        engine, by_exponents = result.engine, result.exponents
        del result  # the timed runs need its memory
        yield _CheckedCall(method, weights.dtype, engine, run, by_exponents)


def _checked_closure(case: Case, config: Config, device: torch.device) -> _CheckedCall:
    """Return the call of reachability, after a first call returned the right result."""
    edges = edges_of(case, device)
    check_closure(_closure(edges, config), case)
    engine = engines.choose(device, config)
    counts = boolean.make(engine, case.n, device).counts_paths
    return _CheckedCall(
        "reachability",
        torch.bool,
        engine,
        partial(_closure, edges, config),
        tensor_cores=counts,
    )


def _check_product(product: torch.Tensor, weights: torch.Tensor) -> None:
    """Check the first and the last row of weights * weights; to check all would take as long as the
    measurement.
    """
    for row in (0, -1):
        expected = (weights[..., row, :, None] + weights).amin(dim=-2)
        assert torch.equal(product[..., row, :], expected), (
            f"min_plus is wrong for {weights.shape} in {weights.dtype}"
        )


def check_sources(distances: torch.Tensor, weights: torch.Tensor, method: str) -> None:
    """Check Bellman's equations in the first and the last row: D[s, s] = 0, D[s, j] = min over k !=
    j of D[s, k] + W[k, j].

    Where every cycle has a positive weight, the distances are the only solution of these equations.

    Raises:
        AssertionError: a row is wrong; `method` is named.
    """
    none = no_edge(weights.dtype)
    for row in (0, -1):
        sources = distances[..., row, :, None]
        through = (sources + weights).masked_fill_((sources == none) | (weights == none), none)
        through.diagonal(dim1=-2, dim2=-1).fill_(none)
        expected = through.amin(dim=-2)
        expected[..., row] = 0
        assert torch.equal(distances[..., row, :], expected), (
            f"{method} is wrong for {weights.shape} in {weights.dtype}"
        )


def line(row: BenchRow) -> str:
    """Return the line of a row; "-" stands for None."""
    seconds = (f"{value:.3g}" for value in (row.p50_seconds, row.p20_seconds, row.p80_seconds))
    share = "-" if row.bound_fraction is None else f"{row.bound_fraction:.1%}"
    scipy = "-" if row.scipy_seconds is None else amount(row.batch * row.n**3 / row.scipy_seconds)
    ratio = "-" if row.ratio is None else f"{row.ratio:.1f}"
    names = (row.operation, row.dtype, row.sign, row.n, row.batch, row.engine)
    return _LAYOUT.format(*names, *seconds, amount(row.ops_per_second), share, scipy, ratio)
