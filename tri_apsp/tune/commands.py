"""The actions of the command line of the tuner."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tri_apsp import tuned
from tri_apsp.configs import from_fields
from tri_apsp.console.exit_status import FAILED, INTERRUPTED
from tri_apsp.console.machine import device_line
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import flat_fields, print_fields, print_json
from tri_apsp.device import describe
from tri_apsp.errors import InputError
from tri_apsp.tune.progress import Progress, failures_line, milliseconds
from tri_apsp.tune.space.candidates import candidates
from tri_apsp.tune.space.task import Task, size_at
from tri_apsp.tune.sweep.baselines import baselines_of
from tri_apsp.tune.sweep.plan import Plan, Settings, plan
from tri_apsp.tune.sweep.result import SweepResult
from tri_apsp.tune.sweep.rows import write_rows
from tri_apsp.tune.sweep.sweep import sweep
from tri_apsp.tune.workers.pool import Workers

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = ["run"]

_NOTHING = "no tuned file for this device has an entry that was asked for; `python -m tri_apsp.tune` writes one"


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks for, and return the exit status."""
    planned = plan(Settings(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Settings)}))
    for wanted, action in ((args.dry_run, _dry_run), (args.list, _list), (args.show, _show), (args.verify, _verify)):
        if wanted:
            action(args, planned)
            return 0
    if args.report is not None:
        make_folder(args.report, "--report")
    if not args.json:
        print(f"{device_line(planned.devices[0])}: {_tasks(len(planned.tasks))}", file=sys.stderr)
    result = sweep(planned, lambda: Workers(planned.devices), Progress(planned, shown=not args.json))
    if args.report is not None:
        write_rows(result, planned.settings, args.report)
    if args.json:
        print_json(result.to_dict())
    else:
        _print_summary(result, len(planned.tasks))
    if result.interrupted:
        return INTERRUPTED
    return FAILED if any(done.error for done in result.results) else 0


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _print_summary(result: SweepResult, tasks: int) -> None:
    for done in result.results:
        if done.winner is not None:
            times = f"{milliseconds(done.winner.times.p50_ms)}, {done.winner.speedup:.2f} x the default"
            print(f"{done.task}: {times}: {_format_config(done.winner.config)}")
        elif done.error:
            print(f"{done.task}: {done.error}")
    gains = [done.winner.speedup for done in result.results if done.winner is not None]
    fields = [
        ("tuned", f"{len(gains)} of {_tasks(tasks)}" + (", interrupted; --resume continues" if result.interrupted else ""))
    ]
    if not result.interrupted and len(result.results) < tasks:
        fields = [("tuned", f"{len(gains)} of {_tasks(tasks)} in the time given; --resume with more --time-budget continues")]
    if gains:
        mean = float(torch.tensor(gains, dtype=torch.float64).log().mean().exp())
        fields.append(("gained", f"{mean:.2f} times as fast as the defaults, in the geometric mean; at most {max(gains):.2f}"))
    fields += [
        ("failures", failures_line(result.failures)),
        ("time", f"{result.seconds:.0f} s"),
        *(("written" if index == 0 else "", str(path)) for index, path in enumerate(result.files)),
    ]
    print_fields(fields)


def _dry_run(args: argparse.Namespace, planned: Plan) -> None:
    device, settings = planned.devices[0], planned.settings
    rows = []
    for task in planned.tasks:
        space = task.record.space
        allowed = candidates(space, task, describe(device), baselines_of(task, device).default)
        path = tuned.path_of(task.engine, task.kernel, task.dtype, describe(device).slug, settings.save_dir)
        rows.append({"task": str(task), "file": str(path), "space": space.size, "candidates": len(allowed)})
    seconds = settings.seconds(len(planned.tasks))
    content = {"device": describe(device).name, "seconds": seconds, "trials": settings.budget.trials, "tasks": rows}
    lines = [
        f"{row['task']}: {row['space']} configurations, {row['candidates']} pass the filter; {row['file']}" for row in rows
    ]
    _emit(args, content, [*lines, f"up to {settings.budget.trials} evaluations per task, at most {seconds:.0f} s in all"])


def _emit(args: argparse.Namespace, content: dict[str, Any], lines: Iterable[str]) -> None:
    """Print `content` with --json, else `lines`."""
    if args.json:
        print_json(content)
        return
    for line in lines:
        print(line)


def _files(args: argparse.Namespace, planned: Plan) -> Iterator[tuple[Path, TunedFile | None, str | None]]:
    """Yield the path of each tuned file, the file if it can be read, and why it is not used here, None if it is."""
    for path in tuned.files() if args.save_dir is None else sorted(args.save_dir.glob("*/*.json")):
        try:
            file = tuned.load(path)
        except InputError as error:
            yield path, None, str(error)
        else:
            yield path, file, tuned.refusal(file, describe(planned.devices[0]))


def _entries(args: argparse.Namespace, planned: Plan) -> Iterator[tuple[Path, Task, Entry]]:
    """Yield path, task and entry of all entries that are used here and were asked for; the first file of a task decides."""
    seen, wanted = set(), planned.settings
    for path, file, reason in _files(args, planned):
        if file is None or reason is not None:
            continue  # --list names it
        for entry in file.entries:
            task = Task(file.engine, file.kernel, file.dtype, entry.sign, entry.n, entry.batch)
            sizes = [size_at(task.engine, task.kernel, task.dtype, n) for n in wanted.n]
            filters = (
                (wanted.kernels, task.kernel), (sizes, task.n), (wanted.dtypes, task.dtype), (wanted.signs, task.sign),
                ([wanted.engine] if wanted.engine else [], task.engine),
            )  # fmt: skip
            if task not in seen and all(not values or value in values for values, value in filters):
                seen.add(task)
                yield path, task, entry


def _list(args: argparse.Namespace, planned: Plan) -> None:
    rows: list[dict[str, Any]] = []
    for path, file, reason in _files(args, planned):
        sizes = {} if file is None else {"n": sorted({entry.n for entry in file.entries})}
        rows.append({"file": str(path), "used": reason is None, "reason": reason, **sizes})
    lines = [
        f"{row['file']}: {'n = ' + ', '.join(map(str, row['n'])) if row['used'] else 'not used: ' + str(row['reason'])}"
        for row in rows
    ]
    _emit(args, {"files": rows}, lines or ["no tuned files; `python -m tri_apsp.tune` writes some"])


def _show(args: argparse.Namespace, planned: Plan) -> None:
    rows = [
        {"file": str(path), "task": str(task), **entry.model_dump(mode="json")} for path, task, entry in _entries(args, planned)
    ]
    lines = []
    for row in rows:
        settings = _format_config(row["config"])
        lines.append(f"{row['task']}: {milliseconds(row['p50_ms'])}, {row['speedup']:.2f} x the default, {settings}")
    _emit(args, {"entries": rows}, lines or [_NOTHING])


def _format_config(config: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in flat_fields(config).items())


def _verify(args: argparse.Namespace, planned: Plan) -> None:
    rows = []
    with closing(Workers(planned.devices[:1])) as workers:
        for path, task, entry in _entries(args, planned):
            baselines = baselines_of(task, planned.devices[0])
            saved = from_fields(task.engine, entry.config).over(baselines.default)
            default, winner = workers.final(task, [baselines.untuned, saved], planned.settings.budget.rounds)
            now = None if default.times is None or winner.times is None else default.times.p50_ms / winner.times.p50_ms
            message = ", ".join(dict.fromkeys(filter(None, (default.message, winner.message))))
            row = {"file": str(path), "task": str(task), "stored_speedup": entry.speedup, "speedup": now, "message": message}
            rows.append(row)
            if not args.json:
                found = message if now is None else f"{now:.2f} x the default"
                print(f"{task}: {found}; saved: {entry.speedup:.2f} x", flush=True)
    _emit(args, {"entries": rows}, [] if rows else [_NOTHING])
