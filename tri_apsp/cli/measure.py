"""Operations per second of the public calls on random graphs, each result compared before its time counts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.api import min_plus, shortest_paths
from tri_apsp.cli.timing import timed
from tri_apsp.configs import Config
from tri_apsp.semirings import dtype_name

__all__ = ["HEAVIEST", "Row", "measure"]

HEAVIEST = 100
"""Weights are whole numbers, uniform in 1..HEAVIEST; every dtype holds their distances exactly."""


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        operation: min_plus, the product of the weights with themselves, or a method.
        dtype: of the weights.
        n: vertices.
        engine: what ran.
        p20_seconds: of the runs, as the next two.
        p50_seconds: the median.
        p80_seconds: see p20_seconds.
        ops_per_second: n^3 / p50_seconds, whatever the method really does.
        scipy_seconds: SciPy's Floyd-Warshall on the same weights in float64; None where it did not run.
        ratio: scipy_seconds / p50_seconds.
    """

    operation: str
    dtype: str
    n: int
    engine: str
    p20_seconds: float
    p50_seconds: float
    p80_seconds: float
    ops_per_second: float
    scipy_seconds: float | None
    ratio: float | None


def measure(
    dtypes: Sequence[torch.dtype],
    sizes: Sequence[int],
    methods: Sequence[str],
    device: torch.device,
    *,
    config: Config,
    repeat: int,
    scipy_up_to: int,
) -> Iterator[Row]:
    """Yield a row for the product and for each method, for each dtype and size.

    Args:
        dtypes: of the weights.
        sizes: vertices.
        methods: names of METHODS.
        device: where to run.
        config: for the methods; min_plus takes none, and runs on the best engine of the device.
        repeat: runs timed, after one that warms up and is compared.
        scipy_up_to: the largest n that SciPy runs, once.
    """
    baselines: dict[int, tuple[torch.Tensor, float]] = {}
    for dtype, n in itertools.product(dtypes, sizes):
        if n <= scipy_up_to and n not in baselines:
            baselines[n] = _scipy(n)
        known, scipy_seconds = baselines.get(n, (None, None))
        weights = _weights(n).to(device).to(dtype)
        for operation, engine, call in _right_calls(weights, methods, config, known):
            times = [timed(call, device)[1] for _ in range(repeat)]
            p20, p50, p80 = np.percentile(times, [20, 50, 80]).tolist()
            ratio = None if scipy_seconds is None else scipy_seconds / p50
            yield Row(operation, dtype_name(dtype), n, engine, p20, p50, p80, n**3 / p50, scipy_seconds, ratio)


def _right_calls(
    weights: torch.Tensor, methods: Sequence[str], config: Config, known: torch.Tensor | None
) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Yield the name, the engine and the call of each operation, once a first call gave the right result."""
    _check_product(min_plus(weights, weights), weights)
    yield "min_plus", engines.choose(weights.device, dtype=weights.dtype), partial(min_plus, weights, weights)
    # Without SciPy's distances, the methods must still agree with each other.
    expected = None if known is None else known.to(weights)
    for method in methods:
        result = shortest_paths(weights, method=method, config=config)
        expected = result.distances if expected is None else expected
        assert torch.equal(result.distances, expected), f"{method} is wrong for {weights.shape} in {weights.dtype}"
        yield method, result.engine, partial(shortest_paths, weights, method=method, config=config)


def _weights(n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(n)
    return torch.randint(1, HEAVIEST + 1, (n, n), generator=generator, dtype=torch.uint8).fill_diagonal_(0)


def _scipy(n: int) -> tuple[torch.Tensor, float]:
    """Return SciPy's distances, as uint8, and its seconds."""
    from scipy.sparse.csgraph import floyd_warshall  # slow to import

    weights = _weights(n).to(torch.float64).numpy()
    start = time.perf_counter()
    distances = floyd_warshall(weights)
    seconds = time.perf_counter() - start
    return torch.from_numpy(distances).to(torch.uint8), seconds


def _check_product(product: torch.Tensor, weights: torch.Tensor) -> None:
    """Compare the first and the last row of weights * weights; all of them would take as long as the measurement."""
    for row in (0, -1):
        expected = (weights[row][:, None] + weights).amin(dim=0)
        assert torch.equal(product[row], expected), f"min_plus is wrong for {weights.shape} in {weights.dtype}"
