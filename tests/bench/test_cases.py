"""The graphs of bench and their distances by SciPy."""

from __future__ import annotations

import contextlib
import sys
import time

import psutil
import pytest
import torch

from tri_apsp import reference
from tri_apsp.bench import cases
from tri_apsp.bench.cases import Case, cases_of, scipy_bytes, scipy_distances
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


def test_operations():
    assert Case(10, batch=3).operations == 3000


def test_cases_of():
    found = [
        (case.dtype, case.sign, case.n, case.batch)
        for case in cases_of([5, 6], [2, 3], [torch.int16, torch.int32], SIGNS)
    ]
    assert found == [
        (d, s, n, b) for d in (torch.int16, torch.int32) for s in SIGNS for n, b in ((5, 2), (6, 3))
    ]


@pytest.mark.parametrize("sign", SIGNS)
def test_scipy_agrees_with_the_reference(sign):
    case = Case(12, batch=2, sign=sign)
    distances, seconds = scipy_distances(case, lambda seconds: None)
    assert seconds > 0
    for found, weights in zip(distances, case.weights(CPU), strict=True):
        expected = reference.floyd_warshall(weights.double().numpy())
        assert torch.equal(found.double(), torch.as_tensor(expected, dtype=torch.float64))


def test_the_caller_hears_of_scipy_from_time_to_time(monkeypatch):
    passed = []
    monkeypatch.setattr(cases, "_POLL_SECONDS", 0.01)
    scipy_distances(Case(12), passed.append)
    assert len(passed) > 2
    assert passed == sorted(passed)


def test_the_memory_of_scipy_is_about_what_both_processes_take(monkeypatch):
    """The peak beyond what SciPy's process takes for a small graph, of which the imports are most.

    The short interval also ends before the graphs are read, which must not stop them from being
    read.
    """
    monkeypatch.setattr(cases, "_POLL_SECONDS", 0.002)
    here = psutil.Process()

    def peak(case):
        start, taken = here.memory_info().rss, []

        def sample(seconds):
            with contextlib.suppress(psutil.NoSuchProcess):
                taken.append(
                    here.memory_info().rss
                    - start
                    + sum(child.memory_info().rss for child in here.children())
                )

        scipy_distances(case, sample)
        return max(taken)

    imports = peak(Case(12))
    case = Case(1200)
    assert (
        0.3 * scipy_bytes(case) <= peak(case) - imports <= 1.7 * scipy_bytes(case)
    )  # earlier tests leave memory to reuse


def test_a_failure_of_scipy(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="ended with exit status 1"):
        scipy_distances(Case(12), lambda seconds: None)


def test_an_interrupt_ends_scipy_at_once(monkeypatch):
    """Of a graph for which it needs ten seconds or more."""

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(cases, "_POLL_SECONDS", 1.0)
    before, start = set(psutil.Process().children()), time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        scipy_distances(Case(2500), interrupt)
    assert time.perf_counter() - start < 8
    assert set(psutil.Process().children()) <= before
