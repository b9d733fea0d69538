"""What does tuning gain? Tables and a plot of the results of python -m tri_apsp.tune."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any, NamedTuple

from tri_apsp.console.machine import versions_line
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import amount, command_line, flat_fields
from tri_apsp.console.tables import write_csv
from tri_apsp.errors import InputError
from tri_apsp.report import plots
from tri_apsp.report.calls import Columns, table_of
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import figure, section, table, write_page
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.rows import commit_of_checkout
from tri_apsp.report.run import environment_section
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.sweep.result import TaskResult, Winner
from tri_apsp.tune.sweep.rows import read_rows

__all__ = ["run"]

_NOT_OF_WINNERS = (
    "objective",
    "failures",
    "path",
    "error",
    "before",
    "before_ms",
    "best_ms",
    "conclusive",
)


class _Tuned(NamedTuple):
    """A result with a winner, and the importances of the parameters; empty if there were too few
    trials.
    """

    result: TaskResult
    winner: Winner
    importances: dict[str, float]

    @property
    def default_ms(self) -> float:
        """The default's first measurement; infinity if it was not evaluated or not correct."""
        trials = self.result.search.evaluated
        first = (trial.outcome.median_ms for trial in trials if trial.origin == "default")
        return next(first, math.inf)

    def best_ms(self, count: int | None = None) -> float:
        """Return the shortest time of the first `count` configurations, or of all, as first
        measured.
        """
        return min(trial.outcome.median_ms for trial in self.result.search.evaluated[:count])

    @property
    def is_exhaustive(self) -> bool:
        """Whether every candidate was evaluated, or is larger than one that did not fit."""
        search = self.result.search
        return len(search.evaluated) + search.dominated >= search.candidates


Kernels = dict[str, list[_Tuned]]
"""Results by engine and kernel."""


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/ and the index, print the path of the page, and return the exit
    status.

    Raises:
        InputError: a sweep cannot be read, or a file cannot be written.
    """
    headers, every, exhaustive, unresolved = _read(args.sources)
    device = headers[0]["device"]
    folder = args.out / device["slug"] / "tuning"
    make_folder(folder, "--out")
    write_csv(folder / "winners.csv", [_of_winner(tuned) for tuned in every])
    complete = [tuned for tuned in every if tuned.result.complete]
    kernels = _by_kernel(complete)
    plots.save(_drawn(kernels), folder / "speed-up")
    counts = {
        "tasks": len(every),
        "complete": len(complete),
        "where the default stays": sum(not tuned.winner.gained for tuned in complete),
        "without a result": len(unresolved),
    }
    summary = table(
        [*counts, "mean speed-up"], [[*counts.values(), f"{_mean_speed_up(complete):.2f}"]]
    )
    commit = {"device": device["name"], "commit": args.commit or commit_of_checkout()}
    rows = [
        commit
        | {"versions": versions_line(one["versions"]), "date": one["created"]}
        | {"command": one["command"]}
        for one in headers
    ]
    command = command_line("tri_apsp.report", "tuning", "--from", *args.sources)
    details = [
        section("Best so far over the default's rate", table_of(_search(kernels), _two, "{}")),
        section("Importance of the parameters", *_importances(_by_kernel(every))),
        section("Failures", *_failures(_by_kernel(every))),
        section("Best configurations", _best(every)),
        environment_section([*rows, rows[-1] | {"command": command}], "winners.csv"),
    ]
    shown = figure("speed-up", "speed-up over the default against n")
    blocks = {
        "result": "\n\n".join([summary, shown, _speed_ups(kernels, _by_kernel(exhaustive))]),
        "details": "\n\n".join(filter(None, details)),
    }
    title = f"What does tuning gain? {device['name']}"
    print(write_page(folder / "README.md", title, blocks))
    write_index(args.out)
    return 0


def _read(
    folders: Sequence[Path],
) -> tuple[list[dict[str, Any]], list[_Tuned], list[_Tuned], list[TaskResult]]:
    """Return the headers of sweeps; for each task the last result, which is not only resumed, and
    the last exhaustive one; and the results without a winner.

    Raises:
        InputError: a sweep cannot be read, they are of different machines, or they tuned nothing.
    """
    sweeps = [read_rows(folder) for folder in folders]
    slugs = list(dict.fromkeys(rows.header["device"]["slug"] for rows in sweeps))
    if len(slugs) > 1:
        raise InputError(
            f"--from must name sweeps of one machine, but these are of {', '.join(slugs)}; render "
            "one at a time."
        )
    found: dict[Any, _Tuned] = {}
    exhaustive: dict[Any, _Tuned] = {}
    unresolved = []
    for rows in sweeps:
        for result in rows.results:
            task = result.task
            if result.winner is None:
                unresolved.append(result)
                continue
            tuned = _Tuned(result, result.winner, rows.importances.get(task, {}))
            if tuned.is_exhaustive:
                exhaustive[task] = tuned
            if task not in found or not result.resumed:
                found[task] = tuned
    if not found:
        raise InputError(
            "--from must name a sweep that tuned something, but no task of these has a winner; "
            "tune again."
        )
    left = [result for result in unresolved if result.task not in found]
    return [rows.header for rows in sweeps], [*found.values()], [*exhaustive.values()], left


def _by_kernel(every: Sequence[_Tuned]) -> Kernels:
    found: Kernels = {}
    for tuned in every:
        task = tuned.result.task
        found.setdefault(f"{task.engine} {task.kernel}", []).append(tuned)
    return found


def _of_winner(tuned: _Tuned) -> dict[str, Any]:
    row = tuned.result.to_dict()
    kept = {name: value for name, value in row.items() if name not in _NOT_OF_WINNERS}
    return kept | {"config": json.dumps(row["config"])}


def _two(value: float) -> str:
    return f"{value:.2f}"


def _mean_speed_up(every: Sequence[_Tuned]) -> float:
    return geometric_mean(one.winner.speedup for one in every) if every else math.nan


def _drawn(kernels: Kernels) -> plots.Figure:
    """Draw the speed-ups of each kernel against n: the mean, and bars from least to most."""
    lines = []
    for kernel, every in kernels.items():
        by_n: dict[int, list[float]] = {}
        for tuned in every:
            by_n.setdefault(tuned.result.task.n, []).append(tuned.winner.speedup)
        n = sorted(by_n)
        middle, low, high = ([value(by_n[x]) for x in n] for value in (geometric_mean, min, max))
        lines.append(Line(kernel, n, middle, low, high))
    return plots.draw("Speed-up over the default", [Plot("n", lines)], y_label="speed-up", width=7)


def _speed_ups(kernels: Kernels, exhaustive: Kernels) -> str:
    """Return the mean speed-up of each kernel and dtype, how often the default stays, and where
    every candidate was evaluated the default's part of the best rate.
    """
    dtypes = dict.fromkeys(one.result.task.dtype for every in kernels.values() for one in every)
    rows = []
    for kernel, every in kernels.items():
        of_dtypes = [[one for one in every if one.result.task.dtype == dtype] for dtype in dtypes]
        means = [_two(_mean_speed_up(part)) if part else None for part in (*of_dtypes, every)]
        stays = sum(not one.winner.gained for one in every)
        parts = [one.best_ms() / one.default_ms for one in exhaustive.get(kernel, [])]
        shares = [f"{value(parts):.0%}" for value in (geometric_mean, min) if parts and min(parts)]
        rows.append([kernel, *means, f"{stays} of {len(every)}", *(shares or ["", ""])])
    header = ["", *dtypes, "all dtypes", "the default stays"]
    return table([*header, "default / best rate, mean", "least"], rows)


def _search(kernels: Kernels) -> Columns:
    """Return the mean gain of the best of the default and the first configurations."""
    found: Columns = {}
    for kernel, every in kernels.items():
        known = [one for one in every if one.default_ms < math.inf]
        last = max((len(one.result.search.evaluated) for one in known), default=0)
        for count in sorted({*(2**power for power in range(last.bit_length())), last} - {0}):
            gains = (max(1.0, one.default_ms / one.best_ms(count)) for one in known)
            found.setdefault(kernel, {})[count] = geometric_mean(gains)
    return found


def _importances(kernels: Kernels) -> Iterator[str]:
    """Yield a table for each kernel: the mean importance of each parameter by n."""
    for kernel, every in kernels.items():
        shares: dict[str, dict[int, list[float]]] = {}
        for tuned in every:
            for name, share in tuned.importances.items():
                shares.setdefault(name, {}).setdefault(tuned.result.task.n, []).append(share)
        means: Columns = {
            name: {n: mean(by_n[n]) for n in sorted(by_n)} for name, by_n in shares.items()
        }
        if means:
            yield f"### {kernel}"
            yield table_of(means, _two)


def _failures(kernels: Kernels) -> Iterator[str]:
    rows = []
    for kernel, every in kernels.items():
        trials = [trial for tuned in every for trial in tuned.result.search.evaluated]
        counts = sum((tuned.result.search.failures for tuned in every), Counter())
        for kind, count in counts.most_common():
            messages = Counter(one.outcome.message for one in trials if one.outcome.kind is kind)
            example = messages.most_common(1)[0][0]
            rows.append([kernel, kind.value, count, len(trials), f"`{example}`"])
    if rows:
        yield table(["", "class", "failed", "evaluated", "most frequent message"], rows)


def _best(every: Sequence[_Tuned]) -> str:
    rows = []
    for result, winner, _ in sorted(every, key=lambda tuned: tuned.result.task.n):
        task = result.task
        rows.append(
            [
                task.n,
                task.engine,
                task.kernel if task.batch == 1 else f"{task.kernel} of {task.batch}",
                task.dtype,
                task.sign,
                milliseconds(winner.times.p50_ms),
                f"{amount(task.operations / (winner.times.p50_ms / 1000))}/s",
                milliseconds(winner.default_ms),
                _two(winner.speedup) + ("" if result.complete else " (interrupted)"),
                " ".join(f"{name}={value}" for name, value in flat_fields(winner.config).items()),
            ]
        )
    header = ["n", "engine", "kernel", "dtype", "sign", "p50", "operations", "default p50"]
    return table([*header, "speed-up", "configuration"], rows)
