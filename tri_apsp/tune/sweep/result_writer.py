"""Keeping what a sweep found in tuned files."""

from __future__ import annotations

import dataclasses
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tri_apsp import tuned
from tri_apsp.device import describe, driver_version
from tri_apsp.errors import InputError
from tri_apsp.tune.space.space import Space, space_hash
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.sweep.result import TaskResult
from tri_apsp.tuned.store import wait_for_others

__all__ = ["Keeper", "clock"]


class Keeper:
    """Writes the winners of a sweep to tuned files.

    Args:
        plan: of the sweep.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, self._settings = plan, plan.settings
        self._device = describe(plan.devices[0])
        pool = ThreadPoolExecutor(1, thread_name_prefix="tri_apsp-driver")
        self._driver = pool.submit(driver_version, plan.devices[0])  # which takes a second
        pool.shutdown(wait=False)

    def check(self) -> None:
        """Refuse before hours of work what could not be saved afterwards.

        Raises:
            InputError: a folder cannot be written to, or stays locked; or a file cannot be used.

        Cost: where another process writes there, the time until it is done, half a minute at most.
        """
        device, settings = self._device, self._settings
        for names in dict.fromkeys((task.engine, task.kernel, task.dtype) for task in self._plan.tasks):
            path = tuned.path_of(*names, device.slug, settings.save_dir)
            place = next(parent for parent in path.parents if parent.exists())
            if not (place.is_dir() and os.access(place, os.W_OK)):
                raise InputError(
                    f"tuned files must be written to {path.parent}, but {place} is no writable folder; "
                    "choose another --save-dir."
                )
            reason = None if settings.force else tuned.conflict(*names, device, settings.save_dir)
            if reason is not None:
                raise InputError(reason)
        wait_for_others(device.slug, settings.save_dir)

    def keep(self, result: TaskResult, space: Space) -> TaskResult:
        """Save the winner; one of an interrupted search only where it gained, and nothing better is known."""
        if result.config is None or (not result.complete and (not result.gained or self.has(result.task))):
            return result
        return dataclasses.replace(result, path=self.save(result, space))

    def has(self, task: Task) -> bool:
        """Return whether a complete entry of the task can be used where we save."""
        names = (task.engine, task.kernel, task.dtype)
        path = tuned.path_of(*names, self._device.slug, self._settings.save_dir)
        if not path.exists() or tuned.conflict(*names, self._device, self._settings.save_dir):
            return False
        file = tuned.load(path)
        return any(entry.key == (task.sign, task.batch, task.n) and (entry.run or file).complete for entry in file.entries)

    def save(self, result: TaskResult, space: Space, note: str = "") -> Path:
        """Write the winner to its file, whose protocol ends with `note`, and return the file."""
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
            protocol=f"{clock(task)}; {settings.budget.rounds} rounds, forward and backward{note}",
            seed=settings.seed,
            budget_seconds=settings.seconds(len(self._plan.tasks)),
            complete=result.complete,
            driver=self._driver.result(),
        )
        path = tuned.save(file, settings.save_dir, force=settings.force)
        tuned.remember(file)  # the tasks to come use it, wherever it was saved
        return path


def clock(task: Task) -> str:
    """Return what times a task."""
    return "wall clock" if task.engine == "cpu" else "CUDA events, L2 cache flushed before each run"
