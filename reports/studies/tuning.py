"""What does tuning gain? Tables of the tuned files of a machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from reports.studies.markdown import section, table, write_index, write_page
from reports.studies.study import grouped
from tri_apsp import tuned
from tri_apsp.configs import default_config, to_fields
from tri_apsp.console.machine import versions_line
from tri_apsp.console.output import command_line, duration, flat_fields
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.tasks import TuningTask

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

Rows = list[dict[str, Any]]
"""The entries of tuned files, with the engine, kernel and dtype of the file."""

_GAIN = 1.05  # of the tasks that are listed


def run(args: argparse.Namespace) -> None:
    """Write the page in DIR/<machine>/tuning/ and the index, and print the path of the page, which
    links searches.html beside it: python -m tri_apsp.tune --page writes that.

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
    has_trials = (folder / "searches.html").is_file()
    link = "[The searches, trial by trial](searches.html)" if has_trials else ""
    command = command_line("reports", "tuning", "--from", args.source)
    blocks = {
        "result": "\n\n".join(filter(None, [_speed_ups(kernels), link])),
        "details": "\n\n".join([_gains(every), _origin(files, command)]),
    }
    print(write_page(folder / "README.md", f"What does tuning gain? {files[0].gpu}", blocks))
    write_index(args.out)


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


def _gains(every: Rows) -> str:
    """Return the section of the tasks that gain most, with what differs from the default."""
    rows = []
    gains = [row for row in every if row["speedup"] >= _GAIN]
    for row in sorted(gains, key=lambda row: -row["speedup"]):
        default = flat_fields(
            to_fields(default_config(row["engine"], DTYPES_BY_NAME[row["dtype"]]))
        )
        config = flat_fields(row["config"]).items()
        task = TuningTask(
            *(row[name] for name in ("engine", "kernel", "dtype", "sign", "n", "batch"))
        )
        rows.append(
            [
                str(task),
                duration(row["default_ms"] / 1000),
                duration(row["p50_ms"] / 1000),
                f"{row['speedup']:.2f}",
                " ".join(f"{name}={value}" for name, value in config if default.get(name) != value),
            ]
        )
    header = ["task", "default", "tuned", "times as fast", "what differs from the default"]
    shown = table(header, rows) if rows else ""
    return section(f"Tasks that gain at least {_GAIN - 1:.0%}", shown)


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
