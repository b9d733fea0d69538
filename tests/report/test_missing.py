"""A study that its budget cut short: its page says what is missing, and concludes nothing from what
was not measured.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from clock import Clock
from report.fake import ENVIRONMENT, FakeMeasurer, target
from report.test_pages import ENGINES, OF_KERNELS, SMALL, study_of

from tri_apsp.report import plots, study
from tri_apsp.report.__main__ import main
from tri_apsp.report.measuring import GridResult, measure, recorded_result
from tri_apsp.report.page import write_study
from tri_apsp.report.rows import StudyRows

AGAIN = "python -m tri_apsp.report again"


@pytest.fixture
def drawn(monkeypatch):
    """The title and y label of each plot."""
    titles: list[tuple[str, str]] = []
    draw = plots.line_plots

    def record(title: str, *rest: Any, **named: Any) -> Any:
        titles.append((title, named["y_label"]))
        return draw(title, *rest, **named)

    monkeypatch.setattr(plots, "line_plots", record)
    monkeypatch.setattr(plots, "save", lambda made, path: path)
    return titles


def measured(
    folder: Path, name: str, engine: str, ns: list[int], clock: Clock, points: int
) -> list[GridResult]:
    """Return the results of a study in which the time is over after `points` configurations."""

    def pass_time() -> None:
        clock.advance(1e6 if len(measurer.screened) + 1 == points else 0)

    if engine != "cpu":
        pytest.importorskip("triton")
    here, one = target(engine), study_of(name)
    measurer = FakeMeasurer(before=pass_time)
    rows = StudyRows(folder / f"{name}.csv", one.parameters, ENVIRONMENT)
    return measure(one.grids(here, ns, []), rows, here.torch_device, 100, lambda device: measurer)


def page_of(folder: Path, name: str, engine: str, results: list[GridResult]) -> tuple[str, str]:
    """Return the generated block at the beginning of a page, and the rest."""
    text = write_study(study_of(name), target(engine), results, folder, name, [AGAIN]).read_text()
    opening, _, rest = text.partition("<!-- end result -->")
    return opening, rest


@pytest.mark.parametrize(("name", "engine"), list(itertools.product(OF_KERNELS, ENGINES)))
def test_one_point_is_no_result(name, engine, tmp_path, clock, drawn):
    results = measured(tmp_path, name, engine, SMALL[engine], clock, 1)
    points = [len(one.grid.points) for one in results]
    assert [len(one.missing) for one in results] == [points[0] - 1, *points[1:]]
    assert points[0] > 1
    opening, rest = page_of(tmp_path, name, engine, results)
    text = " ".join(opening.split())
    lacking = f"{sum(points) - 1} of {sum(points)} configurations are not measured, in {len(points)} of {len(points)} comparisons"
    assert "No comparison was measured whole, so there is no result yet. ![" in text
    assert opening.index("![") < opening.index("Incomplete: ") < opening.index(AGAIN)
    assert f"Incomplete: {lacking}. This command continues: {AGAIN}" in text
    assert f"no result: 1 of {points[0]} configurations measured" in text
    for conclusion in ("the fastest", "; now", "≈", "100%"):
        assert conclusion not in text
    assert "| of the best |" not in rest
    assert "| of the best measured |" in rest
    assert drawn == [
        (
            f"{results[0].grid.heading}\n1 of {points[0]} configurations measured",
            "rate, of the best measured",
        )
    ]


def test_what_is_missing_is_named(tmp_path, clock, drawn):
    first, second = measured(tmp_path, "cutoff", "cpu", [2048, 256], clock, 1)
    _, rest = page_of(tmp_path, "cutoff", "cpu", [first, second])
    lines = " ".join(rest.partition("## Not measured")[2].split())
    left = [point.values for point in first.missing]
    assert len(left) == len(first.grid.points) - 1
    assert len(left) > 8
    named = "; ".join(
        f"cutoff {values['cutoff']}, block_size {values['block_size']}" for values in left[:8]
    )
    count = f"{len(left)} of {len(first.grid.points)} configurations"
    assert f"* {first.grid.heading}: {count}: {named}; {len(left) - 8} more." in lines
    assert f"* {second.grid.heading}: all {len(second.grid.points)} configurations." in lines


def test_a_whole_grid_has_its_result_though_another_lacks_some(tmp_path, clock, drawn):
    measured(tmp_path, "cutoff", "cpu", [512], clock, 99)
    measured(tmp_path, "cutoff", "cpu", [256], clock, 1)
    rows = StudyRows(tmp_path / "cutoff.csv", study_of("cutoff").parameters)
    results = [
        recorded_result(grid, rows)
        for grid in study_of("cutoff").grids(target("cpu"), [256, 512], [])
    ]
    opening, rest = page_of(tmp_path, "cutoff", "cpu", results)
    text = " ".join(opening.split())
    assert "now, the recursion cutoff (float32, n = 512) is fastest with β = " in text
    assert ", equal within the noise: " in text
    assert "are not measured, in 1 of 2 comparisons. This command continues: " in text
    assert "](cutoff-solve-float32-n512.svg)" in opening
    assert "| Recursion cutoff, float32, n = 256 | β | no result: 1 of " in opening
    assert "](cutoff-solve-float32-n256.svg)" in rest
    assert {label for _, label in drawn} == {"rate, of the best", "rate, of the best measured"}


def test_a_missing_final_is_named(tmp_path, clock, drawn):
    grid, *_ = study_of("cutoff").grids(target("cpu"), [256], [])
    (found,) = measured(tmp_path, "cutoff", "cpu", [256], clock, len(grid.points))
    assert found.lacks_final
    opening, rest = page_of(tmp_path, "cutoff", "cpu", [found])
    text = " ".join(opening.split())
    again = "Incomplete: in 1 of 1 comparisons the fastest are not timed a second time. This command continues: "
    assert f"{again}{AGAIN}" in text
    assert "operations/s as first measured" in text
    assert (
        f"* {found.grid.heading}: the fastest configurations a second time, in turns."
        in " ".join(rest.split())
    )


def test_a_whole_study_lacks_nothing(tmp_path, clock, drawn):
    results = measured(tmp_path, "threads", "cpu", [256], clock, 999)
    opening, rest = page_of(tmp_path, "threads", "cpu", results)
    assert "Incomplete" not in opening
    assert AGAIN not in opening + rest


def test_the_command_line_says_how_to_continue(tmp_path, clock, drawn, monkeypatch, capsys):
    def pass_time() -> None:
        clock.advance(1e6)

    monkeypatch.setattr(study, "WorkerMeasurer", lambda device: FakeMeasurer(before=pass_time))
    assert main(["stages", "--device", "cpu", "--n", "64", "--out", str(tmp_path)]) == 0
    again = f"python -m tri_apsp.report stages --device cpu --n 64 --out {tmp_path}"
    output = capsys.readouterr()
    assert "warning: Incomplete: " in output.err
    assert output.err.endswith(f" To continue: {again}\n")
    assert f"\n    {again}\n" in Path(output.out.strip()).read_text()
    assert (
        "No comparison was measured whole, so there is no result yet."
        in (tmp_path / "README.md").read_text()
    )
