"""Writing the winners of a sweep to tuned files."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp import tuned
from tri_apsp.device import describe, driver_version
from tri_apsp.errors import InputError
from tri_apsp.tune.measure.measurement import protocol_of
from tri_apsp.tune.space.candidates import space_hash
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.result import TaskResult, Winner
from tri_apsp.tuned.store import require_writable

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["ResultWriter"]


class ResultWriter:
    """Writes the winners of a sweep to tuned files.

    Args:
        plan: the plan of the sweep.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, self._settings = plan, plan.settings
        self._device = describe(plan.devices[0])
        thread = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-driver")
        self._driver = thread.submit(driver_version, plan.devices[0])  # it takes a second
        thread.shutdown(wait=False)

    def check(self) -> None:
        """Refuse, before hours of work, a sweep whose winners could not be saved; remember the
        present entries.

        Raises:
            InputError: a folder cannot be written to, or stays locked; or a file cannot be used.

        Cost: if another process writes there, the time until it is done, half a minute at most.
        """
        require_writable(self._device.slug, self._settings.save_dir)
        for task in {
            (task.engine, task.kernel, task.dtype): task for task in self._plan.tasks
        }.values():
            file, reason = self._existing(task)
            if reason is not None and not self._settings.force:
                raise InputError(reason)
            if file is not None:
                tuned.remember(
                    file
                )  # it is what the sweep must not make worse, also where no lookup searches

    def write(self, result: TaskResult) -> TaskResult:
        """Save the winner, unless it is in use already and has an entry.

        That of an interrupted search is saved only if it replaces another, and no complete entry
        exists.
        """
        winner = result.winner
        if winner is None or not (winner.changed or result.complete):
            return result
        if not (winner.changed and result.complete) and self.has_entry(result.task):
            return result
        return dataclasses.replace(result, path=self._save(result, winner))

    def restore(self, result: TaskResult) -> TaskResult:
        """Save the winner of an earlier run again if its entry is gone; `path` is None if nothing
        was written.
        """
        again = dataclasses.replace(result, path=None)
        return again if result.winner is None or self.has_entry(result.task) else self.write(again)

    def has_entry(self, task: Task) -> bool:
        """Return whether a complete entry of the task can be used in the directory that files are
        saved to.
        """
        file, _ = self._existing(task)
        key = task.sign, task.batch, task.n, task.objective
        return file is not None and any(
            entry.key == key and (entry.run or file).complete for entry in file.entries
        )

    def _existing(self, task: Task) -> tuple[TunedFile | None, str | None]:
        return tuned.existing(
            task.engine, task.kernel, task.dtype, self._device, self._settings.save_dir
        )

    def _save(self, result: TaskResult, winner: Winner) -> Path:
        from tri_apsp.tuned.schema import Entry

        task, settings = result.task, self._settings
        energy = (
            {}
            if winner.energy is None
            else dataclasses.asdict(winner.energy) | {"default_joules": winner.default_joules}
        )
        entry = Entry.model_validate(
            {
                "sign": task.sign,
                "n": task.n,
                "batch": task.batch,
                "config": winner.config,
                **dataclasses.asdict(winner.times),
                "default_ms": winner.default_ms,
                "speedup": winner.speedup,
                "evaluated": len(result.search.evaluated),
                "objective": task.objective,
                **energy,
            }
        )
        file = tuned.new_file(
            task.engine,
            task.kernel,
            task.dtype,
            self._device,
            [entry],
            space_hash=space_hash(task.record.space),
            protocol=f"{protocol_of(task)}; {settings.budget.rounds} rounds, forward and backward",
            seed=settings.seed,
            budget_seconds=settings.seconds(len(self._plan.tasks)),
            complete=result.complete,
            driver=self._driver.result(),
        )
        path = tuned.save(file, settings.save_dir, force=settings.force)
        tuned.remember(file)  # later tasks use it, wherever it was saved
        return path
