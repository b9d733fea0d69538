"""python -m tri_apsp info"""

import argparse
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

from tri_apsp import tuned
from tri_apsp.console.machine import device_facts, device_line, devices, versions, versions_line
from tri_apsp.console.options import add_options, json_of
from tri_apsp.console.output import print_result
from tri_apsp.device import describe
from tri_apsp.engines import ENGINES, unusable_because
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.semirings import DTYPES, dtype_name


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `info`."""
    add_options(
        parser,
        json_of(
            "machine, versions, engines (usable and unusable, by device), tuned (directories, "
            "files, unused with the reasons, save_directory)"
        ),
    )


def run(args: argparse.Namespace) -> None:
    """Print the facts of this machine and the engines that can run on it."""
    found = devices()
    engines = {str(device): _engines(device) for device in found}
    files = {path: _file(path, found) for path in tuned.files()}
    unused = {str(path): reason for path, (_, reason) in files.items() if reason is not None}
    facts = {
        "machine": {str(device): device_facts(device) for device in found},
        "versions": versions(),
        "engines": {
            name: {"usable": usable, "unusable": unusable}
            for name, (usable, unusable) in engines.items()
        },
        "tuned": {
            "directories": [str(path) for path in tuned.directories()],
            "files": [str(path) for path in files],
            "unused": unused,
            "save_directory": str(tuned.save_directory()),
        },
    }
    fields = [(str(device), device_line(device)) for device in found]
    fields.append(("versions", versions_line()))
    for name, (usable, unusable) in engines.items():
        fields.append((f"engines on {name}", ", ".join(usable) or "none"))
        fields += [("", reason) for reason in unusable.values()]
    slugs = dict.fromkeys(describe(device).slug for device in found)
    folders = " and ".join(f"{slug}/" for slug in slugs)
    saved_to = f"{tuned.save_directory()}, in {folders}; a tuned file that is copied there is used"
    fields.append(("save to", saved_to))
    for number, directory in enumerate(tuned.directories()):
        lines = [f"    {line}" for line in _lines(directory, files)]
        label = "" if number else "search order"
        fields.append((label, f"{directory}{'' if lines else ': none'}"))
        fields += [("", line) for line in lines]
    print_result(args.json, facts, fields)


def _lines(directory: Path, files: Mapping[Path, tuple[str, str | None]]) -> Iterator[str]:
    """Yield a line for the files of a directory that hold the same, or are not used for the same
    reason.
    """
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for path, (held, reason) in files.items():
        if directory in path.parents:
            groups.setdefault((path.parent.name, reason or held, reason is None), []).append(
                path.stem
            )
    for (folder, text, used), names in groups.items():
        listed = ", ".join(names) if used or len(names) == 1 else counted(len(names), "file")
        yield f"{folder}/: {listed}; {text}"


def _file(path: Path, devices: list[torch.device]) -> tuple[str, str | None]:
    """Return the content of a tuned file in a few words, and why it is not used here, or None if it
    is.
    """
    try:
        file = tuned.load(path)
    except InputError as error:
        return "", f"not used: {error}"
    held = f"{file.held}, tuned {file.created}"
    reasons = {here: tuned.unused_because(path, file, here) for here in map(describe, devices)}
    users = [here for here, reason in reasons.items() if reason is None]
    if users and all(here.slug != file.slug for here in users):
        held += ", of another GPU; used where this GPU has no entry"
    return held, None if users else f"not used here: {reasons[describe(devices[-1])]}"


def _engines(device: torch.device) -> tuple[list[str], dict[str, str]]:
    """Return the usable engines, and why others are not, by engine or by engine and dtype, as
    "nvidia int16".
    """
    reasons = {name: unusable_because(name, device) for name in ENGINES}
    usable = [name for name, reason in reasons.items() if reason is None]
    for name, dtype in itertools.product(usable, DTYPES):
        reasons[f"{name} {dtype_name(dtype)}"] = unusable_because(name, device, dtype)
    return usable, {name: reason for name, reason in reasons.items() if reason is not None}
