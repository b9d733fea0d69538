"""Seconds that a method spends in the products of its engine."""

from __future__ import annotations

import time

import torch

from tri_apsp import engines
from tri_apsp.device import current, wait
from tri_apsp.methods import METHODS, Observer

__all__ = ["seconds_in_products"]


def seconds_in_products(method: str, matrix: torch.Tensor, engine: engines.Engine) -> float:
    """Solve `matrix` in place and return the seconds in engine.product, those of the stripes of its panels included.

    On a GPU, between events around each product, so that nothing waits in between; where the GPU is done before the host has
    launched the product, that wait counts as product too.

    Args:
        method: a key of METHODS.
        matrix: weights (batch, n, n) with zero diagonal and without a negative cycle; holds the distances afterwards.
        engine: made for them; its products are timed from now on.
    """
    device = matrix.device
    marks: list[tuple[_Mark, _Mark]] = []
    product = engine.product

    def timed_product(*updates: engines.Update) -> None:
        start = _Mark(device)
        product(*updates)
        marks.append((start, _Mark(device)))

    engine.product = timed_product  # type: ignore[method-assign]
    with current(device):
        METHODS[method].solve(matrix, engine, Observer())
        wait(device)
    return sum(start.seconds_until(stop) for start, stop in marks)


class _Mark:
    """A moment in the queue of a device; on the CPU, which has none, now."""

    def __init__(self, device: torch.device) -> None:
        self._now = time.perf_counter()
        self._event: torch.Event | None = None
        if device.type != "cpu":
            self._event = torch.Event(device.type, enable_timing=True)
            self._event.record()

    def seconds_until(self, stop: _Mark) -> float:
        """Return the seconds from here to `stop`; both must have passed."""
        if self._event is None or stop._event is None:
            return stop._now - self._now
        return self._event.elapsed_time(stop._event) / 1000
