"""python -m tri_apsp.report"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED, guarded
from tri_apsp.console.parser import Parser
from tri_apsp.errors import InputError

__all__ = ["STUDIES", "build_parser", "main"]

STUDIES: dict[str, tuple[str, str]] = {
    "block-size": ("block_size", "edges of tiles and blocks, beside Catinello and Katz & Kider"),
    "threads": ("threads", "warps a program, or CPU threads, beside Henriod, Lund & Smith and Catinello"),
    "cutoff": ("cutoff", "the recursion cutoff β, beside Henriod"),
    "stages": ("stages", "pipeline depth and slices of k, beside Lund & Smith"),
    "tuning": ("tuning", "what a sweep found: python -m tri_apsp.tune --report"),
    "sampler": ("sampler", "how close a search comes to an exhaustive sweep"),
    "index": ("index", "the list of all reports"),
}
"""Reports by their names: the module of tri_apsp.report with its configure(parser) and run(args), and what it shows."""

_EPILOG = f"""\
A study keeps its raw rows in DIR/<machine>/<study>.csv, and measures no row twice: repeat the command to go on. Its page and
plots are beside them.

exit status:
    0  done
  {FAILED:3}  a size does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument breaks a rule, a file cannot be used, or the study has no meaning for the engine
  {INTERRUPTED:3}  interrupted (Ctrl-C)
"""


def build_parser(argv: Sequence[str]) -> Parser:
    """Return the parser for `argv`: only the reports that it names are imported."""
    parser = Parser(
        prog="python -m tri_apsp.report",
        description="Measure a study on this machine, or render what was measured, as CSV, plots and a Markdown page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reports = parser.add_subparsers(dest="report", metavar="REPORT", title="reports", required=True)
    for name, (module, summary) in STUDIES.items():
        report = reports.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in argv:
            _module(module).configure(report)
            report.set_defaults(run=_module(module).run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """
    arguments = sys.argv[1:] if argv is None else argv

    def run() -> int:
        args = build_parser(arguments).parse_args(arguments)
        status: int = args.run(args)
        return status

    return guarded(run)


def _module(name: str):  # type: ignore[no-untyped-def]
    try:
        return import_module(f"tri_apsp.report.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise InputError("reports need matplotlib, but it is not installed; pip install 'tri_apsp[report]'.") from None


if __name__ == "__main__":
    sys.exit(main())
