"""The study of energy: which configurations it measures, how, and what its page shows, with a fake
counter.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("matplotlib")
pytest.importorskip("triton")

from fake_nvml import FakeGpu, install
from report.fake import ENVIRONMENT, H200, FakeMeasurer, target
from tri_apsp.tune.measure.outcome import Energy, Kind, Outcome
from tri_apsp.tune.space.task import Task

from tri_apsp.console.exit_status import FAILED
from tri_apsp.errors import EngineError
from tri_apsp.report import energy
from tri_apsp.report.__main__ import main
from tri_apsp.report.energy import STUDY, EnergyMeasurer, with_metrics
from tri_apsp.report.energy_page import METRICS, tile_of
from tri_apsp.report.grids import Grid, Point
from tri_apsp.report.measuring import GridResult, measure
from tri_apsp.report.page import write_study
from tri_apsp.report.papers import BULUC_MFLOP_PER_JOULE, BULUC_SECONDS
from tri_apsp.report.rows import StudyRows

DEFAULT, WIDE = "64 x 128 x 16, 4 warps, 3 stages", "128 x 128 x 16, 8 warps, 2 stages"


def grids() -> list[Grid]:
    return STUDY.grids(target("nvidia"), [], [])


@dataclasses.dataclass
class Counted(FakeMeasurer):
    """The default is the fastest, WIDE takes the least energy: the powers and times are those of an
    H200.
    """

    joules_of_default: float = 15.0

    def _outcome(self, task: Task, point: Point) -> Outcome:
        outcome = super()._outcome(task, point)
        if outcome.times is None:
            return outcome
        tile = tile_of(point.values)
        times = {DEFAULT: (33.0, self.joules_of_default), WIDE: (36.0, 13.5)}
        ms, joules = (task.n / 8192) ** 3 * 34, (task.n / 8192) ** 3 * 15.4
        if task.kernel == "product":
            ms, joules = times.get(tile, (40.0, 19.0))
        outcome = dataclasses.replace(
            outcome,
            times=dataclasses.replace(outcome.times, p50_ms=ms),
            energy=Energy(0.99 * joules, joules, 1.01 * joules),
        )
        return with_metrics(
            dataclasses.replace(outcome, metrics={"watts": 1000 * joules / ms}), task, 114.0
        )


def measured(folder: Path, measurer: FakeMeasurer, seconds: float = 10000) -> Sequence[GridResult]:
    rows = StudyRows(folder / "energy.csv", STUDY.parameters, ENVIRONMENT, STUDY.metrics)
    return measure(grids(), rows, torch.device("cpu"), seconds, lambda device: measurer)


def page_of(folder: Path, measurer: FakeMeasurer, seconds: float = 10000) -> str:
    results = measured(folder, measurer, seconds)
    return write_study(STUDY, target("nvidia"), results, folder, "energy", ["again"]).read_text()


@pytest.fixture(autouse=True)
def enough_memory(monkeypatch):
    monkeypatch.setattr(
        "tri_apsp.report.measuring.check_memory", lambda *arguments, **options: None
    )


def test_products_and_the_sizes_of_buluc():
    products, *solves = grids()
    assert (products.task.kernel, products.task.n, products.task.dtype) == (
        "product",
        8192,
        "float32",
    )
    assert sorted(grid.task.n for grid in solves) == sorted(BULUC_SECONDS["cpu"])
    assert {grid.task.objective for grid in grids()} == {"energy"}
    tiles = [tile_of(point.values) for point in products.points]
    assert tiles[0] == DEFAULT
    assert len(set(tiles)) == len(tiles) >= 10
    assert {WIDE, "64 x 64 x 16, 2 warps, 3 stages"} <= set(tiles)
    record = products.task.record
    for point in products.points:
        assert record.fits(point.kernel_config, torch.float32, H200)
        assert not record.repeats(point.kernel_config, point.kernel_config, torch.float32, 8192)
    assert all(
        len(grid.points) == 1 and grid.points[0].values == products.points[0].values
        for grid in solves
    )


def test_rows_have_energy_and_all_products_are_in_a_final(tmp_path):
    measurer = Counted()
    measured(tmp_path, measurer)
    ((task, finalists, rounds),) = measurer.finals
    assert (task.kernel, len(finalists), rounds) == ("product", len(grids()[0].points), 5)
    rows = list(csv.DictReader((tmp_path / "energy.csv").open()))
    assert len(rows) == 2 * len(finalists) + 5
    assert all(float(row[name]) > 0 for row in rows for name in METRICS)
    row = next(
        row for row in rows if tile_of({name: row[name] for name in STUDY.parameters}) == WIDE
    )
    assert (float(row["joules"]), float(row["watts"]), float(row["idle_watts"])) == (13.5, 375, 114)
    assert float(row["mflop_per_joule"]) == pytest.approx(2 * 8192**3 / 13.5 / 1e6, rel=1e-5)


def test_a_final_takes_seconds(tmp_path):
    """A round of a final measures each configuration twice, for more than a second: few fit the
    usual budget.
    """
    measurer = Counted()
    measured(tmp_path, measurer, seconds=300)
    ((_, finalists, rounds),) = measurer.finals
    assert rounds * len(finalists) * 2 * 1.25 < 300


def test_the_page_compares_time_and_energy(tmp_path):
    page = page_of(tmp_path, Counted())
    text = " ".join(page.split())
    assert page.startswith("# How much energy does it take? NVIDIA H200\n")
    assert (
        "Then, a GeForce 8800 Ultra did 569 MFLOP per joule at n = 4096, and a CPU at most 38.8 (Buluç, Gilbert, Budak); now, "
        f"a solve of 4096 vertices in float32 does {2 * 4096**3 / 1e6 / (15.4 / 8):,.0f}, and the fastest product is not the "
        "most efficient, because the power depends on the tile (375 to 475 W): another takes 10% less energy and 9% more time. "
        "![energy]" in text
    )
    assert f"The fastest is {DEFAULT}; the most efficient is {WIDE}." in text
    assert "The idle GPU takes 114 W" in text
    assert page.index("Then,") < page.index("](energy.svg)") < page.index("| tile |")
    drawing = (tmp_path / "energy.svg").read_text()
    assert f"{DEFAULT} (default)" in drawing
    assert WIDE in drawing
    assert (
        f"\n| {WIDE} | 36 | 375 | 13.5 (13.4 to 13.6) | 81,445 | {81445 / (1 - 114 / 375):,.0f} | 1.09 | 1.00 |\n"
        in page
    )


def test_products_of_another_dtype_have_a_section_of_their_own(tmp_path):
    rows = StudyRows(tmp_path / "energy.csv", STUDY.parameters, ENVIRONMENT, STUDY.metrics)
    both = [*STUDY.grids(target("nvidia"), [], ["int32"]), *grids()]
    results = measure(both, rows, torch.device("cpu"), 20000, lambda device: Counted())
    page = write_study(STUDY, target("nvidia"), results, tmp_path, "energy", ["again"]).read_text()
    assert (
        page.index("](energy.svg)")
        < page.index("Product, float32")
        < page.index("](energy-int32-n8192.svg)")
    )
    assert "| int32 | 4096 |" in page
    assert "a solve of 4096 vertices in float32 does" in " ".join(page.split())


def test_the_page_has_table_8(tmp_path):
    page = page_of(tmp_path, Counted())
    assert f"| MFLOP/J above idle | {' | '.join(BULUC_MFLOP_PER_JOULE)} |\n" in page
    rows = [
        line.split(" | ")
        for line in page.splitlines()
        if line.startswith(("| float32 | 512 |", "| float32 | 4096 |", "| float32 | 8192 |"))
    ]
    assert [row[-5] for row in rows] == ["173", "569", ""]
    assert "222.5 W" in page
    drawing = (tmp_path / "energy-solves.svg").read_text()
    assert all(f">{label}<" in drawing for label in ("now, float32", *BULUC_MFLOP_PER_JOULE))


def test_table_8_follows_from_their_times_and_power():
    for n, efficiency in BULUC_MFLOP_PER_JOULE["GeForce 8800 Ultra"].items():
        assert efficiency == pytest.approx(
            2 * n**3 / BULUC_SECONDS["recursive_tuned"][n] / 222.5 / 1e6, rel=0.1
        )


def test_without_a_final_the_noise_is_unknown(tmp_path):
    """One measurement of each has no range."""
    results = [dataclasses.replace(result, finals=()) for result in measured(tmp_path, Counted())]
    page = " ".join(
        write_study(STUDY, target("nvidia"), results, tmp_path, "energy", ["again"])
        .read_text()
        .split()
    )
    assert (
        "by one measurement of each the fastest product is not the most efficient, because" in page
    )
    assert "| 13.5 | 81,445 |" in page


def test_a_difference_within_the_noise_is_none(tmp_path):
    text = " ".join(page_of(tmp_path, Counted(joules_of_default=13.6)).split())
    assert (
        "and the fastest product is also the most efficient, or as efficient within the noise. !["
        in text
    )


def test_a_wrong_configuration_is_named_and_not_compared(tmp_path):
    fails = {WIDE: Kind.wrong_result}
    page = page_of(tmp_path, Counted(fails=lambda task, point: fails.get(tile_of(point.values))))
    compared, _, failures = page.partition("## Failures")
    assert "wrong result | fake wrong result |" in failures
    assert WIDE not in compared


def test_nothing_and_half_measured(tmp_path, clock):
    everything = sum(len(grid.points) for grid in grids())
    page = page_of(tmp_path, Counted(), seconds=0)
    assert f"Incomplete: {everything} of {everything} configurations" in " ".join(page.split())
    assert "Nothing was measured yet." in page
    measurer = Counted()

    def pass_time() -> None:
        clock.advance(1e6 if len(measurer.screened) == 2 else 0)

    measurer.before = pass_time
    page = " ".join(page_of(tmp_path, measurer, seconds=1000).split())
    assert f"{everything - 3} of {everything} configurations" in page
    assert "Each was measured once, not yet a second time in turns." in page
    assert "now, not every product was measured, so there is no result yet. ![" in page


def test_the_measurer_adds_what_rows_need(monkeypatch):
    gpu = install(monkeypatch, FakeGpu())
    monkeypatch.setattr(
        energy, "EnergyMeter", lambda device: SimpleNamespace(idle_watts=lambda: gpu.watts)
    )
    monkeypatch.setattr("tri_apsp.report.measuring.Workers", FakeWorkers)
    measurer = EnergyMeasurer(torch.device("cpu"))
    grid = grids()[0]
    outcome = measurer.screen(grid.task, grid.points[0], 9.0)
    assert measurer.final(grid.task, grid.points[:1], 2) == [outcome]
    assert {*outcome.metrics, "p20_joules", "p80_joules"} == {*METRICS}
    assert outcome.metrics["idle_watts"] == 100.0


class FakeWorkers:
    parallel = 1

    def __init__(self, devices: object) -> None:
        self.outcome = Outcome(
            Kind.correct, None, metrics={"watts": 400.0}, energy=Energy(1.0, 2.0, 3.0)
        )

    def evaluators(self, task: Task, to_config: object) -> list[object]:
        return [lambda values, request: self.outcome]

    def final(self, task: Task, configs: object, rounds: int) -> list[Outcome]:
        return [self.outcome]

    def close(self) -> None:
        pass


def test_a_cpu_ends_with_the_reason(tmp_path, capsys):
    assert main(["energy", "--device", "cpu", "--out", str(tmp_path)]) == FAILED
    error = capsys.readouterr().err
    assert error.startswith(
        "error: the report energy must be measured with the engine nvidia, but "
    )
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EngineError, match="energy must be measured on an NVIDIA GPU"):
        EnergyMeasurer(torch.device("cpu"))


def test_rows_of_other_studies_have_no_objective():
    """Their files are from before there were objectives."""
    path = Path(__file__).parents[2] / "reports" / "nvidia-h200" / "cutoff.csv"
    assert "objective" not in path.read_text().splitlines()[0]
    StudyRows(path, ("cutoff", "block_size"))
