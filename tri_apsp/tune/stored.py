"""The actions on tuned files: list, show, verify, export and import."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tri_apsp import tuned
from tri_apsp.configs import from_fields
from tri_apsp.console.exit_status import FAILED
from tri_apsp.console.output import print_json
from tri_apsp.device import describe
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.progress import quantity
from tri_apsp.tune.space.task import Task, size_at
from tri_apsp.tune.summary import format_config
from tri_apsp.tune.sweep.baselines import baselines_of
from tri_apsp.tune.sweep.decision import beats
from tri_apsp.tune.sweep.plan import Plan
from tri_apsp.tune.workers.pool import Workers

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = [
    "emit",
    "export_entries",
    "import_entries",
    "list_files",
    "show_entries",
    "verify_entries",
]

_HOLDS, _NOISE, _STALE, _FAILED = "holds", "within noise", "stale", "failed"


def emit(args: argparse.Namespace, content: dict[str, Any], lines: Iterable[str]) -> None:
    """Print `content` with --json, else `lines`."""
    if args.json:
        print_json(content)
        return
    for line in lines:
        print(line)


def _files(
    args: argparse.Namespace, planned: Plan
) -> Iterator[tuple[Path, TunedFile | None, tuned.Use]]:
    """Yield the path of each tuned file, the file if it can be read, and how it is used here."""
    for path in tuned.files() if args.save_dir is None else sorted(args.save_dir.glob("*/*.json")):
        try:
            file = tuned.load(path)
        except InputError as error:
            yield path, None, tuned.Use(str(error))
        else:
            yield path, file, tuned.use_of(path, file, describe(planned.devices[0]))


def _entries(args: argparse.Namespace, planned: Plan) -> Iterator[tuple[Path, Task, Entry]]:
    """Yield path, task and entry of all entries that are used here and were asked for; the first
    file of a task decides.

    Entries of other GPUs are left out, although lookups use them for what this GPU has no entry.
    """
    seen, wanted = set(), planned.settings
    for path, file, use in _files(args, planned):
        if file is None or use.reason is not None or use.is_substitute:
            continue  # --list names it
        for entry in file.entries:
            task = Task(
                file.engine,
                file.kernel,
                file.dtype,
                entry.sign,
                entry.n,
                entry.batch,
                entry.objective,
            )
            sizes = [size_at(task.engine, task.kernel, task.dtype, n) for n in wanted.n]
            filters = (
                (wanted.kernels, task.kernel),
                (sizes, task.n),
                (wanted.dtypes, task.dtype),
                (wanted.signs, task.sign),
                ([wanted.engine] if wanted.engine else [], task.engine),
                ([wanted.objective], task.objective),
            )
            if task not in seen and all(not values or value in values for values, value in filters):
                seen.add(task)
                yield path, task, entry


def list_files(args: argparse.Namespace, planned: Plan) -> int:
    """Print the path of each tuned file, with its sizes or the reason for which it is not used
    here; return 0.
    """
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    others: Counter[str] = Counter()
    for path, file, use in _files(args, planned):
        sizes = [] if file is None else sorted({entry.n for entry in file.entries})
        held = "" if file is None else file.held
        if use.is_substitute:
            held += ", of another GPU, for what has no entry of this one"
        rows.append(
            {"file": str(path), "used": use.reason is None, "reason": use.reason, "n": sizes}
        )
        if (
            file is not None
            and file.slug != describe(planned.devices[0]).slug
            and use.reason is not None
        ):
            others[str(path.parent)] += 1  # one line for all files of another machine
        else:
            lines.append(f"{path}: {held if use.reason is None else f'not used: {use.reason}'}")
    lines += [
        f"{folder}: {counted(count, 'file')} of another machine, not used"
        for folder, count in others.items()
    ]
    emit(args, {"files": rows}, lines or ["no tuned files; `python -m tri_apsp.tune` writes some"])
    return 0


def show_entries(args: argparse.Namespace, planned: Plan) -> int:
    """Print the entries that are used here and were asked for; return 0."""
    entries = list(_entries(args, planned))
    rows = [
        {"file": str(path), "task": str(task), **entry.model_dump(mode="json")}
        for path, task, entry in entries
    ]
    lines = []
    for _, task, entry in entries:
        cost = quantity(entry.p50_joules or entry.p50_ms, joules=task.minimises_energy)
        lines.append(
            f"{task}: {cost}, {entry.gain:.2f} x the default, {format_config(entry.config)}"
        )
    emit(args, {"entries": rows}, lines or [_nothing(planned)])
    return 0


def verify_entries(args: argparse.Namespace, planned: Plan) -> int:
    """Time each saved configuration and the default again, print the state of each, and return the
    exit status.
    """
    rows = []
    with closing(Workers(planned.devices[:1])) as workers:
        for path, task, entry in _entries(args, planned):
            baselines = baselines_of(task, planned.devices[0])
            saved = from_fields(task.engine, entry.config).over(baselines.default)
            default, winner = workers.final(
                task, [baselines.untuned, saved], planned.settings.budget.rounds
            )
            state = _state(winner, default, same=saved == baselines.untuned)
            now = (
                None
                if default.cost is None or winner.cost is None
                else default.cost.median / winner.cost.median
            )
            message = ", ".join(dict.fromkeys(filter(None, (default.message, winner.message))))
            row = {
                "file": str(path),
                "task": str(task),
                "state": state,
                "speedup": now,
                "stored_speedup": entry.gain,
            }
            rows.append({**row, "message": message})
            if not args.json:
                found = (
                    message
                    if now is None
                    else f"{now:.2f} x the default now, {entry.gain:.2f} x when it was tuned"
                )
                print(f"{task}: {state}: {found}", flush=True)
    emit(args, {"entries": rows}, [] if rows else [_nothing(planned)])
    return FAILED if any(row["state"] in (_STALE, _FAILED) for row in rows) else 0


def _nothing(planned: Plan) -> str:
    objective = planned.settings.objective
    kind, option = (
        ("", "")
        if objective == tuned.DEFAULT_OBJECTIVE
        else (f" for {objective}", f" --objective {objective}")
    )
    remedy = f"`python -m tri_apsp.tune{option}` writes one"
    if kind and planned.devices[0].type == "cpu":
        remedy = "the tuner measures energy on NVIDIA GPUs alone"
    return f"no tuned file for this device has an entry{kind} that matches the arguments; {remedy}"


def _state(saved: Outcome, default: Outcome, *, same: bool) -> str:
    """Return whether a saved configuration is still to be used.

    "holds": it beats the default, or is the default; "within noise": neither beats the other, or
    the device changed its speed; "stale": the default beats it; "failed": one of them could not be
    measured.
    """
    if saved.cost is None or default.cost is None:
        return _FAILED
    if same or beats(saved.cost, default.cost):
        return _HOLDS
    return (
        _STALE
        if beats(default.cost, saved.cost) and not (saved.throttled or default.throttled)
        else _NOISE
    )


def export_entries(args: argparse.Namespace) -> int:
    """Write the tuned files of this device to the file of --export; return 0."""
    _require_no_choice(args, "--export")
    held = tuned.export_file(args.file, args.device, args.save_dir)
    lines = [f"written  {args.file}: {counted(len(held), 'tuned file')}"]
    emit(args, {"file": str(args.file), "holds": list(map(str, held))}, lines)
    return 0


def import_entries(args: argparse.Namespace) -> int:
    """Save the tuned files of the file of --import; return 0."""
    _require_no_choice(args, "--import")
    paths = tuned.import_file(args.file, args.save_dir, force=args.force)
    emit(args, {"files": list(map(str, paths))}, [f"written  {path}" for path in paths])
    return 0


def _require_no_choice(args: argparse.Namespace, action: str) -> None:
    """Raise InputError if an option chooses entries: an export holds, and an import saves, all of
    them.
    """
    values = {
        "--kernel": args.kernels,
        "--n": args.n,
        "--dtype": args.dtypes,
        "--sign": args.signs,
        "--engine": args.engine,
    }
    values["--objective"] = args.objective != tuned.DEFAULT_OBJECTIVE
    given = [option for option, value in values.items() if value]
    if given:
        them = "them" if len(given) > 1 else "it"
        raise InputError(
            f"{action} must be given without {', '.join(given)}, since it takes every entry; leave {them} out."
        )
