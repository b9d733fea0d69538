"""The report of sweeps: what is in its tables and on its page, from sweeps whose times are known."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tune.synthetic import FASTEST, SyntheticBench

from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.device import describe
from tri_apsp.report.__main__ import main
from tri_apsp.report.sweeps import best_so_far, geometric_mean, grid_of, read_sweeps, swept
from tri_apsp.tune import commands
from tri_apsp.tune.__main__ import main as tune
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tuned import cache, places, reload

SLUG = describe(torch.device("cpu")).slug
Tune = Callable[..., Path]


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Run a sweep on a machine where nothing was tuned, and return the folder of its rows."""
    monkeypatch.setattr(places, "_CHECKOUT", tmp_path / "none")
    monkeypatch.setattr("os.fsync", lambda _: None)

    def run(name: str, *words: object, bench: SyntheticBench | None = None) -> Path:
        made = bench or SyntheticBench()
        monkeypatch.setattr(commands, "Workers", lambda devices: made)
        for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "TRI_APSP_CONFIG_DIR"):
            monkeypatch.setenv(variable, str(tmp_path / name / variable))
        cache.MEMORY.clear()
        reload()
        tune(["--device", "cpu", "--report", str(tmp_path / name), *map(str, words)])
        cache.MEMORY.clear()
        reload()
        return tmp_path / name

    return run


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Path, str]]:
    """Render sweeps, and return the folder and the page."""

    def run(*sources: Path) -> tuple[Path, str]:
        capsys.readouterr()
        assert main(["tuning", "--from", *map(str, sources), "--out", str(tmp_path / "out"), "--commit", "abc"]) == 0
        folder = tmp_path / "out" / SLUG / "tuning"
        assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
        return folder, (folder / "README.md").read_text()

    return run


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def narrow(task: Any, config: Any) -> Kind | None:
    return Kind.timeout if config.product.block_m == 96 else None


class NearlyFlat(SyntheticBench):
    """Has a best configuration that is faster by too little."""

    def time_ms(self, task: Any, config: Any) -> float:
        return 1.0 if config.product == FASTEST else 1.015


def test_defaults_that_were_right_already(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    found = sweep("flat", "--kernel", "product", "--n", 512, 1024, 16384, "--trials", 300, bench=NearlyFlat())
    _, page = report(found)
    assert (
        "Over n = 512 to 8192 it is 1.00, which does not reach 1.1. For 2 of these 2 tasks nothing that was evaluated beat the "
        "default; where every candidate was evaluated, for 2, it had 99% of the best rate in the geometric mean, and 99% at "
        "least, all as first looked at. The worst"
    ) in " ".join(page.split())
    _, page = report(sweep("part", "--kernel", "product", "--n", 512, "--trials", 30, bench=NearlyFlat()))
    assert "For 1 of these 1 tasks nothing that was evaluated beat the default. The worst" in " ".join(page.split())


def test_a_whole_sweep(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    source = sweep("one", "--n", 512, 1024, "--trials", 300, bench=SyntheticBench(fails=narrow))
    folder, page = report(source)
    winners = rows(folder / "winners.csv")
    assert [(row["kernel"], row["n"]) for row in winners] == [(k, n) for k in ("product", "solve") for n in ("512", "1024")]
    assert json.loads(winners[0]["config"])["product"]["block_m"] == FASTEST.block_m
    mean = geometric_mean(float(row["speedup"]) for row in winners)
    assert f"\n4 tasks tuned: {mean:.2f} times as fast as the defaults" in page
    assert f"Over n = 512 to 8192 it is {mean:.2f}, which reaches 1.1." in " ".join(page.split())
    for n in (512, 1024):
        assert f"### n = {n}\n" in page
    tiles = f"block_m={FASTEST.block_m} block_n={FASTEST.block_n} block_k={FASTEST.block_k}"
    assert f"| cpu | product | float32 | nonnegative | 1 ms | 134 G/s | 1.92 ms | 1.92 | product {tiles} |" in page

    failed = [row for row in rows(source / "trials.csv") if row["kind"] == "timeout"]
    assert sum(int(row["count"]) for row in rows(folder / "failures.csv")) == len(failed) > 0
    assert "| cpu | product | timeout | " in page
    curves = [float(row["best_ms"]) for row in rows(folder / "curves.csv") if (row["kernel"], row["n"]) == ("product", "512")]
    assert curves == sorted(curves, reverse=True)
    assert curves[-1] == 1
    shares: dict[str, float] = {}
    for row in rows(folder / "importances.csv"):
        shares[row["kernel"] + row["n"]] = shares.get(row["kernel"] + row["n"], 0) + float(row["importance"])
        assert row["every_candidate"] == "True"
    assert shares == pytest.approx(dict.fromkeys(("product512", "product1024", "solve512", "solve1024"), 1), abs=1e-4)
    assert "biased" not in page
    assert "## Two sweeps" not in page
    assert not (folder / "agreement.csv").exists()
    for name in ("speed-up", "search", "importances", "grid-product", "grid-solve"):
        assert f"({name}.png)" in page
        assert (folder / f"{name}.png").stat().st_size > 1000
        assert 1000 < (folder / f"{name}.svg").stat().st_size < 200_000
    for part in ("* Commit: abc", "python -m tri_apsp.tune", "python -m tri_apsp.report tuning --from", torch.__version__):
        assert part in page


def test_two_sweeps_agree_or_not(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    few = ("--kernel", "product", "--n", 1024)
    first = sweep("one", *few, "--trials", 300)
    near = sweep(
        "two", *few, "--trials", 300, bench=SyntheticBench(fails=lambda _, c: Kind.timeout if c.product == FASTEST else None)
    )
    other = sweep("three", *few, "--trials", 25, "--seed", 3)
    folder, page = report(first, near)
    (pair,) = rows(folder / "agreement.csv")
    apart = float(pair["second_ms"]) / float(pair["first_ms"]) - 1
    assert apart > 0.02
    assert float(pair["difference"]) == pytest.approx(apart, rel=1e-4)
    assert pair["same"] == "False"
    text = " ".join(page.split())
    assert "within 2% of each other for 0 of 1 tasks" in text
    assert "For 0 of them both sweeps kept the default" in text
    assert f"| {apart:.1%} |" in page

    # The second is what counts; of another that was not a whole one, the sample is biased, and the grid is of the first.
    assert rows(folder / "winners.csv")[0]["p50_ms"] == pair["second_ms"]
    folder, page = report(first, first, other)
    assert "within 2% of each other for 1 of 1 tasks" in " ".join(page.split())
    assert "biased sample" in page
    assert (folder / "grid-product.png").exists()
    assert read_sweeps([first, other]).agreements == ()  # whose settings are not the same
    folder, page = report(other)
    assert "Not so for cpu product" in page
    assert not list(folder.glob("grid-*"))


def test_what_a_sweep_only_hands_on_is_no_second_one(sweep: Tune) -> None:
    few = ("--kernel", "product", "--n", 1024, "--trials", 30)
    first, again = sweep("one", *few), None
    before = {path.name: path.read_bytes() for path in first.iterdir() if path.is_file()}
    for name, content in before.items():
        (first / "kept").mkdir(exist_ok=True)
        (first / "kept" / name).write_bytes(content)
    again = sweep("one", *few, "--resume")
    found = read_sweeps([first / "kept", again])
    assert found.agreements == ()
    (result,) = found.results.values()
    assert not result.resumed
    assert result.seconds > 0


def test_sweeps_of_two_defaults_are_not_compared(sweep: Tune) -> None:
    few = ("--kernel", "product", "--n", 1024, "--trials", 30)
    first = sweep("one", *few)
    assert len(read_sweeps([first, first]).agreements) == 1
    trials = first / "trials.csv"
    header, default, *others = trials.read_text().splitlines()
    assert ",default," in default
    assert ",anchor," in "".join(others)
    later = first.parent / "later"
    shutil.copytree(first, later)
    swapped = [line.replace(",anchor,", ",default,", 1) for line in others]
    (later / "trials.csv").write_text("\n".join([header, default.replace(",default,", ",anchor,"), *swapped, ""]))
    found = read_sweeps([first, later])
    assert found.agreements == ()
    assert len(found.results) == 1


def test_a_task_that_failed_is_named(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    bench = SyntheticBench(fails=lambda task, _: Kind.runtime_error if task.n == 512 else None)
    _, page = report(sweep("one", "--kernel", "product", "--n", 512, 1024, "--trials", 9, bench=bench))
    assert "Not tuned: cpu product, float32 nonnegative, n = 512 (a task needs a configuration that works" in " ".join(
        page.split()
    )
    assert "\n1 tasks tuned" in page


def test_what_is_drawn(sweep: Tune) -> None:
    few = ("--kernel", "product", "--n", 1024)
    found = read_sweeps([sweep("one", *few, "--trials", 300, bench=SyntheticBench(fails=narrow))])
    (result,) = found.results.values()
    assert swept(result)
    grid = grid_of(result)
    assert grid is not None
    assert (grid.row_label, grid.column_label) == ("block_m", "block_n")
    assert grid.rows[:2] == ("96", "192")
    assert all(math.isnan(time) for time in grid.times[0])
    assert grid.times[grid.rows.index("384")][grid.columns.index("256")] == 1
    assert min(time for line in grid.times[1:] for time in line) == 1
    improvements = list(best_so_far(result))
    assert improvements[0][0] == 1
    assert improvements[-1][1] == 1
    assert not swept(next(iter(read_sweeps([sweep("two", *few, "--trials", 9)]).results.values())))


def test_other_folders_are_refused(sweep: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = sweep("one", "--kernel", "product", "--n", 256, "--trials", 3)
    bad = tmp_path / "bad"
    bad.mkdir()
    header = json.loads((good / "sweep.json").read_text())
    other = json.dumps(header | {"device": header["device"] | {"slug": "other"}})
    nothing = json.dumps(header | {"results": []})
    for content, said in (
        (None, "No such file"),
        ("{", "JSONDecodeError"),
        ("{}", "KeyError"),
        (other, "of one machine"),
        (nothing, "no task"),
    ):
        for name in ("trials.csv", "importances.csv"):
            (bad / name).write_bytes((good / name).read_bytes())
        if content is not None:
            (bad / "sweep.json").write_text(content)
        sources = [str(good), str(bad)] if content == other else [str(bad)]
        capsys.readouterr()
        assert main(["tuning", "--from", *sources, "--out", str(tmp_path / "out")]) == BAD_INPUT
        error = capsys.readouterr().err
        assert said in error
        assert error.startswith("error: --from must name")
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
    taken = tmp_path / "taken"
    taken.touch()
    assert main(["tuning", "--from", str(good), "--out", str(taken)]) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: --out must name a folder that can be made")


def test_measuring_is_a_share_of_what_all_workers_had(sweep: Tune) -> None:
    source = sweep("one", "--kernel", "product", "--n", 512, "--trials", 9)
    (alone,) = read_sweeps([source]).measuring.values()
    header = json.loads((source / "sweep.json").read_text())
    (source / "sweep.json").write_text(json.dumps(header | {"workers": 4}))
    (shared,) = read_sweeps([source]).measuring.values()
    assert shared == alone / 4 > 0
