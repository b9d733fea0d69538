"""Every study on fake times: it is measured, continued after an interruption, and shown."""

import re
from itertools import count
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from fake_study import CPU, FakeMeasurer, platform, rows_of

from reports.studies.measuring import measure, missing
from reports.studies.rows import StudyRows
from reports.studies.run import STUDIES, write_study
from reports.studies.study import Group, Study

CASES = [(name, engine) for name in STUDIES for engine in STUDIES[name].cases]


def groups_of(study: Study, engine: str) -> list[Group]:
    if engine != "cpu":
        pytest.importorskip("triton")
    groups = study.groups(platform(engine), [], [])
    return [*groups[:2], *groups[2:][-1:]]  # drawing the plots of all takes minutes


def measured(study: Study, folder: Path, measurer: FakeMeasurer, engine: str) -> StudyRows:
    rows = rows_of(study, folder)
    measure(groups_of(study, engine), rows, CPU, 1e6, lambda device: measurer)
    return rows


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_a_study_is_measured_and_shown(name: str, engine: str, tmp_path: Path) -> None:
    study, numbers = STUDIES[name], count(1)
    measurer = FakeMeasurer(study, lambda task, point: task.n * (1 + 0.1 * (next(numbers) % 7)))
    rows = measured(study, tmp_path, measurer, engine)
    groups = groups_of(study, engine)
    assert not missing(groups, rows)
    page = write_study(study, platform(engine), rows)
    text = page.read_text()
    assert text.startswith(f"# {study.question} ")
    for file in re.findall(r"\]\((.*?\.svg)\)", text):
        assert (tmp_path / file).is_file()
    for group in groups:
        assert f"n = {group.task.n}" in text or f"| {group.task.n} |" in text
    assert "## Failures" not in text
    assert not re.search(r"\bnan\b|\bNone\b|[{}]", text)


def test_what_is_written_by_hand_stays(tmp_path: Path) -> None:
    study = STUDIES["squaring"]
    rows = measured(study, tmp_path, FakeMeasurer(study), "cpu")
    page = write_study(study, platform("cpu"), rows)
    generated = page.read_text()
    by_hand = generated.replace("\n\n<!-- begin result", "\n\nBy hand.\n\n<!-- begin result")
    page.write_text(by_hand.replace("1 ms", "2 ms"))
    write_study(study, platform("cpu"), rows)
    assert page.read_text() == by_hand


def test_a_study_continues_after_an_interruption(tmp_path: Path) -> None:
    study = STUDIES["concurrency"]
    first, second = FakeMeasurer(study, limit=3), FakeMeasurer(study)
    with pytest.raises(KeyboardInterrupt):
        measured(study, tmp_path, first, "cpu")
    rows = measured(study, tmp_path, second, "cpu")
    points = [point for group in groups_of(study, "cpu") for point in group.points]
    assert len(rows) == 2 * len(points), "one of the first measurement, one of the final"
    again = FakeMeasurer(study)
    measured(study, tmp_path, again, "cpu")
    assert not again.screened


def test_a_wrong_answer_never_gets_a_speed(tmp_path: Path) -> None:
    study = STUDIES["implementations"]
    wrong = FakeMeasurer(
        study, fails=lambda task, point: point.values["implementation"] == "kleene"
    )
    rows = measured(study, tmp_path, wrong, "cpu")
    assert not any(row["p50_ms"] for row in rows.newest("cpu") if row["outcome"] != "correct")
    shown, _, failures = write_study(study, platform("cpu"), rows).read_text().partition("## Fail")
    assert "kleene" not in shown
    assert "| implementation kleene | solve | float32 | 256 | wrong result | fake |" in failures


def test_a_point_that_would_take_too_long_is_not_begun(tmp_path: Path) -> None:
    """Eight times as long as for half the vertices."""
    study = STUDIES["implementations"]
    measurer = FakeMeasurer(study, lambda task, point: 1000.0 * (task.n / 256) ** 3)
    rows = rows_of(study, tmp_path)
    groups = study.groups(platform("cpu"), [256, 512, 1024], [])
    for seconds, largest in ((60, 512), (600, 1024)):
        measure(groups, rows, CPU, seconds, lambda device: measurer)
        assert max(task.n for task, _ in measurer.screened) == largest


def test_the_fastest_for_each_x_are_timed_again(tmp_path: Path) -> None:
    study = STUDIES["cutoff"]
    betas = {16: 4.0, 32: 2.0, 64: 1.0, 128: 1.5, 256: 3.0}
    measurer = FakeMeasurer(study, lambda task, point: betas[int(point.values["cutoff"])])
    rows = rows_of(study, tmp_path)
    groups = study.groups(platform("cpu"), [256], [])
    measure(groups, rows, CPU, 1e6, lambda device: measurer)
    stages = {row["stage"] for row in rows.newest("cpu") if row["cutoff"] == row["block_size"]}
    assert stages == {"final"}
    page = write_study(study, platform("cpu"), rows).read_text()
    assert "| solve, float32, n = 256: 16.8 G/s | 25% | 50% | 100% | 67% | 33% |" in page
