"""Running a study: measure the configurations that have no row, and write rows, plots, page and
index.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import command_line
from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.messages import counted
from tri_apsp.report.files import writing
from tri_apsp.report.grids import Grid
from tri_apsp.report.index import write_index
from tri_apsp.report.measuring import GridResult, check_grid_memory, measure, recorded_result
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
# A run that measured nothing new advises a budget so many times as long, and at least that of a run
# without --budget.
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
        TooLargeError: a size that was asked for does not fit the memory.
    """
    if args.render_only is None:
        target = _target(args.device, args.engine, args.dtype)
        grids = _requested(study, target, args)
        rows, results = _measured(study, target, grids, args)
    else:
        target = _recorded_target(args.out / args.render_only, args.engine)
        rows = StudyRows(_csv(study, target, args.out), study.parameters, metrics=study.metrics)
        if not len(rows):
            raise InputError(
                f"--render-only must name a machine on which {study.name} was measured, but {rows.path} has no row; measure it "
                "there first."
            )
        grids = _requested(study, target, args)
        results = [recorded_result(grid, rows) for grid in grids]
        args.device = target.device.kind  # of the rows, which may be of another machine
    others = _others(study, target, rows, {grid.task for grid in grids})
    if args.render_only is not None and others and not any(result.screened for result in results):
        results = []  # of the default sizes nothing was ever measured
    commands = _to_continue(study, args, results, others)
    results += others
    print(write_study(study, target, results, rows.path.parent, rows.path.stem, commands))
    if missing := missing_sentence(results):
        print(f"warning: {missing} To continue: {'; '.join(commands)}", file=sys.stderr)
    write_index(args.out)
    return 0


def _to_continue(
    study: Study,
    args: argparse.Namespace,
    results: Sequence[GridResult],
    others: Sequence[GridResult],
) -> list[str]:
    """Return the commands that measure what is missing: this one again, and one for what earlier
    ones left out.
    """
    commands = (
        [] if all(result.complete for result in results) else [_command(study, args, with_out=True)]
    )
    tasks = [result.grid.task for result in others if not result.complete]
    if tasks:
        sizes, dtypes = (
            sorted({task.n for task in tasks}),
            list(dict.fromkeys(task.dtype for task in tasks)),
        )
        earlier = argparse.Namespace(**vars(args) | {"n": sizes, "dtype": dtypes, "budget": None})
        commands.append(_command(study, earlier, with_out=True))
    return commands


def _requested(study: Study, target: Target, args: argparse.Namespace) -> list[Grid]:
    """Return the grids that the command asks for: of its sizes and dtypes, or of the default ones
    that can run.

    Raises:
        TooLargeError: a size that was asked for does not fit the memory; nothing is written then.
    """
    grids = study.grids(target, list(dict.fromkeys(args.n)), list(dict.fromkeys(args.dtype)))
    if args.render_only is not None:
        return grids
    if not args.n:
        return list(_possible(grids, target))
    for grid in grids:
        check_grid_memory(grid, target.torch_device)
    return grids


def _possible(grids: Iterable[Grid], target: Target) -> Iterator[Grid]:
    """Yield the grids that the device can run, and name the others."""
    for grid in grids:
        try:
            engines.choose(target.torch_device, Config(engine=target.engine), grid.task.torch_dtype)
            check_grid_memory(grid, target.torch_device)
        except (EngineError, TooLargeError) as error:
            print(f"{grid.heading}: left out: {error}", file=sys.stderr)
        else:
            yield grid


def _measured(
    study: Study, target: Target, grids: Sequence[Grid], args: argparse.Namespace
) -> tuple[StudyRows, list[GridResult]]:
    """Measure what has no row yet; if nothing was, raise the budget of `args` for the command that
    continues.
    """
    origin = environment(target.torch_device, _command(study, args), args.commit)
    path = _csv(study, target, args.out)
    make_folder(path.parent, "--out")
    write_index(
        args.out
    )  # so that a README.md of another kind is refused before anything is measured
    device = path.with_name(_DEVICE)
    with writing(device):
        device.write_text(
            json.dumps(dataclasses.asdict(target.device), indent=2) + "\n", encoding="utf-8"
        )
    rows = StudyRows(path, study.parameters, origin, study.metrics)
    before, usual = len(rows), default_budget(args.device)
    seconds = usual if args.budget is None else args.budget
    try:
        results = measure(grids, rows, target.torch_device, seconds, study.measurer)
    except KeyboardInterrupt:
        again = _command(study, args, with_out=True)
        print(
            f"\n{counted(len(rows) - before, 'new row')} in {path}; to continue: {again}",
            file=sys.stderr,
        )
        raise
    if len(rows) == before:  # what is missing takes longer than its share
        args.budget = math.ceil(max(usual, _MORE * seconds))
    return rows, results


def _csv(study: Study, target: Target, out: Path) -> Path:
    """Return the file of the rows; the page and the plots beside it have its name."""
    suffix = "-portable" if target.engine == "portable" else ""
    return out / target.device.slug / f"{study.name}{suffix}.csv"


def _command(study: Study, args: argparse.Namespace, *, with_out: bool = False) -> str:
    """Return the command line of a study; rows have it without --out."""
    out = args.out if with_out and args.out != DEFAULT_OUT else None
    names = ("device", "engine", "n", "dtype", "budget")
    return command_line(
        "tri_apsp.report", study.name, **{name: getattr(args, name) for name in names}, out=out
    )


def _others(
    study: Study, target: Target, rows: StudyRows, requested: set[Task]
) -> list[GridResult]:
    """Return what earlier commands measured of other tasks, so that a page shows all rows."""
    grids = study.grids_of_tasks(
        target, [task for task in rows.tasks() if task.engine == target.engine]
    )
    results = [
        recorded_result(grid, rows, requested=False) for grid in grids if grid.task not in requested
    ]
    return [result for result in results if result.screened]


def default_budget(device: str) -> float:
    """Return the seconds of a study without --budget."""
    return _BUDGETS[resolve(device).type]


def _target(device: str, engine: str | None, dtypes: Sequence[str]) -> Target:
    """Return the target of a measurement; its engine must run all dtypes."""
    found = resolve(device)
    chosen = [
        engines.choose(found, Config(engine=engine), DTYPES_BY_NAME[dtype])
        for dtype in dtypes or ["float32"]
    ]
    return Target(found, chosen[0], describe(found))


def _recorded_target(folder: Path, engine: str | None) -> Target:
    """Return the target whose rows are in `folder`; this machine need not have its device."""
    path = folder / _DEVICE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        capability = fields["capability"]
        device = Device(
            **{**fields, "capability": None if capability is None else tuple(capability)}
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"--render-only must name a folder below --out in which a study was measured, but {path} is missing or damaged; "
            "measure there first."
        ) from None
    return Target(
        torch.device("cpu"), engine or ("cpu" if device.kind == "cpu" else "nvidia"), device
    )
