"""The study of rooflines: bytes by counters or by formula, ceilings, and what its page shows."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import ENVIRONMENT, FakeMeasurer, target

from tri_apsp.configs import default_config
from tri_apsp.errors import EngineError, InputError
from tri_apsp.report import implementations, roofline
from tri_apsp.report.__main__ import main
from tri_apsp.report.counters import CountingTimeoutError, NotCountedError
from tri_apsp.report.grids import Point
from tri_apsp.report.implementations import default_point
from tri_apsp.report.measuring import measure
from tri_apsp.report.page import write_study
from tri_apsp.report.roofline import STUDY, Rooflines
from tri_apsp.report.roofline_page import ARITHMETIC, COPY
from tri_apsp.report.rows import StudyRows
from tri_apsp.report.traffic import Traffic, computed_traffic
from tri_apsp.tune.measure.outcome import Kind, Outcome, Times
from tri_apsp.tune.space.task import Task

CPU = torch.device("cpu")
CONFIG = default_config("nvidia", torch.float32)
TASK = Task("cpu", "solve", "float32", "nonnegative", 48)
AUTO, COPIED, REGISTERS = map(default_point, ("auto", COPY, ARITHMETIC))
COPY_RATE, ARITHMETIC_RATE = 4e12, {"float32": 20e12, "int16": 32e12}


def names(dtype: str) -> list[str]:
    (grid,) = STUDY.grids(target("nvidia"), [4096], [dtype])
    return [str(point.values["implementation"]) for point in grid.points]


def test_the_systems_of_each_dtype_and_the_ceilings():
    pytest.importorskip("triton")
    grids = STUDY.grids(target("nvidia"), [], [])
    assert {(grid.task.dtype, grid.task.n) for grid in grids} == {
        (d, n) for d in ("float32", "int16") for n in (4096, 8192)
    }
    assert names("int16") == [COPY, ARITHMETIC, "auto", "blocked_vectorised_int16", "blocked_int16"]
    assert len(names("float32")) == 12
    sources = {point.values["implementation"]: point.sources for point in grids[0].points}
    assert "kernels/nvidia/arithmetic.py" in sources[ARITHMETIC]
    assert "papers/staged_load.py" in sources["staged_load"]
    parameters = {
        point.values["implementation"]: point.values["method_parameter"]
        for point in grids[0].points
    }
    assert (parameters["staged_load"], parameters["recursive_tuned"], parameters["auto"]) == (
        4,
        16,
        "",
    )


@pytest.mark.parametrize("engine", ["cpu", "portable"])
def test_other_engines_are_refused(engine):
    with pytest.raises(
        EngineError,
        match=f"roofline must be measured with the engine nvidia, but .* runs {engine} here;",
    ):
        STUDY.grids(target(engine), [], [])


def test_wide_values_are_refused():
    with pytest.raises(InputError, match="--dtype is float64; choose float32, int32 or int16"):
        STUDY.grids(target("nvidia"), [], ["float64"])


def test_on_a_cpu_nothing_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tri_apsp.report.run.measure", lambda *args: pytest.fail("measured"))
    assert main(["roofline", "--device", "cpu", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(
        "error: the report roofline must be measured with the engine nvidia, but "
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["katz_kider", "blocked_int16"])
def test_the_bytes_of_blocked_systems_are_those_of_their_tiles(name):
    size, edge, dtype = (4, 32, "float32") if name == "katz_kider" else (2, 16, "int16")
    n = 8192
    moved = 0
    for stage in range(4):  # every stage moves the same
        for i in range(n // edge):
            in_row = i == stage
            # Of each row of tiles: C twice, and what it depends on.
            moved += (n // edge - 1) * (3 if in_row else 4) + (2 if in_row else 3)
    assert computed_traffic(name, n, dtype, CONFIG).l2 == moved * edge**2 * size * (n // edge) / 4


def test_the_bytes_of_one_launch_per_vertex():
    n = 8192
    per_vertex = computed_traffic("harish_narayanan", n, "float32", CONFIG).l2 / n**3
    assert 12 < per_vertex < 12.2, (
        "two values read and one written, as Lund & Smith count, but for the value of the column"
    )
    assert computed_traffic("harish_narayanan", n, "float32", CONFIG).memory == 8 * n**3
    assert computed_traffic("simple", n, "float32", CONFIG).memory == 4 * n**3


def test_a_system_that_uses_values_more_often_moves_fewer_bytes():
    order = ["harish_narayanan", "recursive_plain", "katz_kider", "recursive_tuned"]
    moved = [computed_traffic(name, 8192, "float32", CONFIG).l2 for name in order]
    assert moved == sorted(moved, reverse=True)
    for dtype in ("float32", "int16"):
        for name in names(dtype)[2:]:
            found = computed_traffic(name, 16384, dtype, CONFIG)
            assert found.memory is not None
            assert 0 < found.memory < found.l2, name
            assert computed_traffic(name, 4096, dtype, CONFIG).memory is None, (
                "the L2 cache may hold the matrix"
            )


def screen(measurer: Rooflines, point: Point = AUTO, task: Task = TASK) -> Outcome:
    outcome = measurer.screen(task, point, 60.0)
    assert outcome is not None
    return outcome


def test_bytes_are_counted_once_per_grid(monkeypatch):
    asked = []

    def count(task, names, device, seconds):
        asked.append((task.n, list(names)))
        return {name: Traffic(1000.0 + k, 10.0 + k) for k, name in enumerate(names)}

    monkeypatch.setattr(roofline, "counted_traffic", count)
    measurer = Rooflines(CPU)
    outcome = screen(measurer)
    assert (outcome.kind, outcome.message) == (Kind.correct, "")
    assert outcome.metrics == {"l2_bytes": 1000.0, "dram_bytes": 10.0, "counted": 1.0}
    screen(measurer)
    assert [n for n, _ in asked] == [TASK.n]
    assert asked[0][1] == names("float32")[2:]
    monkeypatch.setattr(roofline, "_COUNTED_TOGETHER", 64)
    screen(measurer, task=Task("cpu", "solve", "float32", "nonnegative", 65))
    assert asked[1] == (65, ["auto"]), "large calls are counted one at a time"


def test_where_no_counter_is_read_bytes_are_computed_and_the_reason_is_kept(monkeypatch):
    asked = []

    def refuse(task, names, device, seconds):
        asked.append(names)
        raise NotCountedError("ncu failed: ERR_NVGPUCTRPERM")

    monkeypatch.setattr(roofline, "counted_traffic", refuse)
    monkeypatch.setattr(roofline, "computed_traffic", lambda *args: Traffic(1000.0, None))
    measurer = Rooflines(CPU)
    outcomes = screen(measurer), screen(measurer)
    for outcome in outcomes:
        assert (outcome.kind, outcome.message) == (Kind.correct, "ncu failed: ERR_NVGPUCTRPERM")
        assert outcome.metrics == {"l2_bytes": 1000.0, "counted": 0.0}
    assert len(asked) == 1, "it would fail again"


def test_the_tile_of_a_computed_product_is_that_of_the_call():
    narrow, wide = (
        dataclasses.replace(
            CONFIG, product=dataclasses.replace(CONFIG.product, block_m=rows, block_n=rows)
        )
        for rows in (64, 128)
    )
    assert (
        1.9
        < computed_traffic("auto", 8192, "float32", narrow).l2
        / computed_traffic("auto", 8192, "float32", wide).l2
        <= 2
    )


def test_counting_ends_with_the_budget_and_goes_on_with_the_next(monkeypatch):
    given = []

    def stop(task, names, device, seconds):
        given.append(seconds)
        raise CountingTimeoutError(f"ncu was not done after {seconds:.0f} s")

    monkeypatch.setattr(roofline, "counted_traffic", stop)
    monkeypatch.setattr(roofline, "computed_traffic", lambda *args: Traffic(1000.0, None))
    measurer = Rooflines(CPU)
    assert measurer.screen(TASK, AUTO, 60.0) is None, "no row: a later run has more time"
    outcome = measurer.screen(TASK, AUTO, 1000.0)
    assert outcome.message == "ncu was not done after 240 s"
    assert screen(measurer).message == outcome.message
    assert [seconds < 60 or seconds == 240 for seconds in given] == [True, True], (
        "and it is not tried a third time"
    )


def test_a_wrong_call_has_no_bytes(monkeypatch):
    monkeypatch.setattr(roofline, "counted_traffic", lambda *args: pytest.fail("counted"))
    solve = implementations.shortest_paths

    def wrong(weights, **options):
        result = solve(weights, **options)
        result.distances[0, -1] += 1
        return result

    monkeypatch.setattr(implementations, "shortest_paths", wrong)
    assert screen(Rooflines(CPU)).kind is Kind.wrong_result


def test_the_ceiling_of_memory_is_a_copy(monkeypatch):
    monkeypatch.setattr(roofline, "_COPIED_BYTES", 1 << 16)
    outcome = screen(Rooflines(CPU), COPIED)
    assert outcome.metrics == {"dram_bytes": 2 << 16, "ops_per_second": 0.0}
    assert outcome.times is not None


def test_the_ceiling_of_arithmetic_is_checked_before_it_is_timed(monkeypatch):
    pytest.importorskip("triton")
    from tri_apsp.engines import arithmetic

    def make(change):
        made = arithmetic.Arithmetic(
            lambda: torch.full((3, 2, 2), 7.0) + change, torch.full((2, 2), 7.0), 10**6
        )
        monkeypatch.setattr(arithmetic, "arithmetic", lambda dtype, device, tiles: made)
        return screen(Rooflines(CPU), REGISTERS)

    right, wrong = make(0), make(1)
    assert right.metrics["ops_per_second"] == pytest.approx(1e9 / right.median_ms), (
        "the highest rate of all shapes"
    )
    assert (wrong.kind, wrong.times) == (Kind.wrong_result, None)


class FakeRooflines(FakeMeasurer):
    """The k-th system of a grid takes k times as long as the ceiling of arithmetic, and moves its
    memory at 1/k of a copy.
    """

    reason = ""

    def _outcome(self, task: Task, point: Point) -> Outcome:
        outcome = super()._outcome(task, point)
        name = str(point.values["implementation"])
        if outcome.kind is not Kind.correct:
            return outcome
        if name == COPY:
            return Outcome(
                Kind.correct,
                Times(1, 1, 1),
                metrics={"dram_bytes": COPY_RATE / 1000, "ops_per_second": 0.0},
            )
        if name == ARITHMETIC:
            return Outcome(
                Kind.correct,
                Times(1, 1, 1),
                metrics={"ops_per_second": ARITHMETIC_RATE[task.dtype]},
            )
        k = names(task.dtype).index(name)
        seconds = k * task.operations / ARITHMETIC_RATE[task.dtype]
        metrics = {"l2_bytes": 3 * COPY_RATE * seconds, "counted": 0.0 if self.reason else 1.0}
        if name != "simple":
            metrics["dram_bytes"] = (
                COPY_RATE * seconds * (0.75 if name == "harish_narayanan" else 0.01)
            )
        return Outcome(Kind.correct, Times(*[1000 * seconds] * 3), self.reason, metrics=metrics)


def page_of(folder: Path, measurer: FakeMeasurer, seconds: float = 100.0) -> str:
    here = target("nvidia")
    rows = StudyRows(folder / "roofline.csv", STUDY.parameters, ENVIRONMENT, STUDY.metrics)
    results = measure(STUDY.grids(here, [], []), rows, CPU, seconds, lambda device: measurer)
    return write_study(STUDY, here, results, folder, "roofline", ["again"]).read_text(
        encoding="utf-8"
    )


def test_the_page(tmp_path):
    pytest.importorskip("triton")
    text = page_of(tmp_path, FakeRooflines())
    tables = [
        [*block]
        for kind, block in itertools.groupby(text.splitlines(), lambda line: line[:1] == "|")
        if kind
    ]
    assert all(len({line.count("|") for line in block}) == 1 for block in tables), (
        "a row has other cells than its table"
    )
    page = " ".join(text.split())
    lead = (
        "(Lund & Smith); now, for n = 8192 in float32, harish_narayanan reaches 75% of the bytes/s of a copy and this project "
        "50% of the operations/s of its product's inner loop, because one launch per vertex uses a loaded value once, and a "
        "product many times. ![roofline](roofline.svg)"
    )
    assert page.index(lead) < page.index("## Rates and ceilings")
    assert "No clock was changed" in page
    assert "| ceiling: copy | float32 | 8192 | | | | 4 TB/s |" in page
    assert "| ceiling: arithmetic | int16 | 4096 | | 32 T |" in page
    ms = 2 * 8192**3 / 20e12 * 1000
    assert (
        f"| this project | float32 | 8192 | {ms:.3g} ms | 10 T | 50% | 40 GB/s | 1.0% | 12 TB/s | counted | arithmetic |"
        in page
    )
    assert re.search(
        r"\| harish_narayanan \| float32 \| 8192 \| .* \| 3 TB/s \| 75% \| 12 TB/s \| counted \| memory \|",
        page,
    )
    assert re.search(
        r"\| simple \| float32 \| 8192 \|[^|]*\|[^|]*\|[^|]*\| \| \| 12 TB/s \| counted \| \|", page
    ), "unknown bytes"
    assert "| harish_narayanan: bytes/s, of a copy's | 42 GB/s, 55% (C1060) | 3 TB/s, 75% |" in page
    assert "| katz_kider: FLOPs that one operation takes | 62.7 (C1060) | 14.0 |" in page
    assert (
        "The bytes of 26 calls are those of the GPU's counters, read by ncu: L2 is lts__t_bytes.sum"
        in page
    )
    assert (
        "half the core clock: 2.04 times the time; half the memory clock: 1.09 (8800 Ultra) | neither: "
        in page
    )
    assert (
        "(8800 Ultra) | memory: 75% of a copy's bytes/s, 10% of the inner loop's operations/s |"
        in page
    )
    assert "computed, not counted" not in page
    ratio = names("float32").index("pseudo_blocked") / names("float32").index("simple")
    assert (
        f"At n = 8192, pseudo_blocked loads {ratio:.2f} times the bytes of simple from L2" in page
    )
    assert not re.search(r"\bnan\b|\bNone\b(?!:)", page)
    drawn = (tmp_path / "roofline.svg").read_text()
    for text in (
        "n = 4096",
        "n = 8192",
        ">this project, int16<",
        ">staged_load<",
        "memory: a copy moves 4 TB/s",
        "Then: Tesla C1060",
    ):
        assert text in drawn
    rows = list(csv.DictReader((tmp_path / "roofline.csv").open()))
    (arithmetic,) = (
        row
        for row in rows
        if (row["implementation"], row["dtype"], row["n"]) == (ARITHMETIC, "int16", "4096")
    )
    assert (arithmetic["ops_per_second"], arithmetic["counted"]) == ("3.2e+13", "")


def test_computed_bytes_are_said_to_be_computed_and_why(tmp_path):
    pytest.importorskip("triton")
    measurer = FakeRooflines()
    measurer.reason = "ncu is not on the PATH"
    page = " ".join(page_of(tmp_path, measurer).split())
    assert (
        "The bytes of 26 calls are computed, not counted, because ncu is not on the PATH." in page
    )
    assert "those of the GPU's counters" not in page
    assert "pseudo_blocked loads" not in page
    assert "| computed | arithmetic |" in page
    assert "None: the results of every configuration that was tried were right." in page


def test_pages_of_few_measurements(tmp_path):
    pytest.importorskip("triton")
    assert "Nothing was measured yet." in page_of(tmp_path / "none", FakeRooflines(), seconds=-1)
    for index, kept in enumerate(
        ({COPY}, {ARITHMETIC}, {"auto"}, {COPY, "simple"}, {"auto", ARITHMETIC})
    ):
        measurer = FakeRooflines(
            fails=lambda task, point, kept=kept: (
                None if point.values["implementation"] in kept else Kind.timeout
            )
        )
        page = page_of(tmp_path / str(index), measurer)
        assert "| timeout | fake timeout |" in page
        assert not re.search(r"\bnan\b|\bNone\b(?!:)", page)
