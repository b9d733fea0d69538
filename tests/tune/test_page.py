"""The page of the tuner's searches: every task is on it, and it asks no network for anything."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
import torch
from optuna.storages import BaseStorage

pytest.importorskip("matplotlib")

from command_line import Ended, in_this_process
from tune.synthetic import correct

from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.device import describe
from tri_apsp.errors import ApspWarning
from tri_apsp.tune import page as page_module
from tri_apsp.tune.__main__ import main
from tri_apsp.tune.candidates import baselines_of
from tri_apsp.tune.figures import svg_of
from tri_apsp.tune.outcome import Outcome, OutcomeKind
from tri_apsp.tune.page import page_of_run, read_studies, write_page
from tri_apsp.tune.run import _study_name
from tri_apsp.tune.search import (
    Search,
    add_default_times,
    journal_path,
    open_storage,
    open_study,
    task_of_study,
)
from tri_apsp.tune.tasks import TuningTask, studies_directory
from tri_apsp.tuned.records import record_of

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
    study = open_study(storage, name, resume=False)
    study.set_user_attr("device", "Some CPU")
    study.set_user_attr("versions", "torch 2.99")
    search = Search(SPACE, values, study=study, default=values[0], trials=3)
    search.run(lambda *arguments: failed if fails else next(outcomes))


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "some-cpu.log"
    storage = open_storage(str(path))
    for name in NAMES:
        searched(storage, name, fails=True)
        searched(storage, name)
    searched(storage, "cpu-product-int32-any-n64-some-cpu-0123456789ab", fails=True)
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    return in_this_process(main, capsys)


def test_every_task_is_on_the_page(
    cli: Callable[..., Ended], journal: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "searches.html"
    assert cli("--page", path.parent, "--storage", journal) == Ended(0, f"{path}\n", "")
    page = path.read_text(encoding="utf-8")
    assert page.count("<p>Some CPU; torch 2.99; 20") == len(NAMES)
    body = page[page.index("<body>") :]
    assert "<h1>Searches on some-cpu</h1>" in body
    assert re.findall(r"<h2 .*>cpu product, (.*)</h2>", body) == list(NAMES.values())
    assert body.count("3 configurations: 2 timed, 0 pruned as slow, 1 failed.") == 2
    assert body.count("<td>time</td><td>2 ms</td><td>1 ms</td>") == 2
    assert body.count("<svg ") == 2
    # Self-contained: nothing is loaded, and the only links are those within the page.
    assert not re.findall(r"<(?:link|img|iframe|script)[^>]*(?:src|href)=", page)
    links = re.findall(r'(?:src|href)="([^"]*)"', body)
    assert {link.partition("image/png")[0][:5] for link in links if link[0] != "#"} <= {"data:"}
    assert len(page) < 1_000_000


@pytest.mark.parametrize(
    ("winner", "sentence"),
    [
        ("default, kept", "After the final: the default stays."),
        ("in use, kept", "After the final: the configuration in use stays."),
        ("number 1, winner", "After the final: number 1 wins."),
        (None, ""),
    ],
)
def test_the_decision_of_the_final(winner: str | None, sentence: str, tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "some.log"))
    (name, _) = NAMES
    searched(storage, name)
    study = optuna.load_study(storage=storage, study_name=f"{name}-1")
    times = {"default": [1, 2, 3], "in use": [1, 2, 3], "number 1": [1, 2, 3]}
    if winner is not None:
        (name, _) = winner.split(", ")
        found = {winner if each == name else each: ms for each, ms in times.items()}
        study.set_user_attr("final", found)
    write_page({task_of_study(study.study_name): study}, tmp_path / "page.html", "some cpu")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "".join(re.findall("After the final: .*?[.]", page)) == sentence
    medians = "Medians: default 2 ms, in use 2 ms, number 1 2 ms."
    assert (medians in page) == bool(sentence)


def test_a_page_of_what_was_asked_for_in_the_journal_of_this_machine(
    cli: Callable[..., Ended], home: Path
) -> None:
    for name in NAMES:
        searched(open_storage(str(journal_path(describe(torch.device("cpu")).slug))), name)
    found = cli("--page", home, "--device", "cpu", "--dtype", "int16", "--n", 128, "--json").json
    assert found == {
        "file": str(home / "searches.html"),
        "tasks": ["cpu product, int16 any, n = 128, 4 graphs"],
    }
    assert (home / "searches.html").read_text(encoding="utf-8").count("<h2 ") == 1


def test_the_newest_study_with_times_counts(journal: Path) -> None:
    for name in NAMES:
        searched(open_storage(str(journal)), name, fails=True)
    names = [study.study_name for study in read_studies(str(journal)).values()]
    assert names == [f"{name}-2" for name in NAMES]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "some.log has none of what was asked for; tune it first"),
        ("", "some.log has none of what was asked for; tune it first"),
        (json.dumps({"op_code": "no"}) + "\n", "must be one that Optuna wrote"),
    ],
)
def test_a_journal_that_cannot_be_shown(
    cli: Callable[..., Ended],
    content: str | None,
    sentence: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "some.log"
    if content is not None:
        path.write_text(content)
    output = cli("--page", tmp_path / "out", "--storage", path)
    assert (output.status, output.out) == (BAD_INPUT, "")
    assert output.err.startswith("error: ")
    assert sentence in output.err
    assert output.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
    assert path.exists() == (content is not None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--page", "JOURNAL/in", "--storage", "JOURNAL"], "--page must be a path that can be"),
        (["--page", "out", "--storage", "JOURNAL", "--n", "512"], "has none of what was asked for"),
        (["--page", "out", "--show"], "not allowed with argument"),
    ],
)
def test_options_that_do_not_fit(
    cli: Callable[..., Ended], journal: Path, words: list[str], sentence: str
) -> None:
    output = cli(*(word.replace("JOURNAL", str(journal)) for word in words))
    assert output.status == BAD_INPUT
    assert sentence in output.err


def test_the_remedy_for_matplotlib_is_named(
    cli: Callable[..., Ended], journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = cli("--page", tmp_path, "--storage", journal)
    assert output.status == BAD_INPUT
    remedy = 'run pip install -c constraints.txt ".[plots]"'
    assert f"searches.html needs matplotlib, but it is not installed; {remedy}" in output.err


def test_a_run_ends_well_where_no_page_can_be_drawn(
    home: Path, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(study: optuna.Study) -> str:
        raise RuntimeError("no font")

    studies = read_studies(str(journal))
    assert page_of_run(studies, "some-cpu") == studies_directory() / "some-cpu.html"
    monkeypatch.setattr(page_module, "svg_of", fail)
    with pytest.warns(ApspWarning, match=r"the page of this run could not be written: no font"):
        assert page_of_run(studies, "some-cpu") is None


def test_the_page_says_what_each_card_measured(tmp_path: Path) -> None:
    study = optuna.create_study()
    for value, card in ((2.0, "a:cuda:0"), (1.0, "b:cuda:0"), (3.0, "b:cuda:0")):
        study.add_trial(optuna.create_trial(value=value, user_attrs={"card": card}))
    add_default_times(study, {"a:cuda:0": 2.0, "b:cuda:0": 2.5})
    task = TuningTask("cpu", "product", "float32", "any", 64)
    write_page({task: study}, tmp_path / "searches.html", "A CPU")
    page = (tmp_path / "searches.html").read_text()
    assert "<td>a:cuda:0</td><td>1</td><td>2 ms</td><td>1.000</td>" in page
    assert "<td>b:cuda:0</td><td>2</td><td>2.5 ms</td><td>1.250</td>" in page


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
    task = TuningTask("cpu", "product", "float32", "any", 64)
    write_page({task: study}, tmp_path / "searches.html", "A CPU")
    assert "<td>&lt;img&gt;</td><td>b</td>" in (tmp_path / "searches.html").read_text()


def test_figures_that_would_make_a_page_too_large_are_left_out(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = read_studies(str(journal))
    size = len(svg_of(next(iter(studies.values()))))
    monkeypatch.setattr("tri_apsp.tune.page._MOST_CHARACTERS", 3 * size // 2)
    write_page(studies, tmp_path / "searches.html", "A CPU")
    page = (tmp_path / "searches.html").read_text()
    assert page.count("<svg ") == page.count("Its figure would make this page too large.") == 1
