"""Tasks on threads of the CPU."""

import signal
import sys
import threading
import time

import pytest

from tri_apsp.engines.cpu_tasks import Array, run_apart, run_tasks


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be sent to a thread")
def test_an_interrupt_ends_a_kernel_on_a_thread_of_its_own() -> None:
    ended = threading.Event()

    def kernel(stop: Array) -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while not stop[0]:
            time.sleep(0.001)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_apart(kernel)
    assert ended.wait(timeout=10)


def test_an_error_ends_the_tasks_of_each_part() -> None:
    """Also those of a part that another thread has begun, so that a command can end."""
    ran = list[int]()

    def kernel(index: int) -> None:
        if index == 0:
            raise KeyboardInterrupt
        time.sleep(0.01)
        ran.append(index)

    with pytest.raises(KeyboardInterrupt):
        run_tasks(kernel, [(index,) for index in range(400)], 1 << 23, 2)
    time.sleep(0.1)
    assert len(ran) < 5  # of 50
