"""Tuning one task after another: a search, a final among the fastest and the baselines, and a tuned
file.
"""

import dataclasses
import hashlib
import json
import os
import platform
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import optuna
import torch
from optuna.storages import BaseStorage

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, from_fields, to_fields
from tri_apsp.console.machine import device_line, versions_line
from tri_apsp.device import describe
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.candidates import (
    Baselines,
    baselines_of,
    candidates,
    choose_winner,
    ranked_neighbours,
    space_hash,
)
from tri_apsp.tune.measurement import protocol_of
from tri_apsp.tune.outcome import Evaluated, Outcome, TaskResult, TuningResult, Winner, ranked
from tri_apsp.tune.page import page_of_run
from tri_apsp.tune.progress import TuningProgress
from tri_apsp.tune.search import (
    Search,
    add_default_times,
    cards_of,
    journal_path,
    open_storage,
    open_study,
)
from tri_apsp.tune.tasks import TuningPlan, TuningTask
from tri_apsp.tune.worker import Workers
from tri_apsp.tuned.records import Values

# The share of a task's time that its search leaves to the final, and the runs of a configuration
# in the shortest final: three comparisons and two rounds.
_FINAL_SHARE, _FINAL_RUNS = 0.25, 7


def run_plans(
    plans: Sequence[TuningPlan],
    *,
    shown: bool,
    make_pool: Callable[[Sequence[torch.device]], Workers] = Workers,
) -> TuningResult:
    """Tune each task of `plans`, one plan after another, and write each winner to a tuned file as
    soon as it is known.

    Ctrl-C ends the run: the tasks that were finished are returned, and the study has the trials
    of the present one.

    Args:
        plans: the tasks and devices of each model, with the same settings.
        shown: whether to show the progress on stderr.
        make_pool: factory of the pool that measures on devices of one model; called after all
            checks of the plans, the storage and the files.

    Raises:
        InputError: the storage or the tuned files cannot be written.
        EngineError: not one task could be tuned.
    """
    for plan in plans:
        _require_replaceable(plan)
    settings, start = plans[0].settings, time.monotonic()
    storages = [
        open_storage(settings.storage or str(journal_path(describe(plan.device).slug)))
        for plan in plans
    ]
    waiting = sum(len(plan.tasks) for plan in plans)
    end = start + settings.seconds(waiting)
    results: list[TaskResult] = []
    left_out = dict[str, str]()
    studies = list[tuple[str, dict[TuningTask, optuna.Study]]]()
    interrupted = False
    try:
        # The run must not make worse what is in the directory, also if no solve searches it.
        with (
            tuned.searching(settings.save_dir or tuned.save_directory()),
            closing(TuningProgress(waiting, shown=shown)) as progress,
        ):
            for plan, storage in zip(plans, storages, strict=True):
                facts, count = describe(plan.device), len(plan.devices)
                several = f"{count} x " if count > 1 else ""
                progress.began(f"{several}{device_line(plan.device)}", len(plan.tasks))
                with closing(make_pool(plan.devices)) as pool:
                    pool.compile_defaults(plan.tasks[1:])
                    tuner = _Tuner(plan, storage, pool, progress)
                    studies.append((facts.slug, tuner.studies))
                    for task in plan.tasks:
                        left = end - time.monotonic()
                        if left <= 0 and results:
                            break
                        try:
                            # An equal share of the time that is left.
                            result = tuner.tune(task, left / waiting, results)
                        except InputError:
                            raise  # the other tasks need the studies and the files as well
                        except ApspError as error:
                            result = TaskResult(task, error=str(error))
                        waiting -= 1
                        results.append(dataclasses.replace(result, device=facts.name))
                        left_out |= pool.left_out
                        progress.finished(result)
    except KeyboardInterrupt:
        interrupted = True
    if results and all(result.error for result in results):
        raise EngineError(results[0].error)
    seconds = time.monotonic() - start
    pages = [page_of_run(found, slug) for slug, found in studies]
    return TuningResult(
        describe(plans[0].device),
        tuple(results),
        seconds,
        interrupted,
        left_out,
        tuple(page for page in pages if page is not None),
    )


def _require_replaceable(plan: TuningPlan) -> None:
    """Refuse, before hours of work, a tuning run whose winners could not be saved."""
    device, settings = describe(plan.device), plan.settings
    tuned.require_writable(device.slug, settings.save_dir)
    for engine, kernel, dtype in {(each.engine, each.kernel, each.dtype) for each in plan.tasks}:
        _, reason = tuned.existing(engine, kernel, dtype, device, settings.save_dir)
        if reason is not None and not settings.force:
            raise InputError(reason)


class _Tuner:
    """Tunes tasks with the same storage, pool and files."""

    def __init__(
        self, plan: TuningPlan, storage: BaseStorage, pool: Workers, progress: TuningProgress
    ) -> None:
        self._plan, self._settings = plan, plan.settings
        self._device = describe(plan.device)
        self._storage, self._pool, self._progress = storage, pool, progress
        self.studies = dict[TuningTask, optuna.Study]()

    def tune(self, task: TuningTask, seconds: float, earlier: Sequence[TaskResult]) -> TaskResult:
        """Return the result of a task, whose winner is written to its file.

        Args:
            task: the task to tune.
            seconds: the time of the search and the final.
            earlier: the results of this run so far.

        Raises:
            EngineError: no configuration works, the default failed in the final, or time sufficed
                for the default only.
        """
        start = time.monotonic()
        baselines = baselines_of(task, self._plan.device)
        name = _study_name(task, baselines, self._device.slug)
        settings = self._settings
        study = open_study(
            self._storage, name, resume=settings.resume, shared=settings.storage is not None
        )
        # What optuna-dashboard shows of a study.
        about = {
            "task": str(task),
            "device": self._device.name,
            "versions": versions_line(),
            "units": "ms",
        }
        for key, value in about.items():
            study.set_user_attr(key, value)
        # A result depends on these settings besides the name of the study.
        asked = [settings.effort, settings.trials, settings.time_budget]
        if study.user_attrs.get("finished") == asked and self._has_entry(task):
            return TaskResult(task, resumed=True)
        self.studies[task] = study
        allowed = candidates(task.record.space, task, self._device, baselines.base)
        study.set_user_attr("candidates", len(allowed))
        trials = self._search(study, task, baselines, allowed, seconds, earlier)
        if len(self._plan.devices) > 1 or settings.storage is not None:
            add_default_times(study, self._pool.compare(task, baselines.base))
        winner, final_on = self._final(study, task, baselines, trials, start + seconds)
        path = None
        if winner.changed or not self._has_entry(task):
            path = self._saved(task, winner, len(trials))
        study.set_user_attr("finished", asked)
        return TaskResult(
            task,
            trials,
            len(allowed),
            winner,
            seconds=time.monotonic() - start,
            path=path,
            cards=cards_of(study),
            final_on=final_on,
        )

    def _search(
        self,
        study: optuna.Study,
        task: TuningTask,
        baselines: Baselines,
        allowed: Sequence[Values],
        seconds: float,
        earlier: Sequence[TaskResult],
    ) -> list[Evaluated]:
        settings, space, base = self._settings, task.record.space, baselines.base
        self._progress.started(task, min(settings.budget.trials, len(allowed)))

        def evaluate(
            values: Values, is_slow: Callable[[float], bool], is_late: Callable[[], bool]
        ) -> Outcome | None:
            return self._pool.evaluate(task, space.config(values, base), is_slow, is_late)

        seed = settings.seed
        if settings.storage is not None:
            # Else processes that begin together would evaluate the same configurations.
            seed += zlib.crc32(f"{platform.node()} {os.getpid()}".encode()) >> 1
        search = Search(
            space,
            allowed,
            study=study,
            default=space.values(base),
            anchors=[
                *(space.values(config) for config in _anchors(task, baselines, earlier)),
                *ranked_neighbours(task, self._device, base),
            ],
            seed=seed,
            trials=settings.budget.trials,
            end=time.monotonic() + (1 - _FINAL_SHARE) * seconds,
            on_trial=self._progress.evaluated,
        )
        found = search.run(evaluate, self._pool.parallel)
        if not ranked(found):
            last = _words(found[-1].outcome) if found else "none ran"
            raise EngineError(
                f"a task needs a configuration that works, but all of {task} failed "
                f"(the last: {last}); no result was saved."
            )
        if len(found) == 1 < len(allowed):
            raise EngineError(
                f"a task needs time for several configurations, but {seconds:.2g} s sufficed for "
                f"only the default of {task}; give more --time-budget."
            )
        return found

    def _final(
        self,
        study: optuna.Study,
        task: TuningTask,
        baselines: Baselines,
        trials: Sequence[Evaluated],
        end: float,
    ) -> tuple[Winner, str]:
        """Return the winner of a final of the baselines and the fastest others that fit into the
        time, and the card that measured it; the study keeps all times.
        """
        budget, space, left = self._settings.budget, task.record.space, end - time.monotonic()
        fastest = ranked(trials)
        configs = (space.config(trial.values, baselines.base) for trial in fastest)
        others = [config for config in configs if config not in baselines.distinct]
        run_seconds = fastest[0].outcome.median_ms / 1000
        fit = int(left / (_FINAL_RUNS * run_seconds)) - len(baselines.distinct)
        chosen = [*baselines.distinct, *others[: max(1, min(budget.finalists, fit))]]
        timed = self._pool.final(task, chosen, budget.rounds, left)
        outcomes = dict(zip(chosen, timed, strict=True))
        winner = choose_winner(task, baselines, outcomes)
        if winner is None:
            raise EngineError(
                f"a task needs a default that works, but that of {task} failed in the final "
                f"({_words(outcomes[baselines.untuned])}); no result was saved."
            )
        known = {baselines.untuned: "default"} | {
            config: name
            for config, name in ((baselines.base, "base"), (baselines.incumbent, "in use"))
            if config != baselines.untuned
        }
        final = dict[str, list[float]]()
        for place, (config, outcome) in enumerate(outcomes.items()):
            if outcome.times is not None:
                name = known.get(config, f"number {place + 1 - len(baselines.distinct)}")
                if outcome.times == winner.times:
                    name += ", kept" if config in known else ", winner"
                final[name] = list(dataclasses.astuple(outcome.times))
        study.set_user_attr("final", final)
        return winner, timed[0].card

    def _saved(self, task: TuningTask, winner: Winner, evaluated: int) -> Path:
        """Save the winner of `evaluated` configurations, and return the path."""
        from tri_apsp.tuned.schema import Entry

        settings = self._settings
        entry = {
            "sign": task.sign,
            "n": task.n,
            "batch": task.batch,
            "config": winner.config,
            **dataclasses.asdict(winner.times),
            "default_ms": winner.default_ms,
            "speedup": winner.speedup,
            "evaluated": evaluated,
        }
        file = tuned.new_file(
            task.engine,
            task.kernel,
            task.dtype,
            self._device,
            [Entry.model_validate(entry)],
            space_hash=space_hash(task.record.space),
            protocol=f"{protocol_of(task)}; {settings.budget.rounds} rounds, forward and backward",
            seed=settings.seed,
            budget_seconds=settings.seconds(len(self._plan.tasks)),
        )
        return tuned.save(file, settings.save_dir, force=settings.force)

    def _has_entry(self, task: TuningTask) -> bool:
        """Return whether the directory of the run has an entry of the task."""
        file, _ = tuned.existing(
            task.engine, task.kernel, task.dtype, self._device, self._settings.save_dir
        )
        key = task.sign, task.batch, task.n
        return file is not None and any(entry.key == key for entry in file.entries)


def _study_name(task: TuningTask, baselines: Baselines, slug: str) -> str:
    """Return readable words, and a hash of what the times depend on."""
    facts = {
        "space": space_hash(task.record.space),
        "kernel": tuned.kernel_hash(task.engine, task.kernel),
        "clock": protocol_of(task),
        # A solve is measured with the tiles of the kernels tuned before, other kernels by
        # themselves.
        "rest": to_fields(baselines.base) if task.record.is_solve else None,
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
        from_fields(task.engine, result.winner.config).over(baselines.base)
        for result in earlier
        if result.winner is not None
        and (result.task.engine, result.task.kernel, result.task.dtype) == same
    ]
    return [baselines.incumbent, *winners]


def _words(outcome: Outcome) -> str:
    return f"{outcome.kind.value}: {outcome.message}"
