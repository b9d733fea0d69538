"""python -m tri_apsp.report tuning: what sweeps of python -m tri_apsp.tune found, as tables, plots and a page."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from tri_apsp.console.machine import versions_line
from tri_apsp.console.output import amount
from tri_apsp.report import markdown
from tri_apsp.report.markdown import paragraph, section, table
from tri_apsp.report.options import add_commit, add_out
from tri_apsp.report.rows import environment, task_fields
from tri_apsp.report.sweeps import Sweeps, best_so_far, default_share, gain, geometric_mean, read_sweeps, swept
from tri_apsp.report.tuning_plots import Names, draw
from tri_apsp.tune.progress import milliseconds
from tri_apsp.tune.sweep.result import TaskResult
from tri_apsp.tune.sweep.rows import check_folder, write_csv

__all__ = ["configure", "run"]

# The sizes over which the project wants a gain of AIM.
_FROM, _TO = 512, 8192
_AIM = 1.1
# Two independent sweeps should agree within this part of a time; a task should take fewer seconds, and measure most of them.
_AGREE, _SECONDS, _MEASURING = 0.02, 60, 0.7


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tuning`."""
    parser.add_argument(
        "--from",
        dest="sources",
        type=Path,
        nargs="+",
        required=True,
        metavar="DIR",
        help="what python -m tri_apsp.tune --report DIR wrote; of a task in several the last counts, and how far they agree is "
        "told",
    )
    add_out(parser)
    add_commit(parser)


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/, say where its page is, and return the exit status."""
    sweeps = read_sweeps(args.sources)
    folder = args.out / sweeps.device["slug"] / "tuning"
    check_folder(folder, "--out")
    _write_tables(sweeps, folder)
    page = _write_page(sweeps, folder, draw(sweeps, folder), args)
    print(page)
    return 0


def _write_tables(sweeps: Sweeps, folder: Path) -> None:
    winners, failures, curves, shares = [], [], [], []
    for task, result in sweeps.results.items():
        head = task_fields(task)
        row = {name: value for name, value in result.to_dict().items() if name not in ("failures", "path", "error")}
        spelled = {name: json.dumps(row[name]) for name in ("config", "product")}
        winners.append({**row, "measuring": sweeps.measuring[task], **spelled})
        failures += [{**head, "outcome": kind.value, "count": count} for kind, count in result.failures.items()]
        curves += [{**head, "evaluations": count, "best_ms": time} for count, time in best_so_far(result)]
        shares += [
            {**head, "parameter": name, "importance": share, "every_candidate": swept(result)}
            for name, share in sweeps.importances[task].items()
        ]
    agreements = [
        {
            **task_fields(pair.task),
            "first_ms": pair.first.p50_ms,
            "second_ms": pair.second.p50_ms,
            "difference": pair.difference,
            "same": pair.first.config == pair.second.config,
        }
        for pair in sweeps.agreements
    ]
    tables = {"winners": winners, "failures": failures, "curves": curves, "importances": shares, "agreement": agreements}
    for name, rows in tables.items():
        path = folder / f"{name}.csv"
        path.unlink(missing_ok=True)
        if rows:
            write_csv(path, [{key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows])


def _write_page(sweeps: Sweeps, folder: Path, drawn: Names, args: argparse.Namespace) -> Path:
    everything = geometric_mean(map(gain, sweeps.tuned()))
    summary = (
        f"{len(sweeps.results)} tasks tuned: {everything:.2f} times as fast as the defaults in the geometric mean, and how the "
        "searches went."
    )
    blocks = [
        _speed_up(sweeps, drawn["speed-up"]),
        _best(sweeps),
        _failures(sweeps),
        _search(drawn["search"]),
        _importances(sweeps, drawn["importances"]),
        _grids(sweeps, drawn["grids"]),
        _time(sweeps),
        _agreement(sweeps),
        _measured_with(sweeps, args),
    ]
    return markdown.write_page(folder / "README.md", f"What tuning found on {sweeps.device['name']}", summary, blocks)


def _speed_up(sweeps: Sweeps, drawn: list[str]) -> str:
    between = sweeps.tuned(lambda task: _FROM <= task.n <= _TO)
    reached = geometric_mean(map(gain, between))
    worst = min(sweeps.tuned(), key=gain)
    said = f"The worst task is {worst.task}, at {gain(worst):.3f} times its default."
    if between:
        verdict = "reaches" if reached >= _AIM else "does not reach"
        right = "" if reached >= _AIM else _already_right(sweeps, between)
        said = f"Over n = {_FROM} to {_TO} it is {reached:.2f}, which {verdict} {_AIM}.{right} {said}"
    dtypes = list(dict.fromkeys(task.dtype for task in sweeps.results))
    rows = []
    for engine, kernel in sweeps.kernels():
        found = sweeps.of(engine, kernel)
        means = [geometric_mean(gain(result) for result in found if result.task.dtype == dtype) for dtype in dtypes]
        kept = sum(not result.gained for result in found)
        cells = [None if math.isnan(mean) else f"{mean:.2f}" for mean in (*means, geometric_mean(map(gain, found)))]
        rows.append([engine, kernel, *cells, f"{kept} of {len(found)}"])
    intro = paragraph(
        f"Tuned configurations are {geometric_mean(map(gain, sweeps.tuned())):.2f} times as fast as the defaults in the",
        f"geometric mean of all {len(sweeps.results)} tasks. {said} Both are timed in turns in the same final; a configuration",
        "replaces the default only where it is faster by more than 2% and by more than the noise. A solve's default is that of",
        "all kernels.",
    )
    figures = [markdown.figure(name, "Geometric mean over dtypes and signs; bars from least to most") for name in drawn]
    return section(
        "Speed-up over the default", intro, table(["engine", "kernel", *dtypes, "all", "the default stays"], rows), *figures
    )


def _already_right(sweeps: Sweeps, between: Sequence[TaskResult]) -> str:
    """Return how good the defaults were already, for tasks `between` two sizes."""
    kept = sum(not result.gained for result in between)
    said = f" For {kept} of these {len(between)} tasks nothing that was evaluated beat the default"
    whole = [result for task, result in sweeps.whole.items() if _FROM <= task.n <= _TO]
    shares = [share for share in map(default_share, whole) if share is not None]
    if shares:
        said += (
            f"; where every candidate was evaluated, for {len(shares)}, it had {geometric_mean(shares):.0%} of the best rate "
            f"in the geometric mean, and {min(shares):.0%} at least, all as first looked at"
        )
    return f"{said}."


def _best(sweeps: Sweeps) -> str:
    parts = []
    for n in sorted({task.n for task in sweeps.results}):
        rows = []
        for result in sweeps.tuned(lambda task, n=n: task.n == n):  # type: ignore[misc]
            task, time, default = result.task, result.p50_ms, result.default_ms
            assert time is not None
            assert default is not None
            name = task.kernel if task.batch == 1 else f"{task.kernel} of {task.batch}"
            rate = f"{amount(task.operations / (time / 1000))}/s"
            cells = [
                milliseconds(time),
                rate,
                milliseconds(default),
                f"{gain(result):.2f}" + ("" if result.complete else " *"),
            ]
            config = ", ".join(_spelled((result.config or {}) | (result.product or {})))
            rows.append([task.engine, name, task.dtype, task.sign, *cells, config])
        head = ["engine", "kernel", "dtype", "sign", "p50", "operations", "default p50", "speed-up", "configuration"]
        parts.append(f"### n = {n}\n\n{table(head, rows)}")
    notes = ["An operation is one addition and one minimum, n^3 a graph."]
    if any(result.product for result in sweeps.tuned()):
        notes.append("Where a solve names a product, it is faster with that than with what was best for the product alone.")
    notes += ["\\* interrupted, so the best of a part."] if not all(r.complete for r in sweeps.tuned()) else []
    notes += [f"Not tuned: {result.task} ({result.error or 'interrupted'})." for result in sweeps.errors]
    return section("Best configurations", paragraph(*notes), *parts)


def _spelled(config: dict[str, Any]) -> Iterator[str]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield f"{name} " + " ".join(f"{inner}={v}" for inner, v in value.items())
        else:
            yield f"{name}={value}"


def _failures(sweeps: Sweeps) -> str:
    rows = []
    for engine, kernel in sweeps.kernels():
        found = sweeps.of(engine, kernel)
        evaluated = sum(result.evaluated for result in found)
        counts = sum((result.failures for result in found), Counter())
        for kind, count in counts.most_common():
            said = Counter(trial.outcome.message for r in found for trial in r.trials if trial.outcome.kind is kind)
            example = said.most_common(1)[0][0] if said else ""
            rows.append([engine, kernel, kind.value, f"{count} of {evaluated}", f"{count / evaluated:.1%}", f"`{example}`"])
    passed = sum(result.dominated for result in sweeps.tuned())
    intro = paragraph(
        "Each costs itself and nothing else." if rows else "No configuration failed.",
        f"{passed} more were passed over, since a smaller one of their kind did not fit." if passed else "",
    )
    body = [table(["engine", "kernel", "class", "failed", "share", "most frequent message"], rows)] if rows else []
    return section("Failures", intro, *body)


def _search(drawn: list[str]) -> str:
    caption = "Geometric mean over the tasks of a kernel, as first looked at; the first is the default"
    return section("Best so far", *(markdown.figure(name, caption) for name in drawn)) if drawn else ""


def _importances(sweeps: Sweeps, drawn: list[str]) -> str:
    if not drawn:
        return ""
    whole = sum(swept(sweeps.results[task]) for task, shares in sweeps.importances.items() if shares)
    every = sum(1 for shares in sweeps.importances.values() if shares)
    biased = (
        f"For {whole} of {every} tasks every candidate was evaluated. The others describe a biased sample: the configurations "
        "that the search preferred."
    )
    intro = paragraph(
        "How much each parameter decides whether a configuration is among the fastest tenth (Optuna's PED-ANOVA; shares of 1).",
        biased if whole < every else "Every candidate was evaluated.",
    )
    return section("What matters", intro, *(markdown.figure(name, "Importance of the parameters") for name in drawn))


def _grids(sweeps: Sweeps, drawn: list[str]) -> str:
    drawable = {(task.engine, task.kernel) for task in sweeps.whole}
    missing = [f"{engine} {kernel}" for engine, kernel in sweeps.kernels() if (engine, kernel) not in drawable]
    intro = paragraph(
        "The best over all other parameters, where every candidate was evaluated; white: none can run.",
        f"Not so for {', '.join(missing)}: `--sampler grid --trials 100000` evaluates all." if missing else "",
    )
    return section("Block sizes beside warps", intro, *(markdown.figure(name, "Part of the best rate") for name in drawn))


def _time(sweeps: Sweeps) -> str:
    rows = []
    for engine, kernel in sweeps.kernels():
        found = [result for result in sweeps.of(engine, kernel) if not result.resumed and result.seconds]
        if found:
            seconds = sum(result.seconds for result in found)
            measured = sum(result.seconds * sweeps.measuring[result.task] for result in found)
            evaluated = sum(result.evaluated for result in found)
            longest = max(result.seconds for result in found)
            shares = [f"{seconds / len(found):.1f} s", f"{longest:.1f} s", f"{measured / seconds:.0%}"]
            rows.append([engine, kernel, len(found), evaluated, *shares])
    whole = [
        [f"`{header['command']}`", f"{header['seconds']:.0f} s", f"{header['measuring']:.0%}"] for header in sweeps.headers
    ]
    fresh = [result for result in sweeps.tuned() if not result.resumed and result.seconds]
    quick = sum(result.seconds < _SECONDS for result in fresh)
    busy = sum(sweeps.measuring[result.task] >= _MEASURING for result in fresh)
    counts = (
        f"{quick} of {len(fresh)} tasks took less than {_SECONDS} s, and {busy} spent at least {_MEASURING:.0%} of their time "
        "comparing and timing; the rest is compilation that nothing hid, starting processes, and the search itself."
    )
    head = ["engine", "kernel", "tasks", "evaluations", "a task", "the longest", "measuring"]
    parts = [table(["sweep", "took", "measuring"], whole), paragraph(counts), table(head, rows) if rows else ""]
    return section("Time", *parts)


def _agreement(sweeps: Sweeps) -> str:
    if not sweeps.agreements:
        return ""
    rows = []
    for pair in sweeps.agreements:
        first, second = pair.first.p50_ms, pair.second.p50_ms
        assert first is not None
        assert second is not None
        same = "yes" if pair.first.config == pair.second.config else "no"
        gains = [f"{gain(result):.2f}" for result in (pair.first, pair.second)]
        rows.append([str(pair.task), milliseconds(first), milliseconds(second), f"{pair.difference:.1%}", *gains, same])
    close = sum(pair.difference <= _AGREE for pair in sweeps.agreements)
    mean = sum(pair.difference for pair in sweeps.agreements) / len(rows)
    kept = sum(not (pair.first.gained or pair.second.gained) for pair in sweeps.agreements)
    intro = paragraph(
        f"Tuned twice: the times of the two winners are within {_AGREE:.0%} of each other for {close} of {len(rows)} tasks,",
        f"{mean:.1%} apart in the mean. For {kept} of them both sweeps kept the default, which says little of the search.",
        "Each was timed in its own sweep, so this holds what the machine changed meanwhile.",
    )
    head = ["task", "first", "second", "apart", "first over default", "second over default", "same configuration"]
    return section("Two sweeps", intro, table(head, rows))


def _measured_with(sweeps: Sweeps, args: argparse.Namespace) -> str:
    command = ["python", "-m", "tri_apsp.report", "tuning", "--from", *map(str, args.sources)]
    here = environment(torch.device("cpu"), "", args.commit)
    rows = [
        {
            "device": sweeps.device["name"],
            "versions": versions_line(header["versions"]),
            "commit": here["commit"],
            "date": header["created"],
            "command": header["command"],
        }
        for header in sweeps.headers
    ]
    return markdown.environment_block([*rows, rows[-1] | {"command": shlex.join(command)}], "winners.csv")
