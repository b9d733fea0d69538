"""Ctrl-C while a kernel runs in the main thread ends a call with KeyboardInterrupt alone."""

import itertools
import random
import signal
import threading
import time

import numba
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.graphs.generators import generate
from tri_apsp.kernels.cpu.compilation import kernel as kernel_of
from tri_apsp.kernels.cpu.edge_lists import lists_by
from tri_apsp.kernels.cpu.elimination_tree import tree_depths

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="needs a timer that sends a signal"
)


@pytest.fixture
def interrupted_after():
    """A function that repeats a call until an interrupt after so many seconds ends it."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def repeat(seconds, call):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        end = time.monotonic() + seconds + 0.2
        while True:
            call()
            if time.monotonic() > end:
                # Python ignores an interrupt while it destroys an object, such as a generator.
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                end += 0.1

    yield repeat
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("results", ["an array", "a tuple of arrays"])
def test_while_a_kernel_runs_that_returns(interrupted_after, results):
    n = 1 << 21
    after, places = np.arange(1, n + 1, dtype=np.int32) % n, np.arange(n)
    kernel, arguments = tree_depths, (after,)
    if results == "a tuple of arrays":
        kernel, arguments = lists_by, (n, after, after[::-1].copy(), places)
    kernel(*arguments)  # which compiles it
    with pytest.raises(KeyboardInterrupt):
        interrupted_after(0.002, lambda: kernel(*arguments))


def test_while_a_kernel_is_compiled(tmp_path, monkeypatch):
    """It can be called afterwards: an interrupt within a compilation waits for its end."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def plus_one(values):
        for i in range(len(values)):
            values[i] += 1

    compiled, values = kernel_of(plus_one), np.zeros(3)
    interrupt = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(values)
    assert len(compiled.signatures) == 1
    compiled(values)
    assert set(values.tolist()) <= {1, 2}


GRID = generate("grid", 400, seed=1)
ROADS = tri_apsp.prepare(generate("roads", 2000, seed=1))
CALLS = {
    "simple paths": lambda: [
        list(itertools.islice(tri_apsp.shortest_simple_paths(GRID, 0, 399), 20))
    ],
    "all shortest paths": lambda: [
        list(itertools.islice(tri_apsp.all_shortest_paths(GRID, 0, 399, weighted=False), 200))
    ],
    "betweenness": lambda: tri_apsp.betweenness(GRID),
    "betweenness by elimination": lambda: tri_apsp.betweenness(ROADS, weighted=True),
    "prepare": lambda: tri_apsp.prepare(GRID).by_source.weights,
    "hops": lambda: tri_apsp.hops(GRID),
    "closeness": lambda: tri_apsp.closeness(GRID),
    "rows": lambda: tri_apsp.shortest_paths(GRID, sources=range(40), predecessors=True).distances,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_at_random_moments(interrupted_after, name):
    call, moments = CALLS[name], random.Random(name)
    expected = call()
    for _ in range(40):
        wait, begin = moments.uniform(0.001, 0.05), time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            interrupted_after(wait, call)
        assert time.monotonic() - begin < wait + 0.5
    found = call()
    assert torch.equal(found, expected) if torch.is_tensor(found) else found == expected
