"""Measuring grids with fake times: what is kept, what is measured again, and what ends early."""

from __future__ import annotations

import csv
import threading
from pathlib import Path

import pytest
import torch
from report.fake import ENVIRONMENT, FakeMeasurer, target
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.space.task import Task

from tri_apsp import tuned
from tri_apsp.configs import default_config
from tri_apsp.errors import EngineError, TooLargeError
from tri_apsp.report import measuring
from tri_apsp.report.grids import Curve, Grid, Panel, axis, with_points
from tri_apsp.report.measuring import GridResult, measure, recorded_result
from tri_apsp.report.rows import StudyRows

PARAMETERS = ("product.block_m", "product.block_n")


def grid(n: int = 512) -> Grid:
    task = Task("cpu", "product", "float32", "nonnegative", n)
    panel = Panel("columns", (Curve("tri_apsp", axis("product.block_n")),))
    parameters = {"product.block_m": (96, 192, 384), "product.block_n": (128, 256, 512)}
    grid = Grid("product", "tile", task, (panel,))
    return with_points(grid, target("cpu").device, default_config("cpu", torch.float32), parameters)


def cost(task, point):
    """The fastest is 192 x 256: 1 ms."""
    rows, columns = (int(point.values[name]) for name in PARAMETERS)
    return 1 + abs(rows / 192 - 1) + abs(columns / 256 - 1)


def run(
    path: Path, measurer: FakeMeasurer, *grids: Grid, seconds: float = 100.0
) -> list[GridResult]:
    rows = StudyRows(path, PARAMETERS, ENVIRONMENT)
    return measure(grids or [grid()], rows, torch.device("cpu"), seconds, lambda device: measurer)


def test_all_points_are_screened_and_the_best_timed_in_interleaved_rounds(tmp_path):
    measurer = FakeMeasurer(cost)
    (found,) = run(tmp_path / "raw.csv", measurer)
    assert len(measurer.screened) == len(found.screened) == len(grid().points) == 9
    ((task, finalists, rounds),) = measurer.finals
    assert (task.n, rounds) == (512, 5)
    assert [one.values for one in finalists] == [
        {PARAMETERS[0]: 192, PARAMETERS[1]: columns} for columns in (128, 256, 512)
    ]
    assert found.best is not None
    assert found.best.point.values == {PARAMETERS[0]: 192, PARAMETERS[1]: 256}
    assert found.best.row["stage"] == "final"
    assert {x: one.ms for x, one in found.curve(found.grid.panels[0].curves[0]).items()} == {
        128: 1.5,
        256: 1,
        512: 2,
    }
    assert found.best.rate == pytest.approx(512**3 / 1e-3, rel=1e-5)
    assert found.missing == []
    assert measurer.closed
    rows = list(csv.DictReader((tmp_path / "raw.csv").open()))
    assert len(rows) == 12
    assert {row["command"] for row in rows} == {ENVIRONMENT["command"]}
    assert rows[0]["config"].startswith("product.block_m=")


def test_configurations_with_a_row_are_not_measured_again(tmp_path):
    run(tmp_path / "raw.csv", FakeMeasurer(cost))
    again = FakeMeasurer(cost)
    (found,) = run(tmp_path / "raw.csv", again)
    assert (again.screened, again.finals) == ([], [])
    assert found.best is not None
    assert found.best.ms == 1
    more = FakeMeasurer(cost)
    run(tmp_path / "raw.csv", more, grid(), grid(256))
    assert {task.n for task, _ in more.screened} == {256}


def test_other_kernel_sources_are_measured_anew(tmp_path, monkeypatch):
    run(tmp_path / "raw.csv", FakeMeasurer(cost))
    monkeypatch.setattr(tuned, "kernel_hash", lambda engine, kernel, more=(): "f" * 64)
    again = FakeMeasurer(cost)
    (found,) = run(tmp_path / "raw.csv", again)
    assert len(again.screened) == 9
    assert {one.row["kernel_hash"] for one in found.screened} == {"f" * 16}
    # Rows are rendered whatever kernels they were measured with; of the same configuration the
    # newest counts.
    monkeypatch.undo()
    rendered = recorded_result(grid(), StudyRows(tmp_path / "raw.csv", PARAMETERS))
    assert {one.row["kernel_hash"] for one in (*rendered.screened, *rendered.finals)} == {"f" * 16}
    assert (rendered.missing, len(rendered.screened)) == ([], 9)


def test_failures_are_kept_with_their_class(tmp_path):
    def fails(task, point):
        return Kind.wrong_result if point.values[PARAMETERS[0]] == 192 else None

    measurer = FakeMeasurer(cost, fails)
    (found,) = run(tmp_path / "raw.csv", measurer)
    assert [one.row["outcome"] for one in found.failed] == ["wrong result"] * 3
    assert [one.row["message"] for one in found.failed] == ["fake wrong result"] * 3
    assert found.best is not None
    assert found.best.point.values[PARAMETERS[0]] == 96
    assert all(
        point.values[PARAMETERS[0]] != 192 for _, points, _ in measurer.finals for point in points
    )


def test_a_configuration_that_fails_in_the_final_is_excluded(tmp_path):
    measurer = FakeMeasurer(cost)
    best = {PARAMETERS[0]: 192, PARAMETERS[1]: 256}
    assert grid().points[-1].values != best
    measurer.fails = lambda task, point: (
        Kind.runtime_error if len(measurer.screened) == 9 and point.values == best else None
    )
    (found,) = run(tmp_path / "raw.csv", measurer)
    assert found.best is not None
    assert found.best.point.values == {PARAMETERS[0]: 192, PARAMETERS[1]: 128}
    assert [one.row["stage"] for one in found.failed] == ["final"]


def test_a_run_ends_with_its_budget_and_the_next_run_continues(tmp_path, clock):
    slow = FakeMeasurer(cost, before=lambda: clock.advance(0.05))
    found = run(tmp_path / "raw.csv", slow, grid(), grid(256), seconds=0.4)
    total = len(grid().points) + len(grid(256).points)
    assert 0 < len(slow.screened) < total
    assert sum(len(one.missing) for one in found) == total - len(slow.screened)
    assert found[1].screened, "the first grid took the time of the second"
    rest = FakeMeasurer(cost)
    found = run(tmp_path / "raw.csv", rest, grid(), grid(256))
    assert len(rest.screened) == total - len(slow.screened)
    assert [one.missing for one in found] == [[], []]


def test_a_grid_that_was_cut_short_gets_the_time_that_others_left(tmp_path, clock):
    calls = iter(range(100))
    slow_start = FakeMeasurer(cost, before=lambda: clock.advance(0.6 if next(calls) == 0 else 0))
    found = run(tmp_path / "raw.csv", slow_start, grid(), grid(256), seconds=1.0)
    assert [one.missing for one in found] == [[], []]


def test_a_grid_that_lacks_only_its_final_gets_the_time_that_others_left(tmp_path, clock):
    def pass_time() -> (
        None
    ):  # the last configuration of the first grid takes more than the grid's share, all others nothing
        clock.advance(50 if len(measurer.screened) == 8 else 0)

    measurer = FakeMeasurer(cost, before=pass_time)
    first, second = run(tmp_path / "raw.csv", measurer, grid(512), grid(256), seconds=100)
    assert [task.n for task, *_ in measurer.finals] == [256, 512]
    assert not first.lacks_final
    assert not second.lacks_final


def test_an_interrupt_keeps_the_rows(tmp_path):
    measurer = FakeMeasurer(cost)

    def interrupt() -> None:
        if len(measurer.screened) == 4:
            raise KeyboardInterrupt

    measurer.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "raw.csv", measurer)
    assert measurer.closed
    assert len((tmp_path / "raw.csv").read_text().splitlines()) == 5


@pytest.mark.parametrize("parallel", [1, 2])
def test_ctrl_c_reaches_a_measurement_that_runs_alone(parallel, tmp_path):
    """Python raises KeyboardInterrupt in the main thread only: elsewhere, a long call would delay
    the end of the process.
    """
    seen = set()
    run(
        tmp_path / "raw.csv",
        FakeMeasurer(cost, before=lambda: seen.add(threading.current_thread()), parallel=parallel),
    )
    assert (threading.main_thread() in seen) == (parallel == 1)


def test_one_grid_that_cannot_be_measured_costs_no_other(tmp_path):
    class Picky(FakeMeasurer):
        def screen(self, task, point, seconds):
            if task.n == 512:
                raise EngineError("the default is wrong.")
            return super().screen(task, point, seconds)

    measurer = Picky(cost)
    found = run(tmp_path / "raw.csv", measurer, grid(), grid(256))
    assert [one.error for one in found] == ["the default is wrong.", ""]
    assert found[0].best is None
    assert found[1].best is not None


def test_a_size_that_does_not_fit_is_refused_before_anything_runs(tmp_path):
    measurer = FakeMeasurer(cost)
    with pytest.raises(TooLargeError):
        run(tmp_path / "raw.csv", measurer, grid(), grid(1 << 20))
    assert measurer.screened == []


def test_a_measurer_uses_worker_processes(monkeypatch):
    asked = []

    class Workers:
        def __init__(self, devices):
            asked.append(devices)
            self.parallel = 3

        def evaluators(self, task, to_config):
            return [lambda values, request: (to_config(values), request.limit_ms())] * self.parallel

        def final(self, task, configs, rounds):
            return [(config, rounds) for config in configs]

        def close(self):
            asked.append("closed")

    monkeypatch.setattr(measuring, "Workers", Workers)
    measurer = measuring.WorkerMeasurer(torch.device("cpu"))
    point = grid().points[0]
    assert measurer.parallel == 3
    assert measurer.screen(grid().task, point, 9.0) == (point.config, None)
    assert measurer.final(grid().task, [point], 2) == [(point.config, 2)]
    measurer.close()
    assert asked == [[torch.device("cpu")], "closed"]
