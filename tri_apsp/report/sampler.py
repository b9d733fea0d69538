"""python -m tri_apsp.report sampler: how near a search comes to the best of a space of which every candidate was timed."""

from __future__ import annotations

import argparse
import functools
import json
import math
import multiprocessing
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from tri_apsp.console.machine import versions_line
from tri_apsp.console.options import at_least
from tri_apsp.device import cpu_count
from tri_apsp.errors import InputError
from tri_apsp.report import markdown, plots
from tri_apsp.report.markdown import paragraph, section, table
from tri_apsp.report.options import add_commit, add_out
from tri_apsp.report.rows import environment, task_fields
from tri_apsp.tune.measure.outcome import Kind, Outcome
from tri_apsp.tune.search.evaluated import Evaluated, default_of, fastest_ms
from tri_apsp.tune.search.search import memory_study, search
from tri_apsp.tune.space.space import Choice, Parameter, Space, Values
from tri_apsp.tune.space.task import Task
from tri_apsp.tune.sweep.plan import SAMPLERS
from tri_apsp.tune.sweep.rows import check_folder, read_trials, write_csv

__all__ = ["BUDGETS", "Replay", "Sweep", "configure", "read_sweep", "replay", "run"]

BUDGETS = (25, 50, 100, 200)
"""Distinct evaluations after which a search is judged."""

_SEEDS = 20
# A search of 100 should reach this part of the best rate.
_AIM_AT, _AIM = 100, 0.97


@dataclass(frozen=True)
class Sweep:
    """A space of which every candidate was evaluated.

    Attributes:
        task: what was tuned.
        space: the choices that occur.
        trials: in the order of the space, the last parameter fastest; failures too.
        default: the values of the default.
    """

    task: Task
    space: Space
    trials: tuple[Evaluated, ...]
    default: Values

    @functools.cached_property
    def outcomes(self) -> dict[tuple[Choice, ...], Outcome]:
        """What became of each candidate."""
        return {self.key(trial.values): trial.outcome for trial in self.trials}

    @property
    def best_ms(self) -> float:
        """The shortest median."""
        return fastest_ms(self.trials)

    def key(self, values: Values) -> tuple[Choice, ...]:
        """Return what `outcomes` knows a configuration by."""
        return tuple(values[parameter.name] for parameter in self.space.parameters)


@dataclass(frozen=True)
class Replay:
    """A search on a sweep: the part of the best rate that it reached with so many distinct evaluations."""

    sampler: str
    seed: int
    evaluations: int
    fraction: float


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sampler`."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="CSV",
        help="trials.csv of one task, as python -m tri_apsp.tune --sampler grid --trials 100000 --report DIR writes it; or the "
        "sampler-sweep.csv that this report makes of it",
    )
    parser.add_argument("--seeds", type=at_least(2), default=_SEEDS, help=f"searches a sampler and budget; default: {_SEEDS}")
    add_out(parser)
    add_commit(parser)


def run(args: argparse.Namespace) -> int:
    """Write DIR/<machine>/sampler.md and what belongs to it, say where, and return the exit status."""
    sweep = read_sweep(args.source)
    source = _source(args)
    folder = args.out / source["slug"]
    check_folder(folder, "--out")
    replays = replay(sweep, range(args.seeds))
    _write_sweep(sweep, source, folder / "sampler-sweep.csv")
    write_csv(folder / "sampler.csv", [vars(one) | {"fraction": f"{one.fraction:.4f}"} for one in replays])
    _draw(sweep, replays, folder / "sampler")
    print(_write_page(sweep, replays, source, folder, args))
    return 0


def read_sweep(path: Path) -> Sweep:
    """Read an exhaustive sweep of one task.

    Raises:
        InputError: the file is none, or of several tasks, or has no default, or nothing worked, or it is too small to search.
    """
    found = read_trials(path)
    task, trials = next(iter(found.items()), (None, []))
    default = default_of(trials)
    works = any(trial.outcome.kind is Kind.correct for trial in trials)
    if len(found) != 1 or task is None or default is None or not works or len(trials) <= max(BUDGETS):
        raise InputError(
            f"--from must name the trials of one task, its default and more than {max(BUDGETS)} candidates, but {path} has "
            f"{len(trials)} trials of {len(found)} tasks; sweep one kernel, dtype, sign and size with --trials 100000."
        )
    names = list(trials[0].values)
    space = Space(tuple(Parameter(name, _choices(trial.values[name] for trial in trials)) for name in names))
    trials.sort(key=lambda trial: [p.choices.index(trial.values[p.name]) for p in space.parameters])
    return Sweep(task, space, tuple(trials), default)


def _choices(values: Iterable[Choice]) -> tuple[Choice, ...]:
    return tuple(sorted(set(values), key=lambda value: (isinstance(value, str), value)))


def replay(sweep: Sweep, seeds: Sequence[int]) -> list[Replay]:
    """Search `sweep` by each sampler, with each seed and budget, on all cores; grid order has no seed.

    A search is told its budget, for its last quarter climbs from the best: TPE searches anew for each budget. The others
    have reached at a smaller one what they had found by then.
    """
    jobs = [(sampler, seed) for sampler in SAMPLERS for seed in (seeds if sampler != "grid" else seeds[:1])]
    # The tuner's own threads would be copied half-way by a fork.
    with multiprocessing.get_context("spawn").Pool(min(cpu_count(), len(jobs)), initializer=_one_thread) as pool:
        found = pool.starmap(functools.partial(_replay, sweep), jobs, chunksize=1)
    return [one for replays in found for one in replays]


def _one_thread() -> None:
    torch.set_num_threads(1)


def _replay(sweep: Sweep, sampler: str, seed: int) -> list[Replay]:
    if sampler == "tpe":
        reached = [_search(sweep, sampler, seed, budget)[-1] for budget in BUDGETS]
    else:
        after = _search(sweep, sampler, seed, max(BUDGETS))
        reached = [after[min(budget, len(after)) - 1] for budget in BUDGETS]
    return [Replay(sampler, seed, budget, part) for budget, part in zip(BUDGETS, reached, strict=True)]


def _search(sweep: Sweep, sampler: str, seed: int, budget: int) -> list[float]:
    """Return the part of the best rate that was reached after each evaluation."""
    found = search(
        sweep.space,
        [trial.values for trial in sweep.trials],
        [lambda values, _: sweep.outcomes[sweep.key(values)]],
        study=memory_study(),
        default=sweep.default,
        sampler=sampler,
        seed=seed,
        trials=budget,
    )
    times = [trial.outcome.p50_ms if trial.outcome.kind is Kind.correct else None for trial in found.evaluated]
    best = np.minimum.accumulate([math.inf if time is None else time for time in times])
    return cast(list[float], (sweep.best_ms / best).tolist())


# What is said of the machine beside the trials: in sweep.json, or in what was made of it with the summary.
_SOURCE = ("slug", "device", "versions", "date", "command")


def _source(args: argparse.Namespace) -> dict[str, str]:
    path: Path = args.source
    known = path.with_name("sweep.json") if path.name == "trials.csv" else path.with_suffix(".json")
    try:
        header: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
        if path.name != "trials.csv":
            return {name: str(header[name]) for name in _SOURCE}
        facts = {"slug": header["device"]["slug"], "device": header["device"]["name"], "date": header["created"]}
        return {**facts, "versions": versions_line(header["versions"]), "command": header["command"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"a sweep must have the file beside it that says where it is from, but {known} is missing or damaged; give "
            "trials.csv where python -m tri_apsp.tune --report wrote it."
        ) from None


def _write_sweep(sweep: Sweep, source: dict[str, str], path: Path) -> None:
    """Write the trials again, without what a replay does not need, and beside them where they are from."""
    rows = [
        {
            **task_fields(sweep.task),
            "origin": "default" if trial.values == sweep.default else "sweep",
            **trial.values,
            "kind": trial.outcome.kind.value,
            "p50_ms": "" if trial.outcome.p50_ms is None else f"{trial.outcome.p50_ms:.5g}",
        }
        for trial in sweep.trials
    ]
    write_csv(path, rows)
    path.with_suffix(".json").write_text(json.dumps(source, indent=2) + "\n", encoding="utf-8")


def _of(replays: list[Replay], sampler: str) -> Iterator[tuple[int, list[float]]]:
    for budget in BUDGETS:
        yield budget, [one.fraction for one in replays if (one.sampler, one.evaluations) == (sampler, budget)]


def _spread(found: list[float]) -> float:
    return float(np.std(found, ddof=1)) if len(found) > 1 else 0.0


def _draw(sweep: Sweep, replays: list[Replay], path: Path) -> None:
    figure, (axes,) = plots.figure([str(sweep.task)], width=5.5)
    curves = []
    for sampler in SAMPLERS:
        means = [(float(np.mean(found)), _spread(found)) for _, found in _of(replays, sampler)]
        low, high = [mean - spread for mean, spread in means], [min(1.0, mean + spread) for mean, spread in means]
        curves.append(plots.Line(sampler, BUDGETS, [mean for mean, _ in means], low, high))
    plots.lines(axes, curves, x_label="distinct evaluations", y_label="part of the best rate of all")
    axes.set_ylim(bottom=min(0.7, *(edge for curve in curves for edge in curve.low)), top=1.01)
    axes.legend(loc="lower right")
    plots.save(figure, path)


def _write_page(sweep: Sweep, replays: list[Replay], source: dict[str, str], folder: Path, args: argparse.Namespace) -> Path:
    reached = float(np.mean(dict(_of(replays, "tpe"))[_AIM_AT]))
    summary = (
        f"A search of {_AIM_AT} evaluations reaches {reached:.1%} of the best of {len(sweep.trials)} configurations of "
        f"{sweep.task}, in the mean of {args.seeds} seeds."
    )
    rows = []
    for sampler in SAMPLERS:
        cells = [
            f"{np.mean(found):.3f} ± {_spread(found):.3f} (least {min(found):.3f})" if len(found) > 1 else f"{found[0]:.3f}"
            for _, found in _of(replays, sampler)
        ]
        rows.append([sampler, *cells])
    default = sweep.outcomes[sweep.key(sweep.default)].p50_ms
    failed = sum(trial.outcome.kind is not Kind.correct for trial in sweep.trials)
    best = next(trial for trial in sweep.trials if trial.outcome.p50_ms == sweep.best_ms)
    spelled = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in best.values.items())
    at_default = "failed" if default is None else f"reaches {sweep.best_ms / default:.3f}"
    intro = paragraph(
        f"Every candidate of {sweep.task} was timed once: {len(sweep.trials)}, of which {failed} failed. The best takes",
        f"{sweep.best_ms:.4g} ms ({spelled}); the default, which every search tries first, {at_default}.",
        "`tri_apsp.tune.search` then searched these times in place of a device.",
        f"The goal is {_AIM:.0%} after {_AIM_AT} evaluations; {reached:.1%} were reached.",
    )
    notes = paragraph(
        "Mean, standard deviation and least of the seeds. TPE is told its budget, whose last quarter climbs from the best",
        "found; grid order, which has no seed, starts with the default and a median one. The sweep looked at each candidate",
        "once, and the noise of that look is in the best time as in all others.",
    )
    result = section(
        "Part of the best rate",
        table(["sampler", *(f"{budget} evaluations" for budget in BUDGETS)], rows),
        notes,
        markdown.figure("sampler", "Mean over the seeds; bars are a standard deviation"),
    )
    commit = environment(torch.device("cpu"), "", args.commit)["commit"]
    measured = {name: source[name] for name in ("device", "versions", "date", "command")} | {"commit": commit}
    again = shlex.join(["python", "-m", "tri_apsp.report", "sampler", "--from", str(folder / "sampler-sweep.csv")])
    raw = "Its rows: [sampler.csv](sampler.csv); those of the sweep: [sampler-sweep.csv](sampler-sweep.csv)."
    block = markdown.environment_block([measured, measured | {"command": again}], "sampler.csv")
    return markdown.write_page(
        folder / "sampler.md", "How near a search comes to the best", summary, [intro, result, raw, block]
    )
