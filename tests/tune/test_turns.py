"""Who measures next: one at a time on a device, in the order in which they were proposed."""

from __future__ import annotations

import threading

import pytest
from tune.synthetic import until

from tri_apsp.tune.workers.measurement_queue import Turns


def test_the_lowest_of_those_that_wait_is_next() -> None:
    turns, order = Turns(), list[int]()

    def measure(number: int) -> None:
        with turns.wait(number):
            order.append(number)

    with turns.wait(7):
        threads = [threading.Thread(target=measure, args=(number,), daemon=True) for number in (5, 2, 9, 2)]
        for thread in threads:
            thread.start()
        until(lambda: len(turns._waiting) == len(threads))
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == [2, 2, 5, 9]


def test_a_measurement_that_fails_ends_its_turn() -> None:
    turns = Turns()
    with pytest.raises(OSError, match="lost"), turns.wait(1):
        raise OSError("lost")
    with turns.wait(0):
        pass
