"""A tuning run on a synthetic pool: which configuration wins, what is saved, and what an interrupt
leaves.
"""

import _thread
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from clock import Clock
from tune.synthetic import FASTEST, PRODUCT, SOLVE, SyntheticPool
from tune.synthetic import run_tasks as run
from tuned_files import entry_of, file_of

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, CpuTiles, default_config, to_fields
from tri_apsp.device import Device, describe
from tri_apsp.errors import EngineError, InputError
from tri_apsp.tune.candidates import baselines_of
from tri_apsp.tune.outcome import OutcomeKind
from tri_apsp.tune.progress import outcome_line
from tri_apsp.tune.run import run_plans
from tri_apsp.tune.tasks import Settings, TuningPlan
from tri_apsp.tuned.schema import TunedFile

pytestmark = pytest.mark.usefixtures("home", "memory")

CPU = torch.device("cpu")
DEFAULT = default_config("cpu", torch.float32)


def used(n: int = 1024) -> CompleteConfig:
    tuned.reload()
    return tuned.find("cpu", CPU, torch.float32, n=n, nonnegative=True)


def stored(home: Path, kernel: str = "product") -> TunedFile:
    return tuned.load(tuned.path_of("cpu", kernel, "float32", describe(CPU).slug, home / "tuned"))


def test_the_winner_is_kept_and_used(home: Path) -> None:
    pool = SyntheticPool()
    (result,) = run(pool).results
    assert len(result.trials) == result.candidates == len(pool.screened)
    assert pool.closed
    assert used().product == FASTEST
    (entry,) = stored(home).entries
    assert (entry.n, entry.sign, entry.evaluated) == (1024, "nonnegative", len(pool.screened))
    assert entry.speedup == pytest.approx(pool.time_ms(PRODUCT, DEFAULT) / 1.0)
    assert entry.config == {"product": dataclasses.asdict(FASTEST)}
    assert result.path == home / "tuned" / describe(CPU).slug / "cpu-product-float32.json"


def test_the_final_is_among_the_best_the_default_and_the_configuration_in_use() -> None:
    run(SyntheticPool())
    pool = SyntheticPool(flat=True)
    run(pool)
    ((_, configs),) = pool.finals
    assert configs[0].product == DEFAULT.product
    assert configs[1].product == FASTEST
    assert len(configs) == len(set(configs)) == 5


def test_the_default_stays_unless_beaten_beyond_the_noise(home: Path) -> None:
    run(SyntheticPool(spread=0.6))
    assert used().product == DEFAULT.product
    assert stored(home).entries[0].speedup == 1


def test_nothing_is_written_for_a_configuration_in_use_that_stays(home: Path) -> None:
    run(SyntheticPool())
    before = stored(home)
    (result,) = run(SyntheticPool(flat=True)).results
    assert (result.path, stored(home)) == (None, before)


def test_an_entry_in_the_directory_of_the_run_is_the_one_in_use(home: Path) -> None:
    """--save-dir names a directory that no lookup searches; a tuning run there must not make its
    entries worse.
    """
    run(SyntheticPool(), save_dir=home / "elsewhere")
    pool = SyntheticPool(flat=True)
    (result,) = run(pool, save_dir=home / "elsewhere").results
    ((_, configs),) = pool.finals
    assert FASTEST in [config.product for config in configs]
    assert not result.winner.changed
    assert used().product == DEFAULT.product, "the end of the run is the end of its use"


class TestSolve:
    def test_a_solve_uses_the_tiles_found_before_and_counts_the_whole_gain(
        self, home: Path
    ) -> None:
        pool = SyntheticPool()
        product, solve = run(pool, PRODUCT, SOLVE).results
        assert {config.product for task, config in pool.screened if task == SOLVE} == {FASTEST}
        assert solve.winner.config["cutoff"] == 128
        assert solve.winner.default_ms == pool.time_ms(
            SOLVE, dataclasses.replace(DEFAULT, method="kleene")
        )
        assert stored(home, "solve").entries[0].speedup > product.winner.speedup > 1
        assert (used().cutoff, used().method, used().product) == (128, "kleene", FASTEST)

    def test_a_solve_uses_the_tiles_although_its_entry_kept_the_defaults_of_all_fields(
        self,
    ) -> None:
        run(SyntheticPool(), PRODUCT)
        kept = {name: to_fields(DEFAULT)[name] for name in ("block_size", "cutoff", "product")}
        entry = entry_of(1024, kept, "nonnegative")
        tuned.save(file_of("cpu", "solve", "float32", describe(CPU), entry))
        assert used().product == DEFAULT.product
        baselines = baselines_of(SOLVE, CPU)
        assert (baselines.base.product, baselines.incumbent.product) == (
            FASTEST,
            DEFAULT.product,
        )


def test_a_winner_of_another_size_is_tried_early() -> None:
    pool = SyntheticPool()
    run(pool, PRODUCT, dataclasses.replace(PRODUCT, n=2048), trials=30)
    early = [config.product for task, config in pool.screened if task.n == 2048][:3]
    assert used().product in early


def test_ranked_neighbours_are_tried_before_random_candidates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, space = SyntheticPool(), PRODUCT.record.space
    ranked = [CpuTiles(192, 512, 64), CpuTiles(2048, 128, 768)]
    monkeypatch.setattr(
        "tri_apsp.tune.run.ranked_neighbours",
        lambda task, device, base: [
            space.values(dataclasses.replace(DEFAULT, product=tiles)) for tiles in ranked
        ],
    )
    run(pool, dataclasses.replace(PRODUCT, n=2048), trials=12)
    assert [config.product for _, config in pool.screened][:3] == [DEFAULT.product, *ranked]


def fails_in_the_final(product: CpuTiles) -> SyntheticPool:
    """Return a pool in which the configurations with these tiles are wrong in the final only."""
    pool = SyntheticPool()

    def spoil() -> None:
        pool.fails = lambda task, config: (
            OutcomeKind.wrong_result if config.product == product else None
        )

    pool.before_final = spoil
    return pool


class TestFailures:
    def test_failure_of_all_configurations_is_an_error_and_stores_nothing(self, home: Path) -> None:
        pool = SyntheticPool(fails=lambda task, config: OutcomeKind.runtime_error)
        with pytest.raises(
            EngineError,
            match=r"all of .* failed \(the last: runtime error: fake\); no result was saved",
        ):
            run(pool, trials=20)
        assert pool.closed
        assert not (home / "tuned").exists()

    def test_a_default_that_fails_in_the_final_is_an_error(self, home: Path) -> None:
        pool = fails_in_the_final(DEFAULT.product)
        with pytest.raises(
            EngineError, match=r"the final \(wrong result: fake\); no result was saved"
        ):
            run(pool)
        assert not (home / "tuned").exists()

    def test_a_winner_that_fails_in_the_final_is_excluded(self) -> None:
        """A result may be right when a configuration is screened, and wrong in the final."""
        run(fails_in_the_final(FASTEST))
        assert used().product not in (FASTEST, DEFAULT.product)


def press_ctrl_c(at: int) -> Any:
    def press(count: int) -> None:
        if count == at:
            _thread.interrupt_main()
            time.sleep(0.2)

    return press


class TestInterrupt:
    @pytest.mark.parametrize("in_final", [False, True])
    def test_an_interrupted_task_writes_nothing(self, home: Path, in_final: bool) -> None:
        def press() -> None:
            _thread.interrupt_main()
            time.sleep(0.2)

        pool = (
            SyntheticPool(before_final=press)
            if in_final
            else SyntheticPool(before=press_ctrl_c(60))
        )
        result = run(pool, PRODUCT, SOLVE)
        assert (result.interrupted, result.results) == (True, ())
        assert pool.closed
        assert not (home / "tuned").exists()

    def test_an_interrupted_run_is_resumed(self, home: Path) -> None:
        run(SyntheticPool(before=press_ctrl_c(10)), PRODUCT, SOLVE, trials=20)
        second = SyntheticPool(before=press_ctrl_c(15))
        run(second, PRODUCT, SOLVE, trials=20, resume=True)
        third = SyntheticPool()
        result = run(third, PRODUCT, SOLVE, trials=20, resume=True)
        # The product was finished by the second, which also evaluated three configurations of the
        # solve.
        assert [task for task, _ in second.screened].count(PRODUCT) == 11
        assert [task for task, _ in third.screened] == [SOLVE] * (20 - 3)
        assert [done.resumed for done in result.results] == [True, False]
        assert len(result.results[1].trials) == 20

    def test_a_finished_run_is_resumed_without_its_file(self, home: Path) -> None:
        run(SyntheticPool(), trials=20)
        (before,) = stored(home).entries
        next((home / "tuned").glob("*/*.json")).unlink()
        pool = SyntheticPool()
        run(pool, trials=20, resume=True)
        assert stored(home).entries == (before,)
        assert pool.screened == []


class TestTime:
    def test_time_is_shared_and_unused_time_goes_to_later_tasks(self, clock: Clock) -> None:
        pool = SyntheticPool(before=lambda _: clock.advance(0.1))
        product, solve = run(pool, PRODUCT, SOLVE, time_budget=10.0).results
        assert clock.now <= 10
        assert 5 < len(product.trials) < product.candidates
        assert len(solve.trials) > 5
        assert pool.ahead == [SOLVE]  # its default is compiled meanwhile

    def test_tasks_are_left_out_at_the_end_of_the_time(self, clock: Clock) -> None:
        pool = SyntheticPool(before=lambda count: clock.advance(2.0 * (count > 1)))
        product, *others = run(pool, PRODUCT, SOLVE, time_budget=1.5).results
        assert len(product.trials) == 2
        assert product.winner is not None
        assert others == []

    def test_time_for_the_default_only_is_too_little(self, home: Path, clock: Clock) -> None:
        """An entry would say that the default is the best of one, and be in the way of a tuner with
        more time.
        """
        pool = SyntheticPool(before=lambda _: clock.advance(0.2))
        with pytest.raises(
            EngineError,
            match=r"but 0\.1 s sufficed for only the default of .*; give more --time-budget",
        ):
            run(pool, PRODUCT, time_budget=0.1)
        assert pool.finals == []
        assert not (home / "tuned").exists()


class TestSeveralCards:
    def test_trials_are_shared_and_the_difference_of_the_cards_is_stated(self) -> None:
        pool = SyntheticPool(
            cards={"a:cuda:0": 1.0, "a:cuda:1": 1.05}, left_out={"a:cuda:2": "No."}
        )
        plan = TuningPlan((PRODUCT,), (CPU, torch.device("cpu", 0)), Settings())
        found = run_plans([plan], shown=False, make_pool=lambda devices: pool)
        (result,) = found.results
        assert [card.card for card in result.cards] == list(pool.cards)
        assert abs(result.cards[0].measured - result.cards[1].measured) <= 1
        assert sum(card.measured for card in result.cards) == len(result.trials) > 30
        assert result.cards_ratio == pytest.approx(1.05)
        assert "2 cards, the slowest 1.050 times the fastest" in outcome_line(result)
        assert used().product == FASTEST
        content = json.loads(json.dumps(found.to_dict()))
        assert content["left_out"] == {"a:cuda:2": "No."}
        (row,) = content["results"]
        assert (row["final_on"], row["cards_ratio"]) == ("a:cuda:0", result.cards_ratio)
        assert row["cards"][1]["default_ms"] == pytest.approx(1.05 * row["cards"][0]["default_ms"])

    def test_a_single_card_is_not_compared(self) -> None:
        (result,) = run(SyntheticPool(cards={"a:cpu": 1.0}), trials=20).results
        assert [(card.card, card.default_ms) for card in result.cards] == [("a:cpu", None)]
        assert "card" not in outcome_line(result)

    def test_models_are_tuned_one_after_another_each_by_a_pool_of_its_own(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = describe(CPU)

        def described(device: torch.device) -> Device:
            if device.index is None:
                return real
            return dataclasses.replace(real, name="Other", slug="other")

        for module in ("device", "tune.run", "console.machine"):
            monkeypatch.setattr(f"tri_apsp.{module}.describe", described)
        pools: dict[tuple[torch.device, ...], SyntheticPool] = {}

        def make(devices: tuple[torch.device, ...]) -> SyntheticPool:
            assert all(pool.closed for pool in pools.values())
            return pools.setdefault(devices, SyntheticPool())

        plans = [
            TuningPlan((PRODUCT,), devices, Settings(trials=20))
            for devices in ((CPU,), (torch.device("cpu", 0), torch.device("cpu", 1)))
        ]
        results = run_plans(plans, shown=False, make_pool=make).results
        assert list(pools) == [plan.devices for plan in plans]
        assert [result.device for result in results] == [real.name, "Other"]
        assert [result.path.parent.name for result in results] == [real.slug, "other"]


class TestFiles:
    def test_an_unusable_file_is_refused_before_anything_is_measured(self, home: Path) -> None:
        run(SyntheticPool())
        path = next((home / "tuned").glob("*/*.json"))
        path.write_text("{")
        pool = SyntheticPool()
        with pytest.raises(InputError, match="--force"):
            run(pool)
        assert pool.screened == []
        run(pool, force=True)
        assert used().product == FASTEST
