"""Argument types, options that several command lines take, and folders that options name."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from tri_apsp.engines import ENGINES
from tri_apsp.errors import InputError


def add_device(parser: argparse._ActionsContainer, *, engine: bool = True) -> None:
    """Add --device and, unless it is not wanted, --engine."""
    parser.add_argument(
        "--device", default="auto", help="auto (default: CUDA if there is one), cpu, cuda or cuda:N"
    )
    if engine:
        parser.add_argument(
            "--engine", choices=list(ENGINES), help="default: the best that runs on the device"
        )


def add_json(parser: argparse.ArgumentParser, keys: str) -> None:
    """Add --json; `keys` is the part of the help that lists the keys of the object."""
    parser.add_argument(
        "--json", action="store_true", help=f"print one JSON object instead: {keys}"
    )


def at_least(least: int) -> Callable[[str], int]:
    """Return an argparse type: an integer that is at least `least`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer from {least}, but is {text!r}")
        return int(text)

    return parse


def make_folder(directory: Path, option: str) -> None:
    """Create the folder that `option` names.

    Raises:
        InputError: the folder cannot be made or written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise InputError(
            f"{option} must name a folder that can be written, but {directory} cannot "
            f"({error.strerror}); give another."
        ) from None
