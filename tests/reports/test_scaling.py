"""The study of scaling: processes of Gloo that are measured, and a model that agrees with them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

pytest.importorskip("matplotlib")

from fake_study import CPU, FakeMeasurer, platform, rows_of

import tri_apsp
from reports.studies import scaling
from reports.studies.measuring import measure
from reports.studies.run import write_study
from reports.studies.scaling_model import Fitted, Solve, fit, forecast, simulate
from reports.studies.scaling_ranks import RATES, Problem, ProblemKind, RankProcesses, _Rank
from reports.studies.study import Point
from tri_apsp.distributed.model import Rates
from tri_apsp.errors import EngineError
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tune.workloads import WrongResultError

N = 200


def test_two_processes_are_measured() -> None:
    ranks = RankProcesses((1, 2), "cpu")
    try:
        for count, kind in (
            (1, ProblemKind.DIRECT),
            (2, ProblemKind.DIRECT),
            (2, ProblemKind.STREAMED),
        ):
            seconds, metrics = ranks.measure(Problem(N, "float32", count, kind))
            assert 1 <= len(seconds) <= 3
            assert (metrics["block"] < 64) == (kind == ProblemKind.STREAMED)
            known = {"product", "closure"}
            known |= {"host"} if kind == ProblemKind.STREAMED else set()
            known |= {"broadcast", "latency"} if count > 1 else set()
            assert metrics.keys() - {"block", "waiting"} == known
            assert 0 <= metrics.pop("waiting") < 1
            assert all(value > 0 for value in [*seconds, *metrics.values()])
        seconds, metrics = ranks.measure(Problem(3000, "float32", 2, ProblemKind.CLOSENESS))
        assert metrics.keys() == {"ops_per_second"}
        assert len(seconds) > 0
        ranks._processes[0].kill()
        with pytest.raises(EngineError, match="one ended or is stuck"):
            ranks.measure(Problem(N, "float32", 1))
    finally:
        ranks.close()


def test_the_error_of_a_rank() -> None:
    ends = [mp.Pipe() for _ in range(2)]
    ranks = RankProcesses.__new__(RankProcesses)
    ranks._pipes = [own for own, _ in ends]
    ends[1][1].send(FileNotFoundError("gcc"))  # of rank 1, for which rank 0 waits
    with pytest.raises(FileNotFoundError, match="gcc"):
        ranks.measure(Problem(N, "float32", 2))


def test_products_must_be_by_exponents() -> None:
    ranks = RankProcesses((1,), "cpu")
    try:
        with pytest.raises(EngineError, match="but direct products won"):
            ranks.measure(Problem(N, "float32", 1, ProblemKind.EXPONENTS))
    finally:
        ranks.close()


def test_new_processes_follow_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "_CPU_RANKS", (1,))
    measurer = scaling._ScalingMeasurer(CPU)
    point = Point({"case": "strong", "ranks": 1, "base": 0})
    try:
        with pytest.raises(EngineError):
            measurer.screen(TuningTask("cpu", "solve", "float9", "nonnegative", N), point, 60)
        outcome = measurer.screen(
            TuningTask("cpu", "solve", "float32", "nonnegative", N), point, 60
        )
        assert outcome is not None
        assert outcome.kind is OutcomeKind.correct
    finally:
        measurer.close()


@pytest.fixture
def group() -> Iterator[dist.ProcessGroup]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert dist.group.WORLD is not None
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize(
    ("kind", "n"),
    [
        *((ProblemKind.DIRECT, n) for n in (1, 60, 5000)),
        *((ProblemKind.EXPONENTS, n) for n in (1, 1000, 5000)),
    ],
)
def test_the_distances_of_a_graph_are_known(
    kind: ProblemKind, n: int, dtype: str, group: dist.ProcessGroup
) -> None:
    threads = torch.get_num_threads()
    rank = _Rank(group, CPU, Problem(n, dtype, 1, kind))
    torch.set_num_threads(threads)
    rows = torch.empty((min(n, 1000), n), dtype=getattr(torch, dtype))
    for part, weights, distances in rank._parts(rows):
        assert (weights >= distances).all()
        part.copy_(distances)
        if 1 < n <= 1000:
            found = tri_apsp.shortest_paths(weights.to(part.dtype)).distances
            assert torch.equal(found, part)
            least = n**2 / 3 if kind == ProblemKind.EXPONENTS else 3000
            assert (weights > distances).sum() > least
    rank._check(rows)
    rows[-1, -1] += 1
    with pytest.raises(WrongResultError, match="1 distances of a rank are wrong"):
        rank._check(rows)


RATES_GIVEN = Rates(16e12, 8e12, 50e9, 30e9, 300e9, latency=2e-5)
FITTED = Fitted(16e12, 0.1, 0.01)


def _solve(n: int, ranks: int, block: int = 1024, rates: Rates = RATES_GIVEN) -> Solve:
    return Solve(n, 4, ranks, block, False, rates)


def test_the_simulation_agrees_with_the_equations() -> None:
    for n, ranks, block in product((32768, 65536), (1, 2, 4, 8), (1024, 2048)):
        solve = _solve(n, ranks, block)
        found = FITTED.predict(solve)
        if found.bound == "products" and ranks * block * 3 < n:
            expected = pytest.approx(found.seconds, rel=0.03)
            assert simulate(solve, FITTED.rates(solve)) == expected


def test_ranks_wait_for_rows_that_come_late() -> None:
    solve = _solve(32768, 8, rates=dataclasses.replace(RATES_GIVEN, broadcast=1e9))
    found = forecast(FITTED, solve)
    assert (found.bound, found.share < 0.3) == ("critical path", True)
    assert simulate(solve, FITTED.rates(solve)) == pytest.approx(found.seconds, rel=0.1)


def test_a_network_of_the_forecast_bandwidth_hides_broadcasts() -> None:
    needed = forecast(FITTED, _solve(65536, 8)).network
    for factor, bound in ((1.1, "products"), (0.9, "critical path")):
        rates = dataclasses.replace(RATES_GIVEN, broadcast=factor * needed)
        found = forecast(FITTED._replace(held=0.0), _solve(65536, 8, rates=rates))
        assert found.bound == bound
        assert (found.most_ranks > 8) == (bound == "products")
    assert math.isinf(forecast(FITTED, _solve(65536, 64)).network)


def test_more_gpu_hours_fail_more_often() -> None:
    for n, expected in ((1_000_000, 0.0003), (4_000_000, 0.02)):
        assert forecast(FITTED, _solve(n, 64)).failure == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("cores", [math.inf, 2])
def test_rates_are_found_from_times(cores: float) -> None:
    known = Fitted(16e12, 0.12, 0.02, cores)
    solves = [_solve(n, ranks) for n in (16384, 32768) for ranks in (1, 2)]
    found = fit([(solve, known.predict(solve).seconds) for solve in solves], cores)
    assert found.product == pytest.approx(16e12, rel=1e-3)
    assert (found.held, found.setup) == pytest.approx((0.12, 0.02), rel=0.02)


class _ModelMeasurer(FakeMeasurer):
    """Its times are those of the model, but 3% more on eight ranks."""

    def screen(self, task: TuningTask, point: Point, seconds: float) -> Outcome:
        if point.values["case"] == "closeness":
            return Outcome(OutcomeKind.correct, Times(9, 9, 9))
        ranks, streamed = int(point.values["ranks"]), point.values["case"] == "streamed"
        solve = Solve(task.n, task.torch_dtype.itemsize, ranks, 1024, streamed, RATES_GIVEN)
        ms = 1000 * FITTED.predict(solve).seconds * (1.03 if ranks == 8 else 1)
        metrics = {
            "block": 1024,
            "waiting": 0.01,
            **{name: getattr(RATES_GIVEN, name) for name in RATES},
        }
        return Outcome(OutcomeKind.correct, Times(ms, ms, ms), metrics=metrics)


def test_the_page_of_eight_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setattr(scaling, "cuda_count", lambda: 8)
    monkeypatch.setattr(scaling, "do_values_decide", lambda *facts: True)
    study, gpus = scaling.SCALING_STUDY, platform("nvidia")
    rows = rows_of(study, tmp_path)
    measure(study.groups(gpus, [], []), rows, CPU, 1e6, lambda device: _ModelMeasurer(study))
    text = write_study(study, gpus, rows).read_text()
    assert "| fitted | 6 | 0.0% | 0.0% |" in text
    assert "| exponents | 131072 | 8 |" in text
    assert text.count("Forecast, ") == 2
    assert "| 1.0% |" in text
    assert "| weak | 65536 | 8 |" in text
    assert "| 1048576 | 2 | 9 ms | 122 T/s | 50.0% |" in text
    assert "| streamed | " in text
    rates = "1.6e+13 | 8e+12 | 5e+10 | 3e+10 | 3e+11 | 2e-05 | 0.1 | 0.01 |"
    for dtype in ("float32", "int16"):
        assert f"| {dtype} | strong | 131072 | 8 | {rates}" in text
        assert f"| {dtype} | streamed | 65536 | 4 | {rates}" in text
        assert f"| {dtype}, weights 1 to 4 | exponents | 131072 | 8 | {rates}" in text
    assert "| 1024 | 4000000 |" in text
    assert " GiB, on the host |" in text
    assert (tmp_path / "scaling.svg").exists()
