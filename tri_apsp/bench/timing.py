"""Seconds of a solve, and of nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

from tri_apsp.api import Selection
from tri_apsp.device import wait
from tri_apsp.solver.run import solve

__all__ = ["prepare", "timed", "warm_up"]

T = TypeVar("T")

# An idle GPU runs at a fraction of its clock (an H200 at 345 of 1980 MHz), which it raises under load.
_WARM_UP_SECONDS = 0.5


def timed(call: Callable[[], T], device: torch.device) -> tuple[T, float]:
    """Return what `call` returns and the seconds until the device finished it."""
    wait(device)
    start = time.perf_counter()
    result = call()
    wait(device)
    return result, time.perf_counter() - start


def warm_up(call: Callable[[], object], device: torch.device) -> None:
    """Call until the clock of a GPU has settled; not at all on a CPU."""
    if device.type == "cpu":
        return
    start = time.perf_counter()
    while time.perf_counter() - start < _WARM_UP_SECONDS:
        timed(call, device)


def prepare(weights: torch.Tensor, selection: Selection) -> float:
    """Solve a small graph as `selection` will solve `weights` (n, n), so that every kernel is compiled and loaded.

    Returns:
        The seconds that it took.
    """
    n, config = weights.shape[-1], selection.config
    on_gpu = weights.device.type == "cuda"
    if not n or (selection.engine != "cpu" and not on_gpu):
        return 0.0  # Triton's interpreter compiles nothing
    # On the CPU a kernel serves every size. Triton compiles another variant for sizes and strides divisible by 16, which
    # the same remainder repeats, and for strides past 2**31, which the batch stride of the whole matrix repeats.
    size = 2 * config.cutoff + n % 128 if on_gpu else 2 * config.block_size
    size = min(n, size)
    negative = bool(weights.amin() < 0)

    def run() -> None:
        small = torch.ones((size, size), dtype=weights.dtype, device=weights.device)
        if negative:
            small[0, -1] = -1
        small = small.as_strided((1, size, size), (n * n, size, 1))
        solve(small, method=selection.method, config=config, overwrite=True)

    return timed(run, weights.device)[1]
