"""The arguments that every subcommand shares, and the exit statuses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from tri_apsp import __version__

__all__ = ["BAD_INPUT", "BROKEN_PIPE", "COMMANDS", "FAILED", "INTERRUPTED", "Parser", "build_parser"]

FAILED, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

COMMANDS = {
    "solve": "compute all shortest distances of a graph file",
    "generate": "write a random graph to a file",
    "info": "show this machine, versions, engines and tuned files",
    "bench": "measure min-plus operations per second, beside SciPy",
}

_EPILOG = f"""\
exit status:
    0  done
  {FAILED:3}  the graph has a negative cycle, a distance does not fit the dtype, the problem does not fit the memory, or the
       engine cannot run here
  {BAD_INPUT:3}  an argument or a file breaks a rule
  {INTERRUPTED:3}  interrupted (Ctrl-C)
  {BROKEN_PIPE:3}  whoever read the output went away

Errors are one sentence on stderr; stdout and the output file then stay as they were.
"""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one sentence, like all others here."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"error: {message.rstrip('.')}; see {self.prog} --help.\n")


def build_parser(argv: Sequence[str]) -> Parser:
    """Return the parser for `argv`: only the subcommands that it names are imported, so --help needs no torch."""
    parser = Parser(
        prog="python -m tri_apsp",
        description="All-pairs shortest paths: every distance of a weighted directed graph.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tri_apsp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name in argv:
            import_module(f"tri_apsp.cli.{name}").configure(command)
    return parser
