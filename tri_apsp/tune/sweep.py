"""Tuning one task after another: a search, a final among the fastest and the baselines, and a tuned
file.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import optuna
from optuna.storages import BaseStorage

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, from_fields, to_fields
from tri_apsp.device import describe, driver_version
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.candidates import candidates, space_hash
from tri_apsp.tune.decision import (
    GAIN,
    SCREENED_GAIN,
    Baselines,
    baselines_of,
    choose_winner,
)
from tri_apsp.tune.measurement import protocol_of, round_seconds
from tri_apsp.tune.outcome import Outcome
from tri_apsp.tune.plan import SweepPlan
from tri_apsp.tune.pool import Workers
from tri_apsp.tune.progress import SweepProgress
from tri_apsp.tune.results import SweepResult, TaskResult, Winner
from tri_apsp.tune.search import Evaluated, Search, SearchResult, known_trials
from tri_apsp.tune.studies import open_storage, open_study
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import Values

# A task keeps the time of its final's rounds and their preparation free, at most this share of its
# time, but in any case enough for three comparisons and four timed runs of two configurations.
_PREPARATION_SECONDS, _FINAL_SHARE, _FINAL_RUNS = 3.0, 0.25, 7


def sweep(
    plan: SweepPlan, make_pool: Callable[[], Workers], progress: SweepProgress
) -> SweepResult:
    """Tune each task of `plan`, and write each winner to a tuned file as soon as it is known.

    Ctrl-C ends the sweep: the results so far are kept, that of the present task marked as
    incomplete, and returned.

    Args:
        plan: the tasks, devices and settings.
        make_pool: factory of the pool that measures; called after all checks of the plan, the
            studies and the files.
        progress: receives tasks and evaluations.

    Raises:
        InputError: the studies or the tuned files cannot be kept.
        EngineError: not one task could be tuned.
    """
    _require_replaceable(plan)
    facts, start, tasks = describe(plan.devices[0]), time.monotonic(), plan.tasks
    end = start + plan.settings.seconds(len(tasks))
    results: list[TaskResult] = []
    interrupted = False
    try:
        # The sweep must not make worse what is in the directory, also if no solve searches it.
        with (
            tuned.searching(plan.settings.save_dir or tuned.save_directory()),
            open_storage(plan.settings.storage, facts.slug) as storage,
            closing(progress),
            closing(make_pool()) as pool,
        ):
            tuner = _Tuner(plan, storage, pool, progress)
            for index, task in enumerate(tasks):
                left = end - time.monotonic()
                if interrupted or (left <= 0 and index):
                    break
                try:
                    # An equal share of the time that is left.
                    result = tuner.tune(task, left / (len(tasks) - index), results)
                except InputError:
                    raise  # the other tasks need the studies and the files as well
                except ApspError as error:
                    result = TaskResult(task, error=str(error))
                results.append(result)
                progress.finished(result)
                interrupted = not (result.complete or result.error)
    except KeyboardInterrupt:
        interrupted = True
    if results and all(result.error for result in results):
        raise EngineError(results[0].error)
    return SweepResult(facts, tuple(results), time.monotonic() - start, interrupted)


def _require_replaceable(plan: SweepPlan) -> None:
    """Refuse, before hours of work, a sweep whose winners could not be saved."""
    device, settings = describe(plan.devices[0]), plan.settings
    tuned.require_writable(device.slug, settings.save_dir)
    for engine, kernel, dtype in {(each.engine, each.kernel, each.dtype) for each in plan.tasks}:
        _, reason = tuned.existing(engine, kernel, dtype, device, settings.save_dir)
        if reason is not None and not settings.force:
            raise InputError(reason)


class _Tuner:
    """Tunes tasks with the same storage, pool and files."""

    def __init__(
        self, plan: SweepPlan, storage: BaseStorage, pool: Workers, progress: SweepProgress
    ) -> None:
        self._plan, self._settings = plan, plan.settings
        self._device = describe(plan.devices[0])
        self._driver = driver_version(plan.devices[0])
        self._storage, self._pool, self._progress = storage, pool, progress

    def tune(self, task: TuningTask, seconds: float, earlier: Sequence[TaskResult]) -> TaskResult:
        """Return the result of a task, recorded in its study and written to its file.

        Args:
            task: the task to tune.
            seconds: the time of the search and the final.
            earlier: the results of this sweep.

        Raises:
            EngineError: no configuration works, the default failed in the final, or time sufficed
                for the default only.
        """
        start = time.monotonic()
        baselines = baselines_of(task, self._plan.devices[0])
        name = _study_name(task, baselines, self._device.slug)
        study = open_study(self._storage, name, resume=self._settings.resume)
        # A result depends on these settings besides the name of the study.
        asked = [self._settings.effort, self._settings.trials, self._settings.time_budget]
        recorded = study.user_attrs.get("result")
        if recorded is not None and recorded["asked"] == asked:
            trials = known_trials(study, task.record.space.values(baselines.default))
            known = TaskResult.from_dict(recorded, trials)
            known = dataclasses.replace(known, resumed=True, seconds=0.0, path=None)
            if known.winner is None or self._has_entry(task):
                return known
            return dataclasses.replace(known, path=self._saved(known, known.winner))
        found = self._search(study, task, baselines, seconds, earlier)
        outcomes, complete = self._screened(task, baselines, found), False
        if not found.interrupted:
            try:
                outcomes = self._final(task, baselines, found, start + seconds)
                complete = True
            except KeyboardInterrupt:
                pass  # what the search found is kept
        winner = choose_winner(task, baselines, outcomes, GAIN if complete else SCREENED_GAIN)
        if winner is None and complete:
            raise EngineError(
                f"a task needs a default that works, but that of {task} failed in the final "
                f"({_words(outcomes[baselines.untuned])}); no result was saved."
            )
        throttled = any(outcome.throttled for outcome in outcomes.values())
        result = TaskResult(task, found, winner, complete=complete, throttled=throttled)
        path = None if winner is None else self._saved(result, winner)
        result = dataclasses.replace(result, path=path, seconds=time.monotonic() - start)
        if complete:
            study.set_user_attr("result", {"asked": asked, **result.to_dict()})
        return result

    def _search(
        self,
        study: optuna.Study,
        task: TuningTask,
        baselines: Baselines,
        seconds: float,
        earlier: Sequence[TaskResult],
    ) -> SearchResult:
        settings, space, base = self._settings, task.record.space, baselines.default
        allowed = candidates(space, task, self._device, base)
        end = time.monotonic() + seconds
        self._progress.started(task, min(settings.budget.trials, len(allowed)), end)

        def evaluate(
            values: Values, is_slow: Callable[[float], bool], is_late: Callable[[], bool]
        ) -> Outcome | None:
            return self._pool.evaluate(task, space.config(values, base), is_slow, is_late)

        def reserve(best_ms: float) -> float:
            fixed = len(baselines.distinct)
            rounds = settings.budget.rounds * round_seconds(
                fixed + settings.budget.finalists, best_ms
            )
            least = (fixed + 1) * _FINAL_RUNS * best_ms / 1000
            return max(least, min(_FINAL_SHARE * seconds, _PREPARATION_SECONDS + rounds))

        search = Search(
            space,
            allowed,
            study=study,
            default=space.values(base),
            anchors=[space.values(config) for config in _anchors(task, baselines, earlier)],
            sampler=settings.sampler,
            seed=settings.seed,
            trials=settings.budget.trials,
            end=end,
            reserve=reserve,
            on_trial=self._progress.evaluated,
        )
        found = search.run(evaluate, self._pool.parallel)
        if found.best is None and not found.interrupted:
            last = _words(found.evaluated[-1].outcome) if found.evaluated else "none ran"
            raise EngineError(
                f"a task needs a configuration that works, but all of {task} failed "
                f"(the last: {last}); no result was saved."
            )
        if len(found.evaluated) == 1 < found.candidates and not found.interrupted:
            raise EngineError(
                f"a task needs time for several configurations, but {seconds:.2g} s sufficed for "
                f"only the default of {task}; give more --time-budget."
            )
        return found

    def _final(
        self, task: TuningTask, baselines: Baselines, found: SearchResult, end: float
    ) -> dict[CompleteConfig, Outcome]:
        """Return the outcomes of a final of the baselines and the fastest others that fit into the
        time.
        """
        budget, space, left = self._settings.budget, task.record.space, end - time.monotonic()
        configs = (space.config(trial.values, baselines.default) for trial in found.ranked)
        others = [config for config in configs if config not in baselines.distinct]
        fit = int(left / (_FINAL_RUNS * found.best_ms / 1000)) - len(baselines.distinct)
        chosen = [*baselines.distinct, *others[: max(1, min(budget.finalists, fit))]]
        outcomes = self._pool.final(task, chosen, budget.rounds, left)
        return dict(zip(chosen, outcomes, strict=True))

    def _screened(
        self, task: TuningTask, baselines: Baselines, found: SearchResult
    ) -> dict[CompleteConfig, Outcome]:
        """Return the outcomes of the default, the configuration in use and the fastest in the
        search, which decide if there is no final.
        """

        def config_of(trial: Evaluated) -> CompleteConfig:
            return task.record.space.config(trial.values, baselines.default)

        known = {config_of(trial): trial.outcome for trial in found.evaluated}
        wanted = [baselines.default, baselines.incumbent, *map(config_of, found.ranked[:1])]
        return {config: known[config] for config in wanted if config in known}

    def _saved(self, result: TaskResult, winner: Winner) -> Path | None:
        """Save the winner, unless it is in use already and has an entry; return the path.

        That of an interrupted search is saved only if it replaces another, and no complete entry
        exists.
        """
        if not (winner.changed or result.complete):
            return None
        if not (winner.changed and result.complete) and self._has_entry(result.task):
            return None
        from tri_apsp.tuned.schema import Entry

        task, settings = result.task, self._settings
        times = dataclasses.asdict(winner.times)
        fields = {"sign": task.sign, "n": task.n, "batch": task.batch, "config": winner.config}
        fields |= {**times, "default_ms": winner.default_ms, "speedup": winner.speedup}
        fields["evaluated"] = len(result.search.evaluated)
        file = tuned.new_file(
            task.engine,
            task.kernel,
            task.dtype,
            self._device,
            [Entry.model_validate(fields)],
            space_hash=space_hash(task.record.space),
            protocol=f"{protocol_of(task)}; {settings.budget.rounds} rounds, forward and backward",
            seed=settings.seed,
            budget_seconds=settings.seconds(len(self._plan.tasks)),
            complete=result.complete,
            driver=self._driver,
        )
        return tuned.save(file, settings.save_dir, force=settings.force)

    def _has_entry(self, task: TuningTask) -> bool:
        """Return whether the directory of the sweep has a complete entry of the task."""
        file, _ = tuned.existing(
            task.engine, task.kernel, task.dtype, self._device, self._settings.save_dir
        )
        key = task.sign, task.batch, task.n
        return file is not None and any(
            entry.key == key and (entry.run or file).complete for entry in file.entries
        )


def _study_name(task: TuningTask, baselines: Baselines, slug: str) -> str:
    """Return readable words, and a hash of what the times depend on."""
    facts = {
        "space": space_hash(task.record.space),
        "kernel": tuned.kernel_hash(task.engine, task.kernel),
        "clock": protocol_of(task),
        # A solve is measured with the tiles of the kernels tuned before, other kernels by
        # themselves.
        "rest": to_fields(baselines.default) if task.record.is_solve else None,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
    batch = [f"b{task.batch}"] if task.batch > 1 else []
    words = [task.engine, task.kernel, task.dtype, task.sign, f"n{task.n}", *batch]
    return "-".join([*words, slug, digest])


def _anchors(
    task: TuningTask, baselines: Baselines, earlier: Sequence[TaskResult]
) -> list[CompleteConfig]:
    """Return the configuration in use, and the winners of the same kernel and dtype at other sizes
    and signs.
    """
    same = task.engine, task.kernel, task.dtype
    winners = [
        from_fields(task.engine, result.winner.config).over(baselines.default)
        for result in earlier
        if result.winner is not None
        and (result.task.engine, result.task.kernel, result.task.dtype) == same
    ]
    return [baselines.incumbent, *winners]


def _words(outcome: Outcome) -> str:
    return f"{outcome.kind.value}: {outcome.message}"
