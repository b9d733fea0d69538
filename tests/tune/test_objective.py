"""Tuning for energy: measured, searched and decided as time is, and kept beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import Outcome as Output
from command_line import in_this_process
from tune.measure.substitutes import CPU, Substitute, complete, make_of, task_of
from tune.synthetic import FASTEST, FRUGAL, PRODUCT, SyntheticPool, run_sweep

from tri_apsp import tuned
from tri_apsp.configs import default_config
from tri_apsp.console.exit_status import BAD_INPUT, FAILED
from tri_apsp.device import describe
from tri_apsp.energy import Reading
from tri_apsp.errors import EngineError
from tri_apsp.report.__main__ import main as report
from tri_apsp.tune import commands, stored
from tri_apsp.tune.__main__ import main
from tri_apsp.tune.measure import measurement as module
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.measure.outcome import Energy, Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep import plan
from tri_apsp.tune.sweep.final import FinalBudget
from tri_apsp.tune.sweep.plan import BUDGETS, ENERGY_BUDGETS, Settings
from tri_apsp.tune.sweep.rows import read_rows
from tri_apsp.tuned.records import RECORDS

WORDS = ("--device", "cpu", "--kernel", "product", "--trials", 200)
ENERGY = ("--objective", "energy")
NAME = describe(CPU).name
TASK = dataclasses.replace(PRODUCT, objective="energy")


class Meter:
    """A meter of the joules that the operations cost, at a power of 990 W."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def measure(self, run: Callable[[], None], seconds: float) -> Reading:
        before = Counted.joules
        run()
        run()
        joules = (Counted.joules - before) / 2
        return Reading(joules, joules / 990)


class Counted(Substitute):
    """An engine of which each product takes as many joules as the cutoff."""

    joules = 0.0

    def product(self, *updates: object) -> None:
        super().product(*updates)
        Counted.joules += self.config.cutoff


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> SyntheticPool:
    made = SyntheticPool()
    for place in (commands, stored):
        monkeypatch.setattr(place, "Workers", lambda devices: made)
    monkeypatch.setattr(plan, "EnergyMeter", Meter)
    return made


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], home: Path, memory: None, pool: SyntheticPool
) -> Callable[..., Output]:
    return in_this_process(main, capsys)


class TestMeasurement:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_SCREEN_SECONDS", {"cpu": 0.01})
        monkeypatch.setattr(module, "_WARM_UP_SECONDS", 0.01)
        monkeypatch.setattr(module, "EnergyMeter", Meter)

    @pytest.mark.parametrize("give_up_ms", [None, 1e-6])
    def test_a_screening_measures_the_joules_of_one_run(self, give_up_ms: float | None) -> None:
        """Also of a configuration whose time is given up: its cost must be of the same unit as that
        of the others.
        """
        task = dataclasses.replace(task_of("cpu", "product"), objective="energy")
        outcome = Measurement(task, CPU, make_of(Counted)).screen(
            dataclasses.replace(complete(task), cutoff=99), give_up_ms
        )
        assert outcome.energy == outcome.cost == Energy(99.0, 99.0, 99.0)
        assert outcome.times is not None
        assert outcome.median_cost == 99
        assert outcome.metrics == {"watts": pytest.approx(990)}, (
            "of the repeated runs, not of those that were timed"
        )

    def test_a_final_measures_in_both_halves_of_each_round(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        order: list[int] = []

        class Recorded(Meter):
            def measure(self, run: Callable[[], None], seconds: float) -> Reading:
                reading = super().measure(run, seconds)
                order.append(Counted.configs[-1].cutoff)
                return Reading(reading.joules * (1 + len(order) / 100), 0.1)

        monkeypatch.setattr(module, "EnergyMeter", Recorded)
        task = dataclasses.replace(task_of("cpu", "product"), objective="energy")
        measurement = Measurement(task, CPU, make_of(Counted))
        outcomes = measurement.final(
            [dataclasses.replace(complete(task), cutoff=cutoff) for cutoff in (64, 128)], rounds=2
        )
        assert len(order) == 2 * 2 * 2
        for outcome, cutoff in zip(outcomes, (64, 128), strict=True):
            assert outcome.energy is not None
            assert outcome.times is not None
            assert (
                cutoff
                < outcome.energy.p20_joules
                < outcome.energy.p50_joules
                < outcome.energy.p80_joules
                < 2 * cutoff
            )

    def test_time_needs_no_meter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "EnergyMeter", lambda device: pytest.fail("not asked for"))
        task = task_of("cpu", "product")
        assert Measurement(task, CPU, make_of(Counted)).screen(complete(task)).energy is None

    def test_outcomes_as_json(self) -> None:
        outcome = Outcome(Kind.correct, None, energy=Energy(1.0, 2.0, 3.0), metrics={"watts": 4.0})
        assert outcome.to_dict()["p50_joules"] == 2.0
        assert Outcome.from_dict(outcome.to_dict()) == outcome
        assert "p50_joules" not in Outcome(Kind.correct).to_dict()


@pytest.mark.usefixtures("home", "memory", "pool")
class TestSweep:
    def test_the_least_energy_wins_and_neither_entry_replaces_the_other(
        self, home: Path, pool: SyntheticPool
    ) -> None:
        (fast,) = run_sweep(pool).results
        (frugal,) = run_sweep(pool, TASK, objective="energy").results
        assert frugal.winner is not None
        assert frugal.winner.config == {"product": dataclasses.asdict(FRUGAL)}
        assert frugal.winner.before == {"product": dataclasses.asdict(FASTEST)}, (
            "what a solve would use is the one to beat"
        )
        assert frugal.path == fast.path
        assert fast.path is not None
        energy, time = tuned.load(fast.path).entries
        assert (energy.objective, time.objective) == ("energy", "time")
        assert time.config == {"product": dataclasses.asdict(FASTEST)}
        assert (energy.p50_joules, energy.p50_ms) == (10.0, pool.time_ms(TASK, FRUGAL_CONFIG))
        assert energy.gain == pytest.approx(frugal.winner.gain)
        assert "joules by NVML" in tuned.load(fast.path).protocol
        assert "joules" not in (time.run or tuned.load(fast.path)).protocol
        for objective, tiles in (("time", FASTEST), ("energy", FRUGAL)):
            found = tuned.find(
                "cpu",
                CPU,
                torch.float32,
                n=1024,
                nonnegative=True,
                product=True,
                objective=objective,
            )
            assert found.product == tiles

    @pytest.mark.parametrize(("spread", "changed"), [(0.001, True), (0.9, False)])
    def test_the_configuration_in_use_stays_within_the_noise(
        self, pool: SyntheticPool, spread: float, changed: bool
    ) -> None:
        pool.spread = spread
        (result,) = run_sweep(pool, TASK, objective="energy").results
        assert result.winner is not None
        assert (result.winner.changed, result.winner.conclusive) == (changed, changed)

    def test_the_study_of_each_objective_is_resumed(self, pool: SyntheticPool) -> None:
        run_sweep(pool)
        (first,) = run_sweep(pool, TASK, objective="energy", resume=True).results
        (again,) = run_sweep(pool, TASK, objective="energy", resume=True).results
        assert (first.resumed, again.resumed) == (False, True)
        assert again.winner == first.winner

    def test_without_a_counter_nothing_starts(
        self, pool: SyntheticPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.undo()
        with pytest.raises(EngineError, match="energy must be measured on an NVIDIA GPU"):
            run_sweep(pool, TASK, objective="energy")
        assert pool.screened == []


FRUGAL_CONFIG = dataclasses.replace(complete(PRODUCT), product=FRUGAL)


def test_budgets_of_energy() -> None:
    for effort, budget in ENERGY_BUDGETS.items():
        assert Settings(effort=effort, objective="energy").budget == budget
        assert Settings(effort=effort).budget == BUDGETS[effort]
        assert budget.trials < BUDGETS[effort].trials
        final = FinalBudget(budget, 2, minimises_energy=True)
        seconds = 33.0
        reserved = final.reserve(budget.seconds)(seconds)
        count = final.finalists(reserved, seconds) + 2
        # Each round measures each configuration twice, for a second and a warm-up.
        assert (
            2 * count * 1.25 * final.rounds(reserved, count, seconds)
            < 1.5 * reserved
            < budget.seconds
        )


class TestCommands:
    def test_summary_names_the_energy(self, cli: Callable[..., Output]) -> None:
        output = cli(*WORDS, *ENERGY)
        assert output.status == 0
        assert "n = 1024, energy:\n  before  " in output.out
        assert " J, " in output.out
        assert "\n  now     10 J, 1.12 ms, product.block_m 192" in output.out
        assert "times as efficient as before\n" in output.out
        assert " times as efficient" in output.err

    def test_list_show_and_verify(self, cli: Callable[..., Output], pool: SyntheticPool) -> None:
        cli(*WORDS)
        cli(*WORDS, *ENERGY)
        assert "cpu-product-float32.json: n = 1024; for energy n = 1024\n" in cli("--list").out
        assert cli("--show").out.startswith("cpu product, float32 nonnegative, n = 1024: 1 ms, ")
        shown = cli("--show", *ENERGY).out
        assert shown.startswith("cpu product, float32 nonnegative, n = 1024, energy: 10 J, ")
        assert shown.count("\n") == 1
        output = cli("--verify", *ENERGY)
        assert output.out.startswith("cpu product, float32 nonnegative, n = 1024, energy: holds: ")
        pool.flat = True
        assert "energy: within noise: 1.00 x the default now" in cli("--verify", *ENERGY).out

    def test_an_export_takes_both(self, cli: Callable[..., Output], home: Path) -> None:
        cli(*WORDS)
        cli(*WORDS, *ENERGY)
        cli("--device", "cpu", "--export", home / "mine.json")
        (file,) = json.loads((home / "mine.json").read_text())["files"]
        assert [entry.get("objective", "time") for entry in file["entries"]] == ["energy", "time"]
        output = cli("--device", "cpu", "--export", home / "mine.json", *ENERGY)
        assert (output.status, "without --objective" in output.err) == (BAD_INPUT, True)

    def test_a_report_has_joules_and_the_report_of_times_refuses_it(
        self, cli: Callable[..., Output], home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cli(*WORDS, *ENERGY, "--report", home / "rows")
        (result,) = json.loads((home / "rows" / "sweep.json").read_text())["results"]
        assert (result["objective"], result["p50_joules"]) == ("energy", 10)
        (read,) = read_rows(home / "rows").results
        assert all(trial.outcome.metrics == {"watts": 990} for trial in read.search.evaluated)
        pytest.importorskip("matplotlib")
        assert report(["tuning", "--from", str(home / "rows"), "--out", str(home)]) == BAD_INPUT
        assert "--from must name sweeps with the objective time" in capsys.readouterr().err

    def test_a_cpu_counts_no_energy(
        self, cli: Callable[..., Output], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So nothing that would measure it begins, but stored entries can be shown."""
        cli(*WORDS, *ENERGY)
        monkeypatch.setattr(plan, "EnergyMeter", module.EnergyMeter)
        for action in ((), ("--dry-run",), ("--verify",)):
            output = cli(*WORDS, *ENERGY, *action)
            assert (output.status, output.out) == (FAILED, "")
            assert (
                f"error: energy must be measured on an NVIDIA GPU, which counts it, but the device is {NAME} (cpu)"
                in output.err
            )
        assert cli("--show", *ENERGY).out.startswith(
            "cpu product, float32 nonnegative, n = 1024, energy: 10 J, "
        )
        assert "cpu-product-float32.json: for energy n = 1024\n" in cli("--list", *ENERGY).out
        assert cli(*WORDS, "--dry-run").status == 0

    def test_nothing_was_tuned_for_energy(self, cli: Callable[..., Output]) -> None:
        cli(*WORDS)
        for action in ("--show", "--verify"):
            output = cli(action, *ENERGY)
            assert (output.status, output.err) == (0, "")
            assert (
                "an entry for energy that matches the arguments; the tuner measures energy on NVIDIA GPUs alone"
                in output.out
            )

    def test_an_unknown_objective(self, cli: Callable[..., Output]) -> None:
        assert cli("--objective", "power").status == BAD_INPUT


def test_a_record_is_tuned_by_its_task() -> None:
    """The objective is part of a task, so that workers, studies and rows of both never mix."""
    assert str(TASK) == f"{PRODUCT}, energy"
    assert TASK.record is RECORDS["cpu", "product"]
    assert TASK != PRODUCT


@pytest.mark.gpu
def test_a_gpu_measures_energy_beside_time() -> None:
    pytest.importorskip("pynvml")
    task = Task("nvidia", "product", "float32", "nonnegative", 2048, objective="energy")
    outcome = Measurement(task, torch.device("cuda", 0)).screen(
        default_config("nvidia", torch.float32)
    )
    assert outcome.times is not None
    assert outcome.energy is not None
    assert 10 < outcome.metrics["watts"] < 3000  # other tests may use the GPU at the same time
    assert outcome.energy.median > 0
