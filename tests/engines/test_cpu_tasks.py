"""Tasks on threads of the CPU."""

import signal
import sys
import threading
import time

import pytest

from tri_apsp.engines.cpu_tasks import Array, run_apart


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
