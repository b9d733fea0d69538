"""The queue for a device: one measurement at a time, in the order in which configurations were
proposed.
"""

from __future__ import annotations

import threading

import pytest
from tune.synthetic import until

from tri_apsp.tune.workers.measurement_queue import MeasurementQueue


def test_the_lowest_number_that_waits_is_next() -> None:
    queue, order = MeasurementQueue(), list[int]()

    def measure(number: int) -> None:
        with queue.enter(number):
            order.append(number)

    with queue.enter(7):
        threads = [
            threading.Thread(target=measure, args=(number,), daemon=True) for number in (5, 2, 9, 2)
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(queue._waiting) == len(threads))
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == [2, 2, 5, 9]


def test_a_measurement_that_fails_leaves_the_queue() -> None:
    queue = MeasurementQueue()
    with pytest.raises(OSError, match="lost"), queue.enter(1):
        raise OSError("lost")
    with queue.enter(0):
        pass
