"""python -m reports, from the root of a clone"""

import argparse
import sys
from pathlib import Path

from tri_apsp.console.exit_status import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    Parser,
    run_command,
)
from tri_apsp.console.interrupts import interruptible_imports

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
_OTHERS = {
    "tuning": "speed-ups of tuned files, such as python -m tri_apsp.tune writes",
    "jobs": "jobs on this machine, beside what one would take without tri_apsp, for README",
    "rates": "operations per second of python -m tri_apsp bench, beside other projects and the "
    "papers",
    "index": "the pages for readers, made of all reports",
}


def build_parser() -> Parser:
    """Return the parser."""
    from reports.studies.run import STUDIES

    parser = Parser(
        prog="python -m reports",
        description="Measure a study on this machine, or render what was measured, as CSV, plots "
        "and a Markdown page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reports = parser.add_subparsers(dest="report", metavar="REPORT", title="reports", required=True)
    summaries = {name: study.summary for name, study in STUDIES.items()} | _OTHERS
    for name, summary in summaries.items():
        report = reports.add_parser(name, help=summary, description=f"{summary}.")
        if name == "jobs":
            report.add_argument(
                "--roads", type=Path, metavar="FILE", help="a road network; needed to measure"
            )
            report.add_argument(
                "--render-only", action="store_true", help="measure nothing: show the rows"
            )
        elif name == "rates":
            report.add_argument(
                "--add",
                type=Path,
                nargs="+",
                default=[],
                metavar="FILE",
                help="add the rows that python -m tri_apsp bench --json printed into these files, "
                "on this machine",
            )
        else:
            report.add_argument(
                "--out",
                type=Path,
                default=Path("reports"),
                metavar="DIR",
                help="folder of all reports; default: reports",
            )
        if name == "tuning":
            report.add_argument(
                "--from",
                dest="source",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder of the tuned files of one machine, such as tuning/nvidia-h200",
            )
        elif name in STUDIES:
            _add_study_options(report)
    return parser


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    from tri_apsp.console.options import DEVICE, ENGINE, add_options, at_least
    from tri_apsp.semirings import DTYPES_BY_NAME

    parser.add_argument(
        "--commit", help="the commit to name on the page; default: that of the checkout"
    )
    add_options(parser, DEVICE, ENGINE)
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


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as run_command.
    """
    return run_command(build_parser, _run, argv)  # the options import torch


def _run(args: argparse.Namespace) -> int:
    with interruptible_imports():
        from reports.studies import jobs, markdown, plots, rates, run, tuning

        if args.report not in ("index", "tuning"):
            plots.require_matplotlib()
    others = {"index": markdown.run, "tuning": tuning.run, "jobs": jobs.run, "rates": rates.run}
    others.get(args.report, run.run_study)(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
