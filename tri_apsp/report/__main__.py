"""python -m tri_apsp.report"""

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
    """Return the parser; `prog` is the command that was typed."""
    from tri_apsp.report.run import STUDIES

    parser = Parser(
        prog=prog,
        description="Measure a study on this machine, or render what was measured, as CSV, plots "
        "and a Markdown page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reports = parser.add_subparsers(dest="report", metavar="REPORT", title="reports", required=True)
    summaries = {name: study.summary for name, study in STUDIES.items()} | {
        "tuning": "speed-ups of tuned files, such as python -m tri_apsp.tune writes",
        "index": "the index of all reports",
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
        if name == "tuning":
            report.add_argument(
                "--from",
                dest="source",
                type=Path,
                required=True,
                metavar="DIR",
                help="folder of the tuned files of one machine, such as tuning/nvidia-h200",
            )
            report.add_argument(
                "--journal",
                type=Path,
                metavar="FILE",
                help="the tuner's journal, whose searches sweep.html shows; default: this "
                "machine's journal of that GPU or CPU, if there is one",
            )
        elif name != "index":
            _add_study_options(report)
    return parser


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    from tri_apsp.console.options import add_device, at_least
    from tri_apsp.semirings import DTYPES_BY_NAME

    parser.add_argument(
        "--commit", help="the commit to name on the page; default: that of the checkout"
    )
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
    """Run `argv`, or the arguments of the process, and return the exit status.

    `prog`: the command name shown in help and errors.

    Raises:
        SystemExit: as run_command.
    """
    return run_command(lambda: build_parser(prog), _run, argv)  # the options import torch


def _run(args: argparse.Namespace) -> int:
    from tri_apsp.report import markdown, plots, run, tuning

    if args.report == "index":
        print(markdown.write_index(args.out))
        return 0
    if args.report == "tuning":
        return tuning.run(args)
    plots.require_matplotlib()
    return run.run_study(args)


if __name__ == "__main__":
    sys.exit(main())
