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
from tri_apsp.console.output import amount, command_line, flat_fields, write_csv
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.report import plots
from tri_apsp.report.calls import duration
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import figure, section, table, write_page, writing
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.rows import commit_of_checkout
from tri_apsp.report.run import environment_section
from tri_apsp.report.study import grouped

_NOT_OF_WINNERS = ("failures", "path", "error", "before", "before_ms", "best_ms", "conclusive")

Rows = list[dict[str, Any]]
"""Results of tasks, as TaskResult.to_dict writes them."""


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/ and the index, print the path of the page, and return the exit
    status.

    Raises:
        InputError: a sweep cannot be read, or a file cannot be written.
    """
    headers, every = _read(args.sources)
    device = headers[0]["device"]
    folder = args.out / device["slug"] / "tuning"
    with writing(folder / "winners.csv"):
        write_csv(folder / "winners.csv", [_of_winner(tuned) for tuned in every])
    kernels = {" ".join(key): rows for key, rows in grouped(every, "engine", "kernel").items()}
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


def _read(folders: Sequence[Path]) -> tuple[Rows, Rows]:
    """Return the headers of sweeps, and for each task with a winner the last result which is not
    only resumed.

    Raises:
        InputError: a sweep cannot be read, they are of different machines, or they tuned nothing.
    """
    headers: Rows = []
    found: dict[Any, dict[str, Any]] = {}
    for folder in folders:
        path = folder / "sweep.json"
        try:
            header = json.loads(path.read_text(encoding="utf-8"))
            results = header.pop("results")
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                "--from must name what `python -m tri_apsp.tune --report DIR` wrote, but "
                f"{path} is not ({type(error).__name__}: {error}); tune again."
            ) from None
        headers.append(header)
        for row in results:
            task = tuple(row[name] for name in ("engine", "kernel", "dtype", "sign", "n", "batch"))
            if row.get("config") is not None and not (task in found and row["resumed"]):
                found[task] = row
    slugs = dict.fromkeys(header["device"]["slug"] for header in headers)
    if len(slugs) > 1 or not found:
        raise InputError(
            "--from must name sweeps of one machine that tuned something, but these are of "
            f"{', '.join(slugs)} and tuned {counted(len(found), 'task')}; choose others."
        )
    return headers, list(found.values())


def _of_winner(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in _NOT_OF_WINNERS}
    return kept | {"config": json.dumps(row["config"])}


def _drawn(kernels: dict[str, Rows]) -> Figure:
    """Draw the speed-ups of each kernel against n: the mean, and bars from least to most."""
    lines = []
    for kernel, every in kernels.items():
        by_n = dict(sorted(grouped(every, "n").items()))
        speed_ups = [[float(row["speedup"]) for row in rows] for rows in by_n.values()]
        middle, low, high = ([value(x) for x in speed_ups] for value in (geometric_mean, min, max))
        lines.append(Line(kernel, [int(n) for (n,) in by_n], middle, low, high))
    return plots.draw("Speed-up over the default", [Plot("n", lines)], y_label="speed-up", width=7)


def _speed_ups(kernels: dict[str, Rows]) -> str:
    """Return the mean speed-up of each kernel and dtype, and how often the default stays."""
    lines = []
    dtypes = dict.fromkeys(row["dtype"] for every in kernels.values() for row in every)
    for kernel, every in (kernels | {"all": [*chain(*kernels.values())]}).items():
        parts = [[row for row in every if row["dtype"] == dtype] for dtype in dtypes]
        means = [
            f"{geometric_mean(row['speedup'] for row in part):.2f}" if part else ""
            for part in (*parts, every)
        ]
        stays = sum(not row["gained"] for row in every)
        lines.append([kernel, *means, f"{stays} of {len(every)}"])
    return table(["", *dtypes, "all dtypes", "the default stays"], lines)


def _best(every: Rows) -> str:
    rows = []
    for row in sorted(every, key=lambda row: row["n"]):
        seconds, batch = row["p50_ms"] / 1000, row["batch"]
        rows.append(
            [
                row["n"],
                row["engine"],
                row["kernel"] if batch == 1 else f"{row['kernel']} of {batch}",
                row["dtype"],
                row["sign"],
                duration(seconds),
                f"{amount(batch * row['n'] ** 3 / seconds)}/s",
                duration(row["default_ms"] / 1000),
                f"{row['speedup']:.2f}",
                " ".join(f"{name}={value}" for name, value in flat_fields(row["config"]).items()),
            ]
        )
    header = ["n", "engine", "kernel", "dtype", "sign", "p50", "operations", "default p50"]
    return table([*header, "speed-up", "configuration"], rows)
