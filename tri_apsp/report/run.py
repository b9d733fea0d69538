"""Running a study: measure the configurations that have no row, and write rows, plots, page and index."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import command_line
from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.report.files import writing
from tri_apsp.report.index import write_index
from tri_apsp.report.measuring import GridResult, known, measure
from tri_apsp.report.missing import missing_sentence
from tri_apsp.report.options import DEFAULT_OUT
from tri_apsp.report.page import write_study
from tri_apsp.report.rows import StudyRows, environment
from tri_apsp.report.study import Study, Target
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.space.task import Task

__all__ = ["default_budget", "run_study"]

# Seconds of a run without --budget, on a GPU and on a CPU.
_BUDGETS = {"cuda": 100.0, "cpu": 120.0}
# A run that measured nothing new advises a budget so many times as long.
_MORE = 4
# The file that describes the device, beside its reports.
_DEVICE = "device.json"


def run_study(study: Study, args: argparse.Namespace) -> int:
    """Run a study; with --render-only, measure nothing and use the present rows.

    Returns:
        The exit status.

    Raises:
        InputError: the device does not exist, or a file cannot be used.
        EngineError: the engine cannot run on the device.
        TooLargeError: a size does not fit the memory.
    """
    measuring = args.render_only is None
    if measuring:
        target = _target(args.device, args.engine, args.dtype)
    else:
        target = _recorded_target(args.out / args.render_only, args.engine)
    folder = args.out / target.device.slug
    name = study.name if target.engine != "portable" else f"{study.name}-portable"
    grids = study.grids(target, list(dict.fromkeys(args.n)), list(dict.fromkeys(args.dtype)))
    options = {name: getattr(args, name) for name in ("device", "engine", "n", "dtype", "budget")}
    if not measuring:
        options["device"] = target.device.kind  # of the rows, which may be of another machine
    out = None if args.out == DEFAULT_OUT else args.out
    command = command_line("tri_apsp.report", study.name, **options)
    if measuring:
        origin = environment(target.torch_device, command, args.commit)
        make_folder(folder, "--out")
        rows = StudyRows(folder / f"{name}.csv", study.parameters, origin, study.figures)
        before = len(rows)
        seconds = args.budget if args.budget is not None else default_budget(args.device)
        try:
            results = measure(grids, rows, target.torch_device, seconds, study.measurer)
        except KeyboardInterrupt:
            again = command_line("tri_apsp.report", study.name, **options, out=out)
            print(f"\n{counted(len(rows) - before, 'new row')} in {folder / name}.csv; to continue: {again}", file=sys.stderr)
            raise
        if len(rows) == before:  # what is missing takes longer than its share
            options["budget"] = _MORE * seconds
        with writing(folder / _DEVICE):
            (folder / _DEVICE).write_text(json.dumps(dataclasses.asdict(target.device), indent=2) + "\n", encoding="utf-8")
    else:
        rows = StudyRows(folder / f"{name}.csv", study.parameters, figures=study.figures)
        if not len(rows):
            raise InputError(
                f"--render-only must name a machine on which {study.name} was measured, but {folder / name}.csv has no row; "
                "measure it there first."
            )
        results = [known(grid, rows) for grid in grids]
    results += _others(study, target, rows, {grid.task for grid in grids})
    again = command_line("tri_apsp.report", study.name, **options, out=out)
    print(write_study(study, target, results, folder, name, again))
    if missing := missing_sentence(results):
        print(f"warning: {missing} This command continues: {again}", file=sys.stderr)
    write_index(args.out)
    return 0


def _others(study: Study, target: Target, rows: StudyRows, requested: set[Task]) -> list[GridResult]:
    """Return what earlier commands measured of other tasks, so that a page shows all rows."""
    grids = study.grids_of_tasks(target, [task for task in rows.tasks() if task.engine == target.engine])
    results = [known(grid, rows, requested=False) for grid in grids if grid.task not in requested]
    return [result for result in results if result.screened]


def default_budget(device: str) -> float:
    """Return the seconds of a study without --budget."""
    return _BUDGETS[resolve(device).type]


def _target(device: str, engine: str | None, dtypes: Sequence[str]) -> Target:
    """Return the target of a measurement; its engine must run all dtypes."""
    found = resolve(device)
    chosen = [engines.choose(found, Config(engine=engine), DTYPES_BY_NAME[dtype]) for dtype in dtypes or ["float32"]]
    return Target(found, chosen[0], describe(found))


def _recorded_target(folder: Path, engine: str | None) -> Target:
    """Return the target whose rows are in `folder`; this machine need not have its device."""
    path = folder / _DEVICE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        capability = fields["capability"]
        device = Device(**{**fields, "capability": None if capability is None else tuple(capability)})
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"--render-only must name a folder below --out in which a study was measured, but {path} is missing or damaged; "
            "measure there first."
        ) from None
    return Target(torch.device("cpu"), engine or ("cpu" if device.kind == "cpu" else "nvidia"), device)
