"""The actions of the command line of the tuner."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tri_apsp import prepare, shortest_paths, tuned
from tri_apsp.configs import from_fields
from tri_apsp.console.exit_status import FAILED, INTERRUPTED
from tri_apsp.console.output import duration, flat_fields, print_json, print_lines
from tri_apsp.device import describe, resolve_all
from tri_apsp.errors import InputError
from tri_apsp.graphs import DenseGraph, load_graph
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.call import TunedCall, tune_call
from tri_apsp.tune.candidates import baselines_of, beats, candidates
from tri_apsp.tune.outcome import Outcome, TuningResult
from tri_apsp.tune.page import read_studies, write_page
from tri_apsp.tune.progress import print_summary
from tri_apsp.tune.run import run_plans
from tri_apsp.tune.search import journal_path
from tri_apsp.tune.tasks import Settings, TuningPlan, TuningTask, plans, size_at
from tri_apsp.tune.worker import Workers

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry

_HOLDS, _NOISE, _STALE, _FAILED = "holds", "within noise", "stale", "failed"
_NONE = (
    "no tuned file for this device has an entry that matches the arguments; "
    "`python -m tri_apsp.tune` writes one"
)
# The time limit of the rounds that compare an entry with the default.
_SECONDS = 60.0


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks for, and return the exit status."""
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings(**{name: getattr(args, name) for name in names})
    if args.page is not None:
        return _page(args, settings)
    if args.graph is not None:
        return _tune_graph(args, settings)
    planned = plans(settings)
    # As in a tuning run, this directory decides what is in use, also if no solve searches it.
    with tuned.searching(settings.save_dir or tuned.save_directory()):
        return _ACTIONS[args.action](args, planned)


def _tune(args: argparse.Namespace, planned: Sequence[TuningPlan]) -> int:
    result = run_plans(planned, shown=not args.json, make_pool=Workers)
    return _report(args, result, sum(len(each.tasks) for each in planned))


def _report(
    args: argparse.Namespace, result: TuningResult, tasks: int, of_call: TunedCall | None = None
) -> int:
    """Print a result, and return the exit status."""
    times = {} if of_call is None else of_call.times()
    if args.json:
        print_json(times | result.to_dict())
    else:
        if of_call is not None:
            print(of_call)
        print_summary(result, tasks)
    if result.interrupted:
        return INTERRUPTED
    return FAILED if any(done.error for done in result.results) else 0


def _tune_graph(args: argparse.Namespace, settings: Settings) -> int:
    """Tune what the distances of all pairs of a file run, print its time before and after, and
    return the exit status.
    """
    given = {"--kernel": args.kernels, "--n": args.n, "--sign": args.signs}
    given[f"--{args.action}"] = args.action
    wrong = [name for name, value in given.items() if value]
    if wrong:
        raise InputError(
            f"--graph must come without {wrong[0]}, since the graph decides what is tuned; leave "
            "one out."
        )
    found, device = load_graph(args.graph), resolve_all(settings.device)[0]
    dtype = DTYPES_BY_NAME[settings.dtypes[0]] if settings.dtypes else None
    graph: Any
    if isinstance(found, DenseGraph):
        graph = found.to_weights(dtype or found.natural_dtype, device)
    else:
        graph = prepare(found, dtype=dtype, device=device)
    tuned_call = tune_call(lambda: shortest_paths(graph), settings, shown=not args.json)
    return _report(args, tuned_call.result, len(tuned_call.result.results), tuned_call)


def _dry_run(args: argparse.Namespace, planned: Sequence[TuningPlan]) -> int:
    settings, rows = planned[0].settings, []
    for device, task in ((each.device, task) for each in planned for task in each.tasks):
        facts = describe(device)
        allowed = candidates(task.record.space, task, facts, baselines_of(task, device).base)
        path = tuned.path_of(task.engine, task.kernel, task.dtype, facts.slug, settings.save_dir)
        rows.append({"task": str(task), "file": str(path), "candidates": len(allowed)})
    seconds, trials = settings.seconds(len(rows)), settings.budget.trials
    name = describe(planned[0].device).name
    content = {"device": name, "seconds": seconds, "trials": trials, "tasks": rows}
    lines = [f"{row['task']}: {row['candidates']} configurations; {row['file']}" for row in rows]
    limits = f"up to {trials} evaluations per task, at most {seconds:.0f} s in all"
    _emit(args, content, [*lines, limits])
    return 0


def _page(args: argparse.Namespace, settings: Settings) -> int:
    """Write the page of the searches that were asked for, and return 0.

    Raises:
        InputError: the storage cannot be used or has no such search, the page cannot be written, or
            matplotlib is not installed.
    """
    storage = settings.storage or str(journal_path(describe(resolve_all(settings.device)[0]).slug))
    found = {
        task: study for task, study in read_studies(storage).items() if _is_wanted(task, settings)
    }
    if not found:
        where = storage.rpartition("@")[2]  # without the password of a URL
        raise InputError(
            f"--page shows configurations that were timed, but {where} has none of what was "
            "asked for; tune it first, or give another --storage."
        )
    path = args.page / "searches.html"
    write_page(found, path, Path(storage).stem)
    _emit(args, {"file": str(path), "tasks": [str(task) for task in found]}, [str(path)])
    return 0


def _show(args: argparse.Namespace, planned: Sequence[TuningPlan]) -> int:
    """Print the entries that were asked for and that lookups use here; return 0."""
    entries = [entry for each in planned for entry in _entries(args, each)]
    rows = [
        {"file": str(path), "task": str(task), **entry.model_dump(mode="json")}
        for path, task, entry in entries
    ]
    lines = []
    for _, task, entry in entries:
        fields = ", ".join(f"{name} {value}" for name, value in flat_fields(entry.config).items())
        time = duration(entry.p50_ms / 1000)
        lines.append(f"{task}: {time}, {entry.speedup:.2f} x the default, {fields}")
    _emit(args, {"entries": rows}, lines or [_NONE])
    return 0


def _verify(args: argparse.Namespace, planned: Sequence[TuningPlan]) -> int:
    """Time each saved configuration and the default again, on one device of each model, print the
    state of each, and return the exit status.
    """
    rows = [row for plan in planned for row in _verified(args, plan)]
    _emit(args, {"entries": rows}, [] if rows else [_NONE])
    return FAILED if any(row["state"] in (_STALE, _FAILED) for row in rows) else 0


def _verified(args: argparse.Namespace, plan: TuningPlan) -> Iterator[dict[str, Any]]:
    with closing(Workers([plan.device])) as workers:
        for path, task, entry in _entries(args, plan):
            baselines = baselines_of(task, plan.device)
            saved = from_fields(task.engine, entry.config).over(baselines.base)
            contenders = dict.fromkeys([baselines.untuned, saved])  # one, if they are the same
            outcomes = workers.final(task, list(contenders), plan.settings.budget.rounds, _SECONDS)
            default, winner = outcomes[0], outcomes[-1]
            state = _state(winner, default)
            message = ", ".join(dict.fromkeys(filter(None, (default.message, winner.message))))
            now = None if state == _FAILED else default.median_ms / winner.median_ms
            if not args.json:
                then = f"{entry.speedup:.2f} x when it was tuned"
                found = message if now is None else f"{now:.2f} x the default now, {then}"
                print(f"{task}: {state}: {found}", flush=True)
            yield {
                "file": str(path),
                "task": str(task),
                "state": state,
                "speedup": now,
                "stored_speedup": entry.speedup,
                "message": message,
            }


def _state(saved: Outcome, default: Outcome) -> str:
    """Return whether a saved configuration is still to be used.

    "holds": it beats the default, or is the default; "within noise": neither beats the other;
    "stale": the default beats it; "failed": one of them could not be measured.
    """
    if saved.times is None or default.times is None:
        return _FAILED
    if saved is default or beats(saved.times, default.times):
        return _HOLDS
    return _STALE if beats(default.times, saved.times) else _NOISE


def _entries(
    args: argparse.Namespace, planned: TuningPlan
) -> Iterator[tuple[Path, TuningTask, Entry]]:
    """Yield path, task and entry of all entries that were asked for and that lookups use here; of
    several files of a task, the first counts.

    Entries of other GPUs are left out, although lookups use them for what this GPU has no entry.
    """
    seen, device = set(), describe(planned.device)
    for path in tuned.files() if args.save_dir is None else sorted(args.save_dir.glob("*/*.json")):
        file, _ = tuned.usable(path, device)
        if file is None or file.slug != device.slug:
            continue  # `tri_apsp info` says why
        for entry in file.entries:
            task = TuningTask(
                file.engine, file.kernel, file.dtype, entry.sign, entry.n, entry.batch
            )
            if task not in seen and _is_wanted(task, planned.settings):
                seen.add(task)
                yield path, task, entry


def _is_wanted(task: TuningTask, wanted: Settings) -> bool:
    """Return whether a task was asked for; an empty setting excludes nothing."""
    sizes = [size_at(task.engine, task.kernel, task.dtype, n) for n in wanted.n]
    filters = (
        (wanted.kernels, task.kernel),
        (sizes, task.n),
        (wanted.dtypes, task.dtype),
        (wanted.signs, task.sign),
        ([wanted.engine] if wanted.engine else [], task.engine),
    )
    return all(not values or value in values for values, value in filters)


def _emit(args: argparse.Namespace, content: dict[str, Any], lines: Iterable[str]) -> None:
    """Print `content` with --json, else `lines`."""
    if args.json:
        print_json(content)
    else:
        print_lines(lines)


_ACTIONS = {
    None: _tune,
    "dry-run": _dry_run,
    "show": _show,
    "verify": _verify,
}
