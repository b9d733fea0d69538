"""python -m tri_apsp.report"""

import argparse
import sys
from pathlib import Path

from tri_apsp.console.exit_status import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    Parser,
    guarded,
    interruptible_imports,
    terminated_as_interrupted,
)
from tri_apsp.errors import InputError
from tri_apsp.messages import remedy_of_extra
from tri_apsp.report.studies import STUDIES

_EPILOG = f"""\
A study keeps its raw rows in DIR/<machine>/<study>.csv, and measures no row twice: repeat the
command to continue. Its page and plots are in the same folder; what you write on the page outside
the generated blocks stays.

exit status:
    0  done
  {FAILED:3}  a size does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument breaks a rule, or a file cannot be used
  {INTERRUPTED:3}  interrupted (Ctrl-C, SIGTERM)
"""


def build_parser(prog: str = "python -m tri_apsp.report") -> Parser:
    """Return the parser; `prog` is the command that was typed. It imports no report."""
    parser = Parser(
        prog=prog,
        description="Measure a study on this machine, or render what was measured, as CSV, plots "
        "and a Markdown page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reports = parser.add_subparsers(dest="report", metavar="REPORT", title="reports", required=True)
    summaries = {name: summary for name, (_, summary) in STUDIES.items()} | {
        "tuning": "what a sweep found: python -m tri_apsp.tune --report",
        "index": "the index of all reports, and the figure of rates beside other projects",
    }
    for name, summary in summaries.items():
        report = reports.add_parser(name, help=summary, description=f"{summary}.")
        report.add_argument(
            "--out",
            type=Path,
            default=Path("reports"),
            metavar="DIR",
            help="folder of all reports; default: reports",
        )
        if name != "index":
            report.add_argument(
                "--commit", help="the commit to name on the page; default: that of the checkout"
            )
        if name == "tuning":
            report.add_argument(
                "--from",
                dest="sources",
                type=Path,
                nargs="+",
                required=True,
                metavar="DIR",
                help="folders that python -m tri_apsp.tune --report DIR wrote; of several results "
                "of a task, the last one counts",
            )
        elif name != "index":
            _add_study_options(report)
    return parser


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    from tri_apsp.console.options import add_device, at_least
    from tri_apsp.semirings import DTYPES_BY_NAME

    add_device(parser)
    parser.add_argument(
        "--n", type=at_least(1), nargs="+", default=[], help="sizes; default: those of the study"
    )
    parser.add_argument(
        "--dtype", nargs="+", choices=DTYPES_BY_NAME, default=[], help="default: those of the study"
    )
    parser.add_argument(
        "--budget",
        type=at_least(1),
        metavar="SECONDS",
        help="begin no measurement after this time; a later run continues; default: 100 on a GPU, "
        "120 on a CPU",
    )
    parser.add_argument(
        "--render-only",
        metavar="MACHINE",
        help="measure nothing: show all rows in the folder DIR/MACHINE, which may be of another "
        "machine, whatever --n and --dtype",
    )


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
        with interruptible_imports():
            from tri_apsp.report import index, run, tuning

    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise InputError(
            f"reports need matplotlib, but it is not installed; {remedy_of_extra('report')}."
        ) from None
    if args.report == "index":
        return index.run(args)
    return tuning.run(args) if args.report == "tuning" else run.run_study(args)


if __name__ == "__main__":
    sys.exit(main())
