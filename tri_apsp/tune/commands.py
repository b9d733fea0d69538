"""The actions of the command line of the tuner."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from tri_apsp import tuned
from tri_apsp.console.exit_status import FAILED, INTERRUPTED
from tri_apsp.console.machine import device_line
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import print_json
from tri_apsp.device import describe
from tri_apsp.messages import counted
from tri_apsp.tune.progress import Progress
from tri_apsp.tune.space.candidates import candidates
from tri_apsp.tune.stored import (
    emit,
    export_entries,
    import_entries,
    list_files,
    show_entries,
    verify_entries,
)
from tri_apsp.tune.summary import print_summary
from tri_apsp.tune.sweep.baselines import baselines_of
from tri_apsp.tune.sweep.plan import Plan, Settings, plan, require_energy_counters
from tri_apsp.tune.sweep.rows import write_rows
from tri_apsp.tune.sweep.sweep import sweep
from tri_apsp.tune.workers.pool import Workers

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks for, and return the exit status."""
    if args.ship:
        args.save_dir = tuned.checkout_directory()
    if args.action in _FILE_ACTIONS:
        return _FILE_ACTIONS[args.action](args)
    planned = plan(
        Settings(
            **{field.name: getattr(args, field.name) for field in dataclasses.fields(Settings)}
        )
    )
    if args.action not in _LOOKING_ACTIONS:
        require_energy_counters(planned)
    return _ACTIONS[args.action](args, planned)


def _tune(args: argparse.Namespace, planned: Plan) -> int:
    if args.report is not None:
        make_folder(args.report, "--report")
    if not args.json:
        print(
            f"{device_line(planned.devices[0])}: {counted(len(planned.tasks), 'task')}",
            file=sys.stderr,
        )
    result = sweep(
        planned, lambda: Workers(planned.devices), Progress(planned, shown=not args.json)
    )
    if args.report is not None:
        write_rows(result, planned.settings, args.report)
    if args.json:
        print_json(result.to_dict())
    else:
        print_summary(result, len(planned.tasks), args.save_dir)
    if result.interrupted:
        return INTERRUPTED
    return FAILED if any(done.error for done in result.results) else 0


def _dry_run(args: argparse.Namespace, planned: Plan) -> int:
    device, settings = planned.devices[0], planned.settings
    rows = []
    for task in planned.tasks:
        space = task.record.space
        allowed = candidates(space, task, describe(device), baselines_of(task, device).default)
        path = tuned.path_of(
            task.engine, task.kernel, task.dtype, describe(device).slug, settings.save_dir
        )
        rows.append(
            {"task": str(task), "file": str(path), "space": space.size, "candidates": len(allowed)}
        )
    seconds = settings.seconds(len(planned.tasks))
    content = {
        "device": describe(device).name,
        "seconds": seconds,
        "trials": settings.budget.trials,
        "tasks": rows,
    }
    lines = [
        f"{row['task']}: {row['space']} configurations, {row['candidates']} pass the filter; {row['file']}"
        for row in rows
    ]
    emit(
        args,
        content,
        [
            *lines,
            f"up to {settings.budget.trials} evaluations per task, at most {seconds:.0f} s in all",
        ],
    )
    return 0


_ACTIONS = {
    None: _tune,
    "dry-run": _dry_run,
    "list": list_files,
    "show": show_entries,
    "verify": verify_entries,
}
_LOOKING_ACTIONS = ("list", "show")  # these measure nothing, nor tell what would be measured
_FILE_ACTIONS = {"export": export_entries, "import": import_entries}
