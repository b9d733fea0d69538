"""A sweep on a synthetic bench: what wins, what is kept, and what an interrupt leaves."""

from __future__ import annotations

import _thread
import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tune.synthetic import FASTEST, PRODUCT, SOLVE, SyntheticBench, correct
from tune.synthetic import run_sweep as run

from tri_apsp import tuned
from tri_apsp.configs import Config, CpuTiles, default_config
from tri_apsp.device import describe
from tri_apsp.errors import EngineError, InputError
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.sweep import beats
from tri_apsp.tuned.schema import TunedFile

pytestmark = pytest.mark.usefixtures("home", "memory")

CPU = torch.device("cpu")
DEFAULT = default_config("cpu", torch.float32)


def used(n: int = 1024) -> Config:
    tuned.reload()
    return tuned.find("cpu", CPU, torch.float32, n=n, nonnegative=True)


def stored(home: Path, kernel: str = "product") -> TunedFile:
    return tuned.load(tuned.path_of("cpu", kernel, "float32", describe(CPU).slug, home / "tuned"))


def test_the_winner_is_kept_and_used(home: Path) -> None:
    bench = SyntheticBench()
    (result,) = run(bench).results
    assert result.gained
    assert result.complete
    assert result.speedup == pytest.approx(bench.time_ms(PRODUCT, DEFAULT) / 1.0)
    assert result.evaluated == result.candidates == len(bench.screened)
    assert bench.closed
    assert used().product == FASTEST
    file = stored(home)
    (entry,) = file.entries
    assert (entry.n, entry.sign, entry.evaluated, file.complete) == (1024, "nonnegative", result.evaluated, True)
    assert entry.config == {"product": dataclasses.asdict(FASTEST)}
    assert result.path == home / "tuned" / describe(CPU).slug / "cpu-product-float32.json"


def test_the_final_is_among_the_best_the_default_and_what_is_used_now() -> None:
    run(SyntheticBench())
    bench = SyntheticBench(flat=True)
    run(bench)
    ((_, configs, rounds),) = bench.finals
    assert configs[0].product == DEFAULT.product
    assert configs[1].product == FASTEST
    assert len(configs) == len(set(configs)) == 5
    assert rounds == 5


@pytest.mark.parametrize(("spread", "gained"), [(0.001, True), (0.6, False)])
def test_the_default_stays_unless_beaten_beyond_the_noise(home: Path, spread: float, gained: bool) -> None:
    bench = SyntheticBench(spread=spread)
    (result,) = run(bench).results
    assert result.gained == gained
    assert used().product == (FASTEST if gained else DEFAULT.product)
    assert stored(home).entries[0].speedup == pytest.approx(result.speedup)


def test_the_default_stays_in_a_tie(home: Path) -> None:
    (result,) = run(SyntheticBench(flat=True)).results
    assert not result.gained
    assert result.speedup == 1
    assert stored(home).entries[0].config == {"product": dataclasses.asdict(DEFAULT.product)}


def test_what_is_used_now_stays_where_it_is_as_good() -> None:
    run(SyntheticBench())
    run(SyntheticBench(fails=lambda task, config: None if config.product in (DEFAULT.product, FASTEST) else Kind.timeout))
    assert used().product == FASTEST


@pytest.mark.parametrize(
    ("new", "old", "wins"),
    [
        (correct(1.0), correct(1.03), True),
        (correct(1.0), correct(1.01), False),
        (correct(1.0, spread=0.05), correct(1.03), False),
        (correct(1.0), correct(1.03, spread=0.05), False),
        (correct(1.0, spread=0.05), correct(1.1), True),
        (Outcome(Kind.timeout), correct(1.0), False),
        (correct(1.0), Outcome(Kind.timeout), True),
    ],
)
def test_beats(new: Outcome, old: Outcome, wins: bool) -> None:
    assert beats(new, old) == wins


class TestSolve:
    def test_uses_the_tiles_found_before_and_counts_the_whole_gain(self, home: Path) -> None:
        bench = SyntheticBench()
        product, solve = run(bench, PRODUCT, SOLVE).results
        searched = [config for task, config in bench.screened if task == SOLVE][: solve.evaluated]
        assert {config.product for config in searched} == {FASTEST}
        assert (solve.config or {})["cutoff"] == 128
        assert solve.default_ms == bench.time_ms(SOLVE, dataclasses.replace(DEFAULT, method="kleene"))
        assert stored(home, "solve").entries[0].speedup > product.speedup > 1
        assert (used().cutoff, used().method, used().product) == (128, "kleene", FASTEST)

    def test_in_another_directory(self, home: Path) -> None:
        """Where no lookup would find them, later tasks still use the tiles."""
        bench = SyntheticBench()
        _, solve = run(bench, PRODUCT, SOLVE, save_dir=home / "elsewhere").results
        searched = [config for task, config in bench.screened if task == SOLVE][: solve.evaluated]
        assert {config.product for config in searched} == {FASTEST}
        assert len(list((home / "elsewhere").glob("*/*.json"))) == 2
        assert not (home / "tuned").exists()


class TestProductsOfASolve:
    """Once a solve is tuned, the tiles of its products are looked at again, one step around."""

    BETTER = dataclasses.replace(FASTEST, block_n=512)

    def test_take_what_makes_the_solve_faster(self, home: Path) -> None:
        bench = SyntheticBench(in_solves=self.BETTER)
        product, solve = run(bench, PRODUCT, SOLVE).results
        assert solve.product == {"product": dataclasses.asdict(self.BETTER)}
        assert (solve.p50_ms, product.p50_ms) == (1.0, 1.0)
        (entry,) = stored(home).entries
        assert entry.config == solve.product
        # Its times are those of the product alone, beside its default.
        assert entry.p50_ms == bench.time_ms(PRODUCT, dataclasses.replace(DEFAULT, product=self.BETTER)) > 1
        assert entry.default_ms == product.default_ms
        assert "a solve is faster" in stored(home).protocol
        assert stored(home, "solve").entries[0].p50_ms == 1.0
        assert (used().product, used().cutoff) == (self.BETTER, 128)
        again = [config.product for task, config in bench.screened if task == SOLVE][solve.evaluated :]
        assert again[0] == FASTEST
        assert len(set(again)) == len(again) == 7
        changed = [dataclasses.asdict(tiles).items() - dataclasses.asdict(FASTEST).items() for tiles in again]
        assert [len(fields) for fields in changed] == [0] + [1] * 6

    @pytest.mark.parametrize("why", ["no gain", "noise", "failure"])
    def test_else_stay(self, home: Path, why: str) -> None:
        def fails(task: Task, config: Config) -> Kind | None:
            return Kind.timeout if why == "failure" and config.product == self.BETTER else None

        in_solves = FASTEST if why == "no gain" else self.BETTER
        bench = SyntheticBench(in_solves=in_solves, spread=0.3 if why == "noise" else 0.001, fails=fails)
        _, solve = run(bench, PRODUCT, SOLVE).results
        assert solve.complete
        assert solve.product is None
        assert stored(home).entries[0].config == {"product": dataclasses.asdict(FASTEST)}

    def test_that_would_make_products_slower_than_their_default_stay(self, home: Path, monkeypatch: Any) -> None:
        bench = SyntheticBench(in_solves=self.BETTER)
        real = bench.time_ms

        def worse(task: Task, config: Config) -> float:
            return 5.0 if (task.kernel, config.product) == ("product", self.BETTER) else real(task, config)

        monkeypatch.setattr(bench, "time_ms", worse)
        _, solve = run(bench, PRODUCT, SOLVE).results
        assert solve.product is None
        assert used().product == FASTEST

    def test_are_left_alone_where_time_is_over(self) -> None:
        bench = SyntheticBench(in_solves=self.BETTER, before_final=lambda: time.sleep(0.3))
        product, solve = run(bench, PRODUCT, SOLVE, trials=20, time_budget=0.5).results
        assert solve.complete
        assert len(bench.screened) == product.evaluated + solve.evaluated

    def test_are_left_alone_where_the_sweep_did_not_tune_them_at_that_size(self) -> None:
        run(SyntheticBench(), PRODUCT)
        bench = SyntheticBench(in_solves=self.BETTER)
        run(bench, dataclasses.replace(PRODUCT, n=2048), SOLVE)
        assert {config.product for task, config in bench.screened if task == SOLVE} == {FASTEST}
        assert used().product == FASTEST

    def test_resume_finds_the_solves_under_the_new_tiles(self) -> None:
        smaller = dataclasses.replace(SOLVE, n=512)  # which uses the same entry
        run(SyntheticBench(in_solves=self.BETTER), PRODUCT, smaller, SOLVE)
        bench = SyntheticBench(in_solves=self.BETTER)
        results = run(bench, PRODUCT, smaller, SOLVE, resume=True).results
        assert [result.resumed for result in results] == [True] * 3
        assert bench.screened == []
        assert [len(result.trials) for result in results] == [result.evaluated for result in results]
        assert used().product == self.BETTER

    def test_an_interrupt_leaves_the_solve_as_it_was(self, home: Path) -> None:
        bench = SyntheticBench(in_solves=self.BETTER)
        product, solve = (len(run(bench, PRODUCT, SOLVE).results[i].trials) for i in (0, 1))
        for path in (home / "tuned").glob("*/*.json"):
            path.unlink()
        tuned.reload()
        tuned.cache.MEMORY.clear()
        stopped = SyntheticBench(in_solves=self.BETTER, before=press_ctrl_c(product + solve + 3))
        result = run(stopped, PRODUCT, SOLVE)
        assert result.interrupted
        assert result.results[1].complete
        assert result.results[1].product is None
        assert stored(home, "solve").complete
        assert used().product == FASTEST


def test_a_winner_of_another_size_is_tried_early() -> None:
    bench = SyntheticBench()
    run(bench, PRODUCT, dataclasses.replace(PRODUCT, n=2048), trials=30)
    early = [config.product for task, config in bench.screened if task.n == 2048][:3]
    assert used().product in early


class TestFailures:
    def test_of_all_is_an_error_and_stores_nothing(self, home: Path) -> None:
        bench = SyntheticBench(fails=lambda task, config: Kind.runtime_error)
        with pytest.raises(EngineError, match=r"all of .* failed \(20 runtime error; the last: planted\); nothing"):
            run(bench, trials=20)
        assert bench.closed
        assert not (home / "tuned").exists()

    def test_of_one_task_leaves_the_others(self) -> None:
        product, solve = run(
            SyntheticBench(fails=lambda task, _: Kind.timeout if task == PRODUCT else None), PRODUCT, SOLVE, trials=20
        ).results
        assert "20 timeout" in product.error
        assert product.path is None
        assert solve.config is not None

    def test_are_counted_by_class(self) -> None:
        def fails(task: Task, config: Config) -> Kind | None:
            assert isinstance(config.product, CpuTiles)
            return {96: Kind.compile_error, 768: Kind.wrong_result}.get(config.product.block_m)

        result = run(SyntheticBench(fails=fails))
        assert set(result.failures) == {Kind.compile_error, Kind.wrong_result}
        assert result.to_dict()["results"][0]["failures"] == {kind.value: n for kind, n in result.failures.items()}

    def test_of_the_winner_in_the_final(self) -> None:
        """It was right when it was screened, but not again."""
        bench = SyntheticBench()

        def spoil() -> None:
            bench.fails = lambda task, config: Kind.wrong_result if config.product == FASTEST else None

        bench.before_final = spoil
        (result,) = run(bench).results
        assert used().product not in (FASTEST, DEFAULT.product)
        assert result.gained


def press_ctrl_c(at: int) -> Any:
    def press(count: int) -> None:
        if count == at:
            _thread.interrupt_main()
            time.sleep(0.2)

    return press


class TestInterrupt:
    def test_keeps_what_is_known(self, home: Path) -> None:
        bench = SyntheticBench(before=press_ctrl_c(60))
        result = run(bench, PRODUCT, SOLVE)
        assert result.interrupted
        assert [done.task for done in result.results] == [PRODUCT]
        assert bench.finals == []
        assert bench.closed
        file = stored(home)
        assert not file.complete
        assert file.entries[0].evaluated == 59
        best = min((config for _, config in bench.screened[:59]), key=lambda config: bench.time_ms(PRODUCT, config))
        assert used().product == best.product

    def test_in_the_final(self, home: Path) -> None:
        bench = SyntheticBench(before_final=lambda: _thread.interrupt_main() or time.sleep(0.1))
        assert run(bench).interrupted
        assert not stored(home).complete
        assert used().product == FASTEST

    def test_before_anything_gained_stores_nothing(self, home: Path) -> None:
        for flat, at in ((False, 1), (True, 9)):
            assert run(SyntheticBench(before=press_ctrl_c(at), flat=flat)).interrupted
        assert not (home / "tuned").exists()

    def test_does_not_replace_what_a_whole_search_found(self, home: Path) -> None:
        run(SyntheticBench())
        before = stored(home)
        run(SyntheticBench(before=press_ctrl_c(20)))
        assert stored(home) == before

    @pytest.mark.parametrize("database", [False, True])
    def test_resume(self, home: Path, database: bool) -> None:
        options = {"storage": f"sqlite:///{home / 'studies.db'}"} if database else {}
        run(SyntheticBench(before=press_ctrl_c(10)), PRODUCT, SOLVE, trials=20, **options)
        second = SyntheticBench(before=press_ctrl_c(15))
        run(second, PRODUCT, SOLVE, trials=20, resume=True, **options)
        third = SyntheticBench()
        result = run(third, PRODUCT, SOLVE, trials=20, resume=True, **options)
        # The product was finished by the second, of which five trials were left for the solve.
        assert {task for task, _ in third.screened} == {SOLVE}
        assert [task for task, _ in second.screened].count(PRODUCT) == 11
        # The last are those of the product again, one step around.
        assert sum(config.product == third.screened[0][1].product for _, config in third.screened) == 20 - 3 + 1
        assert [done.resumed for done in result.results] == [True, False]
        assert [done.evaluated for done in result.results] == [20, 20]
        assert stored(home).complete
        assert stored(home, "solve").complete

    def test_resume_without_the_file(self, home: Path) -> None:
        run(SyntheticBench(), trials=20)
        (before,) = stored(home).entries
        (result,) = (home / "tuned").glob("*/*.json")
        result.unlink()
        bench = SyntheticBench()
        run(bench, trials=20, resume=True)
        assert stored(home).entries == (before,)
        assert bench.screened == []

    def test_resume_with_more_trials(self) -> None:
        run(SyntheticBench(), trials=20)
        bench = SyntheticBench()
        (result,) = run(bench, trials=30, resume=True).results
        assert len(bench.screened) == 10
        assert result.evaluated == 30

    def test_without_resume_it_starts_again(self) -> None:
        run(SyntheticBench(), trials=20)
        bench = SyntheticBench()
        run(bench, trials=20)
        assert len(bench.screened) == 20


class TestTime:
    def test_is_shared_and_what_is_left_goes_on(self) -> None:
        bench = SyntheticBench(before=lambda _: time.sleep(0.01))
        start = time.monotonic()
        product, solve = run(bench, PRODUCT, SOLVE, time_budget=1.0).results
        assert time.monotonic() - start < 3
        assert 5 < product.evaluated < product.candidates
        assert solve.evaluated > 5

    @pytest.mark.parametrize(
        ("time_ms", "left", "entrants", "rounds"),
        [(1.0, 3, 4, 5), (100.0, 11, 4, 5), (500.0, 25, 4, 3), (1500.0, 25, 2, 2), (5000.0, 60, 2, 2), (9000.0, 99, 1, 2)],
    )
    def test_is_for_the_search_but_what_the_final_needs(
        self, monkeypatch: pytest.MonkeyPatch, time_ms: float, left: int, entrants: int, rounds: int
    ) -> None:
        """Three seconds, and five rounds of four that have two turns, of 5 ms or more, twice; at most a quarter.

        But two configurations can each run six times, and no more are in the final than can.
        """
        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(SyntheticBench, "time_ms", lambda self, task, config: time_ms)

        def second(_: int) -> None:
            now[0] += 1

        bench = SyntheticBench(before=second)
        (result,) = run(bench, time_budget=100.0).results
        assert result.evaluated == 100 - left < result.candidates
        ((_, configs, counted),) = bench.finals
        assert (len(configs), counted) == (entrants, rounds)

    def test_that_is_over_leaves_the_other_tasks(self) -> None:
        product, *others = run(SyntheticBench(before=lambda _: time.sleep(0.2)), PRODUCT, SOLVE, time_budget=0.1).results
        assert product.evaluated == 1
        assert not product.gained
        assert others == []

    def test_is_told(self) -> None:
        def slow_start(count: int) -> None:
            time.sleep(0.3 if count == 1 else 0)

        result = run(SyntheticBench(before=slow_start, before_final=lambda: time.sleep(0.2)))
        assert 0 < result.measuring < 1
        (done,) = result.results
        assert 0.3 <= done.prepare_seconds <= done.seconds <= result.seconds
        assert 0.2 <= done.final_seconds <= done.seconds - done.prepare_seconds
        assert done.compile_seconds == 0
        assert done.measure_seconds == pytest.approx(1e-6 * (done.evaluated + 4))


class TestFiles:
    def test_one_that_cannot_be_used_is_refused_before_anything_is_measured(self, home: Path) -> None:
        run(SyntheticBench())
        path = next((home / "tuned").glob("*/*.json"))
        path.write_text("{")
        bench = SyntheticBench()
        with pytest.raises(InputError, match="--force"):
            run(bench)
        assert bench.screened == []
        run(bench, force=True)
        assert used().product == FASTEST

    def test_a_folder_that_is_none(self, home: Path) -> None:
        (home / "tuned").touch()
        bench = SyntheticBench()
        with pytest.raises(InputError, match=r"is no writable folder; choose another"):
            run(bench)
        assert bench.screened == []


def test_required_tuning_does_not_keep_the_tuner_from_working(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRI_APSP_REQUIRE_TUNED", "1")
    run(SyntheticBench())
    assert used().product == FASTEST
