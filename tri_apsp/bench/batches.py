"""Batches of small graphs: seconds of a whole checked call, beside those of what users of such
batches run today.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.bench.cases import Case, scipy_distances
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import Config
from tri_apsp.semirings import dtype_name, no_edge

SIZES = (8, 16, 32, 64)
"""Default numbers of vertices."""

BATCHES = {"cpu": (256, 4096), "cuda": (256, 4096, 65536)}
"""Default numbers of graphs by type of device."""

# Graphs that a loop over single graphs runs on; its time for a batch is in proportion.
_SAMPLE = 256

_LAYOUT = "{:7}  {:11}  {:>3}  {:>6}  {:8}  {:>9}  {:>9}  {:>7}  {:>7}  {:>9}  {:>6}  {:>9}  {:>6}"
TITLES = _LAYOUT.format(
    *("dtype", "sign", "n", "batch", "engine", "median ms", "graphs/s", "/ copy", "sizes %"),
    *("torch ms", "ratio", "scipy ms", "ratio"),
)
"""The line of the titles of the table that `bench --batches` prints."""


@dataclass(frozen=True)
class BatchRow:
    """One measurement; seconds are medians.

    Attributes:
        dtype, sign: of the weights.
        n: vertices per graph.
        batch: graphs per call.
        engine: the engine that ran.
        p50_seconds: of shortest_paths(weights), with its checks.
        sizes_seconds: of shortest_paths(weights, sizes=sizes), where every graph has n vertices.
        copy_seconds: of a copy of the weights.
        torch_seconds: of solve_by_torch.
        scipy_seconds: of a loop of SciPy's floyd_warshall over dense float64 graphs on one core, in
            proportion to a sample.
    """

    dtype: str
    sign: str
    n: int
    batch: int
    engine: str
    p50_seconds: float
    sizes_seconds: float
    copy_seconds: float
    torch_seconds: float
    scipy_seconds: float


def measure_batches(
    cases: Iterable[Case],
    device: torch.device,
    *,
    config: Config,
    repeat: int,
    show: Callable[[str], None] = lambda text: None,
) -> Iterator[BatchRow]:
    """Yield a row for each case, after the distances were found to be those of SciPy for a sample,
    and of the loop for all.

    Args:
        cases: the batches.
        device: where to run.
        config: for shortest_paths.
        repeat: runs timed, after others on a GPU until its clock has settled.
        show: receives what is done now, in a few words; an empty text before a row is yielded.
    """
    for case in cases:
        weights = case.weights(device).view(case.batch, case.n, case.n)
        sizes, copy = torch.full((case.batch,), case.n, device=device), torch.empty_like(weights)
        sample = Case(case.n, case.dtype, min(case.batch, _SAMPLE), case.sign)
        show(f"{case}: SciPy")
        expected, scipy_seconds = scipy_distances(sample)
        show(f"{case}: check")
        result = shortest_paths(weights, config=config)
        distances = result.distances
        first = shortest_paths(
            sample.weights(device).view(-1, case.n, case.n), config=config
        ).distances
        right = torch.equal(first.cpu(), expected.view(first.shape).to(case.dtype))
        assert right, f"shortest_paths is wrong for {case}"
        assert torch.equal(distances, solve_by_torch(weights)), (
            f"shortest_paths is wrong for {case}"
        )
        assert torch.equal(
            distances, shortest_paths(weights, sizes=sizes, config=config).distances
        ), f"sizes: {case}"
        calls: dict[str, Callable[[], object]] = {
            "shortest_paths": lambda: shortest_paths(weights, config=config),  # noqa: B023 - called here
            "sizes": lambda: shortest_paths(weights, sizes=sizes, config=config),  # noqa: B023
            "copy": lambda: copy.copy_(weights),  # noqa: B023
            "torch": lambda: solve_by_torch(weights),  # noqa: B023
        }
        seconds = {}
        for name, call in calls.items():
            show(f"{case}: {name}")
            warm_up(call, device)
            seconds[name] = median(timed(call, device)[1] for _ in range(repeat))
        show("")
        yield BatchRow(
            dtype=dtype_name(case.dtype),
            sign=case.sign,
            n=case.n,
            batch=case.batch,
            engine=result.engine,
            p50_seconds=seconds["shortest_paths"],
            sizes_seconds=seconds["sizes"],
            copy_seconds=seconds["copy"],
            torch_seconds=seconds["torch"],
            scipy_seconds=scipy_seconds * case.batch / sample.batch,
        )


def solve_by_torch(weights: torch.Tensor) -> torch.Tensor:
    """Return the distances of weights (batch, n, n) by a loop over torch operations, with the
    checks of shortest_paths.

    Raises:
        ValueError: NaN or minus infinity, or a negative cycle.
    """
    infinity = no_edge(weights.dtype)
    lowest = weights.amin()
    distances = weights.clone()
    distances.diagonal(dim1=1, dim2=2).clamp_(max=0)
    for k in range(weights.shape[-1]):
        torch.minimum(distances, distances[:, :, k, None] + distances[:, k, None, :], out=distances)
    if not weights.is_floating_point():
        distances.masked_fill_(distances > infinity // 2, infinity)
    cycles = distances.diagonal(dim1=1, dim2=2).amin()
    least, cycle = torch.stack((lowest, cycles)).tolist()  # one wait for the device
    if not least > -float("inf") or cycle < 0:
        raise ValueError("the weights must be numbers without a negative cycle")
    return distances


def line(row: BatchRow) -> str:
    """Return the line of a row."""
    own = row.p50_seconds
    return _LAYOUT.format(
        *(row.dtype, row.sign, row.n, row.batch, row.engine),
        f"{1e3 * own:.3g}",
        f"{row.batch / own:.3g}",
        f"{own / row.copy_seconds:.3g}",
        f"{100 * (row.sizes_seconds / own - 1):+.0f}",
        *_beside(row.torch_seconds, own),
        *_beside(row.scipy_seconds, own),
    )


def _beside(seconds: float, own: float) -> tuple[str, str]:
    ratio = seconds / own
    return f"{1e3 * seconds:.3g}", f"{ratio:.3g}" if ratio < 999.5 else f"{ratio:.0f}"
