"""python -m tri_apsp completion"""

import argparse
from pathlib import Path

import shtab


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Print a script that completes the commands and options of tri-apsp. For bash, write it to "
        "~/.local/share/bash-completion/completions/tri-apsp once."
    )
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    from tri_apsp.cli.main import COMMANDS, OTHERS, build_parser

    parser = build_parser([*COMMANDS, *OTHERS], "tri-apsp")
    _complete_files(parser)
    print(shtab.complete(parser, args.shell))


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Let every argument that is a path be completed by file names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command)
        elif action.type is Path or action.dest in ("graph", "out"):
            only = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE
            action.complete = only  # type: ignore[attr-defined]
