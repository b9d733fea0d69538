"""Operations per second of the public calls on random graphs, each result compared before its time counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.bench.bounds import bound
from tri_apsp.bench.cases import Case, scipy_distances
from tri_apsp.bench.products import seconds_in_products
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.device import describe
from tri_apsp.gpu.padding import padded_size
from tri_apsp.methods import METHODS
from tri_apsp.semirings import dtype_name, no_edge

__all__ = ["Row", "measure"]

# Runs whose products are timed: their share of a solve varies less than its time.
_PRODUCT_RUNS = 3


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        operation: min_plus, the product of the weights with themselves, or a method.
        dtype: of the weights.
        sign: of the weights: nonnegative, or any.
        n: vertices.
        batch: graphs.
        engine: what ran.
        p20_seconds: of the runs, as the next two.
        p50_seconds: the median.
        p80_seconds: see p20_seconds.
        ops_per_second: batch * n^3 / p50_seconds, whatever the method really does.
        bound_fraction: of the bound (see tri_apsp.cli.bounds) that is reached; None where there is none.
        outside_seconds: p50_seconds less what a solve spends in the products of its engine; None for min_plus.
        scipy_seconds: SciPy's Floyd-Warshall on the same graphs in float64; None where it did not run.
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
    outside_seconds: float | None
    scipy_seconds: float | None
    ratio: float | None


@dataclass(frozen=True)
class _Call:
    """A call that was found right; `in_products` measures the seconds of its products."""

    operation: str
    engine: str
    run: Callable[[], object]
    in_products: Callable[[], float] | None = None


def measure(
    dtypes: Sequence[torch.dtype],
    cases: Sequence[Case],
    methods: Sequence[str],
    device: torch.device,
    *,
    config: Config,
    repeat: int,
    scipy_up_to: int,
    clock_hz: float | None,
) -> Iterator[Row]:
    """Yield a row for the product and for each method, for each dtype and case.

    Args:
        dtypes: of the weights.
        cases: the graphs.
        methods: names of METHODS, or auto.
        device: where to run.
        config: for the methods; min_plus takes none, and runs on the best engine of the device.
        repeat: runs timed, after one that is compared and, on a GPU, others until its clock has settled.
        scipy_up_to: the largest n that SciPy runs, once; of a batch, the n of one graph that takes as many operations.
        clock_hz: of the GPU's multiprocessors; None: unknown.
    """
    baselines: dict[Case, tuple[torch.Tensor, float]] = {}
    for dtype, case in itertools.product(dtypes, cases):
        if case.operations <= scipy_up_to**3 and case not in baselines:
            baselines[case] = scipy_distances(case)
        known, scipy_seconds = baselines.get(case, (None, None))
        weights = case.weights().to(device).to(dtype)
        limit = bound(describe(device), dtype, case.nonnegative, clock_hz)
        for call in _right_calls(case, weights, methods, config, known):
            warm_up(call.run, device)
            p20, p50, p80 = np.percentile([timed(call.run, device)[1] for _ in range(repeat)], [20, 50, 80]).tolist()
            rate = case.operations / p50
            yield Row(
                operation=call.operation,
                dtype=dtype_name(dtype),
                sign=case.sign,
                n=case.n,
                batch=case.batch,
                engine=call.engine,
                p20_seconds=p20,
                p50_seconds=p50,
                p80_seconds=p80,
                ops_per_second=rate,
                bound_fraction=None if limit is None else rate / limit,
                outside_seconds=None if call.in_products is None else max(0.0, p50 - call.in_products()),
                scipy_seconds=scipy_seconds,
                ratio=None if scipy_seconds is None else scipy_seconds / p50,
            )


def _right_calls(
    case: Case, weights: torch.Tensor, methods: Sequence[str], config: Config, known: torch.Tensor | None
) -> Iterator[_Call]:
    """Yield the call of each operation, once a first call gave the right result."""
    _check_product(min_plus(weights, weights), weights)
    yield _Call("min_plus", engines.choose(weights.device, dtype=weights.dtype), partial(min_plus, weights, weights))
    expected = None if known is None else known.to(weights)
    for method in methods:
        result = shortest_paths(weights, method=method, config=config)
        if expected is None:
            # Without SciPy, the first method answers for two sources of each graph, and the others must agree with it.
            _check_sources(result.distances, weights, method)
            expected = result.distances
        assert torch.equal(result.distances, expected), f"{method} is wrong for {weights.shape} in {weights.dtype}"
        solve = partial(shortest_paths, weights, method=method, config=config)
        in_products = partial(_in_products, weights, case.nonnegative, result.method, result.config)
        engine = result.engine
        del result  # the runs need its memory
        yield _Call(method, engine, solve, in_products)


def _in_products(weights: torch.Tensor, nonnegative: bool, method: str, config: CompleteConfig) -> float:
    """Return the median seconds of the products of a solve under `config`, which is complete."""
    graphs = weights.reshape(-1, *weights.shape[-2:])
    n, size = graphs.shape[-1], _stored(graphs, method)
    matrix = graphs.new_empty((len(graphs), size, size))
    traits = engines.Weights(matrix.shape[-1], matrix.dtype, matrix.device, nonnegative)
    seconds = []
    for _ in range(_PRODUCT_RUNS):
        matrix.fill_(no_edge(matrix.dtype))
        matrix[:, :n, :n].copy_(graphs)
        seconds.append(seconds_in_products(method, matrix, engines.make(config.engine, traits, config)))
    return float(np.median(seconds))


def _stored(graphs: torch.Tensor, method: str) -> int:
    """Return how many vertices a solve stores of each of the graphs (batch, n, n)."""
    if graphs.device.type == "cpu":
        return graphs.shape[-1]
    return padded_size(graphs, 2 + METHODS[method].workspace)


def _check_product(product: torch.Tensor, weights: torch.Tensor) -> None:
    """Compare the first and the last row of weights * weights; all of them would take as long as the measurement."""
    for row in (0, -1):
        expected = (weights[..., row, :, None] + weights).amin(dim=-2)
        assert torch.equal(product[..., row, :], expected), f"min_plus is wrong for {weights.shape} in {weights.dtype}"


def _check_sources(distances: torch.Tensor, weights: torch.Tensor, method: str) -> None:
    """Compare the first and the last row with Bellman's equations: D[s, s] = 0, D[s, j] = min over k != j of D[s, k] + W[k, j].

    Every cycle here has a positive weight, so the distances are their only solution.
    """
    largest = float("inf") if weights.is_floating_point() else torch.iinfo(weights.dtype).max
    for row in (0, -1):
        through = distances[..., row, :, None] + weights
        through.diagonal(dim1=-2, dim2=-1).fill_(largest)
        expected = through.amin(dim=-2)
        expected[..., row] = 0
        assert torch.equal(distances[..., row, :], expected), f"{method} is wrong for {weights.shape} in {weights.dtype}"
