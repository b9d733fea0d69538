"""What does tuning gain? Tables and a plot of the results of python -m tri_apsp.tune."""

import argparse
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from matplotlib.figure import Figure

from tri_apsp.console.machine import versions_line
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import amount, command_line, flat_fields
from tri_apsp.console.tables import write_csv
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.report import plots
from tri_apsp.report.calls import duration
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import figure, section, table, write_page
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.rows import commit_of_checkout
from tri_apsp.report.run import environment_section
from tri_apsp.tune.results import TaskResult, Winner
from tri_apsp.tune.rows import read_rows
from tri_apsp.tune.tasks import TuningTask

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


Tuned = tuple[TaskResult, Winner]
"""The result of a task, and its winner."""

Kernels = dict[str, list[Tuned]]
"""Results by engine and kernel."""


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/ and the index, print the path of the page, and return the exit
    status.

    Raises:
        InputError: a sweep cannot be read, or a file cannot be written.
    """
    headers, every = _read(args.sources)
    device = headers[0]["device"]
    folder = args.out / device["slug"] / "tuning"
    make_folder(folder, "--out")
    write_csv(folder / "winners.csv", [_of_winner(result) for result, _ in every])
    kernels = _by_kernel([tuned for tuned in every if tuned[0].complete])
    plots.save(_drawn(kernels), folder / "speed-up")
    command = command_line("tri_apsp.report", "tuning", "--from", *args.sources)
    origin = {"device": device["name"], "commit": args.commit or commit_of_checkout()}
    rows = [
        origin
        | {"versions": versions_line(one["versions"]), "date": one["created"]}
        | {"command": one["command"]}
        for one in headers
    ]
    details = [
        section("Best configurations", _best(every)),
        environment_section([*rows, rows[-1] | {"command": command}], "winners.csv"),
    ]
    shown = figure("speed-up", "speed-up over the default against n")
    blocks = {
        "result": "\n\n".join([shown, _speed_ups(kernels)]),
        "details": "\n\n".join(filter(None, details)),
    }
    title = f"What does tuning gain? {device['name']}"
    print(write_page(folder / "README.md", title, blocks))
    write_index(args.out)
    return 0


def _read(folders: Sequence[Path]) -> tuple[list[dict[str, Any]], list[Tuned]]:
    """Return the headers of sweeps, and for each task with a winner the last result which is not
    only resumed.

    Raises:
        InputError: a sweep cannot be read, they are of different machines, or they tuned nothing.
    """
    sweeps = [read_rows(folder) for folder in folders]
    slugs = dict.fromkeys(rows.header["device"]["slug"] for rows in sweeps)
    found: dict[TuningTask, Tuned] = {}
    for rows in sweeps:
        for result in rows.results:
            known = result.task in found and result.resumed
            if result.winner is not None and not known:
                found[result.task] = result, result.winner
    if len(slugs) > 1 or not found:
        raise InputError(
            "--from must name sweeps of one machine that tuned something, but these are of "
            f"{', '.join(slugs)} and tuned {counted(len(found), 'task')}; choose others."
        )
    return [rows.header for rows in sweeps], list(found.values())


def _by_kernel(every: Sequence[Tuned]) -> Kernels:
    found: Kernels = {}
    for result, winner in every:
        kernel = f"{result.task.engine} {result.task.kernel}"
        found.setdefault(kernel, []).append((result, winner))
    return found


def _of_winner(result: TaskResult) -> dict[str, Any]:
    row = result.to_dict()
    kept = {name: value for name, value in row.items() if name not in _NOT_OF_WINNERS}
    return kept | {"config": json.dumps(row["config"])}


def _drawn(kernels: Kernels) -> Figure:
    """Draw the speed-ups of each kernel against n: the mean, and bars from least to most."""
    lines = []
    for kernel, every in kernels.items():
        by_n: dict[int, list[float]] = {}
        for result, winner in every:
            by_n.setdefault(result.task.n, []).append(winner.speedup)
        n = sorted(by_n)
        middle, low, high = ([value(by_n[x]) for x in n] for value in (geometric_mean, min, max))
        lines.append(Line(kernel, n, middle, low, high))
    return plots.draw("Speed-up over the default", [Plot("n", lines)], y_label="speed-up", width=7)


def _speed_ups(kernels: Kernels) -> str:
    """Return the mean speed-up of each kernel and dtype, and how often the default stays."""
    lines = []
    dtypes = dict.fromkeys(result.task.dtype for every in kernels.values() for result, _ in every)
    for kernel, every in (kernels | {"all": [*chain(*kernels.values())]}).items():
        parts = [
            [winner for result, winner in every if dtype in (None, result.task.dtype)]
            for dtype in (*dtypes, None)
        ]
        means = [
            f"{geometric_mean(one.speedup for one in part):.2f}" if part else "" for part in parts
        ]
        stays = sum(not winner.gained for _, winner in every)
        lines.append([kernel, *means, f"{stays} of {len(every)}"])
    return table(["", *dtypes, "all dtypes", "the default stays"], lines)


def _best(every: Sequence[Tuned]) -> str:
    rows = []
    for result, winner in sorted(every, key=lambda tuned: tuned[0].task.n):
        task = result.task
        rows.append(
            [
                task.n,
                task.engine,
                task.kernel if task.batch == 1 else f"{task.kernel} of {task.batch}",
                task.dtype,
                task.sign,
                duration(winner.times.p50_ms / 1000),
                f"{amount(task.operations / (winner.times.p50_ms / 1000))}/s",
                duration(winner.default_ms / 1000),
                f"{winner.speedup:.2f}" + ("" if result.complete else " (interrupted)"),
                " ".join(f"{name}={value}" for name, value in flat_fields(winner.config).items()),
            ]
        )
    header = ["n", "engine", "kernel", "dtype", "sign", "p50", "operations", "default p50"]
    return table([*header, "speed-up", "configuration"], rows)
