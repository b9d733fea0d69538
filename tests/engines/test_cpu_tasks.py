"""Tasks on threads of the CPU."""

from __future__ import annotations

import signal
import sys
import threading
import time

import numpy as np
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


def test_what_a_kernel_returns() -> None:
    assert run_apart(lambda x, y, stop: (x, y, bool(stop[0])), np.int64(3), 4) == (3, 4, False)
