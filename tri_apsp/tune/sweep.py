"""Tune one thing after another: search, a final among the best, and a tuned file with the winner."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from tri_apsp import tuned
from tri_apsp.configs import Config, default_config, from_fields, to_fields
from tri_apsp.device import Device, describe, driver_version
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.bench import Bench
from tri_apsp.tune.outcome import Kind, Outcome
from tri_apsp.tune.plan import Plan
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.result import SweepResult, TaskResult
from tri_apsp.tune.rivals import Contest, contest_of, own_fields
from tri_apsp.tune.search import SearchResult, known_trials, memory_study, neighbours, search
from tri_apsp.tune.space import Space, Values, candidates, space_hash, space_of
from tri_apsp.tune.studies import open_storage, open_study, study_name
from tri_apsp.tune.task import Task

__all__ = ["GAIN", "beats", "sweep"]

GAIN = 1.02
"""A configuration must be faster than another by this factor to replace it, and by more than the noise."""

# The part of a task's time that the search may take; the rest is for the final.
_SEARCH = 0.75
# The part that a solve takes before the tiles of its products are looked at again.
_BEFORE_RECHECK = 0.75
# What a run of the final takes besides the time that it measures: operands are copied, caches flushed.
_OVERHEAD = 2.0
_LEAST_ROUNDS = 2


def beats(challenger: Outcome, holder: Outcome) -> bool:
    """Return whether `challenger` is faster by more than 2%, and by more than the noise: half of p20 to p80 of either."""
    if challenger.kind is not Kind.correct or holder.kind is not Kind.correct:
        return challenger.kind is Kind.correct
    (new_low, new, new_high), (old_low, old, old_high) = _times(challenger), _times(holder)
    noise = max(new_high - new_low, old_high - old_low) / 2
    return old > GAIN * new and old - new > noise


def _times(outcome: Outcome) -> tuple[float, float, float]:
    assert outcome.p20_ms is not None
    assert outcome.p50_ms is not None
    assert outcome.p80_ms is not None
    return outcome.p20_ms, outcome.p50_ms, outcome.p80_ms


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
    _check_files(plan, facts)
    run = _Sweep(plan, progress)
    try:
        with open_storage(plan.settings.storage, facts.slug) as storage, closing(progress), closing(make_bench()) as bench:
            run.run(storage, bench)
    except KeyboardInterrupt:
        run.interrupted = True
    if run.results and all(result.error for result in run.results):
        raise EngineError(run.results[0].error)
    return SweepResult(facts, len(plan.devices), tuple(run.results), time.monotonic() - run.start, run.interrupted)


def _check_files(plan: Plan, device: Device) -> None:
    """Refuse before hours of work what could not be saved afterwards."""
    for names in dict.fromkeys((task.engine, task.kernel, task.dtype) for task in plan.tasks):
        path = tuned.path_of(*names, device.slug, plan.settings.save_dir)
        place = next(parent for parent in path.parents if parent.exists())
        if not (place.is_dir() and os.access(place, os.W_OK)):
            raise InputError(
                f"tuned files must be written to {path.parent}, but {place} is no writable folder; choose another --save-dir."
            )
        reason = None if plan.settings.force else tuned.conflict(*names, device, plan.settings.save_dir)
        if reason is not None:
            raise InputError(reason)


class _Sweep:
    """The state of a sweep."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan, self._settings, self._progress = plan, plan.settings, progress
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
                result = self._tune(task, storage, bench, left / (len(tasks) - index))
            except InputError:
                raise  # of the studies or the files, which the other tasks need as well
            except ApspError as error:
                result = TaskResult(task, error=str(error))
            self.results.append(result)
            self._progress.finished(result)

    def _tune(self, task: Task, storage: BaseStorage, bench: Bench, seconds: float) -> TaskResult:
        start = time.monotonic()
        space, contest = space_of(task), contest_of(task, self._plan.devices[0])
        study = self._study(task, space, contest, storage, resume=self._settings.resume)
        if task.kernel == "solve":
            self._solves[task] = study
        product = self._product_of(task)
        end = start + seconds
        if product is not None:
            seconds *= _BEFORE_RECHECK
        settings = self._settings
        asked = [settings.effort, settings.trials, settings.time_budget]
        done = study.user_attrs.get("result")
        if done is not None and done["asked"] == asked:
            return self._again(task, space, study)

        allowed, budget = candidates(space, task, self._device, contest.default), settings.budget
        self._progress.started(task, min(budget.trials, len(allowed)), start + seconds)
        found = search(
            space,
            allowed,
            bench.evaluators(task, lambda values: space.config(values, contest.default)),
            study=study,
            default=space.values(contest.default),
            anchors=self._anchors(task, space, contest),
            sampler=settings.sampler,
            seed=settings.seed,
            trials=budget.trials,
            seconds=_SEARCH * seconds,
            on_trial=self._progress.evaluated,
        )
        self.interrupted = found.interrupted
        if found.best is None and not found.interrupted:
            raise EngineError(_all_failed(task, found))
        best = [space.config(trial.values, contest.default) for trial in found.ranked]
        known = _unlike([contest.default, contest.plain, contest.incumbent])
        entrants = known + [config for config in best if config not in known][: budget.finalists]
        outcomes: list[Outcome] | None = None
        if not self.interrupted:
            self._progress.final(len(entrants))
            try:
                outcomes = bench.final(task, entrants, self._rounds(found, len(entrants), start + seconds))
            except KeyboardInterrupt:
                self.interrupted = True
        if outcomes is None:
            # Only those of the same rest were screened.
            screened = {tuple(trial.values.values()): trial.outcome for trial in found.evaluated}
            entrants = _unlike([contest.default, *best[:1]])
            unknown = Outcome(Kind.timeout, message="interrupted")
            outcomes = [screened.get(tuple(space.values(config).values()), unknown) for config in entrants]
        result = _result(task, contest, found, dict(zip(entrants, outcomes, strict=True)), complete=not self.interrupted)
        if product is not None and result.complete and result.config is not None:
            result = self._recheck(result, contest, product, bench, end)
        result = self._keep(result, space)
        result = dataclasses.replace(result, seconds=time.monotonic() - start)
        if result.complete:
            study.set_user_attr("result", {"asked": asked, **result.to_dict()})
        if result.product is not None:
            self._rename_solves(storage)
        return result

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
        found = search(
            space,
            near,
            bench.evaluators(task, lambda values: space.config(values, base)),
            study=memory_study(),
            default=own,
            sampler="grid",
            trials=1 + len(near),
            seconds=_SEARCH * left,
        )
        self.interrupted = found.interrupted
        result = _measured(result, (trial.outcome for trial in found.evaluated))
        best = [space.config(trial.values, base) for trial in found.ranked]
        entrants = _unlike([base, contest.plain, *best[: 1 + self._settings.budget.finalists]])
        if self.interrupted or found.best is None or found.best.values == own:
            return result
        try:
            outcomes = dict(zip(entrants, bench.final(task, entrants, self._rounds(found, len(entrants), end)), strict=True))
            result = _measured(result, outcomes.values())
            right = [config for config, outcome in outcomes.items() if outcome.kind is Kind.correct and config != contest.plain]
            winner = min(right, key=lambda config: _times(outcomes[config])[1], default=base)
            if not beats(outcomes[winner], outcomes[base]) or outcomes[contest.plain].kind is not Kind.correct:
                return result
            default = space.config(space.values(default_config(task.engine, task.torch_dtype)), base)
            alone = bench.final(product.task, [default, winner], self._rounds(found, 2, end))
        except KeyboardInterrupt:
            self.interrupted = True
            return result
        result = _measured(result, alone)
        if any(outcome.kind is not Kind.correct for outcome in alone) or beats(*alone):
            return result  # a product by itself must not lose by it
        fields = own_fields(product.task, winner)
        self._save(_timed(product, alone[1], alone[0], config=fields), space, "; one step from it, a solve is faster")
        return _timed(result, outcomes[winner], outcomes[contest.plain], product=fields)

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
        return open_study(storage, name, resume=resume, alone=self._settings.storage is None)

    def _study_name(self, task: Task, space: Space, contest: Contest) -> str:
        words = [task.engine, task.kernel, task.dtype, task.sign, f"n{task.n}", *([f"b{task.batch}"] if task.batch > 1 else [])]
        facts = {
            "space": space_hash(space),
            "kernel": tuned.kernel_hash(task.engine, task.kernel),
            "clock": _clock(task),
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

    def _rounds(self, found: SearchResult, count: int, end: float) -> int:
        """Return the rounds of a final of `count` configurations that fit until `end`."""
        assert found.best is not None
        assert found.best.outcome.p50_ms is not None
        round_seconds = 2 * count * _OVERHEAD * found.best.outcome.p50_ms / 1000
        return int(min(self._settings.budget.rounds, max(_LEAST_ROUNDS, (end - time.monotonic()) / round_seconds)))

    def _keep(self, result: TaskResult, space: Space) -> TaskResult:
        """Save the winner; one of an interrupted search only where it gained, and nothing better is known."""
        if result.config is None or (not result.complete and (not result.gained or self._has_entry(result.task))):
            return result
        return dataclasses.replace(result, path=self._save(result, space))

    def _has_entry(self, task: Task) -> bool:
        """Return whether a complete entry of the task can be used where we save."""
        names = (task.engine, task.kernel, task.dtype)
        path = tuned.path_of(*names, self._device.slug, self._settings.save_dir)
        if not path.exists() or tuned.conflict(*names, self._device, self._settings.save_dir):
            return False
        file = tuned.load(path)
        return any(entry.key == (task.sign, task.batch, task.n) and (entry.run or file).complete for entry in file.entries)

    def _save(self, result: TaskResult, space: Space, note: str = "") -> Path:
        from tri_apsp.tuned.schema import Entry

        task, settings = result.task, self._settings
        names = ("config", "p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup", "evaluated")
        measured: dict[str, Any] = {name: getattr(result, name) for name in names}
        entry = Entry(**{"sign": task.sign, "n": task.n, "batch": task.batch, **measured})
        file = tuned.new_file(
            task.engine,
            task.kernel,
            task.dtype,
            self._device,
            [entry],
            space_hash=space_hash(space),
            protocol=f"{_clock(task)}; {settings.budget.rounds} rounds, forward and backward{note}",
            seed=settings.seed,
            budget_seconds=settings.seconds(len(self._plan.tasks)),
            complete=result.complete,
            driver=driver_version(self._plan.devices[0]),
        )
        path = tuned.save(file, settings.save_dir, force=settings.force)
        tuned.remember(file)  # the tasks to come use it, wherever it was saved
        return path

    def _again(self, task: Task, space: Space, study: optuna.Study) -> TaskResult:
        """Return what an earlier run found, saved again where its file is gone."""
        done, trials = TaskResult.from_dict(task, study.user_attrs["result"]), tuple(known_trials(study))
        result = dataclasses.replace(done, resumed=True, seconds=0.0, measure_seconds=0.0, trials=trials)
        return result if self._has_entry(task) else dataclasses.replace(result, path=self._save(result, space))


def _clock(task: Task) -> str:
    return "wall clock" if task.engine == "cpu" else "CUDA events, L2 cache flushed before each run"


def _unlike(configs: list[Config]) -> list[Config]:
    """Return the configurations, each once."""
    return list(dict.fromkeys(configs))


def _result(
    task: Task, contest: Contest, found: SearchResult, outcomes: dict[Config, Outcome], *, complete: bool
) -> TaskResult:
    """Return who won: the default, unless what is used now beats it, or the fastest of all beats both."""
    known = TaskResult(
        task,
        evaluated=len(found.evaluated),
        candidates=found.candidates,
        dominated=found.dominated,
        failures=found.failures,
        complete=complete,
        measure_seconds=sum(trial.outcome.measure_seconds for trial in found.evaluated if not trial.earlier)
        + sum(outcome.measure_seconds for outcome in outcomes.values() if complete),
        throttled=any(outcome.throttled for outcome in outcomes.values()),
        trials=tuple(found.evaluated),
    )
    # Before anything was tuned, a solve ran with the plain default.
    plain = outcomes.get(contest.plain, outcomes[contest.default])
    if Kind.correct not in {outcome.kind for outcome in outcomes.values()} or plain.kind is not Kind.correct:
        return known
    winner = contest.default
    correct = {config: outcome for config, outcome in outcomes.items() if outcome.kind is Kind.correct}
    own = {config: outcome for config, outcome in correct.items() if config != contest.plain or config == contest.default}
    for challenger in (contest.incumbent, min(own, key=lambda config: _times(own[config])[1])):
        if challenger in own and beats(own[challenger], outcomes[winner]):
            winner = challenger
    low, middle, high = _times(outcomes[winner])
    return dataclasses.replace(
        known,
        config=own_fields(task, winner),
        gained=winner != contest.default,
        p20_ms=low,
        p50_ms=middle,
        p80_ms=high,
        default_ms=_times(plain)[1],
    )


def _measured(result: TaskResult, outcomes: Iterable[Outcome]) -> TaskResult:
    """Return `result` with the time that further outcomes took to measure."""
    more = sum(outcome.measure_seconds for outcome in outcomes)
    return dataclasses.replace(result, measure_seconds=result.measure_seconds + more)


def _timed(result: TaskResult, winner: Outcome, default: Outcome, **changed: Any) -> TaskResult:
    """Return `result` with the times of a later final."""
    low, middle, high = _times(winner)
    times: dict[str, Any] = {"p20_ms": low, "p50_ms": middle, "p80_ms": high, "default_ms": _times(default)[1], "gained": True}
    return dataclasses.replace(result, **times, **changed)


def _all_failed(task: Task, found: SearchResult) -> str:
    classes = ", ".join(f"{count} {kind.value}" for kind, count in found.failures.most_common())
    last = found.evaluated[-1].outcome.message if found.evaluated else "none ran"
    return (
        f"a task needs a configuration that works, but all of {task} failed ({classes}; the last: {last}); nothing was stored."
    )
