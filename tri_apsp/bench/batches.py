"""Batches of small graphs: seconds of a whole checked call, beside those of what users of such
batches run today.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.bench.cases import Case, scipy_distances
from tri_apsp.bench.timing import timed, warm_up
from tri_apsp.configs import Config
from tri_apsp.semirings import dtype_name, no_edge

__all__ = [
    "BATCHES",
    "SIZES",
    "BatchRow",
    "batch_cases",
    "line",
    "measure_batches",
    "solve_by_torch",
    "titles",
]

SIZES = (8, 16, 32, 64)
"""Default numbers of vertices."""

BATCHES = {"cpu": (256, 4096), "cuda": (256, 4096, 65536)}
"""Default numbers of graphs by type of device."""

# Graphs that a loop over single graphs runs on; its time for a batch is that for so many, in
# proportion.
_SAMPLE = 256

_LAYOUT = "{:7}  {:11}  {:>3}  {:>6}  {:8}  {:>9}  {:>9}  {:>7}  {:>7}  {:>9}  {:>6}  {:>9}  {:>6}"
_TITLES = (
    *("dtype", "sign", "n", "batch", "engine", "median ms", "graphs/s", "/ copy", "sizes %"),
    *("torch ms", "ratio", "scipy ms", "ratio"),
)


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
        dgl_seconds: of a loop of dgl.shortest_dist over the graphs, unweighted, likewise; None if
            DGL is not installed.
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
    dgl_seconds: float | None


def batch_cases(cases: Iterable[Case], batches: Sequence[int]) -> list[Case]:
    """Return each case with each number of graphs."""
    return [Case(case.n, case.dtype, batch, case.sign) for case in cases for batch in batches]


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
        expected, scipy_seconds = scipy_distances(sample, lambda seconds: None)
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
            "shortest_paths": lambda: shortest_paths(weights, config=config),
            "sizes": lambda: shortest_paths(weights, sizes=sizes, config=config),
            "copy": lambda: copy.copy_(weights),
            "torch": lambda: solve_by_torch(weights),
        }
        seconds = {}
        for name, call in calls.items():
            show(f"{case}: {name}")
            warm_up(call, device)
            seconds[name] = median(timed(call, device)[1] for _ in range(repeat))
        dgl_seconds = _dgl_seconds(weights[:_SAMPLE])
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
            dgl_seconds=None if dgl_seconds is None else dgl_seconds * case.batch / sample.batch,
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


def _dgl_seconds(weights: torch.Tensor) -> float | None:
    """Return the seconds of a loop of DGL over complete graphs of this size; None if it is not
    installed.
    """
    if find_spec("dgl") is None:
        return None
    dgl: Any = importlib.import_module("dgl")
    source, target = (~torch.eye(weights.shape[-1], dtype=torch.bool)).nonzero(as_tuple=True)
    graphs = [dgl.graph((source, target), num_nodes=weights.shape[-1]) for _ in weights]
    return timed(lambda: [dgl.shortest_dist(graph) for graph in graphs], torch.device("cpu"))[1]


def titles() -> str:
    """Return the line of the titles."""
    dgl = find_spec("dgl") is not None
    return _LAYOUT.format(*_TITLES) + ("     dgl ms   ratio" if dgl else "")


def line(row: BatchRow) -> str:
    """Return the line of a row."""
    own = row.p50_seconds

    def beside(seconds: float) -> tuple[str, str]:
        ratio = seconds / own
        return f"{1e3 * seconds:.3g}", f"{ratio:.3g}" if ratio < 999.5 else f"{ratio:.0f}"

    text = _LAYOUT.format(
        row.dtype,
        row.sign,
        row.n,
        row.batch,
        row.engine,
        f"{1e3 * own:.3g}",
        f"{row.batch / own:.3g}",
        f"{own / row.copy_seconds:.3g}",
        f"{100 * (row.sizes_seconds / own - 1):+.0f}",
        *beside(row.torch_seconds),
        *beside(row.scipy_seconds),
    )
    return (
        text
        if row.dgl_seconds is None
        else text + "  {:>9}  {:>6}".format(*beside(row.dgl_seconds))
    )
