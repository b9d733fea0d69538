"""Tuning one task after another: a result and a tuned file each."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import closing

from optuna.storages import BaseStorage

from tri_apsp.configs import CompleteConfig, from_fields
from tri_apsp.device import describe
from tri_apsp.errors import ApspError, EngineError, InputError
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.search.studies import open_storage
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines, baselines_of
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.result import SweepResult, TaskResult
from tri_apsp.tune.sweep.result_writer import ResultWriter
from tri_apsp.tune.sweep.task_run import TaskRun
from tri_apsp.tune.sweep.task_study import TaskStudy
from tri_apsp.tune.workers.pool import Pool

__all__ = ["sweep"]


def sweep(plan: Plan, make_pool: Callable[[], Pool], progress: Progress) -> SweepResult:
    """Tune each task of `plan`, and write each winner to a tuned file as soon as it is known.

    Ctrl-C ends the sweep: what is known is kept, marked as incomplete, and returned.

    Args:
        plan: the tasks.
        make_pool: makes the pool that measures; called once nothing is left that could be refused.
        progress: receives tasks and evaluations.

    Raises:
        InputError: the studies or the tuned files cannot be kept.
        EngineError: not one task could be tuned.
    """
    writer = ResultWriter(plan)
    writer.check()
    run = _Sweep(plan, progress, writer)
    try:
        with (
            open_storage(plan.settings.storage, run.device.slug) as storage,
            closing(progress),
            closing(make_pool()) as pool,
        ):
            run.run(storage, pool)
    except KeyboardInterrupt:
        run.interrupted = True
    if run.results and all(result.error for result in run.results):
        raise EngineError(run.results[0].error)
    seconds = time.monotonic() - run.start
    return SweepResult(run.device, len(plan.devices), tuple(run.results), seconds, run.interrupted)


class _Sweep:
    """The results so far, and whether Ctrl-C ended the sweep."""

    def __init__(self, plan: Plan, progress: Progress, writer: ResultWriter) -> None:
        self._plan, self._progress, self._writer = plan, progress, writer
        self.device = describe(plan.devices[0])
        self.start = time.monotonic()
        self.results: list[TaskResult] = []
        self.interrupted = False

    def run(self, storage: BaseStorage, pool: Pool) -> None:
        """Tune the tasks, each within an equal share of the time that is left."""
        tasks = self._plan.tasks
        end = self.start + self._plan.settings.seconds(len(tasks))
        for index, task in enumerate(tasks):
            left = end - time.monotonic()
            if self.interrupted or (left <= 0 and index):
                return
            after = tasks[index + 1] if index + 1 < len(tasks) else None
            try:
                result = self._tune(task, after, storage, pool, left / (len(tasks) - index))
            except InputError:
                raise  # of the studies or the files, which the other tasks need as well
            except ApspError as error:
                result = TaskResult(task, error=str(error))
            self.results.append(result)
            self._progress.finished(result)

    def _tune(self, task: Task, after: Task | None, storage: BaseStorage, pool: Pool, seconds: float) -> TaskResult:
        """Return the result of a task, recorded in its study and written to its file."""
        start, settings = time.monotonic(), self._plan.settings
        baselines = baselines_of(task, self._plan.devices[0])
        study = TaskStudy(task, baselines, settings, self.device.slug, storage)
        earlier = study.result()
        if earlier is not None:
            return self._writer.restore(earlier)
        run = TaskRun(task, baselines, self.device, settings, seconds, pool, self._progress)
        result = self._writer.write(run.run(study.study, self._anchors(task, baselines), after))
        self.interrupted = not result.complete
        result = dataclasses.replace(result, seconds=time.monotonic() - start)
        study.record(result)
        return result

    def _anchors(self, task: Task, baselines: Baselines) -> list[CompleteConfig]:
        """Return what is used now, and the winners of the same kernel and dtype at other sizes and signs."""
        same = (task.engine, task.kernel, task.dtype)
        winners = [
            from_fields(task.engine, result.winner.config).over(baselines.default)
            for result in self.results
            if result.winner is not None and (result.task.engine, result.task.kernel, result.task.dtype) == same
        ]
        return [baselines.incumbent, *winners]
