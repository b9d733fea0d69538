"""The time of a call on a device, without compilation, first allocations and the low clock of an
idle GPU.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dense.run import solve
from tri_apsp.device import synchronize
from tri_apsp.gpu.padding import aligned
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.kernels.cpu.compilation import compilations
from tri_apsp.plan import Options

T = TypeVar("T")

RUNS = 5
"""The maximum number of runs of which timed_again returns the median."""

# A call that takes less, or whose graph has no more vertices, is repeated, and timed then: its
# first run also pays for first allocations, an idle clock, and kernels that were not compiled.
_SHORT_SECONDS, _SMALL = 1.0, 512

SECONDS = (
    f"the median of up to {RUNS} runs after a first run; for more than {_SMALL} vertices the first "
    f"run alone, if it takes longer than {_SHORT_SECONDS:g} s"
)
"""What timed_warm returns, for help texts."""

# An idle GPU runs at a fraction of its clock (an H200 at 345 of 1980 MHz), which it raises under
# load.
_WARM_UP_SECONDS = 0.5

# Vertices of a graph that runs the kernels of a large one.
_SMALL_SPARSE = 64

# timed_again starts no further run after this time, since calls that take as long vary little.
_RUNS_SECONDS = 0.5


def timed(call: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """Return the result of `call`, and the seconds until the device finished it."""
    synchronize(device)
    start = time.perf_counter()
    result = call()
    synchronize(device)
    return result, time.perf_counter() - start


def timed_again(call: Callable[[], T], device: torch.device) -> tuple[T, float, int]:
    """Return the result of a call that has run once before, the median seconds of some more runs,
    and their number.
    """
    warm_up(call, device)
    result, first = timed(call, device)
    seconds = [first]
    while len(seconds) < RUNS and sum(seconds) < _RUNS_SECONDS:
        del result  # the next run needs its memory
        result, last = timed(call, device)
        seconds.append(last)
    return result, median(seconds), len(seconds)


def timed_warm(
    call: Callable[[], T],
    device: torch.device,
    n: int,
    *,
    first: Callable[[], T] | None = None,
    may_repeat: Callable[[T], bool] = lambda result: True,
) -> tuple[T, float, int]:
    """Return the result of a call, its seconds, and of how many runs after the first these are the
    median; 0: they are those of the first run, less the time that Numba spent compiling.

    Args:
        n: vertices of its graph.
        first: replaces the first run, such as by one that reports its progress.
        may_repeat: whether the call can run again after it returned this.
    """
    with compilations() as compiled:
        result, seconds = timed(first or call, device)
    seconds -= sum(compilation.seconds for compilation in compiled)
    if not may_repeat(result) or (seconds > _SHORT_SECONDS and n > _SMALL):
        return result, seconds, 0
    del result  # the next run needs its memory
    return timed_again(call, device)


def warm_up(call: Callable[[], object], device: torch.device) -> None:
    """Repeat `call` until the clock of a GPU has settled; not at all on a CPU."""
    if device.type == "cpu":
        return
    start = time.perf_counter()
    while time.perf_counter() - start < _WARM_UP_SECONDS:
        timed(call, device)


def compile_kernels(weights: torch.Tensor, plan: DensePlan) -> float:
    """Solve a small graph as `plan` will solve `weights` (n, n), so that its kernels are
    compiled and loaded.

    Args:
        weights: of the graph that will be solved.
        plan: of method, engine and configuration.

    Returns:
        The seconds that it took.
    """
    n, config, device = weights.shape[-1], plan.config, weights.device
    if not n or (plan.engine != "cpu" and device.type == "cpu"):
        return 0.0  # Triton's interpreter compiles nothing
    size = warm_up_size(n, plan, device)
    negative = bool(weights.amin() < 0)

    def run() -> None:
        graph = _small_graph(size, negative, like=weights)
        options = Options(predecessors=plan.options.predecessors)
        solve(graph, method=plan.method, config=config, options=options)
        if device.type != "cpu" and n * n > torch.iinfo(torch.int32).max:
            # The padded copy of so large a matrix has a batch stride beyond int32, for which Triton
            # compiles other variants.
            padded = aligned(size)
            strided = _small_graph(padded, negative, like=weights).as_strided(
                (1, padded, padded), (n * n, padded, 1)
            )
            solve(strided, method=plan.method, config=config, options=Options(overwrite=True))

    return timed(run, device)[1]


def compile_sparse(weights: torch.Tensor | SparseGraph, *, predecessors: bool) -> float:
    """Solve a small graph by Johnson's algorithm as `weights` will be solved, and return the
    seconds that it took.
    """
    graph = weights if isinstance(weights, SparseGraph) else sparse_graph(weights)
    small = _small_graph(_SMALL_SPARSE, graph.lowest < 0, like=graph.by_source.weights)
    return timed(
        lambda: shortest_paths(sparse_graph(small), method="johnson", predecessors=predecessors),
        graph.device,
    )[1]


def warm_up_size(n: int, plan: DensePlan, device: torch.device) -> int:
    """Return the size, n at most, of the graph that compile_kernels solves before one of n
    vertices.
    """
    # On a CPU one kernel serves every size. Triton compiles other variants of a kernel where 16
    # divides sizes and strides, which a size with the same remainder repeats.
    return min(
        n,
        2 * plan.config.block_size if device.type == "cpu" else 2 * plan.config.cutoff + n % 128,
    )


def _small_graph(n: int, negative: bool, like: torch.Tensor) -> torch.Tensor:
    """Return weights 1 (n, n) of the dtype and device of `like`, one of them -1 if `negative`,
    without a negative cycle.
    """
    weights = torch.ones((n, n), dtype=like.dtype, device=like.device)
    if negative:
        weights[0, -1] = -1
    return weights
