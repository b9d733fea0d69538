"""What does tuning gain? Tables and a plot of the tuned files of a machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from tri_apsp import tuned
from tri_apsp.console.machine import versions_line
from tri_apsp.console.output import amount, command_line, duration, flat_fields
from tri_apsp.errors import InputError
from tri_apsp.report import plots
from tri_apsp.report.markdown import figure, section, table, write_index, write_page
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tri_apsp.tuned.schema import TunedFile

Rows = list[dict[str, Any]]
"""The entries of tuned files, with the engine, kernel and dtype of the file."""


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/ and the index, print the path of the page, and return the exit
    status.

    Raises:
        InputError: a tuned file cannot be read, or a file cannot be written.
    """
    files = _read(args.source)
    every: Rows = [
        {"engine": file.engine, "kernel": file.kernel, "dtype": file.dtype} | entry.model_dump()
        for file in files
        for entry in file.entries
    ]
    folder = args.out / files[0].slug / "tuning"
    kernels = {" ".join(key): rows for key, rows in grouped(every, "engine", "kernel").items()}
    plots.save(_drawn(kernels), folder / "speed-up")
    shown = figure("speed-up", "speed-up over the default against n")
    command = command_line("tri_apsp.report", "tuning", "--from", args.source)
    details = [section("Best configurations", _best(every)), _origin(files, command)]
    blocks = {
        "result": "\n\n".join([shown, _speed_ups(kernels)]),
        "details": "\n\n".join(details),
    }
    title = f"What does tuning gain? {files[0].gpu}"
    print(write_page(folder / "README.md", title, blocks))
    write_index(args.out)
    return 0


def _read(folder: Path) -> list[TunedFile]:
    """Return the tuned files in a folder.

    Raises:
        InputError: there are none or of several machines, or one cannot be read.
    """
    files = [tuned.load(path) for path in sorted(folder.glob("*.json"))]
    slugs = sorted({file.slug for file in files})
    if len(slugs) != 1:
        raise InputError(
            "--from must name a folder with tuned files of one machine, such as "
            f"tuning/nvidia-h200, but {folder} has those of {', '.join(slugs) or 'none'}; "
            "give another."
        )
    return files


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
        stays = sum(row["speedup"] == 1 for row in every)  # of both, the same times
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


def _origin(files: Sequence[TunedFile], command: str) -> str:
    """Return the section of the device, the versions and dates of all runs, and the command."""
    runs = [entry.run or file.run for file in files for entry in file.entries]
    versions = dict.fromkeys(
        versions_line({"torch": run.torch, "cuda": run.cuda, "triton": run.triton}) for run in runs
    )
    dates = sorted({str(run.created) for run in runs})
    facts = {"Device": [files[0].gpu], "Versions": versions, "Tuned on": dates}
    listed = "\n".join(f"* {name}: {'; '.join(values)}" for name, values in facts.items())
    return section("Measured with", listed, f"    {command}")
