"""python -m tri_apsp.report"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tri_apsp.console.exit_status import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    guarded,
    interruptible_imports,
    terminated_as_interrupted,
)
from tri_apsp.console.parser import Parser
from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_extra
from tri_apsp.report.studies import STUDIES, study_of

__all__ = ["build_parser", "main"]

_EPILOG = f"""\
A study keeps its raw rows in DIR/<machine>/<study>.csv, and measures no row twice: repeat the command to continue. Its page
and plots are in the same folder; what you write on the page outside the generated blocks stays.

exit status:
    0  done
  {FAILED:3}  a size does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument breaks a rule, or a file cannot be used
  {INTERRUPTED:3}  interrupted (Ctrl-C, SIGTERM)
"""


def build_parser(prog: str = "python -m tri_apsp.report") -> Parser:
    """Return the parser; `prog` is the command that was typed. It imports no report."""
    from tri_apsp.report.options import add_out, add_study_options, add_tuning_options

    parser = Parser(
        prog=prog,
        description="Measure a study on this machine, or render what was measured, as CSV, plots and a Markdown page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reports = parser.add_subparsers(dest="report", metavar="REPORT", title="reports", required=True)
    every = {name: (summary, add_study_options) for name, summary in STUDIES.items()} | {
        "all": ("every study above, within one budget", add_study_options),
        "tuning": ("what a sweep found: python -m tri_apsp.tune --report", add_tuning_options),
        "index": (
            "the index of all reports, and the figure of rates beside other projects",
            add_out,
        ),
    }
    for name, (summary, add_options) in every.items():
        report = reports.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        add_options(report)
    return parser


def main(argv: list[str] | None = None, *, prog: str = "python -m tri_apsp.report") -> int:
    """Run `argv`, or the arguments of the process, and return the exit status; help and errors call
    the command `prog`.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """

    def run() -> int:
        with interruptible_imports():  # the options import torch
            parser = build_parser(prog)
        args = parser.parse_args(argv)
        with terminated_as_interrupted():
            return _run(args)

    return guarded(run)


def _run(args: argparse.Namespace) -> int:
    try:
        if args.report in STUDIES:
            with interruptible_imports():
                from tri_apsp.report.run import run_study

                study = study_of(args.report)
            return run_study(study, args)
        with interruptible_imports():
            run = import_module(f"tri_apsp.report.{args.report}").run
        status: int = run(args)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise InputError(
            f"reports need matplotlib, but it is not installed; {remedy_of_extra('report')}."
        ) from None
    return status


if __name__ == "__main__":
    sys.exit(main())
