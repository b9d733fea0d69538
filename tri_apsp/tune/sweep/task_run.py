"""Tuning one task: a search, a final among the fastest and the baselines, and the decision."""

from __future__ import annotations

import time
from collections.abc import Iterable

import optuna

from tri_apsp.configs import CompleteConfig
from tri_apsp.device import Device
from tri_apsp.errors import EngineError
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.search.evaluated import SearchResult
from tri_apsp.tune.search.search import Search
from tri_apsp.tune.space.candidates import candidates
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.baselines import Baselines
from tri_apsp.tune.sweep.decision import GAIN, SCREENED_GAIN, choose_winner
from tri_apsp.tune.sweep.final import FinalBudget
from tri_apsp.tune.sweep.plan import Settings
from tri_apsp.tune.sweep.result import TaskResult
from tri_apsp.tune.workers.pool import Pool
from tri_apsp.tuned.records import Values

__all__ = ["TaskRun"]


class TaskRun:
    """Tunes one task.

    Args:
        task: the task to tune.
        baselines: the configurations to beat.
        device: the device that the pool measures on.
        settings: the settings of the sweep.
        seconds: the time of the search and the final.
        pool: measures the configurations.
        progress: receives each evaluation.
    """

    def __init__(
        self,
        task: Task,
        baselines: Baselines,
        device: Device,
        settings: Settings,
        seconds: float,
        pool: Pool,
        progress: Progress,
    ) -> None:
        self._task, self._baselines, self._settings = task, baselines, settings
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._pool, self._progress = pool, progress
        self._space = task.record.space
        self._candidates = candidates(self._space, task, device, baselines.default)
        self._final_budget = FinalBudget(
            settings.budget, len(baselines.distinct), task.minimises_energy
        )

    def run(self, study: optuna.Study, anchors: Iterable[CompleteConfig]) -> TaskResult:
        """Return the result, which is incomplete if Ctrl-C ended the search or the final.

        Args:
            study: holds the trials.
            anchors: configurations to evaluate early.

        Raises:
            EngineError: no configuration works, the default failed in the final, or time sufficed
                for the default only.
        """
        found = self._search(study, [self._space.values(config) for config in anchors])
        final = None if found.interrupted else self._final(found)
        outcomes = self._screened(found) if final is None else final
        winner = choose_winner(
            self._task, self._baselines, outcomes, SCREENED_GAIN if final is None else GAIN
        )
        if winner is None and final is not None:
            raise EngineError(_default_failed(self._task, final[self._baselines.untuned]))
        return TaskResult(
            self._task,
            found,
            winner,
            complete=final is not None,
            throttled=any(outcome.throttled for outcome in outcomes.values()),
        )

    def _search(self, study: optuna.Study, anchors: list[Values]) -> SearchResult:
        settings = self._settings
        self._progress.started(
            self._task, min(settings.budget.trials, len(self._candidates)), self._end
        )
        search = Search(
            self._space,
            self._candidates,
            study=study,
            default=self._space.values(self._baselines.default),
            anchors=anchors,
            sampler=settings.sampler,
            seed=settings.seed,
            trials=settings.budget.trials,
            seconds=self._seconds,
            reserve=self._final_budget.reserve(self._seconds),
            on_trial=self._evaluated,
        )
        found = search.run(self._pool.evaluators(self._task, self._config))
        if found.best is None and not found.interrupted:
            raise EngineError(_all_failed(self._task, found))
        if len(found.evaluated) == 1 < found.candidates and not found.interrupted:
            raise EngineError(
                f"a task needs time for several configurations, but {self._seconds:.2g} s sufficed for only the default of "
                f"{self._task}; give more --time-budget."
            )
        return found

    def _evaluated(self, found: SearchResult) -> None:
        self._progress.evaluated(found)
        if found.evaluated[-1] is found.best:
            self._pool.prefetch(self._task, [self._config(found.evaluated[-1].values)])

    def _final(self, found: SearchResult) -> dict[CompleteConfig, Outcome] | None:
        """Return the outcomes of a final of the baselines and the fastest others; None if Ctrl-C
        ended it.
        """
        baselines, budget, left = (
            self._baselines.distinct,
            self._final_budget,
            self._end - time.monotonic(),
        )
        others = [
            config
            for trial in found.ranked
            if (config := self._config(trial.values)) not in baselines
        ]
        configs = baselines + others[: budget.finalists(left, found.best_ms)]
        self._progress.final(found, len(configs))
        try:
            left = self._end - time.monotonic()
            outcomes = self._pool.final(
                self._task, configs, budget.rounds(left, len(configs), found.best_ms)
            )
            return dict(zip(configs, outcomes, strict=True))
        except KeyboardInterrupt:
            return None

    def _screened(self, found: SearchResult) -> dict[CompleteConfig, Outcome]:
        """Return the outcomes of the default, the configuration in use and the fastest in the
        search, in place of a final's.
        """
        outcomes = {self._baselines.default: Outcome(Kind.timeout, message="interrupted")}
        known = {self._config(trial.values): trial.outcome for trial in found.evaluated}
        wanted = [
            self._baselines.default,
            self._baselines.incumbent,
            *(self._config(trial.values) for trial in found.ranked[:1]),
        ]
        return outcomes | {config: known[config] for config in wanted if config in known}

    def _config(self, values: Values) -> CompleteConfig:
        return self._space.config(values, self._baselines.default)


def _all_failed(task: Task, found: SearchResult) -> str:
    classes = ", ".join(f"{count} {kind.value}" for kind, count in found.failures.most_common())
    last = found.evaluated[-1].outcome.message if found.evaluated else "none ran"
    return f"a task needs a configuration that works, but all of {task} failed ({classes}; the last: {last}); no result was saved."


def _default_failed(task: Task, outcome: Outcome) -> str:
    return (
        f"a task needs a default that works, but that of {task} failed in the final ({outcome.kind.value}: {outcome.message}); "
        "no result was saved."
    )
