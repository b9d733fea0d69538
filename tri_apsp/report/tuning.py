"""What does tuning gain? Tables, plots and a page of the results of python -m tri_apsp.tune."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

from tri_apsp.console.machine import versions_line
from tri_apsp.console.options import make_folder
from tri_apsp.console.output import amount, command_line
from tri_apsp.console.tables import write_csv
from tri_apsp.messages import counted
from tri_apsp.report import markdown
from tri_apsp.report.grids import format_fields
from tri_apsp.report.index import write_index
from tri_apsp.report.markdown import paragraph, section, table
from tri_apsp.report.rows import commit_of_checkout
from tri_apsp.report.sweeps import (
    Sweeps,
    Tuned,
    best_ms,
    default_ms,
    is_exhaustive,
    of_kernel,
    read_sweeps,
)
from tri_apsp.report.tuning_plots import draw
from tri_apsp.tune.progress import milliseconds

__all__ = ["run"]

_NOT_OF_WINNERS = (
    "objective",
    "failures",
    "path",
    "error",
    "before",
    "before_ms",
    "best_ms",
    "conclusive",
)


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/tuning/ and the index, print the path of the page, and return the exit
    status.

    Raises:
        InputError: a sweep cannot be read, or a file cannot be written.
    """
    sweeps = read_sweeps(args.sources)
    folder = args.out / sweeps.device["slug"] / "tuning"
    make_folder(folder, "--out")
    write_csv(folder / "winners.csv", _winners(sweeps))
    drawn = draw(sweeps, folder)
    details = [
        _search(drawn),
        _importances(sweeps, drawn),
        _grids(sweeps, drawn),
        _failures(sweeps),
        _best(sweeps),
        _measured_with(sweeps, args),
    ]
    blocks = {"result": _result(sweeps), "details": "\n\n".join(part for part in details if part)}
    print(
        markdown.write_page(
            folder / "README.md", f"What does tuning gain? {sweeps.device['name']}", blocks
        )
    )
    write_index(args.out)
    return 0


def _winners(sweeps: Sweeps) -> list[dict[str, Any]]:
    rows = [result.to_dict() for result, *_ in sweeps.results.values()]
    return [
        {name: value for name, value in row.items() if name not in _NOT_OF_WINNERS}
        | {"config": json.dumps(row["config"])}
        for row in rows
    ]


def _result(sweeps: Sweeps) -> str:
    every, missing = list(sweeps.complete.values()), _missing(sweeps)
    if not every:
        return paragraph(missing, "No task was tuned to its end, so there is no result yet.")
    sentence = paragraph(
        missing,
        f"Tuned configurations are {_mean_speedup(every)} times as fast as the defaults in the geometric mean of "
        f"{counted(len(every), 'task')}; for {_stays(every)} of them the default stays.",
    )
    dtypes = list(dict.fromkeys(task.dtype for task in sweeps.results))
    rows = []
    for engine, kernel in sweeps.kernels():
        found = of_kernel(sweeps.complete, engine, kernel)
        means = [
            _mean_speedup([one for one in found if one.result.task.dtype == dtype])
            for dtype in dtypes
        ]
        exhaustive = [
            result
            for result in of_kernel(sweeps.exhaustive, engine, kernel)
            if default_ms(result) < math.inf
        ]
        shares = [best_ms(result) / default_ms(result) for result in exhaustive]
        best = (
            f"{geometric_mean(shares):.0%} ({min(shares):.0%} at least) in {len(shares)}"
            if shares
            else ""
        )
        rows.append(
            [engine, kernel, *means, _mean_speedup(found), f"{_stays(found)} of {len(found)}", best]
        )
    head = [
        "engine",
        "kernel",
        *dtypes,
        "all dtypes",
        "the default stays",
        "the default's part of the best rate",
    ]
    notes = paragraph(
        "Speed-up: the default's time over the winner's, both timed in interleaved rounds of the same final, in the geometric "
        "mean over sizes and signs. A configuration replaces the default only if it is faster by more than 2% and by more "
        "than the noise. Last column: tasks of which every candidate was evaluated, as first measured."
    )
    without = (
        " Points of interrupted tasks are missing." if len(every) < len(sweeps.results) else ""
    )
    caption = (
        f"Speed-up by n: geometric mean over dtypes and signs; bars from least to most.{without}"
    )
    return "\n\n".join([sentence, markdown.figure("speed-up", caption), table(head, rows), notes])


def _missing(sweeps: Sweeps) -> str:
    """Return what was not tuned, in one sentence, with the command that continues; "" if nothing is
    known to be missing.
    """
    interrupted = len(sweeps.results) - len(sweeps.complete)
    parts = [
        f"{interrupted} of {counted(len(sweeps.results), 'task')} interrupted, not counted here"
        if interrupted
        else "",
        f"{counted(len(sweeps.errors), 'task')} without a result, listed under Best configurations"
        if sweeps.errors
        else "",
    ]
    listed = "; ".join(part for part in parts if part)
    return (
        f"Incomplete: {listed}. The command of the sweep with `--resume` continues."
        if listed
        else ""
    )


def _mean_speedup(tuned: Sequence[Tuned]) -> str:
    return f"{geometric_mean(one.winner.speedup for one in tuned):.2f}" if tuned else ""


def _stays(tuned: Sequence[Tuned]) -> int:
    """Return for how many tasks the default stays."""
    return sum(not one.winner.gained for one in tuned)


def _best(sweeps: Sweeps) -> str:
    parts = []
    for n in sorted({task.n for task in sweeps.results}):
        rows = []
        for task, (result, winner, _) in sweeps.results.items():
            if task.n == n:
                name = task.kernel if task.batch == 1 else f"{task.kernel} of {task.batch}"
                rate = f"{amount(task.operations / (winner.times.p50_ms / 1000))}/s"
                gain = f"{winner.speedup:.2f}" + ("" if result.complete else " *")
                times = [
                    milliseconds(winner.times.p50_ms),
                    rate,
                    milliseconds(winner.default_ms),
                    gain,
                ]
                rows.append(
                    [task.engine, name, task.dtype, task.sign, *times, format_fields(winner.config)]
                )
        head = [
            "engine",
            "kernel",
            "dtype",
            "sign",
            "p50",
            "operations",
            "default p50",
            "speed-up",
            "configuration",
        ]
        parts.append(f"### n = {n}\n\n{table(head, rows)}")
    notes = ["An operation is one addition and one minimum, n^3 per graph."]
    if not all(result.complete for result, *_ in sweeps.results.values()):
        notes.append("\\* interrupted: the best of what was evaluated.")
    notes += [
        f"Not tuned: {result.task} ({result.error or 'interrupted'})." for result in sweeps.errors
    ]
    return section("Best configurations", paragraph(*notes), *parts)


def _failures(sweeps: Sweeps) -> str:
    rows = []
    for engine, kernel in sweeps.kernels():
        found = [result for result, *_ in of_kernel(sweeps.results, engine, kernel)]
        trials = [trial for result in found for trial in result.search.evaluated]
        counts = sum((result.search.failures for result in found), Counter())
        for kind, count in counts.most_common():
            messages = Counter(
                trial.outcome.message for trial in trials if trial.outcome.kind is kind
            )
            example = messages.most_common(1)[0][0]
            rows.append(
                [
                    engine,
                    kernel,
                    kind.value,
                    f"{count} of {len(trials)}",
                    f"{count / len(trials):.1%}",
                    f"`{example}`",
                ]
            )
    passed = sum(result.search.dominated for result, *_ in sweeps.results.values())
    intro = paragraph(
        "" if rows else "No configuration failed.",
        f"{passed} more were passed over, since a smaller one of their kind did not fit."
        if passed
        else "",
    )
    body = (
        [table(["engine", "kernel", "class", "failed", "share", "most frequent message"], rows)]
        if rows
        else []
    )
    return section("Failures", intro, *body)


def _figures(drawn: Sequence[str], kind: str, caption: str) -> list[str]:
    return [markdown.figure(name, caption) for name in drawn if name.startswith(kind)]


def _search(drawn: Sequence[str]) -> str:
    caption = "Best time so far, relative to the default's: geometric mean over the tasks of a kernel, as first measured."
    figures = _figures(drawn, "search", caption)
    return section("How fast the search converges", *figures) if figures else ""


def _importances(sweeps: Sweeps, drawn: Sequence[str]) -> str:
    figures = _figures(drawn, "importances", "Importance of each parameter, by n.")
    if not figures:
        return ""
    known = [tuned.result for tuned in sweeps.results.values() if tuned.importances]
    exhaustive = sum(map(is_exhaustive, known))
    intro = paragraph(
        "How much each parameter decides whether a configuration is among the fastest tenth (Optuna's PED-ANOVA; shares of 1).",
        f"For {exhaustive} of {len(known)} tasks every candidate was evaluated.",
        ""
        if exhaustive == len(known)
        else "The others are a biased sample: the configurations that the search preferred.",
    )
    return section("Which parameters matter", intro, *figures)


def _grids(sweeps: Sweeps, drawn: Sequence[str]) -> str:
    drawable = {(task.engine, task.kernel) for task in sweeps.exhaustive}
    missing = [
        f"{engine} {kernel}"
        for engine, kernel in sweeps.kernels()
        if (engine, kernel) not in drawable
    ]
    intro = paragraph(
        "The best over all other parameters, of tasks of which every candidate was evaluated; white: none can run.",
        f"No such task: {', '.join(missing)}; `--sampler grid --trials 100000` evaluates all."
        if missing
        else "",
    )
    return section(
        "Block sizes and warps", intro, *_figures(drawn, "grid", "Part of the best rate.")
    )


def _measured_with(sweeps: Sweeps, args: argparse.Namespace) -> str:
    machine = {"device": sweeps.device["name"], "commit": args.commit or commit_of_checkout()}
    rows = [
        machine
        | {
            "versions": versions_line(header["versions"]),
            "date": header["created"],
            "command": header["command"],
        }
        for header in sweeps.headers
    ]
    command = command_line("tri_apsp.report", "tuning", "--from", *args.sources)
    return markdown.environment_block([*rows, rows[-1] | {"command": command}], "winners.csv")
