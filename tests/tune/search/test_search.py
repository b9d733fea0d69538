"""The search on known times: what it finds, how often it evaluates, and which trials the study
gets.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import optuna
import pytest
from clock import Clock
from optuna.trial import TrialState
from tune.synthetic import (
    DEFAULT,
    OPTIMUM,
    SPACE,
    Costs,
    correct,
    cost,
    everything,
    new_study,
    until,
)

from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search import search as module
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.search.search import STARTUP, Search, known_trials
from tri_apsp.tune.space.candidates import needs_more
from tri_apsp.tune.workers.measurement_queue import MeasurementQueue, Request

ALL = everything()


def run(costs: Costs | None = None, **options: Any) -> SearchResult:
    options = {"study": new_study(), "default": DEFAULT, "trials": 40} | options
    evaluators = options.pop("evaluators", [costs or Costs()])
    return Search(SPACE, options.pop("candidates", ALL), **options).run(evaluators)


def best(result: SearchResult) -> float:
    return result.best_ms


@pytest.fixture
def mirrors(monkeypatch: pytest.MonkeyPatch) -> list[optuna.Study]:
    """The studies from which TPE samples, one per search, in their order."""
    made = list[optuna.Study]()

    def make() -> optuna.Study:
        made.append(new_study())
        return made[-1]

    monkeypatch.setattr("tri_apsp.tune.search.search.memory_study", make)
    return made


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_all_candidates_are_evaluated_if_the_budget_allows(sampler: str) -> None:
    costs = Costs()
    few = [DEFAULT, *ALL[::9], OPTIMUM]
    result = run(costs, candidates=few, trials=len(few), sampler=sampler)
    assert result.best is not None
    assert result.best.values == OPTIMUM
    assert costs.most_often == 1
    assert {tuple(values.values()) for values in costs.calls} == {
        tuple(values.values()) for values in few
    }


def test_tpe_beats_random_on_average() -> None:
    reached = {
        sampler: np.mean(
            [1 / best(run(sampler=sampler, seed=seed, trials=30)) for seed in range(8)]
        )
        for sampler in ("tpe", "random")
    }
    assert reached["tpe"] > reached["random"] + 0.03
    assert reached["tpe"] > 0.93


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_evaluated_twice_and_nothing_but_candidates(
    seed: int, mirrors: list[optuna.Study]
) -> None:
    study, costs = new_study(), Costs()
    # Almost all of the candidates: TPE proposes the best of them again and again.
    some = [DEFAULT, *(values for values in ALL[::12] if values != DEFAULT)]
    result = run(costs, study=study, candidates=some, trials=len(some) - 1, seed=seed)
    assert [trial.params for trial in study.trials] == costs.calls
    assert len(mirrors[0].trials) > len(study.trials)  # it was told of what it proposed in vain
    assert len(result.evaluated) == len(costs.calls) == len(some) - 1
    assert costs.most_often == 1
    assert all(values in some for values in costs.calls)


def test_the_budget_is_kept() -> None:
    costs = Costs()
    assert len(run(costs, trials=17).evaluated) == len(costs.calls) == 17


def test_the_default_comes_first_even_as_no_candidate_then_the_anchors() -> None:
    costs = Costs()
    result = run(
        costs,
        candidates=[v for v in ALL if v != DEFAULT],
        anchors=[ALL[7], DEFAULT | {"method": "none"}, ALL[9]],
    )
    assert costs.calls[:3] == [DEFAULT, ALL[7], ALL[9]]
    assert [trial.origin for trial in result.evaluated[:5]] == [
        "default",
        "anchor",
        "anchor",
        "anchor",
        "start",
    ]


def test_the_same_seed_gives_the_same_search() -> None:
    first, again, other = Costs(), Costs(), Costs()
    for costs, seed in ((first, 1), (again, 1), (other, 2)):
        run(costs, seed=seed)
    assert first.calls == again.calls != other.calls


def test_anchors_count_among_the_first_random_candidates() -> None:
    for anchors in ([], [ALL[7]], [ALL[7], ALL[9]]):
        origins = Counter(trial.origin for trial in run(anchors=anchors).evaluated)
        assert origins["start"] == STARTUP - 2 - len(
            anchors
        )  # the default and the median one are the others


def test_a_climb_takes_one_step_from_the_best() -> None:
    positions = {parameter.name: parameter.choices.index for parameter in SPACE.parameters}
    steps = list[int]()
    for seed in range(3):
        trials = run(trials=40, seed=seed).evaluated
        for index, trial in enumerate(trials):
            if trial.origin == "climb":
                best = min(trials[:index], key=lambda known: known.outcome.median_ms).values
                steps.append(
                    sum(
                        abs(at(best[name]) - at(trial.values[name]))
                        for name, at in positions.items()
                    )
                )
    assert len(steps) > 10
    assert set(steps) == {1}


def test_a_resumed_search_draws_other_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, study, real = list[int](), new_study(), module._tpe_sampler
    monkeypatch.setattr(module, "_tpe_sampler", lambda seed: seeds.append(seed) or real(seed))
    run(study=study, trials=15, seed=3)
    run(study=study, trials=20, seed=3)
    assert seeds == [3, 3 + 15]


def test_a_search_ends_with_a_climb() -> None:
    origins = Counter(trial.origin for trial in run(trials=40).evaluated)
    assert origins["climb"] >= 5
    assert origins["tpe"] >= 15


def test_an_evaluation_gives_up_at_twice_the_best() -> None:
    costs = Costs()
    run(costs, trials=12)
    assert costs.limits[0] is None
    for index, limit in enumerate(costs.limits[1:], 1):
        assert limit == pytest.approx(2 * min(map(cost, costs.calls[:index])))


class TestFailures:
    KINDS = (Kind.compile_error, Kind.wrong_result, Kind.timeout)

    def fails(self, values: dict[str, Any]) -> Kind | None:
        if values == DEFAULT or values["product.num_warps"] <= 2:
            return None
        return self.KINDS[SPACE.parameters[0].choices.index(values["product.block_m"]) % 3]

    def test_failures_are_counted_by_class_and_recorded_as_pruned(self) -> None:
        study, costs = new_study(), Costs(self.fails)
        result = run(costs, study=study)
        expected = Counter(
            kind for values in costs.calls if (kind := self.fails(values)) is not None
        )
        assert result.failures == expected
        assert sum(expected.values()) > 3
        told = Counter(
            Kind(trial.user_attrs["outcome"]["kind"])
            for trial in study.trials
            if trial.state is TrialState.PRUNED
        )
        assert told == expected
        assert [trial.params for trial in study.trials] == costs.calls
        assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}

    def test_tpe_avoids_failures(self) -> None:
        found = [
            trial
            for seed in range(5)
            for trial in run(Costs(self.fails), trials=60, seed=seed).evaluated
        ]
        failed = [
            trial.outcome.kind is not Kind.correct for trial in found if trial.origin == "tpe"
        ]
        assert np.mean(failed) < 0.8 * np.mean([self.fails(values) is not None for values in ALL])

    def test_a_search_in_which_all_fail_has_no_best(self) -> None:
        result = run(Costs(lambda values: Kind.runtime_error), trials=30)
        assert result.best is None
        assert result.failures == {Kind.runtime_error: 30}

    def test_candidates_that_need_more_than_one_that_did_not_fit_are_passed_over(self) -> None:
        costs = Costs(
            lambda values: Kind.does_not_fit if values["product.num_stages"] > 3 else None
        )
        result = run(costs, trials=len(ALL), sampler="random")
        assert result.dominated > 20
        assert len(costs.calls) + result.dominated == len(ALL)
        failed: list[dict[str, Any]] = []
        for values in costs.calls:
            assert not any(needs_more(values, other) for other in failed)
            failed += [values] if values["product.num_stages"] > 3 else []


class TestResume:
    def test_known_configurations_are_not_evaluated_again(self) -> None:
        study, first, second = new_study(), Costs(), Costs()
        run(first, study=study, trials=15)
        result = run(second, study=study, trials=40)
        assert len(result.evaluated) == 40
        assert len(second.calls) == 25
        assert [trial.values for trial in result.evaluated] == first.calls + second.calls
        assert not [values for values in second.calls if values in first.calls]

    def test_the_last_outcome_of_a_configuration_counts(self) -> None:
        study = new_study()
        run(Costs(lambda values: Kind.runtime_error), study=study, trials=15)
        assert {trial.outcome.kind for trial in known_trials(study)} == {Kind.runtime_error}
        result = run(study=study, trials=15)
        known = {tuple(trial.values.items()): trial.outcome for trial in known_trials(study)}
        assert [known[tuple(trial.values.items())] for trial in result.evaluated] == [
            t.outcome for t in result.evaluated
        ]

    def test_a_finished_search_evaluates_nothing(self) -> None:
        study, costs = new_study(), Costs()
        run(study=study, trials=20)
        assert len(run(costs, study=study, trials=20).evaluated) == 20
        assert costs.calls == []

    def test_compile_failures_are_remembered_but_no_failures_at_run_time(self) -> None:
        def fails(values: dict[str, Any]) -> Kind | None:
            if values["product.block_m"] == 16:
                return Kind.compile_error
            return Kind.timeout if values["product.block_m"] == 256 else None

        study, first, second = new_study(), Costs(fails), Costs()
        run(first, study=study, sampler="grid", trials=len(ALL))
        run(second, study=study, sampler="grid", trials=len(ALL))
        assert {values["product.block_m"] for values in second.calls} == {256}
        assert len(second.calls) == sum(values["product.block_m"] == 256 for values in ALL)

    def test_trials_of_another_machine_count(self) -> None:
        """Two searches share a study, as two machines share a database."""
        study, costs = new_study(), Costs()

        def meanwhile(count: int) -> None:
            if count == 5:
                run(study=study, sampler="random", seed=3, trials=20)

        result = run(
            Costs(before=meanwhile, calls=costs.calls),
            study=study,
            sampler="random",
            seed=4,
            trials=30,
        )
        assert len(result.evaluated) == 30
        assert 10 <= len(costs.calls) < 20

    def test_tpe_learns_what_every_machine_finished_once(self, mirrors: list[optuna.Study]) -> None:
        def fails(values: dict[str, Any]) -> Kind | None:
            return Kind.timeout if values["product.block_m"] >= 64 else None  # which is tried again

        study = new_study()
        run(Costs(fails), study=study, sampler="grid", trials=20)

        def meanwhile(count: int) -> None:
            if count == 5:
                run(Costs(fails), study=study, sampler="random", seed=3, trials=50)

        run(Costs(before=meanwhile), study=study, sampler="random", seed=4, trials=80)
        earlier, ours, theirs = mirrors
        assert len(earlier.trials) == 20
        assert 40 < len(theirs.trials) < len(ours.trials)

        def content(known: optuna.Study) -> Counter[Any]:
            return Counter(
                (trial.state, trial.value, *sorted(trial.params.items())) for trial in known.trials
            )

        assert content(ours) == content(study)
        assert {trial.state for trial in ours.trials} == {TrialState.COMPLETE, TrialState.PRUNED}


class TestInterrupt:
    """An interrupt while a proposal of TPE is evaluated stores nothing of that proposal."""

    def test_an_interrupt_keeps_the_finished_evaluations(self, mirrors: list[optuna.Study]) -> None:
        study = new_study()

        def press(count: int) -> None:
            if mirrors[0].get_trials(states=(TrialState.RUNNING,)):
                _thread.interrupt_main()
                time.sleep(0.2)

        costs = Costs(before=press)
        result = run(costs, study=study)
        assert result.interrupted
        assert len(result.evaluated) >= 10
        assert [trial.values for trial in result.evaluated] == costs.calls[:-1]
        assert [trial.params for trial in study.trials] == costs.calls[:-1]
        assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}
        assert run(study=study).evaluated[: len(result.evaluated)] == result.evaluated

    def test_an_internal_error_is_raised(self, mirrors: list[optuna.Study]) -> None:
        study = new_study()

        def break_down(count: int) -> None:
            if mirrors[0].get_trials(states=(TrialState.RUNNING,)):
                raise OSError("no worker")

        costs = Costs(before=break_down)
        with pytest.raises(OSError, match="no worker"):
            run(costs, study=study)
        assert len(costs.calls) > 10
        assert [trial.params for trial in study.trials] == costs.calls[:-1]
        assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}


def test_the_time_limit_ends_a_search_but_not_before_the_default(clock: Clock) -> None:
    costs = Costs(before=lambda count: clock.advance(2))
    assert [trial.origin for trial in run(costs, seconds=1).evaluated] == ["default"]
    costs = Costs(before=lambda count: clock.advance(2))
    result = run(costs, seconds=20)
    assert len(costs.calls) == len(result.evaluated) == 10, (
        "nothing is proposed that cannot be measured"
    )


def test_the_reserve_depends_on_the_fastest(clock: Clock) -> None:
    asked = list[float]()

    def reserve(best_ms: float) -> float:
        asked.append(best_ms)
        return 20.0 if best_ms < cost(DEFAULT) else 0.0

    result = run(seconds=10.0, reserve=reserve)
    assert asked == sorted(asked, reverse=True)
    assert best(result) == asked[-1] < cost(DEFAULT) == asked[0]
    assert (
        [trial.outcome.median_ms for trial in result.evaluated].count(best(result))
        == 1
        < len(result.evaluated)
        < 40
    )
    assert result.evaluated[-1].outcome.median_ms == best(result)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_requests_that_wait_at_the_end_of_the_time_are_not_measured(
    sampler: str, clock: Clock
) -> None:
    queue, ready, measured = MeasurementQueue(), threading.Barrier(8), list[int]()

    def evaluate(values: dict[str, Any], request: Request) -> Outcome:
        if request.number < 8:
            ready.wait(60)  # eight are compiled at once, for one device
        with queue.enter(request.number):
            request.limit_ms()
            measured.append(request.number)
            if len(measured) == 1:
                until(lambda: len(queue._waiting) == 7)
            clock.advance(0.3)
            return correct(cost(values))

    study = new_study()
    result = run(evaluators=[evaluate] * 8, seconds=0.7, sampler=sampler, study=study)
    assert len(measured) == len(study.trials) <= 3
    assert (
        measured[1:]
        == [number for number in range(8) if number != measured[0]][: len(measured) - 1]
    )
    assert "default" in [trial.origin for trial in result.evaluated]


def test_the_default_is_measured_however_late(clock: Clock) -> None:
    def evaluate(values: dict[str, Any], request: Request) -> Outcome:
        clock.advance(0.2)
        request.limit_ms()
        return correct(cost(values))

    assert [trial.origin for trial in run(evaluators=[evaluate] * 4, seconds=0.1).evaluated] == [
        "default"
    ]


def test_several_workers_share_one_search() -> None:
    together, seen = threading.Barrier(3), list[list[dict[str, Any]]]([[], [], []])

    def worker(index: int) -> Any:
        def evaluate(values: dict[str, Any], request: Request) -> Outcome:
            seen[index].append(values)
            if len(seen[index]) == 1:
                together.wait(10)  # all three are under way at once
            return Costs()(values, request)

        return evaluate

    result = run(evaluators=[worker(index) for index in range(3)], trials=45)
    keys = [tuple(values.values()) for found in seen for values in found]
    assert len(keys) == len(set(keys)) == len(result.evaluated) == 45
    assert min(map(len, seen)) > 0
    assert best(result) < 1.2
