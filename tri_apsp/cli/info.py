"""python -m tri_apsp info"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import TypedDict

import torch

from tri_apsp import tuned
from tri_apsp.console.machine import device_facts, device_line, devices, versions
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_fields, print_json
from tri_apsp.device import describe
from tri_apsp.engines import ENGINES, unusable_because
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES, dtype_name

__all__ = ["configure", "run"]


class _Engines(TypedDict):
    usable: list[str]
    unusable: dict[str, str]  # the reason, by the name of an engine or by an engine and a dtype, as "nvidia int16"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `info`."""
    add_json(
        parser,
        "machine, versions, engines (usable and unusable, by device), tuned (directories, files, unused with the reasons, "
        "save_directory)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print the facts of this machine and the engines that can run on it."""
    found = devices()
    directories = [str(path) for path in tuned.directories()]
    files = {str(path): _file(path, found) for path in tuned.files()}
    if args.json:
        print_json(
            {
                "machine": {str(device): device_facts(device) for device in found},
                "versions": versions(),
                "engines": {str(device): _engines(device) for device in found},
                "tuned": {
                    "directories": directories,
                    "files": list(files),
                    "unused": {path: reason for path, (_, reason) in files.items() if reason is not None},
                    "save_directory": str(tuned.save_directory()),
                },
            }
        )
        return
    fields = [(str(device), f"{device_line(device)}, slug {device_facts(device)['slug']}") for device in found]
    fields += [(name, version or "none") for name, version in versions().items()]
    for device in found:
        engines = _engines(device)
        fields.append((f"engines on {device}", ", ".join(engines["usable"]) or "none"))
        fields += [(f"not {name}", reason) for name, reason in engines["unusable"].items()]
    fields += [("tuned files", "searched in, in this order:"), *(("", path) for path in directories)]
    fields += [("", "found:"), *(("", f"{path}: {reason or held}") for path, (held, reason) in files.items())]
    fields += [] if files else [("", "none")]
    print_fields(fields)


def _file(path: Path, devices: list[torch.device]) -> tuple[str, str | None]:
    """Return the content of a tuned file in a few words, and why it is not used here, or None if it is."""
    try:
        file = tuned.load(path)
    except InputError as error:
        return "", f"not used: {error}"
    sizes = sorted({entry.n for entry in file.entries})
    held = f"n {', '.join(map(str, sizes))}, tuned {file.created}"
    refusals = [tuned.refusal(file, describe(device)) for device in devices]
    return held, None if None in refusals else f"not used here: {refusals[-1]}"


def _engines(device: torch.device) -> _Engines:
    reasons = {name: unusable_because(name, device) for name in ENGINES}
    usable = [name for name, reason in reasons.items() if reason is None]
    for name, dtype in itertools.product(usable, DTYPES):
        reasons[f"{name} {dtype_name(dtype)}"] = unusable_because(name, device, dtype)
    return {"usable": usable, "unusable": {name: reason for name, reason in reasons.items() if reason is not None}}
