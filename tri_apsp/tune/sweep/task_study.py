"""The study of a task: its name, whether it is finished, and its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from optuna.storages import BaseStorage

from tri_apsp import tuned
from tri_apsp.configs import to_fields
from tri_apsp.tune.measure.measurement import protocol_of
from tri_apsp.tune.search.search import known_trials
from tri_apsp.tune.search.studies import open_study
from tri_apsp.tune.space.candidates import space_hash
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines
from tri_apsp.tune.sweep.plan import Settings
from tri_apsp.tune.sweep.result import TaskResult

__all__ = ["TaskStudy"]


class TaskStudy:
    """The study of a task, a new one unless the settings ask to resume.

    Args:
        task: the task to tune.
        baselines: the configurations to beat.
        settings: the settings of the sweep.
        slug: the slug of the device.
        storage: the storage of the studies.

    Attributes:
        study: Optuna's study, which holds the trials.
    """

    def __init__(
        self, task: Task, baselines: Baselines, settings: Settings, slug: str, storage: BaseStorage
    ) -> None:
        # A result depends on these settings besides the name of the study.
        self._budget = [settings.effort, settings.trials, settings.time_budget]
        self.study = open_study(storage, _name(task, baselines, slug), resume=settings.resume)

    def result(self) -> TaskResult | None:
        """Return the result that an earlier run recorded with the same budget; None if there is
        none.
        """
        recorded = self.study.user_attrs.get("result")
        if recorded is None or recorded["asked"] != self._budget:
            return None
        return dataclasses.replace(
            TaskResult.from_dict(recorded, known_trials(self.study)), resumed=True, seconds=0.0
        )

    def record(self, result: TaskResult) -> None:
        """Record a complete result, so that --resume finds it."""
        if result.complete:
            self.study.set_user_attr("result", {"asked": self._budget, **result.to_dict()})


def _name(task: Task, baselines: Baselines, slug: str) -> str:
    words = [
        task.engine,
        task.kernel,
        task.dtype,
        task.sign,
        f"n{task.n}",
        *([f"b{task.batch}"] if task.batch > 1 else []),
    ]
    words += [task.objective] if task.minimises_energy else []
    facts = {
        "space": space_hash(task.record.space),
        "kernel": tuned.kernel_hash(task.engine, task.kernel),
        "clock": protocol_of(task),
        # A solve is measured with the tiles of the kernels tuned before, other kernels by
        # themselves.
        "rest": to_fields(baselines.default) if task.record.is_solve else None,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
    return "-".join([*words, slug, digest])
