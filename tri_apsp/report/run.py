"""Run a study: measure what is not known yet, and write rows, plots, page and index."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.report.index import write_index
from tri_apsp.report.measuring import known, measure
from tri_apsp.report.options import command_line
from tri_apsp.report.pages import write_study
from tri_apsp.report.rows import environment
from tri_apsp.report.study import Place, Study

__all__ = ["place_of", "recorded_place", "run_study"]

# Seconds of a run without --budget, on a GPU and on a CPU.
_BUDGETS = {"cuda": 100.0, "cpu": 120.0}
# The file with the facts of a machine, beside its reports.
_FACTS = "device.json"


def run_study(study: Study, args: argparse.Namespace) -> int:
    """Run a study; with --render-only, measure nothing and use the rows that are there.

    Returns:
        the exit status.

    Raises:
        InputError: the device does not exist, or a file cannot be used.
        EngineError: the engine cannot run there.
        TooLargeError: a size does not fit the memory.
    """
    if args.render_only is None:
        place = place_of(args.device, args.engine, args.dtype)
    else:
        place = recorded_place(args.out / args.render_only, args.engine)
    folder = args.out / place.facts.slug
    name = study.name if place.engine != "portable" else f"{study.name}-portable"
    raw = folder / f"{name}.csv"
    grids = study.grids(place, args.n, args.dtype)
    if args.render_only is None:
        origin = environment(place.device, command_line(study.name, args), args.commit)
        seconds = args.budget if args.budget is not None else _BUDGETS[place.device.type]
        found = measure(grids, raw, study.parameters, place.device, seconds, lambda: study.provider(place), origin)
        _record(place.facts, folder)
    else:
        found = known(grids, raw, study.parameters)
    print(write_study(study, place, found, folder, name))
    write_index(args.out)
    return 0


def place_of(device: str, engine: str | None, dtypes: Sequence[str] = ()) -> Place:
    """Return where a study runs.

    Raises:
        InputError: a device that does not exist.
        EngineError: the engine cannot run there.
    """
    found = resolve(device)
    named = [getattr(torch, dtype) for dtype in dtypes] or [torch.float32]
    chosen = [engines.choose(found, Config(engine=engine), dtype) for dtype in named]
    return Place(found, chosen[0], describe(found))


def _record(facts: Device, folder: Path) -> None:
    (folder / _FACTS).write_text(json.dumps(dataclasses.asdict(facts), indent=2) + "\n", encoding="utf-8")


def recorded_place(folder: Path, engine: str | None) -> Place:
    """Return the place whose rows are in `folder`; its device need not be here.

    Raises:
        InputError: the folder has no facts of a device.
    """
    path = folder / _FACTS
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        capability = fields["capability"]
        facts = Device(**{**fields, "capability": None if capability is None else tuple(capability)})
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"--render-only must name a folder below --out in which a study was measured, but {path} is missing or damaged; "
            "measure there first."
        ) from None
    return Place(torch.device("cpu"), engine or ("cpu" if facts.kind == "cpu" else "nvidia"), facts)
