"""Argument types, and options that several command lines take."""

import argparse
import re
from collections.abc import Callable

from tri_apsp.engines import ENGINES


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


def byte_count(text: str) -> int:
    """An argparse type: a number of bytes, such as 6GiB, 500MB or 4096."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a number of bytes such as 6GiB, but is {text!r}")
    number, prefix, binary = found.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " kmgt".index(prefix or " "))
