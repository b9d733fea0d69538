"""Raw rows: what is written is read again, and a file that cannot be used is refused."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from reports.studies.rows import ORIGIN, StudyRows, origin_of
from reports.studies.study import Point
from tri_apsp.errors import InputError
from tri_apsp.tune.outcome import Outcome, OutcomeKind, Times
from tri_apsp.tune.tasks import TuningTask

TASK = TuningTask("cpu", "product", "float32", "any", 1000)


def rows_of(folder: Path) -> StudyRows:
    origin = dict.fromkeys(ORIGIN, "some")
    return StudyRows(folder / "some.csv", ("edge", "warps"), ("joules",), origin)


def outcome(ms: float, **metrics: float) -> Outcome:
    return Outcome(OutcomeKind.correct, Times(ms, ms, ms), metrics=metrics)


def test_the_newest_row_of_a_point_counts(tmp_path: Path) -> None:
    first, eight, sixteen = rows_of(tmp_path), Point({"edge": 8}), Point({"edge": 16})
    first.append(TASK, eight, "screen", outcome(1.5, joules=3.0))
    first.append(TASK, sixteen, "screen", Outcome(OutcomeKind.wrong_result, message='a\n"b"'))
    first.append(TASK, eight, "final", outcome(2.0))
    again = rows_of(tmp_path)
    found = again.find(TASK, eight, "screen")
    assert (found["p50_ms"], found["n"], found["warps"]) == ("1.5", "1000", "")
    assert again.find(TASK, sixteen, "final") is None
    newest, wrong = again.newest("cpu")
    assert (newest["stage"], newest["p50_ms"], newest["joules"]) == ("final", "2", "3")
    assert newest["ops_per_second"] == "5e+11"
    assert (wrong["message"], wrong["p50_ms"]) == ('a "b"', "")
    assert again.newest("nvidia") == []


@pytest.mark.parametrize(
    "text",
    [
        "other,columns\n1,2\n",
        "HEADER\n1,2\n",
        "HEADER\nROW,1\n",
        "HEADER\n" + "some,some,some,some,some,x,cpu,solve\n",
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text: str, tmp_path: Path) -> None:
    rows_of(tmp_path).append(TASK, Point({"edge": 8}), "screen", outcome(1.0))
    path = tmp_path / "some.csv"
    header, row = path.read_text().splitlines()
    path.write_text(text.replace("HEADER", header).replace("ROW", row))
    with pytest.raises(InputError, match="but line 2 of them"):
        rows_of(tmp_path)


def test_versions_of_other_projects_are_named_where_they_are_installed() -> None:
    cpu, peers = torch.device("cpu"), ("matplotlib", "no-such-project")
    plain, named = (origin_of(cpu, "", "1234", each)["versions"] for each in ((), peers))
    assert named.startswith(f"{plain}, matplotlib ")
    assert "no-such-project" not in named
