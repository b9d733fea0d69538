"""The four studies, on planted times: their grids, and pages whose statements follow from the rows."""

from __future__ import annotations

import itertools
import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from report.planted import ENVIRONMENT, Planted, place

from tri_apsp.report import pages, plots
from tri_apsp.report.__main__ import main
from tri_apsp.report.papers import LUND_SMITH_SECONDS, nearest_lund_smith
from tri_apsp.report.study import measure
from tri_apsp.tune.measure.outcome import Kind

NAMES = ("block-size", "threads", "cutoff", "stages")
ENGINES = ("cpu", "nvidia", "portable")
SMALL = {"cpu": [256], "nvidia": [1024], "portable": [512]}


def study(name: str) -> pages.Study:
    found = import_module(f"tri_apsp.report.{name.replace('-', '_')}").STUDY
    assert isinstance(found, pages.Study)
    return found


def written(folder: Path, name: str, engine: str, provider: Planted, ns: list[int] | None = None, seconds: float = 100) -> str:
    """Return the page of a study that was measured with `provider`."""
    if engine != "cpu":
        pytest.importorskip("triton")
    here, one = place(engine, seconds), study(name)
    grids = one.grids(here, ns or SMALL[engine], [])
    found = measure(grids, folder / f"{name}.csv", one.parameters, here, lambda: provider, ENVIRONMENT)
    return pages.write(one, here, found, folder, name).read_text()


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr(plots, "save", lambda made, path: [])


@pytest.mark.parametrize(("name", "engine"), list(itertools.product(NAMES, ENGINES)))
def test_every_study_has_its_page(name, engine, tmp_path, no_plots):
    counter = itertools.count(1)
    page = written(tmp_path, name, engine, Planted(lambda task, point: 1 + 0.1 * (next(counter) % 7)))
    for heading in ("What the papers found", "What holds here", "Why they differ", "Failures", "Measured with"):
        assert f"\n## {heading}\n" in page
    assert "None: every configuration" in page
    assert ENVIRONMENT["command"] in page
    assert "nan" not in page
    assert not re.search(r"\{|\}|None\b(?!:)", page)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_the_sizes_of_the_issue(name, engine):
    if engine != "cpu":
        pytest.importorskip("triton")
    grids = study(name).grids(place(engine), [], [])
    assert all(grid.points and grid.curves for grid in grids)
    sizes = {(grid.task.kernel, grid.task.n) for grid in grids}
    if engine == "nvidia":
        assert (
            sizes
            >= {
                "block-size": {("product", 4096), ("product", 1024), ("closure", 256), ("closure", 1024)},
                "threads": {("product", 4096), ("product", 1024), ("closure", 256), ("closure", 1024), ("batch", 128)},
                "cutoff": {("solve", 256), ("solve", 1024), ("solve", 8192)},
                "stages": {("product", 4096), ("product", 1024)},
            }[name]
        )
    assert all(set(point.values) <= set(study(name).parameters) for grid in grids for point in grid.points)


def test_every_beta_is_tried():
    pytest.importorskip("triton")
    for n, most in ((256, 256), (1024, 1024), (8192, 2048)):
        (grid,) = study("cutoff").grids(place("nvidia"), [n], [])
        betas = sorted(int(point.values["cutoff"]) for point in grid.points)
        assert betas == [16 << power for power in range(8) if 16 << power <= most]
        assert {point.config.method for point in grid.points} == {"kleene"}
        assert all(point.config.block_size == point.values["cutoff"] for point in grid.points)


def test_a_page_says_which_is_fastest_and_what_is_alike(tmp_path, no_plots):
    times = {16: 4.0, 32: 2.0, 64: 1.0, 128: 1.01, 256: 3.0, 512: 5.0, 1024: 8.0}
    page = written(tmp_path, "cutoff", "nvidia", Planted(lambda task, point: times[int(point.values["cutoff"])]))
    text = " ".join(page.split())
    assert (
        "By β, the fastest is 64, with 1.07 T/s (128 cannot be told from it). At 16, Henriod's best, the rate is 25% of that."
        in text
    )
    assert "β = 16 makes 64 base cases and 63 divisions of six products each, β = 64 16 and 15: that saves 62.5 us" in text
    assert "β = 1024, the base case has 100% of the operations" in text
    assert "takes 8.00 times as long as at β = 64" in text
    assert text.startswith("<!-- Generated")
    assert "The fastest recursion cutoff β here is 64 at n = 1024" in text


def test_statements_turn_with_the_rows(tmp_path, no_plots):
    page = written(tmp_path, "cutoff", "nvidia", Planted(lambda task, point: float(point.values["cutoff"])))
    text = " ".join(page.split())
    assert "By β, the fastest is 16" in text
    assert "16, Henriod's best, is that one." in text
    assert "the smallest β of all, 16, is as fast as any" in text
    assert "that saves" not in text
    page = written(tmp_path / "flat", "stages", "cpu", Planted())
    assert "none can be told from another" in " ".join(page.split())


def test_failures_and_what_was_left_out_are_named(tmp_path, no_plots):
    bad = Planted(fails=lambda task, point: Kind.wrong_result if point.values.get("closure_warps") == 8 else None)
    page = written(tmp_path, "threads", "nvidia", bad)
    assert "| wrong result | planted wrong result |" in page
    text = " ".join(page.split())
    assert "closure_warps must be at most 16, but is 32; lower it." in text
    assert re.search(r"Repeat another, or by formula .*: \d+ of all combinations", text)
    clock = itertools.count()
    slow = Planted(before=lambda: time.sleep(0.1 if next(clock) else 0))
    page = written(tmp_path / "short", "stages", "cpu", slow, seconds=0.3)
    assert re.search(r"\d+ of \d+ configurations, for which the budget left no time", " ".join(page.split()))


def test_a_study_of_which_nothing_is_known_still_has_a_page(tmp_path, no_plots):
    page = written(tmp_path, "cutoff", "cpu", Planted(fails=lambda task, point: Kind.timeout))
    assert "Nothing was measured yet." in page
    assert "| timeout | planted timeout |" in page


def test_the_points_of_the_papers_stand_beside_ours(monkeypatch, tmp_path):
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "lines", lambda axes, curves, **rest: drawn.append(curves))
    monkeypatch.setattr(plots, "save", lambda made, path: [])
    written(tmp_path, "stages", "nvidia", Planted(), [4096])
    theirs = [curve for curve in drawn[0] if curve.paper]
    assert [(curve.x, curve.y) for curve in theirs] == [([4, 32], [1.0, pytest.approx(0.934 / 2.06)])]
    ours = [curve for curve in drawn[0] if not curve.paper]
    assert all(max(curve.y) == 1.0 for curve in ours)


def test_the_table_of_lund_and_smith():
    assert nearest_lund_smith(5000) == (4096, pytest.approx(0.4534, rel=1e-3))
    assert nearest_lund_smith(100)[0] == 1024
    assert all(katz > optimised > staged for katz, optimised, staged in LUND_SMITH_SECONDS.values())


def test_plots_are_written_and_small(tmp_path):
    page = written(tmp_path, "block-size", "cpu", Planted())
    plotted = re.findall(r"!\[.*?\]\((.*?\.png)\)", page)
    assert len(plotted) == 2
    for name in plotted:
        assert (tmp_path / name).stat().st_size < 200_000
        assert (tmp_path / name).with_suffix(".svg").stat().st_size < 200_000


def test_the_command_line_end_to_end(tmp_path, monkeypatch, capsys):
    provider = Planted()
    monkeypatch.setattr(pages, "Machine", lambda device: provider)
    words = ["stages", "--device", "cpu", "--n", "64", "--dtype", "int32", "--budget", "20", "--commit", "c0ffee"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert {path.name for path in folder.iterdir()} == {"stages.csv", "stages.md", "stages-1.png", "stages-1.svg"}
    said = capsys.readouterr()
    assert said.out == f"{folder / 'stages.md'}\n"
    assert "configurations, best 1 ms" in said.err
    page = (folder / "stages.md").read_text()
    assert "--device cpu --n 64 --dtype int32 --budget 20\n" in page
    assert "c0ffee" in page
    assert "stages.md" in (tmp_path / "README.md").read_text()
    assert {task.dtype for task, _ in provider.screened} == {"int32"}
