"""The search: what it finds on recorded times, how often it evaluates, and what the study gets."""

import csv
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import optuna
import pytest
from clock import Clock
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import TrialState
from tune.synthetic import correct

from tri_apsp.tune.outcome import Evaluated, Outcome, OutcomeKind, ranked
from tri_apsp.tune.search import Search
from tri_apsp.tuned.records import Space, Values, record_of

REPORTS = Path(__file__).resolve().parents[2] / "reports"
RECORDED = {
    "nvidia-h200/tuning/runs/exhaustive": ("nvidia", "product", "float32", "4096"),
    "amd-epyc-2-cores/tuning/runs/full": ("cpu", "product", "int16", "1024"),
}

Key = tuple[Any, ...]


@cache
def recorded(folder: str) -> tuple[Space, dict[Key, float], Values]:
    """Return the space, the time of each candidate, and the default of a task of which every
    candidate was measured.
    """
    task = RECORDED[folder]
    space, times, default = record_of(*task[:2]).space, {}, {}
    with (REPORTS / folder / "trials.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            if tuple(row[name] for name in ("engine", "kernel", "dtype", "n")) == task:
                values = {p.name: int(row[p.name]) for p in space.parameters}
                times[tuple(values.values())] = float(row["p50_ms"])
                default = values if row["origin"] == "default" else default
    return space, times, default


class Recorded:
    """An evaluator of recorded times that notes its calls; `fails` returns a class of failure."""

    def __init__(
        self,
        folder: str = "amd-epyc-2-cores/tuning/runs/full",
        fails: Callable[[Values], OutcomeKind | None] = lambda values: None,
        before: Callable[[int], object] = lambda count: None,
    ) -> None:
        self.space, self.times, self.default = recorded(folder)
        self.calls: list[Values] = []
        self.slow: list[bool] = []
        self._fails, self._before = fails, before

    @property
    def candidates(self) -> list[Values]:
        names = [parameter.name for parameter in self.space.parameters]
        return [dict(zip(names, key, strict=True)) for key in self.times]

    def __call__(
        self, values: Values, is_slow: Callable[[float], bool], is_late: Callable[[], bool]
    ) -> Outcome | None:
        self.calls.append(values)
        self._before(len(self.calls))
        if is_late():
            return None
        kind = self._fails(values)
        if kind is not None:
            return Outcome(kind, message="fake")
        ms = self.times[tuple(values.values())]
        self.slow.append(is_slow(ms))
        return correct(ms)

    def search(self, study: optuna.Study | None = None, **options: Any) -> list[Evaluated]:
        options = {"trials": 40, "candidates": self.candidates} | options
        parallel = options.pop("parallel", 1)
        search = Search(
            self.space,
            options.pop("candidates"),
            study=study or new_study(),
            default=self.default,
            **options,
        )
        return search.run(self, parallel)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {p.name: CategoricalDistribution(p.choices) for p in self.space.parameters}


def new_study() -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study()


@pytest.mark.parametrize(("folder", "seeds"), list(zip(RECORDED, (1, 3), strict=True)))
def test_a_hundred_trials_come_within_3_percent_of_the_best_of_all(folder: str, seeds: int) -> None:
    for seed in range(seeds):
        replay = Recorded(folder)
        assert len(replay.times) > 130
        result = replay.search(trials=100, seed=seed)
        assert len(replay.calls) == 100
        assert ranked(result)[0].outcome.median_ms < 1.03 * min(replay.times.values())


def test_all_candidates_are_evaluated_once_if_the_budget_allows() -> None:
    replay = Recorded()
    result = replay.search(trials=len(replay.times))
    assert Counter(tuple(values.values()) for values in replay.calls) == dict.fromkeys(
        replay.times, 1
    )
    assert ranked(result)[0].outcome.median_ms == min(replay.times.values())


def test_nothing_is_evaluated_twice_and_nothing_but_candidates() -> None:
    """With almost all candidates, TPE proposes the best of them again and again."""
    replay, study = Recorded(), new_study()
    some = replay.candidates[::4]
    result = replay.search(study, candidates=some, trials=len(some) - 1)
    assert len(replay.calls) == len(result) == len(some) - 1
    assert len({tuple(values.values()) for values in replay.calls}) == len(replay.calls)
    assert all(values in [*some, replay.default] for values in replay.calls)
    assert len(study.trials) > len(replay.calls), "the study was told of what was in vain"


def test_the_default_comes_first_even_as_no_candidate_then_the_anchors() -> None:
    replay = Recorded()
    others = [values for values in replay.candidates if values != replay.default]
    unknown = dict.fromkeys(replay.default, 7)
    replay.search(candidates=others, anchors=[others[7], unknown, others[9]])
    assert replay.calls[:3] == [replay.default, others[7], others[9]]


def test_the_same_seed_gives_the_same_search() -> None:
    first, again, other = Recorded(), Recorded(), Recorded()
    for replay, seed in ((first, 1), (again, 1), (other, 2)):
        replay.search(trials=25, seed=seed)
    assert first.calls == again.calls != other.calls


def test_slow_configurations_are_pruned_after_one_run() -> None:
    replay, study = Recorded(), new_study()
    replay.search(study)
    assert not replay.slow[0]
    assert 10 < sum(replay.slow) < 35
    complete = study.get_trials(states=(TrialState.COMPLETE,))
    assert len(complete) == len(replay.calls) - sum(replay.slow)


def test_failures_are_pruned_with_their_class() -> None:
    def fails(values: Values) -> OutcomeKind | None:
        if values == replay.default or values["product.block_k"] > 256:
            return None
        return OutcomeKind.compile_error

    replay, study = Recorded(fails=fails), new_study()
    replay.search(study, trials=len(replay.times))
    failed = sum(fails(values) is not None for values in replay.calls)
    kinds = [trial.user_attrs["outcome"]["kind"] for trial in study.trials]
    assert kinds.count("compile error") == failed > 3
    assert TrialState.FAIL not in {trial.state for trial in study.trials}


def test_a_resumed_search_evaluates_only_what_is_not_known() -> None:
    """Failures at run time are tried again, those of a compiler are not."""

    def fails(values: Values) -> OutcomeKind | None:
        kinds = {64: OutcomeKind.compile_error, 128: OutcomeKind.timeout}
        return kinds.get(int(values["product.block_k"]))

    study, first, second = new_study(), Recorded(fails=fails), Recorded()
    first.search(study, trials=len(first.times))
    result = second.search(study, trials=len(first.times))
    assert second.calls == [
        values for values in first.calls if fails(values) is OutcomeKind.timeout
    ]
    assert len(result) == len(first.times)
    third = Recorded()
    third.search(study, trials=len(first.times))
    assert third.calls == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupt_or_an_error_keeps_the_finished_evaluations(
    error: type[BaseException],
) -> None:
    def stop(count: int) -> None:
        if count == 20:
            raise error

    study = new_study()
    with pytest.raises(error):
        Recorded(before=stop).search(study)
    assert not study.get_trials(states=(TrialState.RUNNING,))
    replay = Recorded()
    assert len(replay.search(study, trials=25)) == 25
    assert len(replay.calls) == 25 - 19


def test_the_time_limit_ends_a_search_but_not_before_the_default(clock: Clock) -> None:
    for end, count in ((1.0, 1), (20.0, 10)):
        replay = Recorded(before=lambda count: clock.advance(2))
        clock.now = 0.0
        result = replay.search(end=end)
        assert len(result) in (count, count - 1)
        assert result[0].values == replay.default


def test_several_evaluations_run_at_once() -> None:
    running, most = 0, 0

    def wait(count: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)
        running -= 1

    replay = Recorded(before=wait)
    result = replay.search(trials=30, parallel=3)
    assert most > 1
    assert len({tuple(values.values()) for values in replay.calls}) == 30
    assert len(result) == 30


class TestSharedStudy:
    """Several processes search in one study, each with a Search of its own."""

    def test_two_searches_evaluate_each_configuration_once(self) -> None:
        study = new_study()
        both = [Recorded(before=lambda count: time.sleep(0.002)) for _ in range(2)]
        found: list[list[Evaluated]] = []
        threads = [
            threading.Thread(
                target=lambda each=each: found.append(
                    each.search(
                        optuna.load_study(study_name=study.study_name, storage=study._storage),
                        trials=len(each.times),
                        parallel=2,
                    )
                )
            )
            for each in both
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        assert all(len(each.calls) > 20 for each in both)
        # Those that the other one still ran at the end are taken over, and evaluated twice.
        assert sum(len(each.calls) for each in both) < len(both[0].times) + 6
        for evaluated in found:
            keys = Counter(tuple(trial.values.values()) for trial in evaluated)
            assert keys == dict.fromkeys(both[0].times, 1)

    @pytest.mark.parametrize("trials", [30, 1000])
    def test_trials_of_a_process_that_was_killed_are_taken_over_at_the_end(
        self, trials: int
    ) -> None:
        study, replay = new_study(), Recorded()
        lost = [values for values in replay.candidates if values != replay.default][:3]
        for values in lost:
            study.enqueue_trial(values)
            study.ask(replay.distributions)
        found = replay.search(study, trials=trials)
        count = min(trials, len(replay.times))
        assert len(replay.calls) == len(found) == count
        assert not study.get_trials(states=(TrialState.RUNNING,))
        assert len(study.get_trials(states=(TrialState.FAIL,))) == 3
        assert not any(values in lost for values in replay.calls[:-3])
        if trials == 1000:
            assert all(values in replay.calls[-3:] for values in lost)

    def test_a_process_that_was_killed_after_it_measured_has_evaluated(self) -> None:
        study, replay = new_study(), Recorded()
        lost = next(values for values in replay.candidates if values != replay.default)
        study.enqueue_trial(lost)
        trial = study.ask(replay.distributions)
        trial.set_user_attr("outcome", Outcome(OutcomeKind.timeout).to_dict())
        assert len(replay.search(study, trials=20)) == 20
        assert lost not in replay.calls
        assert not study.get_trials(states=(TrialState.RUNNING,))

    def test_nothing_is_taken_over_by_a_search_that_has_enough(self) -> None:
        study, replay = new_study(), Recorded()
        replay.search(study, trials=20)
        left = next(values for values in replay.candidates if values not in replay.calls)
        study.enqueue_trial(left)
        study.ask(replay.distributions)
        assert len(replay.search(study, trials=20)) == len(replay.calls) == 20
        assert len(study.get_trials(states=(TrialState.RUNNING,))) == 1

    def test_what_another_process_took_over_is_left_to_it(self) -> None:
        """Else both would fail the trials of each other, and the study would have no outcome."""
        study, replay = new_study(), Recorded()

        def take_over(count: int) -> None:
            if count == len(replay.times):
                (trial,) = study.get_trials(states=(TrialState.RUNNING,))
                study.tell(trial.number, state=TrialState.FAIL)
                study.enqueue_trial(trial.params)
                study.ask(replay.distributions)

        replay._before = take_over
        assert len(replay.search(study, trials=1000)) == len(replay.times)
        assert len(study.get_trials(states=(TrialState.RUNNING,))) == 1

    def test_a_trial_that_was_taken_over_counts_where_it_ran(self) -> None:
        study = new_study()

        def take_over(count: int) -> None:
            if count == 15:
                for trial in study.get_trials(states=(TrialState.RUNNING,)):
                    study.tell(trial.number, state=TrialState.FAIL)

        found = Recorded(before=take_over).search(study, trials=20)
        assert len(found) == 20
        assert len(study.get_trials(states=(TrialState.FAIL,))) == 1

    def test_what_crashes_elsewhere_meanwhile_is_not_tried_again(self) -> None:
        study, replay = new_study(), Recorded()
        bad = replay.candidates[-1]

        def crash(count: int) -> None:
            if count == 3:
                study.enqueue_trial(bad)
                trial = study.ask(replay.distributions)
                trial.set_user_attr("outcome", Outcome(OutcomeKind.timeout).to_dict())
                study.tell(trial, state=TrialState.PRUNED)

        replay._before = crash
        found = replay.search(study, trials=1000)
        assert bad not in replay.calls[3:]
        assert len(found) == len(replay.times)
