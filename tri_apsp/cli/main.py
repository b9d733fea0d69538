"""Run one command line. This module imports nothing that imports torch, so that Ctrl-C is handled
before torch is imported.
"""

import sys

from tri_apsp.cli.parser import build_parser
from tri_apsp.console.exit_status import (
    BAD_INPUT,
    guarded,
    interruptible_imports,
    terminated_as_interrupted,
)
from tri_apsp.console.parser import program


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, by default the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does: with status 0 after --help and --version, and with 2 for
            arguments that it refuses.
    """
    return guarded(lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(words: list[str]) -> int:
    if words[:1] == ["tune"]:
        from tri_apsp.tune.__main__ import main as tune

        return tune(words[1:], prog=f"{program()} tune")
    if words[:1] == ["report"]:
        from tri_apsp.report.__main__ import main as report

        return report(words[1:], prog=f"{program()} report")
    with interruptible_imports():
        parser = build_parser(words)
    args = parser.parse_args(words)
    if args.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    with terminated_as_interrupted():
        args.run(args)
    return 0
