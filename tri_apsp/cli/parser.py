"""The parser of python -m tri_apsp, which lists the subcommands."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tri_apsp import __version__
from tri_apsp.cli import bench, generate, info, solve
from tri_apsp.console.exit_status import BAD_INPUT, BROKEN_PIPE, FAILED, INTERRUPTED
from tri_apsp.console.parser import Parser

__all__ = ["COMMANDS", "build_parser"]

COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "solve": (solve.configure, "compute all shortest distances of a graph file"),
    "generate": (generate.configure, "write a random graph to a file"),
    "info": (info.configure, "show this machine, versions, engines and tuned files"),
    "bench": (bench.configure, "measure min-plus operations per second, beside SciPy"),
}
"""Subcommands by name: the function that adds the arguments, and the summary for --help."""

_EPILOG = f"""\
exit status:
    0  done
  {FAILED:3}  the graph has a negative cycle, a distance does not fit the dtype, the problem does not fit the memory, or the
       engine cannot run here
  {BAD_INPUT:3}  an argument or a file breaks a rule
  {INTERRUPTED:3}  interrupted (Ctrl-C)
  {BROKEN_PIPE:3}  the process that read the output has exited

An error is one sentence on stderr; nothing is printed on stdout then, and the output file stays as it was.
"""


def build_parser() -> Parser:
    """Return the parser; each subcommand sets `run`, the function to call with the arguments."""
    parser = Parser(
        prog="python -m tri_apsp",
        description="All-pairs shortest paths: every distance of a weighted directed graph.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tri_apsp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (configure, summary) in COMMANDS.items():
        configure(commands.add_parser(name, help=summary, description=f"{summary.capitalize()}."))
    return parser
