"""The study of scaling: processes of Gloo that are measured, and a model that agrees with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import CPU, FakeMeasurer, rows_of, target

import tri_apsp
from tri_apsp.distributed.communicator import Alone
from tri_apsp.distributed.model import Rates
from tri_apsp.report import scaling
from tri_apsp.report.measuring import measure
from tri_apsp.report.run import write_study
from tri_apsp.report.scaling_model import (
    Fitted,
    Solve,
    fit,
    largest_n,
    needed_bandwidth,
    simulated,
)
from tri_apsp.report.scaling_ranks import Problem, _check_rows, _checksum, _weights
from tri_apsp.report.study import Point
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError

N = 200
TASK = TuningTask("cpu", "solve", "float32", "nonnegative", N)


@pytest.fixture
def measurer(monkeypatch: pytest.MonkeyPatch) -> Iterator[scaling._ScalingMeasurer]:
    monkeypatch.setattr(scaling, "_CPU_RANKS", (1, 2))
    made = scaling._ScalingMeasurer(CPU)
    yield made
    made.close()


def test_two_processes_are_measured(measurer: scaling._ScalingMeasurer) -> None:
    found = {}
    for case, ranks, memory in (
        ("rates", 1, 0),
        ("rates", 2, 0),
        ("strong", 1, 0),
        ("strong", 2, 0),
        ("streamed", 2, 2 * 4 * N**2 // 3),
    ):
        outcome = measurer.screen(TASK, scaling._point(case, ranks, memory=memory), 60)
        assert outcome is not None
        assert outcome.kind is OutcomeKind.correct, outcome.message
        found[case, ranks] = outcome.metrics
    assert found["rates", 1].keys() == {"product", "closure", "host", "ops_per_second"}
    assert found["rates", 2].keys() == {"broadcast", "latency", "ops_per_second"}
    assert all(value > 0 for ranks in (1, 2) for value in [*found["rates", ranks].values()][:2])
    solves = [found[key] for key in found if key[0] != "rates"]
    assert len({solved["checksum"] for solved in solves}) == 1
    assert all(0 <= solved["waiting"] < 1 for solved in solves)
    assert solves[0]["block"] == solves[1]["block"] == 64 > solves[2]["block"]
    # A wrong checksum is no time, and the next solve begins with new processes.
    measurer._checksums[N, "float32", 100] += 1
    wrong = measurer.screen(TASK, scaling._point("strong", 2), 60)
    assert wrong is not None
    assert wrong.kind is OutcomeKind.wrong_result
    assert "differ from those of one rank" in wrong.message
    measurer._checksums.clear()
    again = measurer.screen(TASK, scaling._point("strong", 2), 60)
    assert again is not None
    assert again.metrics["checksum"] == solves[0]["checksum"]


class _OneRank(Alone):
    device = CPU

    def least(self, values: torch.Tensor) -> torch.Tensor:
        return values


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_wrong_row_is_found(dtype: str) -> None:
    problem = Problem(60, dtype)
    weights = _weights(problem, 0, 60, CPU)
    right = tri_apsp.shortest_paths(weights.to(getattr(torch, dtype))).distances
    _check_rows(_OneRank(), right, problem, (60,))  # type: ignore[arg-type]
    for row, change in product((0, 30, 59), (-1, 1)):
        wrong = right.clone()
        wrong[row, 17] += change
        with pytest.raises(WrongResultError, match="of 180 distances are wrong"):
            _check_rows(_OneRank(), wrong, problem, (60,))  # type: ignore[arg-type]
        assert _checksum(wrong, 0, CPU) != _checksum(right, 0, CPU)


def test_weights_and_checksums_do_not_depend_on_the_ranks() -> None:
    problem = Problem(N, "int16", greatest=4)
    whole = _weights(problem, 0, N, CPU)
    assert (whole.unique().tolist(), whole.diagonal().unique().tolist()) == ([0, 1, 2, 3, 4], [0])
    parts = [_weights(problem, first, count, CPU) for first, count in ((0, 70), (70, 130))]
    assert torch.equal(torch.cat(parts), whole)
    sums = _checksum(parts[0], 0, CPU) + _checksum(parts[1], 70, CPU)
    assert (sums - _checksum(whole, 0, CPU)) % (1 << 48) == 0
    assert _checksum(whole.mT, 0, CPU) != _checksum(whole, 0, CPU)


RATES = Rates(16e12, 8e12, 50e9, 30e9, 300e9, latency=2e-5, held=0.1, setup=0.01)


def test_the_simulation_agrees_with_the_equations() -> None:
    for n, ranks, block in product((32768, 65536), (1, 2, 4, 8), (1024, 2048)):
        solve = Solve(n, 4, ranks, block)
        if solve.bound(RATES) == "products" and ranks * block * 3 < n:
            assert simulated(solve, RATES) == pytest.approx(solve.seconds(RATES), rel=0.03)


def test_ranks_wait_for_rows_that_come_late() -> None:
    slow = Rates(16e12, 8e12, broadcast=1e9)
    solve = Solve(32768, 4, 8, 1024)
    assert solve.bound(slow) == "critical path"
    assert simulated(solve, slow) == pytest.approx(solve.seconds(slow), rel=0.1)
    assert solve.share(slow) < 0.3


def test_a_network_of_the_needed_bandwidth_hides_broadcasts() -> None:
    solve = Solve(65536, 4, 8, 1024)
    needed = needed_bandwidth(RATES, solve)
    for factor, bound in ((1.01, "products"), (0.9, "critical path")):
        rates = Rates(RATES.product, RATES.closure, broadcast=factor * needed, latency=2e-5)
        assert solve.bound(rates) == bound
    assert math.isinf(needed_bandwidth(RATES, Solve(65536, 4, 64, 1024)))


def test_rows_and_panels_fit_the_memory() -> None:
    for ranks, block in ((1, 64), (8, 2048), (1024, 2048)):
        n = largest_n(1e10, 4, ranks, block)
        needed = [4 * size * (size / ranks + 2 * block) for size in (n, n + 1)]
        assert needed[0] <= 1e10 < needed[1]


@pytest.mark.parametrize("cores", [None, 2])
def test_rates_are_found_from_times(cores: int | None) -> None:
    def others(n: int, ranks: int) -> Rates:
        return RATES

    known = Fitted(others, 16e12, 0.12, 0.02, cores)
    solves = [Solve(n, 4, ranks, 1024) for n in (16384, 32768) for ranks in (1, 2)]
    found = fit(others, [(solve, known.seconds(solve)) for solve in solves], cores)
    assert found.product == pytest.approx(16e12, rel=1e-3)
    assert (found.held, found.setup) == pytest.approx((0.12, 0.02), rel=0.02)


class _ModelMeasurer(FakeMeasurer):
    """Its times are those of the model, but 3% more on eight ranks."""

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        values = point.values
        if values["case"] == "rates":
            metrics = {name: getattr(RATES, name) for name in scaling._RATE_METRICS}
            return Outcome(OutcomeKind.correct, Times(1, 1, 1), metrics=metrics)
        ranks = int(values["ranks"])
        solve = Solve(task.n, task.torch_dtype.itemsize, ranks, 1024, values["memory"] != 0)
        ms = 1000 * solve.seconds(RATES) * (1.03 if ranks == 8 else 1)
        metrics = {"block": 1024, "waiting": 0.01, "checksum": 1 << 47}
        return Outcome(OutcomeKind.correct, Times(ms, ms, ms), metrics=metrics)


def test_the_page_of_eight_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setattr(scaling, "cuda_count", lambda: 8)
    study, gpus = scaling.SCALING_STUDY, target("nvidia")
    rows = rows_of(study, tmp_path)
    measure(study.groups(gpus, [], []), rows, CPU, 1e6, lambda device: _ModelMeasurer(study))
    text = write_study(study, gpus, rows).read_text()
    for series in ("float32, weights 1 to 100", "int16 by exponents, weights 1 to 4"):
        assert f"| fitted, {series} | 16 T/s | 10.0% | 10 ms |" in text
    assert "| float32, weights 1 to 100 | fitted | 6 | 0.0% | 0.0% |" in text
    assert "| float32, weights 1 to 100 | checked, strong | 10 | 0.0% | 3.0% |" in text
    assert "| weak | 65536 | 8 |" in text
    assert "| 1024 | 4000000 |" in text
    assert "| 1024 | 8000000 | 4096 |" in text
