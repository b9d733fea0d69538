"""Seconds that a solve spends in the products of its engine."""

from __future__ import annotations

import time

import torch

from tri_apsp.bench.solves import DensePlan, solve_with
from tri_apsp.device import synchronize
from tri_apsp.engines import Engine, Update


def seconds_in_products(weights: torch.Tensor, plan: DensePlan) -> float:
    """Solve `weights` as a public call does, and return the seconds in engine.product, whichever
    operation calls it.

    On a GPU, events are recorded around each product, so that the host need not wait in between.
    Where the GPU has finished before the host launches the product, the time that it is idle counts
    as well.

    Args:
        weights: (n, n) or (batch, n, n); left as they are.
        plan: method, engine and configuration of the solve.
    """
    device = weights.device
    products: list[tuple[_Moment, _Moment]] = []

    def time_products(engine: Engine) -> None:
        product = engine.product

        def timed_product(*updates: Update) -> None:
            start = _Moment(device)
            product(*updates)
            products.append((start, _Moment(device)))

        engine.product = timed_product  # type: ignore[method-assign]

    solve_with(weights, plan, time_products)
    synchronize(device)
    return sum(start.seconds_until(stop) for start, stop in products)


class _Moment:
    """A point in time: an event in the stream of a GPU, or the wall clock of the CPU."""

    def __init__(self, device: torch.device) -> None:
        self._now = time.perf_counter()
        self._event: torch.Event | None = None
        if device.type != "cpu":
            self._event = torch.Event(device.type, enable_timing=True)
            self._event.record()

    def seconds_until(self, stop: _Moment) -> float:
        """Return the seconds from here to `stop`; both must have passed."""
        if self._event is None or stop._event is None:
            return stop._now - self._now
        return self._event.elapsed_time(stop._event) / 1000
