"""The replay of searches on a sweep whose times are known."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tune.synthetic import DEFAULT, OPTIMUM, cost, everything

from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.report.__main__ import main
from tri_apsp.report.sampler import BUDGETS, read_sweep
from tri_apsp.tune.sweep.rows import write_csv

TASK = {"engine": "nvidia", "kernel": "product", "dtype": "float32", "sign": "nonnegative", "n": 4096, "batch": 1}
HEADER = {
    "device": {"slug": "some-gpu", "name": "Some GPU"},
    "created": "2026-01-02",
    "versions": {"torch": "9.9", "cuda": None},
    "command": "python -m tri_apsp.tune --sampler grid",
}


def row(values: dict[str, Any], **changed: Any) -> dict[str, Any]:
    origin = "default" if values == DEFAULT else "sweep"
    return {**TASK, "origin": origin, "kind": "correct", "p50_ms": cost(values), **values, **changed}


@pytest.fixture
def trials(tmp_path: Path) -> Path:
    """An exhaustive sweep, in which some failed."""
    rows = [row(values) for values in everything()]
    rows[5] |= {"kind": "compile error", "p50_ms": "", "message": "planted"}
    write_csv(tmp_path / "trials.csv", rows)
    (tmp_path / "sweep.json").write_text(json.dumps(HEADER))
    return tmp_path / "trials.csv"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_report_and_what_its_summary_gives_again(
    trials: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("multiprocessing.get_context", lambda _: Here())
    folder = tmp_path / "out" / "some-gpu"
    assert main(["sampler", "--from", str(trials), "--out", str(tmp_path / "out"), "--seeds", "2", "--commit", "abc"]) == 0
    assert capsys.readouterr().out == f"{folder / 'sampler.md'}\n"
    rows = read(folder / "sampler.csv")
    assert len(rows) == len(BUDGETS) * (2 + 2 + 1)
    found = {(r["sampler"], int(r["seed"]), int(r["evaluations"])): float(r["fraction"]) for r in rows}
    assert all(0 < fraction <= 1 for fraction in found.values())
    for seed in (0, 1):
        assert [found["random", seed, n] for n in BUDGETS] == sorted(found["random", seed, n] for n in BUDGETS)
        assert found["tpe", seed, 100] > found["random", seed, 25]
    page = (folder / "sampler.md").read_text()
    for part in ("Some GPU", "torch 9.9", "abc", "2026-01-02", "tune --sampler grid", f"of {len(everything())} configurations"):
        assert part in page
    mean = (found["tpe", 0, 100] + found["tpe", 1, 100]) / 2
    assert f"reaches {mean:.1%} of the best" in page
    assert (folder / "sampler.svg").stat().st_size < 200_000

    # The summary that is kept tells the same, but for digits.
    again = tmp_path / "again" / "some-gpu"
    source = folder / "sampler-sweep.csv"
    assert len(read(source)) == len(everything())
    assert main(["sampler", "--from", str(source), "--out", str(tmp_path / "again"), "--seeds", "2"]) == 0
    assert (again / "sampler-sweep.csv").read_bytes() == source.read_bytes()
    assert read(again / "sampler.csv") == rows


class Here:
    """Processes are replaced by a loop, for starting them takes longer than what they do here."""

    def Pool(self, *args: Any, **named: Any) -> Here:
        return self

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def starmap(self, call: Any, jobs: Any, chunksize: int) -> list[Any]:
        return [call(*job) for job in jobs]


def test_a_sweep_is_in_the_order_of_its_space(trials: Path) -> None:
    sweep = read_sweep(trials)
    assert [trial.values for trial in sweep.trials] == sorted(
        everything(), key=lambda values: [p.choices.index(values[p.name]) for p in sweep.space.parameters]
    )
    assert sweep.default == DEFAULT
    assert sweep.best_ms == 1.0
    assert sweep.outcomes[sweep.key(OPTIMUM)].p50_ms == 1.0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(DEFAULT)], "has 1 trials of 1 tasks"),
        ([row(values, origin="sweep") for values in everything()], "its default"),
        ([row(DEFAULT, n=n % 2 + 1) for n in range(300)], "of 2 tasks"),
        ([{"engine": "cpu"}], "KeyError"),
        ([], "has 0 trials of 0 tasks"),
    ],
)
def test_other_files_are_refused(
    rows: list[dict[str, Any]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(tmp_path / "trials.csv", rows)
    assert main(["sampler", "--from", str(tmp_path / "trials.csv"), "--out", str(tmp_path)]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error
    assert re.fullmatch(r"error: --from must .*; .*\.\n", error)


def test_without_what_says_where_it_is_from(trials: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials.with_name("sweep.json").unlink()
    assert main(["sampler", "--from", str(trials), "--out", str(tmp_path)]) == BAD_INPUT
    assert "sweep.json is missing or damaged" in capsys.readouterr().err
    assert main(["sampler", "--from", str(tmp_path / "none.csv"), "--out", str(tmp_path)]) == BAD_INPUT
