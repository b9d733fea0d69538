"""Options that several reports take, and the command line that repeats a run."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tri_apsp.console.options import DTYPE_NAMES, add_device, at_least

__all__ = ["add_commit", "add_out", "add_where", "command_line", "seconds"]


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add what a report that measures takes: --device, --engine, --n, --dtype, --budget, --out and --commit."""
    add_device(parser)
    parser.add_argument("--n", type=at_least(1), nargs="+", default=[], help="sizes; default: those of the study")
    parser.add_argument("--dtype", nargs="+", choices=DTYPE_NAMES, default=[], help="default: float32")
    parser.add_argument(
        "--budget",
        type=seconds,
        metavar="SECONDS",
        help="end after so long; what was left out is named on the page, and a later run goes on; default: 100 on a GPU, 120 "
        "on a CPU",
    )
    add_out(parser)
    add_commit(parser)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out."""
    parser.add_argument(
        "--out", type=Path, default=Path("reports"), metavar="DIR", help="folder of all reports; default: reports"
    )


def add_commit(parser: argparse.ArgumentParser) -> None:
    """Add --commit."""
    parser.add_argument("--commit", help="the commit to name in the rows; default: that of the checkout")


def command_line(name: str, args: argparse.Namespace) -> str:
    """Return the command that repeats the report `name`, from the options of add_where."""
    words = ["python", "-m", "tri_apsp.report", name, "--device", args.device]
    words += ["--engine", args.engine] if args.engine else []
    words += ["--n", *args.n] if args.n else []
    words += ["--dtype", *args.dtype] if args.dtype else []
    words += ["--budget", f"{args.budget:g}"] if args.budget is not None else []
    return shlex.join(map(str, words))


def seconds(text: str) -> float:
    """An argparse type: seconds above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds above 0, but is {text!r}")
    return value
