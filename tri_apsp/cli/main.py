"""Run one command line."""

from __future__ import annotations

import sys

from tri_apsp.cli.parser import build_parser
from tri_apsp.console.exit_status import BAD_INPUT, guarded

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, by default the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does: with status 0 after --help and --version, and with 2 for arguments that it refuses.
    """

    def run() -> int:
        parser = build_parser()
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help(sys.stderr)
            return BAD_INPUT
        args.run(args)
        return 0

    return guarded(run)
