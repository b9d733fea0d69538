"""Tune one thing after another: search, a final among the best, and a tuned file with the winner."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from tri_apsp import tuned
from tri_apsp.configs import Config, default_config, from_fields, to_fields
from tri_apsp.device import describe
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.measure.measurement import TURN_SECONDS
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.search.evaluated import Evaluated, SearchResult
from tri_apsp.tune.search.search import STARTUP, known_trials, memory_study, neighbours, opening, search
from tri_apsp.tune.search.studies import open_storage, open_study, study_name
from tri_apsp.tune.space.space import Space, Values, candidates, space_hash, space_of
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Contest, contest_of, own_fields
from tri_apsp.tune.sweep.decision import GAIN, beats, judged, measured, timed, times, unlike
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.prefetch import Ahead
from tri_apsp.tune.sweep.result import SweepResult, TaskResult
from tri_apsp.tune.sweep.result_writer import Keeper, clock
from tri_apsp.tune.sweep.task_run import Race
from tri_apsp.tune.workers.pool import Bench

__all__ = ["GAIN", "beats", "sweep"]

# The final gets the time of its rounds, as far as that is known, and of what goes before them; a part of the task's at most,
# unless one of the fastest takes more.
_FINAL_SECONDS, _FINAL = 3.0, 0.25
# The part that a solve takes before the tiles of its products are looked at again.
_BEFORE_RECHECK = 0.75
# What a run of the final takes besides the time that it measures: operands are copied, caches flushed.
_OVERHEAD = 2.0
_LEAST_ROUNDS = 2
# What an entrant of the final runs at least: it is compared, warms up, and has two turns a round.
_LEAST_RUNS = 2 + 2 * _LEAST_ROUNDS


def sweep(plan: Plan, make_bench: Callable[[], Bench], progress: Progress) -> SweepResult:
    """Tune each task of `plan`, and keep each winner in a tuned file as soon as it is known.

    Ctrl-C ends the sweep: what is known is kept, marked as incomplete, and returned.

    Args:
        plan: what to tune.
        make_bench: makes what measures; called when all that can be refused was not.
        progress: told of what happens.

    Raises:
        InputError: the studies or the tuned files cannot be kept.
        EngineError: not one task could be tuned.
    """
    facts = describe(plan.devices[0])
    keeper = Keeper(plan)
    keeper.check()
    run = _Sweep(plan, progress, keeper)
    try:
        with open_storage(plan.settings.storage, facts.slug) as storage, closing(progress), closing(make_bench()) as bench:
            run.run(storage, bench)
    except KeyboardInterrupt:
        run.interrupted = True
    if run.results and all(result.error for result in run.results):
        raise EngineError(run.results[0].error)
    return SweepResult(facts, len(plan.devices), tuple(run.results), time.monotonic() - run.start, run.interrupted)


class _Sweep:
    """The state of a sweep."""

    def __init__(self, plan: Plan, progress: Progress, keeper: Keeper) -> None:
        self._plan, self._settings, self._progress, self._keeper = plan, plan.settings, progress, keeper
        self._device = describe(plan.devices[0])
        self.start = time.monotonic()
        self.results: list[TaskResult] = []
        self.interrupted = False
        self._solves: dict[Task, optuna.Study] = {}

    def run(self, storage: BaseStorage, bench: Bench) -> None:
        """Tune the tasks, each within an equal share of the time that is left."""
        tasks = self._plan.tasks
        end = self.start + self._settings.seconds(len(tasks))
        for index, task in enumerate(tasks):
            left = end - time.monotonic()
            if self.interrupted or (left <= 0 and index):
                return
            try:
                after = tasks[index + 1] if index + 1 < len(tasks) else None
                result = self._tune(task, after, storage, bench, left / (len(tasks) - index))
            except InputError:
                raise  # of the studies or the files, which the other tasks need as well
            except ApspError as error:
                result = TaskResult(task, error=str(error))
            self.results.append(result)
            self._progress.finished(result)

    def _tune(self, task: Task, after: Task | None, storage: BaseStorage, bench: Bench, seconds: float) -> TaskResult:
        """Tune `task`; the bench has time to compile for the one `after` it meanwhile."""
        start = time.monotonic()
        space, contest = space_of(task), contest_of(task, self._plan.devices[0])
        study = self._study(task, space, contest, storage, resume=self._settings.resume)
        if task.kernel == "solve":
            self._solves[task] = study
        if self._is_done(study):
            return self._again(task, space, study)
        product = self._product_of(task)
        share = seconds if product is None else _BEFORE_RECHECK * seconds
        allowed = candidates(space, task, self._device, contest.default)
        race = Race(task, contest, allowed, bench, share, start + share)
        searching = time.monotonic()
        found = self._search(race, study, after)
        searched = time.monotonic()
        outcomes = self._final(race, found)
        result = judged(task, contest, found, outcomes, complete=not self.interrupted)
        if product is not None and result.complete and result.config is not None and "product" not in result.config:
            result = self._recheck(result, contest, product, bench, start + seconds)
        decided = time.monotonic()
        result = dataclasses.replace(
            self._keeper.keep(result, space),
            seconds=time.monotonic() - start,
            prepare_seconds=searching - start + found.waited,
            final_seconds=decided - searched,
        )
        self._record(result, study, storage)
        return result

    def _search(self, race: Race, study: optuna.Study, after: Task | None) -> SearchResult:
        """Search the fastest candidates of a task.

        Raises:
            EngineError: there is none.
        """
        task, space, bench, settings = race.task, race.space, race.bench, self._settings
        self._progress.started(task, min(settings.budget.trials, len(race.candidates)), race.end)
        finalists = Ahead(bench, task, race.known, settings.budget.finalists, race.config)

        def evaluated(trial: Evaluated) -> None:
            nonlocal after
            self._progress.evaluated(trial)
            if after is not None:
                bench.ahead(after, partial(self._first_of, after, task))
                after = None
            finalists.evaluated(trial)

        found = search(
            space,
            race.candidates,
            bench.evaluators(task, race.config),
            study=study,
            default=space.values(race.contest.default),
            anchors=self._anchors(task, space, race.contest),
            sampler=settings.sampler,
            seed=settings.seed,
            trials=settings.budget.trials,
            seconds=race.seconds,
            leave=self._final_seconds(race.seconds, len(race.known)),
            on_trial=evaluated,
        )
        self.interrupted = found.interrupted
        if found.best is None and not found.interrupted:
            raise EngineError(_all_failed(task, found))
        return found

    def _final(self, race: Race, found: SearchResult) -> dict[Config, Outcome]:
        """Return what became of the finalists; where the sweep is interrupted, of the default and the fastest in the search."""
        best = [race.config(trial.values) for trial in found.ranked]
        if not self.interrupted:
            entrants = self._entrants(race.known, best, found, race.end)
            self._progress.final(len(entrants))
            try:
                outcomes = race.bench.final(race.task, entrants, self._rounds(found, len(entrants), race.end))
                return dict(zip(entrants, outcomes, strict=True))
            except KeyboardInterrupt:
                self.interrupted = True
        # Only those of the same rest were screened.
        screened = {tuple(trial.values.values()): trial.outcome for trial in found.evaluated}
        unknown = Outcome(Kind.timeout, message="interrupted")
        entrants = unlike([race.contest.default, *best[:1]])
        return {config: screened.get(tuple(race.space.values(config).values()), unknown) for config in entrants}

    def _record(self, result: TaskResult, study: optuna.Study, storage: BaseStorage) -> None:
        """Let --resume find a result that is complete."""
        if result.complete:
            study.set_user_attr("result", {"asked": self._asked, **result.to_dict()})
        if result.product is not None:
            self._rename_solves(storage)

    @property
    def _asked(self) -> list[Any]:
        """What a result depends on that the name of its study does not say."""
        return [self._settings.effort, self._settings.trials, self._settings.time_budget]

    def _is_done(self, study: optuna.Study) -> bool:
        """Return whether the study has the result that is asked for."""
        done = study.user_attrs.get("result")
        return done is not None and done["asked"] == self._asked

    def _first_of(self, task: Task, now: Task) -> list[Config]:
        """Return what the search of `task` will begin with, as far as that is known while `now` is searched."""
        if self._settings.resume or (task.kernel == "solve" and now.kernel != "solve"):
            return []  # the study may know them; and a solve will take the tiles that are found for its products until then
        space, contest = space_of(task), contest_of(task, self._plan.devices[0])
        first = opening(
            space,
            candidates(space, task, self._device, contest.default),
            default=space.values(contest.default),
            anchors=self._anchors(task, space, contest),
            sampler=self._settings.sampler,
            seed=self._settings.seed,
            trials=self._settings.budget.trials,
            count=STARTUP,
        )
        return [space.config(values, contest.default) for values in first]

    def _product_of(self, task: Task) -> TaskResult | None:
        """Return what this sweep found for the products of a solve by themselves, at the size of the solve."""
        if task.kernel != "solve":
            return None
        wanted = [dataclasses.replace(task, kernel="product", sign=sign) for sign in (task.sign, "any")]
        known = [result for sign in wanted for result in self.results if result.task == sign and result.config is not None]
        return next(iter(known), None)

    def _recheck(self, result: TaskResult, contest: Contest, product: TaskResult, bench: Bench, end: float) -> TaskResult:
        """Time a tuned solve with product tiles one step from those found for the product alone, and keep what wins.

        Such tiles replace the product's entry: products in a solve have other shapes, and find other data in the cache.
        """
        assert result.config is not None
        left = end - time.monotonic()
        if left <= 0:
            return result
        task, space = result.task, space_of(product.task)
        base = from_fields(task.engine, result.config).over(contest.default)
        own = space.values(base)
        near = neighbours(space, own, candidates(space, product.task, self._device, base))
        config_of, known = partial(space.config, base=base), unlike([base, contest.plain])
        found = search(
            space,
            near,
            bench.evaluators(task, config_of),
            study=memory_study(),
            default=own,
            sampler="grid",
            trials=1 + len(near),
            seconds=left,
            leave=self._final_seconds(left, len(known)),
            on_trial=Ahead(bench, task, known, self._settings.budget.finalists, config_of).evaluated,
        )
        self.interrupted = found.interrupted
        result = measured(result, (trial.outcome for trial in found.evaluated))
        best = [config_of(trial.values) for trial in found.ranked]
        if self.interrupted or found.best is None or found.best.values == own:
            return result
        entrants = self._entrants(known, best, found, end)
        try:
            outcomes = dict(zip(entrants, bench.final(task, entrants, self._rounds(found, len(entrants), end)), strict=True))
            result = measured(result, outcomes.values())
            right = [config for config, outcome in outcomes.items() if outcome.kind is Kind.correct and config != contest.plain]
            winner = min(right, key=lambda config: times(outcomes[config])[1], default=base)
            if not beats(outcomes[winner], outcomes[base]) or outcomes[contest.plain].kind is not Kind.correct:
                return result
            default = space.config(space.values(default_config(task.engine, task.torch_dtype)), base)
            alone = bench.final(product.task, [default, winner], self._rounds(found, 2, end))
        except KeyboardInterrupt:
            self.interrupted = True
            return result
        result = measured(result, alone)
        if any(outcome.kind is not Kind.correct for outcome in alone) or beats(*alone):
            return result  # a product by itself must not lose by it
        fields = own_fields(product.task, winner)
        self._keeper.save(timed(product, alone[1], alone[0], config=fields), space, "; one step from it, a solve is faster")
        return timed(result, outcomes[winner], outcomes[contest.plain], product=fields)

    def _rename_solves(self, storage: BaseStorage) -> None:
        """Let --resume find the solves of this sweep under the names that they have with the product tiles as they are now."""
        for task, study in self._solves.items():
            contest = contest_of(task, self._plan.devices[0])
            if self._study_name(task, space_of(task), contest) == study.study_name.rpartition("-")[0]:
                continue
            renamed = self._study(task, space_of(task), contest, storage, resume=False)
            renamed.add_trials(study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED)))
            for name, value in study.user_attrs.items():
                renamed.set_user_attr(name, value)
            self._solves[task] = renamed

    def _study(self, task: Task, space: Space, contest: Contest, storage: BaseStorage, *, resume: bool) -> optuna.Study:
        name = self._study_name(task, space, contest)
        return open_study(storage, name, resume=resume)

    def _study_name(self, task: Task, space: Space, contest: Contest) -> str:
        words = [task.engine, task.kernel, task.dtype, task.sign, f"n{task.n}", *([f"b{task.batch}"] if task.batch > 1 else [])]
        facts = {
            "space": space_hash(space),
            "kernel": tuned.kernel_hash(task.engine, task.kernel),
            "clock": clock(task),
            # A solve is measured with the tiles that were found before, the others by themselves.
            "rest": to_fields(contest.default) if task.kernel == "solve" else None,
        }
        return study_name([*words, self._device.slug], facts)

    def _anchors(self, task: Task, space: Space, contest: Contest) -> list[Values]:
        """Return what is used now, and what earlier tasks found for the same kernel at another size or sign."""
        alike = (task.engine, task.kernel, task.dtype)
        winners = [
            from_fields(task.engine, result.config).over(contest.default)
            for result in self.results
            if result.config is not None and (result.task.engine, result.task.kernel, result.task.dtype) == alike
        ]
        return [space.values(config) for config in (contest.incumbent, *winners)]

    def _entrants(self, known: list[Config], best: list[Config], found: SearchResult, end: float) -> list[Config]:
        """Return who is in the final: those `known`, and of the others the `best`, one and as many more as fit until `end`."""
        fit = int((end - time.monotonic()) / _least_seconds(1, found.best_ms)) - len(known)
        others = [config for config in best if config not in known]
        return known + others[: max(1, min(self._settings.budget.finalists, fit))]

    def _rounds(self, found: SearchResult, count: int, end: float) -> int:
        """Return the rounds of a final of `count` configurations that fit until `end`."""
        rounds = (end - time.monotonic()) / _round_seconds(count, found.best_ms)
        return int(min(self._settings.budget.rounds, max(_LEAST_ROUNDS, rounds)))

    def _final_seconds(self, seconds: float, known: int) -> Callable[[float], float]:
        """Return what says how many of a task's `seconds` the final will need, by the fastest time in ms."""
        budget = self._settings.budget

        def needed(best_ms: float) -> float:
            wanted = _FINAL_SECONDS + budget.rounds * _round_seconds(known + budget.finalists, best_ms)
            return max(_least_seconds(known + 1, best_ms), min(_FINAL * seconds, wanted))

        return needed

    def _again(self, task: Task, space: Space, study: optuna.Study) -> TaskResult:
        """Return what an earlier run found, saved again where its file is gone."""
        done, trials = TaskResult.from_dict(task, study.user_attrs["result"]), tuple(known_trials(study))
        names = ("seconds", "measure_seconds", "compile_seconds", "prepare_seconds", "final_seconds")
        nothing: dict[str, Any] = dict.fromkeys(names, 0.0)
        result = dataclasses.replace(done, resumed=True, trials=trials, **nothing)
        return result if self._keeper.has(task) else dataclasses.replace(result, path=self._keeper.save(result, space))


def _round_seconds(count: int, best_ms: float) -> float:
    """Return what a round of `count` configurations takes, if they are as fast as the best: each has two turns."""
    return 2 * count * _OVERHEAD * max(TURN_SECONDS, best_ms / 1000)


def _least_seconds(count: int, best_ms: float) -> float:
    """Return what the shortest final of `count` configurations takes, if they are as fast as the best."""
    return count * _LEAST_RUNS * max(TURN_SECONDS, best_ms / 1000)


def _all_failed(task: Task, found: SearchResult) -> str:
    classes = ", ".join(f"{count} {kind.value}" for kind, count in found.failures.most_common())
    last = found.evaluated[-1].outcome.message if found.evaluated else "none ran"
    return (
        f"a task needs a configuration that works, but all of {task} failed ({classes}; the last: {last}); nothing was stored."
    )
