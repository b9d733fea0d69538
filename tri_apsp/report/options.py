"""Options of the reports."""

from __future__ import annotations

import argparse
from pathlib import Path

from tri_apsp.console.options import add_device, at_least
from tri_apsp.semirings import DTYPES_BY_NAME

__all__ = ["DEFAULT_OUT", "add_out", "add_study_options", "add_tuning_options", "seconds"]


DEFAULT_OUT = Path("reports")


def add_study_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a study."""
    add_device(parser)
    parser.add_argument(
        "--n", type=at_least(1), nargs="+", default=[], help="sizes; default: those of the study"
    )
    parser.add_argument(
        "--dtype", nargs="+", choices=DTYPES_BY_NAME, default=[], help="default: those of the study"
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        metavar="SECONDS",
        help="stop after this time; the page names what was left out, and a later run continues; default: 100 on a GPU, 120 on "
        "a CPU; of all: as much for each study",
    )
    parser.add_argument(
        "--render-only",
        metavar="MACHINE",
        help="measure nothing: render all rows in the folder DIR/MACHINE, which may be of another machine, whatever --n and "
        "--dtype",
    )
    add_out(parser)
    _add_commit(parser)


def add_tuning_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tuning`."""
    parser.add_argument(
        "--from",
        dest="sources",
        type=Path,
        nargs="+",
        required=True,
        metavar="DIR",
        help="folders that python -m tri_apsp.tune --report DIR wrote; of several results of a task, the last one counts",
    )
    add_out(parser)
    _add_commit(parser)


def seconds(text: str) -> float:
    """An argparse type: seconds above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds above 0, but is {text!r}")
    return value


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out, the only option of `index`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        metavar="DIR",
        help=f"folder of all reports; default: {DEFAULT_OUT}",
    )


def _add_commit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--commit", help="the commit to name on the page; default: that of the checkout"
    )
