"""python -m tri_apsp.tune"""

import argparse
import sys

from tri_apsp.console.exit_status import Parser, run_command
from tri_apsp.console.interrupts import interruptible_imports


def build_parser(prog: str = "python -m tri_apsp.tune") -> Parser:
    """Return the parser; `prog` is the command that was typed."""
    from tri_apsp.tune import options  # imports torch

    return options.build_parser(prog)


def main(argv: list[str] | None = None, *, prog: str = "python -m tri_apsp.tune") -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    `prog`: the command name shown in help and errors.

    Raises:
        SystemExit: as run_command.
    """
    return run_command(lambda: build_parser(prog), _run, argv)


def _run(args: argparse.Namespace) -> int:
    with interruptible_imports():
        from tri_apsp.tune.commands import run
    return run(args)


if __name__ == "__main__":
    sys.exit(main())
