"""Run one command line. This module imports nothing that imports torch, which takes long: --help
needs none of it.
"""

import argparse
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tri_apsp import __version__
from tri_apsp.console.exit_status import (
    BAD_INPUT,
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    Parser,
    run_command,
)
from tri_apsp.console.interrupts import say

COMMANDS = {
    "solve": "compute all shortest distances of a graph file",
    "path": "print a shortest path between two vertices of a graph file",
    "sssp": "compute the shortest distances of a sparse graph file from some of its vertices",
    "table": "compute the distances between chosen vertices of a graph file, or of pairs",
    "nearest": "find the nearest of some sources for every vertex of a graph file",
    "accessibility": "sum what each vertex of a graph file reaches within some distances",
    "flows": "compute the load of each edge of a graph file if demand takes shortest paths",
    "prepare": "find an order of elimination of a graph file, which later commands use",
    "hops": "measure a graph file by edges or weights: diameter, closeness and others",
    "generate": "write a random graph to a file",
    "info": "show this machine, versions, engines and tuned files",
    "bench": "measure min-plus operations per second, beside SciPy",
    "warmup": "compile kernels before they are needed, such as into a folder of a container image",
    "completion": "print a script that completes these commands in a shell",
}
"""Subcommands by name, with the summary for --help. The module of the name in this package has
`configure`, which adds the arguments, and `run`.
"""

OTHERS = {
    "tune": "search for the fastest configurations of this machine, which later solves use",
}
"""Subcommands that are command lines of their own, python -m tri_apsp.NAME."""

_RENAMED = {"--source": "--sources", "--target": "--targets", "--min-only": "--nearest"}
"""Options of version 0.2 by their new names; the old ones work until 0.4."""

_EPILOG = f"""\
exit status:
    0  done
  {FAILED:3}  the graph has a negative cycle, a distance does not fit the dtype, the
       problem does not fit the memory, or the engine cannot run here
  {BAD_INPUT:3}  an argument or a file breaks a rule, or the output cannot be written
  {INTERRUPTED:3}  interrupted by Ctrl-C or SIGTERM; 143 by SIGTERM while libraries are
       imported
  {BROKEN_PIPE:3}  the process that read the output has exited

An error is one sentence on stderr. Stdout is then empty, except for rows that
bench has measured, and an output file stays as it was, unless only the summary
could not be printed.
"""


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, by default the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does: with status 0 after --help and --version, and with 2 for
            arguments that it refuses.
    """
    words = sys.argv[1:] if argv is None else argv
    prog = "tri-apsp" if Path(sys.argv[0]).stem == "tri-apsp" else "python -m tri_apsp"
    if words and words[0] == "report":  # of 0.2
        runpy.run_module("tri_apsp.report", run_name="__main__")
    if words and words[0] in OTHERS:
        status: int = _module(words[0]).main(words[1:], prog=f"{prog} {words[0]}")
        return status
    current = [_current(word) for word in words] if words[:1] in (["sssp"], ["hops"]) else words
    return run_command(lambda: build_parser(current, prog), _run, current)


def _current(word: str) -> str:
    """Return a word of a command line, an old option by its new name, with a warning."""
    option, *value = word.split("=", 1)
    if option not in _RENAMED:
        return word
    new = _RENAMED[option]
    say(f"warning: {option} is deprecated, and goes with version 0.4; give {new}.")
    return "=".join([new, *value])


def _run(args: argparse.Namespace) -> int:
    args.run(args)
    return BAD_INPUT if args.command is None else 0


def build_parser(words: Sequence[str], prog: str) -> Parser:
    """Return the parser of a command line `words`; the subcommand sets `run`, the function to call
    with the arguments.

    Only a subcommand that is one of `words` has its arguments: the help that lists all of them
    imports none of their modules.
    """
    parser = Parser(
        prog=prog,
        description="All-pairs shortest paths: every distance of a weighted directed graph.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tri_apsp {__version__}")
    parser.set_defaults(run=lambda _: parser.print_help(sys.stderr))  # without a command
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in (COMMANDS | OTHERS).items():
        # Completion needs the options of tune, which parses them itself.
        separate = name in OTHERS and name in words
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary.capitalize()}.",
            parents=[_module(name).build_parser()] if separate else [],
            add_help=not separate,
        )
        if name in COMMANDS and name in words:
            module = import_module(f"tri_apsp.cli.{name}")
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser


def _module(name: str) -> ModuleType:
    """Return the module of a command line of its own."""
    return import_module(f"tri_apsp.{name}.__main__")
