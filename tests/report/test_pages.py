"""The studies, on fake times: their grids, and what their pages show."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from report.fake import ENVIRONMENT, FakeMeasurer, target
from tri_apsp.tune.measure.outcome import Kind

from tri_apsp.report import plots, study
from tri_apsp.report.__main__ import main
from tri_apsp.report.measuring import measure
from tri_apsp.report.page import write_study
from tri_apsp.report.papers import LUND_SMITH_SECONDS, lund_smith_curve
from tri_apsp.report.rows import StudyRows
from tri_apsp.report.studies import STUDIES, study_of

ENGINES = ("cpu", "nvidia", "portable")
SMALL = {"cpu": [256], "nvidia": [1024], "portable": [512]}


OF_KERNELS = [name for name in STUDIES if study_of(name).page is None]
"""The studies whose pages are the same but for their grids."""


def written(
    folder: Path,
    name: str,
    engine: str,
    measurer: FakeMeasurer,
    ns: list[int] | None = None,
    seconds: float = 100,
) -> str:
    """Return the page of a study that was measured with `measurer`."""
    if engine != "cpu":
        pytest.importorskip("triton")
    here, one = target(engine), study_of(name)
    grids = one.grids(here, ns or SMALL[engine], [])
    rows = StudyRows(folder / f"{name}.csv", one.parameters, ENVIRONMENT)
    results = measure(grids, rows, here.torch_device, seconds, lambda device: measurer)
    return write_study(one, here, results, folder, name).read_text()


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr(plots, "save", lambda made, path: path)


@pytest.mark.parametrize(("name", "engine"), list(itertools.product(OF_KERNELS, ENGINES)))
def test_every_study_has_its_page(name, engine, tmp_path, no_plots):
    counter = itertools.count(1)
    page = written(
        tmp_path, name, engine, FakeMeasurer(lambda task, point: 1 + 0.1 * (next(counter) % 7))
    )
    assert study_of(name).name == name
    assert page.startswith(f"# {study_of(name).question} ")
    for heading in ("All measurements", "Failures", "Measured with"):
        assert f"\n## {heading}\n" in page
    assert "None: the results of every configuration" in page
    assert ENVIRONMENT["command"] in page
    assert "nan" not in page
    assert not re.search(r"\{|\}|None\b(?!:)", page)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OF_KERNELS)
def test_sizes_and_names_of_grids(name, engine):
    if engine != "cpu":
        pytest.importorskip("triton")
    grids = study_of(name).grids(target(engine), [], [])
    assert all(
        grid.points and grid.panels and all(panel.curves for panel in grid.panels) for grid in grids
    )
    sizes = {(grid.task.kernel, grid.task.n) for grid in grids}
    if engine == "nvidia":
        assert (
            sizes
            >= {
                "block-size": {
                    ("product", 4096),
                    ("product", 1024),
                    ("closure", 256),
                    ("closure", 1024),
                },
                "threads": {
                    ("product", 4096),
                    ("product", 1024),
                    ("closure", 256),
                    ("closure", 1024),
                    ("batch", 128),
                },
                "cutoff": {("solve", 256), ("solve", 1024), ("solve", 8192)},
                "stages": {("product", 4096), ("product", 1024)},
            }[name]
        )
    assert all(
        set(point.values) <= set(study_of(name).parameters)
        for grid in grids
        for point in grid.points
    )
    # A plot shows one quantity on each axis, and has a file of its own.
    assert all(len({panel.x_label for panel in grid.panels}) == len(grid.panels) for grid in grids)
    names = [(grid.name, grid.task.dtype, grid.task.n) for grid in grids]
    assert len(set(names)) == len(names)


def test_other_sizes_and_dtypes_are_those_of_float32():
    def cases(name: str, *given: list[Any]) -> list[tuple[str, str, int]]:
        grids = study_of(name).grids(target("cpu"), *given)
        return [(grid.task.dtype, grid.task.kernel, grid.task.n) for grid in grids]

    assert cases("block-size", [], [])[-1] == ("float64", "product", 1024)
    assert cases("block-size", [256, 512], []) == [
        ("float32", kernel, n) for kernel in ("solve", "product") for n in (256, 512)
    ]
    assert cases("threads", [], ["int16"]) == [
        ("int16", *case[1:]) for case in cases("threads", [], [])
    ]


def test_every_beta_is_tried():
    pytest.importorskip("triton")
    for n, most in ((256, 256), (1024, 1024), (8192, 2048)):
        (grid,) = study_of("cutoff").grids(target("nvidia"), [n], [])
        betas = sorted(int(point.values["cutoff"]) for point in grid.points)
        assert betas == [16 << power for power in range(8) if 16 << power <= most]
        assert {point.config.method for point in grid.points} == {"kleene"}
        assert all(point.config.block_size == point.values["cutoff"] for point in grid.points)


def test_a_page_opens_with_the_result(tmp_path, no_plots):
    times = {16: 4.0, 32: 2.0, 64: 1.0, 128: 1.015, 256: 3.0, 512: 5.0, 1024: 8.0}
    page = written(
        tmp_path,
        "cutoff",
        "nvidia",
        FakeMeasurer(lambda task, point: times[int(point.values["cutoff"])]),
    )
    title, _, sentence, figure, *_ = page.split("\n\n")
    assert title == "# Where should the recursion stop? NVIDIA H200"
    assert " ".join(sentence.split()) == (
        "Then, β = 16 was best (Henriod); now, the recursion cutoff (float32, n = 1024) is fastest with β = 64 or 128, equal "
        "within the noise: 1.07 T operations/s, because one closure is spread over many programs, and a shorter recursion has "
        "fewer launches; the papers' value 16 reaches 25% of that."
    )
    assert figure.endswith("](cutoff-solve-float32-n1024.svg)")
    assert "| Recursion cutoff, float32, n = 1024 | β | 64, 128 | 1.07 T | 25% (16) |" in page
    shares = {
        row[1]: row[6]
        for line in page.splitlines()
        if len(row := [*map(str.strip, line.split("|"))]) == 9
    }
    assert {x: shares[x] for x in ("16", "64", "128", "256")} == {
        "16": "25%",
        "64": "100% ≈",
        "128": "99% ≈",
        "256": "33%",
    }


def test_a_result_turns_with_the_rows(tmp_path, no_plots):
    page = written(
        tmp_path,
        "cutoff",
        "nvidia",
        FakeMeasurer(lambda task, point: float(point.values["cutoff"])),
    )
    text = " ".join(page.split())
    assert "is fastest with β = 16: " in text
    assert "operations/s; the papers' value 16 reaches 100% of that. ![" in text, (
        "nothing to explain"
    )
    page = written(tmp_path / "flat", "stages", "cpu", FakeMeasurer())
    (row,) = [
        line
        for line in page.splitlines()
        if line.startswith("| Product, float32, n = 256 | slice of k |")
    ]
    assert set(row.split("|")[3].replace(" ", "").split(",")) == {"16", "32", "64", "128", "256"}


def test_text_by_hand_stays_when_a_study_runs_again(tmp_path, no_plots):
    written(tmp_path, "cutoff", "cpu", FakeMeasurer())
    path = tmp_path / "cutoff.md"
    before = path.read_text()
    path.write_text(
        before.replace("<!-- end result -->", "<!-- end result -->\n\n## Why\n\nBy hand.")
    )
    again = written(tmp_path, "cutoff", "cpu", FakeMeasurer(), [256, 512])
    assert "## Why\n\nBy hand.\n" in again
    assert "n = 512" in again
    assert "n = 512" not in before


def test_failures_and_omissions_are_named(tmp_path, no_plots):
    bad = FakeMeasurer(
        fails=lambda task, point: (
            Kind.wrong_result if point.values.get("closure_warps") == 8 else None
        )
    )
    page = written(tmp_path, "threads", "nvidia", bad)
    assert "| wrong result | fake wrong result |" in page
    text = " ".join(page.split())
    assert re.search(r"\d+ combinations cannot run, or repeat another one, or by formula ", text)


def test_a_study_of_which_nothing_is_known_still_has_a_page(tmp_path, no_plots):
    page = written(tmp_path, "cutoff", "cpu", FakeMeasurer(fails=lambda task, point: Kind.timeout))
    assert "No configuration that was tried could be timed." in page
    assert "Nothing was measured yet." in written(
        tmp_path / "none", "cutoff", "cpu", FakeMeasurer(), seconds=-1
    )
    assert "| timeout | fake timeout |" in page


def test_the_points_of_the_papers_stand_beside_the_measured_ones(monkeypatch, tmp_path):
    drawn: list[Any] = []
    draw = plots.line_plots

    def record(title: str, panels: list[plots.Plot], **rest: Any) -> Any:
        made, axes = draw(title, panels, **rest)
        drawn.append((panels, axes[0].get_ylim()))
        return made, axes

    monkeypatch.setattr(plots, "line_plots", record)
    monkeypatch.setattr(plots, "save", lambda made, path: path)
    written(tmp_path, "stages", "nvidia", FakeMeasurer(), [4096])
    ((_, (_, curves, _)), (low, high)), *_ = drawn
    papers = [curve for curve in curves if curve.paper]
    assert [(curve.x, curve.y) for curve in papers] == [
        ([4, 32], [1.0, pytest.approx(0.934 / 2.06)])
    ]
    measured = [curve for curve in curves if not curve.paper]
    assert all(max(curve.y) == 1.0 for curve in measured)
    assert low < 0.934 / 2.06 < 1.0 < high


def test_the_table_of_lund_and_smith():
    curve = lund_smith_curve(5000, 64, 256)
    assert curve.label.endswith("n = 4096")
    assert curve.rates == {64: 1.0, 256: pytest.approx(0.4534, rel=1e-3)}
    assert lund_smith_curve(100, 64, 256).label.endswith("n = 1024")
    katz, optimised, staged = (
        LUND_SMITH_SECONDS[name] for name in ("katz_kider", "optimised_blocked", "staged_load")
    )
    assert all(katz[n] > optimised[n] > staged[n] for n in katz)


def test_a_page_links_to_what_the_papers_found(tmp_path, no_plots):
    """To the page beside its folder, else to that of the project."""
    anchor = "papers.md#where-should-the-recursion-stop)."
    page = written(tmp_path / "first", "cutoff", "cpu", FakeMeasurer())
    assert f"](https://github.com/tri-apsp/tri_apsp/blob/main/reports/{anchor}" in page
    (tmp_path / "papers.md").touch()
    assert f"](../{anchor}" in written(tmp_path / "second", "cutoff", "cpu", FakeMeasurer())


def test_plots_are_written_and_small(tmp_path):
    page = written(tmp_path, "block-size", "cpu", FakeMeasurer())
    plotted = re.findall(r"!\[.*?\]\((.*?\.svg)\)", page)
    assert plotted == [
        "block-size-floyd-warshall-float32-n256.svg",
        "block-size-product-float32-n256.svg",
    ]
    assert all((tmp_path / name).stat().st_size < 200_000 for name in plotted)


def test_the_command_line_end_to_end(tmp_path, monkeypatch, capsys):
    measurer = FakeMeasurer()
    monkeypatch.setattr(study, "WorkerMeasurer", lambda device: measurer)
    words = [
        "stages",
        "--device",
        "cpu",
        "--n",
        "64",
        "--dtype",
        "int32",
        "--budget",
        "20",
        "--commit",
        "c0ffee",
    ]
    assert main([*words, "--out", str(tmp_path)]) == 0
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    plot = "stages-product-int32-n64.svg"
    assert {path.name for path in folder.iterdir()} == {
        "stages.csv",
        "stages.md",
        "device.json",
        plot,
    }
    output = capsys.readouterr()
    assert output.out == f"{folder / 'stages.md'}\n"
    assert "configurations, best 1 ms" in output.err
    page = (folder / "stages.md").read_text()
    assert "--device cpu --n 64 --dtype int32 --budget 20\n" in page
    assert "c0ffee" in page
    assert "stages.md" in (tmp_path / "README.md").read_text()
    assert {task.dtype for task, _ in measurer.screened} == {"int32"}

    # The rows alone give the same page; nothing is measured.
    monkeypatch.setattr(study, "WorkerMeasurer", lambda device: pytest.fail("nothing is measured"))
    (folder / plot).unlink()
    render = [
        "stages",
        "--render-only",
        folder.name,
        "--n",
        "64",
        "--dtype",
        "int32",
        "--out",
        str(tmp_path),
    ]
    assert main(render) == 0
    assert (folder / "stages.md").read_text() == page
    assert (folder / plot).is_file()
    facts = json.loads((folder / "device.json").read_text())
    facts.pop("name")
    (folder / "device.json").write_text(json.dumps(facts))
    assert main(render) == 2
    assert "--render-only must name a folder below --out" in capsys.readouterr().err
