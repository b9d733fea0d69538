"""The seconds of a call."""

import dataclasses
import itertools
import time

import numba
import pytest
import torch
from clock import Clock

from tri_apsp.arguments import check_weights
from tri_apsp.bench import timing
from tri_apsp.bench.timing import (
    RUNS,
    compile_kernels,
    timed,
    timed_again,
    timed_warm,
    warm_up_size,
)
from tri_apsp.configs import Config
from tri_apsp.dense.plan import plan_dense
from tri_apsp.plan import Options

CPU = torch.device("cpu")


def selected(engine):
    """Return a plan with blocks of 64 and a cutoff of 128."""
    plan = plan_dense(check_weights(torch.ones(4, 4)), "kleene", Config(block_size=64, cutoff=128))
    return dataclasses.replace(plan, engine=engine)


@pytest.fixture
def sleep(monkeypatch):
    """Replace the clock; return a function, each call of which takes the next of some seconds, and
    returns its number.
    """
    clock, numbers = Clock(), itertools.count(1)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.now)

    def call(*seconds):
        number = next(numbers)
        clock.advance(seconds[min(number, len(seconds)) - 1])
        return number

    return call


def test_timed_waits_for_the_device_before_and_after(sleep, monkeypatch):
    monkeypatch.setattr(timing, "synchronize", lambda device: sleep(100, 20))
    assert timed(lambda: sleep(0, 3), CPU) == (2, 23)


def test_the_median_of_short_runs(sleep):
    assert timed_again(lambda: sleep(0.01, 0.05, 0.02, 0.03, 0.01), CPU) == (
        RUNS,
        pytest.approx(0.02),
        RUNS,
    )


@pytest.mark.parametrize(("seconds", "runs"), [(0.7, 1), (0.3, 2), (0.2, 3)])
def test_runs_end_after_half_a_second(sleep, seconds, runs):
    assert timed_again(lambda: sleep(seconds), CPU) == (runs, pytest.approx(seconds), runs)


@pytest.mark.parametrize(
    ("n", "seconds", "runs"), [(600, 0.01, RUNS), (600, 1.5, 0), (500, 1.5, 1)]
)
def test_the_first_run_counts_only_if_it_is_long(sleep, n, seconds, runs):
    """That of a small graph never does: it may compile kernels."""
    found = timed_warm(lambda: sleep(seconds), CPU, n)
    assert found == (1 + runs, pytest.approx(seconds), runs)


def test_a_gpu_is_warmed_up_for_half_a_second(sleep, monkeypatch):
    monkeypatch.setattr(timing, "synchronize", lambda device: None)
    result, seconds, runs = timed_again(lambda: sleep(9, 0.1), torch.device("cuda"))
    assert (result, runs) == (1 + RUNS, RUNS)
    assert seconds == pytest.approx(0.1)
    assert timed_again(lambda: sleep(0.125), torch.device("cuda"))[0] == 1 + RUNS + 4 + 4


@pytest.mark.parametrize("compiles", [False, True])
def test_compilation_does_not_count(monkeypatch, compiles):
    kernel = numba.njit(lambda x: x + 1)
    if not compiles:
        kernel(0)
    monkeypatch.setattr(timing, "timed", lambda call, device: (call(), 60.0))
    result, seconds, runs = timing.timed_warm(lambda: kernel(1), CPU, 1000)
    assert (result, runs) == (2, 0)
    assert 0 < seconds < 60 if compiles else seconds == 60


@pytest.mark.parametrize("negative", [False, True])
def test_kernels_are_compiled_by_a_small_solve_of_the_same_kind(monkeypatch, negative):
    solved = []
    monkeypatch.setattr(timing, "solve", lambda weights, **named: solved.append((weights, named)))
    weights = torch.ones(700, 700, dtype=torch.float64)
    weights[3, 4] = -0.5 if negative else 0.5
    selection = selected("cpu")
    assert compile_kernels(weights, selection) > 0
    ((small, named),) = solved
    assert small.shape == (128, 128)
    assert small.dtype == torch.float64
    assert bool((small < 0).any()) == negative
    assert named == {"method": "kleene", "config": selection.config, "options": Options()}


@pytest.mark.parametrize(
    ("place", "n", "size"),
    [
        *[("cpu", 1, 1), ("cpu", 128, 128), ("cpu", 129, 128)],
        *[("cuda", 256, 256), ("cuda", 300, 300), ("cuda", 301, 301)],
        *[("cuda", 2048, 256), ("cuda", 2049, 257), ("cuda", 2175, 383)],
    ],
)
def test_size_of_the_small_solve_repeats_what_kernels_are_compiled_for(place, n, size):
    engine = "cpu" if place == "cpu" else "portable"
    assert warm_up_size(n, selected(engine), torch.device(place)) == size


@pytest.mark.gpu
def test_a_second_solve_of_the_same_size_compiles_nothing():
    weights = torch.rand(3000, 3000, device="cuda")
    compile_kernels(weights, plan_dense(check_weights(weights), "auto", Config()))
    start = time.perf_counter()
    timed(lambda: timing.solve(weights), weights.device)
    assert time.perf_counter() - start < 0.5
