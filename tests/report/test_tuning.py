"""The report of sweeps: what is in its tables and on its page, from sweeps whose times are known."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
import torch
from tri_apsp.tune.measure.outcome import Kind
from tune.synthetic import FASTEST, SyntheticPool

from tri_apsp.console.exit_status import BAD_INPUT
from tri_apsp.device import describe
from tri_apsp.report.__main__ import main
from tri_apsp.report.sweeps import (
    axes_of,
    best_ms,
    best_of_blocks,
    default_ms,
    is_exhaustive,
    read_sweeps,
)
from tri_apsp.tune import commands
from tri_apsp.tune.__main__ import main as tune
from tri_apsp.tuned import paths, reading, reload

SLUG = describe(torch.device("cpu")).slug
Tune = Callable[..., Path]


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Run a sweep on a machine where nothing was tuned, and return the folder of its rows."""
    monkeypatch.setattr(paths, "_CHECKOUT", tmp_path / "none")
    monkeypatch.setattr("os.fsync", lambda _: None)

    def run(name: str, *words: object, bench: SyntheticPool | None = None) -> Path:
        made = bench or SyntheticPool()
        monkeypatch.setattr(commands, "Workers", lambda devices: made)
        for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "TRI_APSP_CONFIG_DIR"):
            monkeypatch.setenv(variable, str(tmp_path / name / variable))
        reading.MEMORY.clear()
        reload()
        tune(["--device", "cpu", "--report", str(tmp_path / name), *map(str, words)])
        reading.MEMORY.clear()
        reload()
        return tmp_path / name

    return run


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Path, str]]:
    """Render sweeps, and return the folder and the page."""

    def run(*sources: Path) -> tuple[Path, str]:
        capsys.readouterr()
        assert (
            main(
                [
                    "tuning",
                    "--from",
                    *map(str, sources),
                    "--out",
                    str(tmp_path / "out"),
                    "--commit",
                    "abc",
                ]
            )
            == 0
        )
        folder = tmp_path / "out" / SLUG / "tuning"
        assert capsys.readouterr().out == f"{folder / 'README.md'}\n"
        return folder, (folder / "README.md").read_text()

    return run


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def narrow(task: Any, config: Any) -> Kind | None:
    return Kind.timeout if config.product.block_m == 96 else None


class NearlyFlat(SyntheticPool):
    """Has a best configuration that is faster by too little."""

    def time_ms(self, task: Any, config: Any) -> float:
        return 1.0 if config.product == FASTEST else 1.015


def test_a_page_on_defaults_that_stay(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    found = sweep(
        "flat", "--kernel", "product", "--n", 512, 1024, "--trials", 300, bench=NearlyFlat()
    )
    _, page = report(found)
    assert (
        "1.00 times as fast as the defaults in the geometric mean of 2 tasks; for 2 of them the default stays"
        in " ".join(page.split())
    )
    assert "| cpu | product | 1.00 | 1.00 | 2 of 2 | 99% (99% at least) in 2 |" in page
    part = sweep("part", "--kernel", "product", "--n", 512, "--trials", 30, bench=NearlyFlat())
    shutil.rmtree(found.parent / "out")
    _, page = report(part)
    assert (
        "| cpu | product | 1.00 | 1.00 | 1 of 1 |  |" in page
    )  # nothing is known of what was not evaluated


def test_a_page_on_an_exhaustive_sweep(
    sweep: Tune, report: Callable[..., tuple[Path, str]]
) -> None:
    source = sweep("one", "--n", 512, 1024, "--trials", 300, bench=SyntheticPool(fails=narrow))
    folder, page = report(source)
    winners = rows(folder / "winners.csv")
    assert [(row["kernel"], row["n"]) for row in winners] == [
        (k, n) for k in ("product", "solve") for n in ("512", "1024")
    ]
    assert json.loads(winners[0]["config"])["product"]["block_m"] == FASTEST.block_m
    mean = geometric_mean(float(row["speedup"]) for row in winners)
    heading, _, sentence, *_ = page.split("\n\n")
    assert heading.startswith("# What does tuning gain? ")
    assert f"{mean:.2f} times as fast as the defaults in the geometric mean of 4 tasks" in " ".join(
        sentence.split()
    )
    for n in (512, 1024):
        assert f"### n = {n}\n" in page
    tiles = f"product.block_m={FASTEST.block_m} product.block_n={FASTEST.block_n} product.block_k={FASTEST.block_k}"
    assert (
        f"| cpu | product | float32 | nonnegative | 1 ms | 134 G/s | 1.92 ms | 1.92 | {tiles} |"
        in page
    )

    failed = [row["kernel"] for row in rows(source / "trials.csv") if row["kind"] == "timeout"]
    assert "product" in failed
    for kernel in dict.fromkeys(failed):
        assert re.search(
            rf"\| cpu \| {kernel} \| timeout \| {failed.count(kernel)} of \d+ \|", page
        )
    assert "For 4 of 4 tasks every candidate was evaluated." in " ".join(page.split())
    assert "biased" not in page
    drawn = (
        "speed-up",
        "search",
        "importances-product",
        "importances-solve",
        "grid-product",
        "grid-solve",
    )
    assert {path.stem for path in folder.glob("*.svg")} == set(drawn)
    for name in drawn:
        assert f"]({name}.svg)" in page
        assert 1000 < (folder / f"{name}.svg").stat().st_size < 200_000
    for part in (
        "* Commit: abc",
        "python -m tri_apsp.tune",
        "python -m tri_apsp.report tuning --from",
        torch.__version__,
    ):
        assert part in page


def test_of_several_sweeps_the_last_counts(
    sweep: Tune, report: Callable[..., tuple[Path, str]]
) -> None:
    few = ("--kernel", "product", "--n", 1024)
    first = sweep("one", *few, "--trials", 300)
    slower = SyntheticPool(
        fails=lambda _, config: Kind.timeout if config.product == FASTEST else None
    )
    second = sweep("two", *few, "--trials", 25, "--seed", 3, bench=slower)
    best, later = (
        json.loads((source / "sweep.json").read_text())["results"][0]["p50_ms"]
        for source in (first, second)
    )
    assert best < later
    folder, page = report(first, second)
    assert float(rows(folder / "winners.csv")[0]["p50_ms"]) == later
    # The second was not a whole one: the sample is biased, and the grid is of the first.
    assert "biased sample" in " ".join(page.split())
    assert (folder / "grid-product.svg").exists()
    folder, page = report(second)
    assert "No such task: cpu product" in " ".join(page.split())
    assert not list(folder.glob("grid-*"))


def test_a_sweep_that_took_a_task_over_does_not_replace_it(sweep: Tune) -> None:
    few = ("--kernel", "product", "--n", 1024, "--trials", 30)
    first = sweep("one", *few)
    kept = first.parent / "kept"
    kept.mkdir()
    for path in first.glob("*.*"):
        shutil.copy(path, kept)
    again = sweep("one", *few, "--resume")
    (tuned,) = read_sweeps([kept, again]).results.values()
    assert not tuned.result.resumed
    assert tuned.result.seconds > 0


def test_a_task_that_failed_is_named(sweep: Tune, report: Callable[..., tuple[Path, str]]) -> None:
    bench = SyntheticPool(fails=lambda task, _: Kind.runtime_error if task.n == 512 else None)
    _, page = report(
        sweep("one", "--kernel", "product", "--n", 512, 1024, "--trials", 9, bench=bench)
    )
    assert (
        "Not tuned: cpu product, float32 nonnegative, n = 512 (a task needs a configuration that works"
        in " ".join(page.split())
    )
    assert "in the geometric mean of 1 task; for" in " ".join(page.split())


def test_an_interrupted_task_has_no_conclusion(
    sweep: Tune, report: Callable[..., tuple[Path, str]]
) -> None:
    source = sweep("one", "--kernel", "product", "--n", 512, 1024, "--trials", 30)
    path = source / "sweep.json"
    content = json.loads(path.read_text())
    content["interrupted"] = True
    content["results"][1]["complete"] = False
    path.write_text(json.dumps(content))
    folder, page = report(source)
    text = " ".join(page.split())
    missing = "1 of 2 tasks interrupted, not counted here"
    continued = "The command of the sweep with `--resume` continues."
    assert f"Incomplete: {missing}. {continued} Tuned configurations are " in text
    assert "in the geometric mean of 1 task; for" in text
    assert re.search(r"^\| cpu \| product \|.* of 1 \|", page, re.MULTILINE)
    assert "Points of interrupted tasks are missing." in text
    assert "interrupted: the best of what was evaluated" in text

    content["results"][0]["complete"] = False
    path.write_text(json.dumps(content))
    shutil.rmtree(folder)
    folder, page = report(source)
    assert "No task was tuned to its end, so there is no result yet." in " ".join(page.split())
    assert "times as fast as the defaults" not in page
    assert "(speed-up.svg)" not in page
    assert not (folder / "speed-up.svg").exists()


def test_the_best_of_each_cell(sweep: Tune) -> None:
    few = ("--kernel", "product", "--n", 1024)
    found = read_sweeps([sweep("one", *few, "--trials", 300, bench=SyntheticPool(fails=narrow))])
    (tuned,) = found.results.values()
    result = tuned.result
    assert is_exhaustive(result)
    assert axes_of(result) == (("product.block_m",), "product.block_n")
    times = best_of_blocks(result)
    assert list(dict.fromkeys(block for block, _ in times))[:2] == [(96,), (192,)]
    assert all(math.isinf(time) for (block, _), time in times.items() if block == (96,))
    assert times[(384,), 256] == 1 == min(times.values())
    assert result.search.evaluated[0].origin == "default"
    assert best_ms(result, 1) == default_ms(result) > best_ms(result) == 1
    (tuned,) = read_sweeps([sweep("two", *few, "--trials", 9)]).results.values()
    assert not is_exhaustive(tuned.result)


def test_other_folders_are_refused(
    sweep: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = sweep("one", "--kernel", "product", "--n", 256, "--trials", 3)
    bad = tmp_path / "bad"
    bad.mkdir()
    header = json.loads((good / "sweep.json").read_text())
    other = json.dumps(header | {"device": header["device"] | {"slug": "other"}})
    nothing = json.dumps(header | {"results": []})
    for content, message in (
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
        assert message in error
        assert error.startswith("error: --from must name")
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
    taken = tmp_path / "taken"
    taken.touch()
    assert main(["tuning", "--from", str(good), "--out", str(taken)]) == BAD_INPUT
    assert capsys.readouterr().err.startswith("error: --out must name a folder that can be written")


def test_more_columns_and_a_separate_product_are_read(sweep: Tune, tmp_path: Path) -> None:
    """As files of earlier versions have them."""
    good, old = sweep("good", "--kernel", "solve", "--n", 512, "--trials", 4), tmp_path / "old"
    shutil.copytree(good, old)
    header, *lines = (good / "trials.csv").read_text().splitlines()
    (old / "trials.csv").write_text(
        "".join(f"{line}\n" for line in (f"{header},seconds", *(f"{line},1.5" for line in lines)))
    )
    content = json.loads((good / "sweep.json").read_text())
    product = {"product": {"block_m": 96, "block_n": 128, "block_k": 64}}
    content["results"][0] |= {"product": product}
    (old / "sweep.json").write_text(json.dumps(content))
    expected, found = (next(iter(read_sweeps([folder]).results.values())) for folder in (good, old))
    assert found.result.search == expected.result.search
    assert found.winner.config == expected.winner.config | product
