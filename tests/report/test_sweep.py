"""The page of the tuner's studies: every task is on it, and it asks no network for anything."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import optuna
import pytest
import torch
from optuna.storages import BaseStorage

pytest.importorskip("plotly")

from tune.synthetic import correct

from tri_apsp.report.__main__ import main
from tri_apsp.report.sweep import read_studies, write_sweep
from tri_apsp.tune.candidates import baselines_of
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.search import Search, open_journal, open_storage, open_study
from tri_apsp.tune.sweep import _study_name, task_of_study
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import record_of

TUNED = Path(__file__).parents[2] / "tuning" / "amd-epyc-2-cores"
SPACE = record_of("cpu", "product").space
NAMES = {
    "cpu-product-float32-nonnegative-n64-some-cpu-0123456789ab": "float32 nonnegative, n = 64",
    "cpu-product-int16-any-n128-b4-some-cpu-0123456789ab": "int16 any, n = 128, 4 graphs",
}


def searched(storage: BaseStorage, name: str, fails: bool = False) -> None:
    """Search a few configurations, of which the first two are fast, and one cannot be compiled."""
    values = [{p.name: p.choices[i % 2] for p in SPACE.parameters} for i in range(2)]
    values += [{p.name: p.choices[-1] for p in SPACE.parameters}]
    outcomes = iter([correct(2.0), correct(1.0), Outcome(OutcomeKind.compile_error, message="no")])
    failed = Outcome(OutcomeKind.compile_error, message="no")
    search = Search(
        SPACE, values, study=open_study(storage, name, resume=False), default=values[0], trials=3
    )
    search.run(lambda *arguments: failed if fails else next(outcomes))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "studies.log"
    storage = open_journal(path)
    for name in NAMES:
        searched(storage, name, fails=True)
        searched(storage, name)
    searched(storage, "cpu-product-int32-any-n64-some-cpu-0123456789ab", fails=True)
    return path


def report(out: Path, *words: str) -> int:
    return main(["tuning", "--from", str(TUNED), "--out", str(out), *words])


def test_every_task_is_on_the_page(journal: Path, tmp_path: Path) -> None:
    assert report(tmp_path, "--journal", str(journal)) == 0
    folder = tmp_path / TUNED.name / "tuning"
    assert "(sweep.html)" in (folder / "README.md").read_text()
    page = (folder / "sweep.html").read_text(encoding="utf-8")
    body = page[page.index("<body>") :]
    assert re.findall(r"<h2 .*>cpu product, (.*)</h2>", body) == list(NAMES.values())
    assert body.count("3 configurations: 2 timed, 0 given up as slow, 1 failed.") == 2
    assert body.count("<td>time</td><td>2 ms</td><td>1 ms</td>") == 2
    assert body.count("Plotly.newPlot(") == 4 * 2
    # Self-contained: nothing is loaded, and the only links are those within the page.
    assert not re.findall(r"<(?:link|img|iframe|script)[^>]*(?:src|href)=", page)
    assert {link[0] for link in re.findall(r'(?:src|href)="([^"]*)"', body)} == {"#"}


def test_the_newest_study_with_times_counts(journal: Path) -> None:
    for name in NAMES:
        searched(open_journal(journal), name, fails=True)
    names = [study.study_name for study in read_studies(journal).values()]
    assert names == [f"{name}-2" for name in NAMES]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "--journal must name a file that the tuner wrote"),
        ("", "must have configurations with times"),
        (json.dumps({"op_code": "no"}) + "\n", "must be one that Optuna wrote"),
    ],
)
def test_a_journal_that_cannot_be_shown(
    content: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.log"
    if content is not None:
        path.write_text(content)
    assert report(tmp_path / "out", "--journal", str(path)) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: ")
    assert sentence in output
    assert output.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_remedy_for_plotly_is_named(
    journal: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert report(tmp_path, "--journal", str(journal)) == 2
    output = capsys.readouterr().err
    assert output.startswith("error: sweep.html needs plotly, but it is not installed; run pip")


@pytest.mark.parametrize("tuned_before", [False, True])
def test_a_machine_without_times_has_no_page(
    tuned_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if tuned_before:
        searched(open_storage(TUNED.name), next(iter(NAMES)), fails=True)
    assert report(tmp_path) == 0
    folder = tmp_path / TUNED.name / "tuning"
    assert "sweep.html" not in (folder / "README.md").read_text()
    assert not (folder / "sweep.html").exists()


@pytest.mark.parametrize("batch", [1, 4])
def test_the_name_of_a_study_tells_its_task(batch: int) -> None:
    task = TuningTask("cpu", "solve", "float32", "any", 64, batch)
    name = _study_name(task, baselines_of(task, torch.device("cpu")), "some-cpu")
    assert task_of_study(name) == task
    assert task_of_study("another-study") is None


def test_values_of_a_journal_are_text_on_the_page(tmp_path: Path) -> None:
    study = optuna.create_study()
    choices = optuna.distributions.CategoricalDistribution(["<img>", "b"])
    for value, choice in ((2.0, "<img>"), (1.0, "b")):
        study.add_trial(
            optuna.create_trial(value=value, params={"x": choice}, distributions={"x": choices})
        )
    write_sweep({"task": study}, tmp_path / "sweep.html", "A CPU")
    assert "<td>&lt;img&gt;</td><td>b</td>" in (tmp_path / "sweep.html").read_text()
