"""Tuning one task after another, each with a result and a tuned file."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from optuna.storages import BaseStorage

from tri_apsp import tuned
from tri_apsp.configs import CompleteConfig, from_fields
from tri_apsp.device import describe
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.search.studies import open_storage
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, baselines_of
from tri_apsp.tune.sweep.plan import Plan, require_energy_counters
from tri_apsp.tune.sweep.result import SweepResult, TaskResult
from tri_apsp.tune.sweep.result_writer import ResultWriter
from tri_apsp.tune.sweep.task_run import TaskRun
from tri_apsp.tune.sweep.task_study import TaskStudy
from tri_apsp.tune.workers.pool import Pool

__all__ = ["sweep"]


@tuned.remembering()  # what the sweep reads and finds is in use until it ends, wherever it is saved
def sweep(plan: Plan, make_pool: Callable[[], Pool], progress: Progress) -> SweepResult:
    """Tune each task of `plan`, and write each winner to a tuned file as soon as it is known.

    Ctrl-C ends the sweep: the results so far are kept, that of the present task marked as
    incomplete, and returned.

    Args:
        plan: the tasks, devices and settings.
        make_pool: factory of the pool that measures; called after all checks of the plan, the
            studies and the files.
        progress: receives tasks and evaluations.

    Raises:
        InputError: the studies or the tuned files cannot be kept, or the objective is energy and
            nvidia-ml-py is not installed.
        EngineError: not one task could be tuned, or the objective is energy and a device has no
            counter of it.
    """
    require_energy_counters(plan)
    writer = ResultWriter(plan)
    writer.check()
    facts, start, tasks = describe(plan.devices[0]), time.monotonic(), plan.tasks
    end = start + plan.settings.seconds(len(tasks))
    results: list[TaskResult] = []
    interrupted = False
    try:
        with (
            open_storage(plan.settings.storage, facts.slug) as storage,
            closing(progress),
            closing(make_pool()) as pool,
        ):
            tuner = _Tuner(plan, storage, pool, progress, writer)
            for index, task in enumerate(tasks):
                left = end - time.monotonic()
                if interrupted or (left <= 0 and index):
                    break
                try:
                    seconds = left / (len(tasks) - index)  # an equal share of the time that is left
                    result = tuner.tune(task, seconds, results)
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


@dataclass(frozen=True)
class _Tuner:
    """Tunes tasks with the same storage, pool and files."""

    plan: Plan
    storage: BaseStorage
    pool: Pool
    progress: Progress
    writer: ResultWriter

    def tune(self, task: Task, seconds: float, earlier: Sequence[TaskResult]) -> TaskResult:
        """Return the result of a task, recorded in its study and written to its file; earlier: the
        results of this sweep.
        """
        start, settings, device = (
            time.monotonic(),
            self.plan.settings,
            describe(self.plan.devices[0]),
        )
        baselines = baselines_of(task, self.plan.devices[0])
        study = TaskStudy(task, baselines, settings, device.slug, self.storage)
        known = study.result()
        if known is not None:
            return self.writer.restore(known)
        run = TaskRun(task, baselines, device, settings, seconds, self.pool, self.progress)
        result = self.writer.write(run.run(study.study, _anchors(task, baselines, earlier)))
        result = dataclasses.replace(result, seconds=time.monotonic() - start)
        study.record(result)
        return result


def _anchors(
    task: Task, baselines: Baselines, earlier: Sequence[TaskResult]
) -> list[CompleteConfig]:
    """Return the configuration in use, and the winners of the same kernel and dtype at other sizes
    and signs.
    """
    same = (task.engine, task.kernel, task.dtype)
    winners = [
        from_fields(task.engine, result.winner.config).over(baselines.default)
        for result in earlier
        if result.winner is not None
        and (result.task.engine, result.task.kernel, result.task.dtype) == same
    ]
    return [baselines.incumbent, *winners]
