"""The graphs of bench and their distances by SciPy."""

import signal
import sys
import threading
import time
from functools import partial

import psutil
import pytest
import torch

from tri_apsp import reference
from tri_apsp.bench.cases import Case, scipy_distances
from tri_apsp.errors import EngineError
from tri_apsp.semirings import SIGNS

CPU = torch.device("cpu")


def test_graphs():
    for n in (2, 3, 50):
        for batch in (1, 3):
            plain, signed = (Case(n, torch.int16, batch, sign).weights(CPU) for sign in SIGNS)
            assert plain.shape == signed.shape == ((batch, n, n) if batch > 1 else (n, n))
            assert plain.amin() == 0
            assert (signed < 0).flatten(-2).any(dim=-1).all()
            assert (signed != 0).sum() == batch * n * (
                n - 1
            )  # SciPy would take a 0 for a missing edge
            # Potentials change no cycle.
            assert torch.equal(plain + plain.mT, signed + signed.mT)
    assert not torch.equal(*Case(9, batch=2).weights(CPU))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_weights_are_the_same_in_every_dtype(dtype):
    weights = Case(9, dtype, sign="any").weights(CPU)
    assert weights.dtype == dtype
    assert torch.equal(weights.to(torch.float32), Case(9, sign="any").weights(CPU))
    assert Case(9, dtype).graphs == Case(9).graphs != Case(9, sign="any").graphs


@pytest.mark.parametrize("sign", SIGNS)
def test_scipy_agrees_with_the_reference(sign):
    case = Case(12, batch=2, sign=sign)
    distances, seconds = scipy_distances(case)
    assert seconds > 0
    for found, weights in zip(distances, case.weights(CPU), strict=True):
        expected = reference.floyd_warshall(weights.double().numpy())
        assert torch.equal(found.double(), torch.as_tensor(expected, dtype=torch.float64))


def test_a_failure_of_scipy(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EngineError, match="ended with exit status 1"):
        scipy_distances(Case(12))


def test_an_interrupt_ends_scipy_at_once():
    """Of a graph for which it needs a minute or more."""
    before, start = set(psutil.Process().children()), time.perf_counter()
    # A true signal: interrupt_main would not wake a main thread that waits for SciPy.
    interrupt = partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
    threading.Timer(2.0, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        scipy_distances(Case(4500))
    assert time.perf_counter() - start < 30
    _, alive = psutil.wait_procs(set(psutil.Process().children()) - before, timeout=10)
    assert not alive
