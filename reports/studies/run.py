"""Running studies: measure what has no row, and write rows, plots, page and index."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from reports.studies import plots
from reports.studies.exponents import EXPONENTS_STUDY
from reports.studies.fields import FIELD_STUDIES
from reports.studies.markdown import section, table, write_index, write_page, writing
from reports.studies.measuring import measure, missing
from reports.studies.roads import ROADS_STUDY
from reports.studies.rows import StudyRows, origin_of, origin_section
from reports.studies.scaling import SCALING_STUDY
from reports.studies.semirings import SEMIRINGS_STUDY
from reports.studies.sparse import SPARSE_STUDY
from reports.studies.study import Group, Platform, Study, StudyRow, correct, varied
from reports.studies.systems import SYSTEM_STUDIES
from reports.studies.variants import VARIANT_STUDIES
from tri_apsp import engines
from tri_apsp.configs import Config
from tri_apsp.console.output import command_line
from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import EngineError, InputError, TooLargeError
from tri_apsp.memory import check_memory
from tri_apsp.semirings import DTYPES_BY_NAME

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        *VARIANT_STUDIES,
        EXPONENTS_STUDY,
        SEMIRINGS_STUDY,
        SPARSE_STUDY,
        ROADS_STUDY,
        SCALING_STUDY,
        *FIELD_STUDIES,
        *SYSTEM_STUDIES,
    )
}
"""All studies by their names on the command line."""

# Seconds of a run without --budget, on a GPU and on a CPU.
_BUDGETS = {"cuda": 100.0, "cpu": 120.0}
_DEVICE = "device.json"  # describes the device, beside its reports
_MAX_FAILURES = 12


def run_study(args: argparse.Namespace) -> None:
    """Run a study, or with --render-only show its present rows.

    Raises:
        InputError: the device does not exist, or a file cannot be used.
        EngineError: the engine cannot run on the device.
        TooLargeError: a size that was asked for does not fit the memory.
    """
    study = STUDIES[args.report]
    if args.render_only is None:
        platform = _platform(args.device, args.engine, args.dtype)
    else:
        platform = _recorded_platform(args.out / args.render_only, args.engine)
    # The page and the plots beside it have the name of this file.
    suffix = "-portable" if platform.engine == "portable" else ""
    path = args.out / platform.device.slug / f"{study.name}{suffix}.csv"
    if args.render_only is None:
        rows = _measured(study, platform, path, args)
    else:
        rows = StudyRows(path, study.parameters, study.metrics)
        if not len(rows):
            raise InputError(
                f"--render-only must name a machine on which {study.name} was measured, but "
                f"{path} has no row; measure it there first."
            )
    print(write_study(study, platform, rows))
    write_index(args.out)


def _measured(study: Study, platform: Platform, path: Path, args: argparse.Namespace) -> StudyRows:
    """Measure what has no row yet, and return all rows."""
    groups = study.groups(platform, list(dict.fromkeys(args.n)), list(dict.fromkeys(args.dtype)))
    groups = [group for group in groups if _fits(group, platform, required=bool(args.n))]
    command = command_line(
        "reports",
        study.name,
        device=args.device,
        engine=args.engine,
        n=args.n,
        dtype=args.dtype,
        budget=args.budget,
    )
    device = path.with_name(_DEVICE)
    with writing(device):
        facts = json.dumps(dataclasses.asdict(platform.device), indent=2)
        device.write_text(facts + "\n", encoding="utf-8")
    write_index(args.out)  # refuses another README.md before anything is measured
    origin = origin_of(platform.torch_device, command, args.commit, study.peers)
    rows = StudyRows(path, study.parameters, study.metrics, origin)
    seconds = args.budget or _BUDGETS[platform.torch_device.type]
    measure(groups, rows, platform.torch_device, seconds, study.measurer)
    if left := len(missing(groups, rows)):
        every = sum(len(group.points) for group in groups)
        print(
            f"warning: {left} of {every} points are not measured; repeat the command with a larger "
            "--budget to continue.",
            file=sys.stderr,
        )
    return rows


def _fits(group: Group, platform: Platform, *, required: bool) -> bool:
    """Return whether a group fits the device; if not, it is named, or an error if it is required.

    Raises:
        TooLargeError: a group that is required does not fit the memory.
        EngineError: the engine does not run a dtype that is required.
    """
    task, device = group.task, platform.torch_device
    try:
        engines.choose(device, Config(engine=platform.engine), task.torch_dtype)
        check_memory(task.n, task.batch, task.torch_dtype, device, matrices=group.matrices)
    except (EngineError, TooLargeError) as error:
        if required:
            raise
        print(f"{group.heading}: left out: {error}", file=sys.stderr)
        return False
    return True


def write_study(study: Study, platform: Platform, rows: StudyRows) -> Path:
    """Write the plots and the generated blocks of a study's page, and return the path of the page.

    The page has two generated blocks: `result` at its beginning and `details` at its end.
    """
    newest, name, folder = rows.newest(platform.engine), rows.path.stem, rows.path.parent
    right = sorted(
        correct(newest), key=lambda row: (row["dtype"] != "float32", row["dtype"], int(row["n"]))
    )
    page = study.page(right, platform, name)
    for file, drawn in page.figures.items():
        plots.save(drawn, folder / file)
    end = (_failures(newest), origin_section(newest, rows.path.name))
    blocks = {
        "result": "\n\n".join(filter(None, page.result)),
        "details": "\n\n".join(filter(None, [*page.details, *end])),
    }
    engine = ", portable engine" if platform.engine == "portable" else ""
    title = f"{study.question} {platform.device.name}{engine}"
    return write_page(folder / f"{name}.md", title, blocks)


def _failures(rows: Sequence[StudyRow]) -> str:
    """Return the section of what failed; "" if nothing did."""
    columns = ("kernel", "dtype", "n", "outcome", "message")
    failed = [[varied(row), *(row[name] for name in columns)] for row in rows if not correct([row])]
    return section("Failures", table(["", *columns], failed[:_MAX_FAILURES])) if failed else ""


def _platform(device: str, engine: str | None, dtypes: Sequence[str]) -> Platform:
    """Return the platform of a measurement; its engine must run all dtypes."""
    found = resolve(device)
    chosen = [
        engines.choose(found, Config(engine=engine), DTYPES_BY_NAME[dtype])
        for dtype in dtypes or ["float32"]
    ]
    return Platform(found, chosen[0], describe(found))


def _recorded_platform(folder: Path, engine: str | None) -> Platform:
    """Return the platform whose rows are in `folder`; this machine need not have its device."""
    path = folder / _DEVICE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        capability = fields["capability"] and tuple(fields["capability"])
        device = Device(**{**fields, "capability": capability})
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "--render-only must name a folder below --out in which a study was measured, but "
            f"{path} is missing or damaged; measure there first."
        ) from None
    usual = "cpu" if device.kind == "cpu" else "nvidia"
    return Platform(torch.device("cpu"), engine or usual, device)
