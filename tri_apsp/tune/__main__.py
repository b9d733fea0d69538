"""python -m tri_apsp.tune"""

import sys

from tri_apsp.console.exit_status import guarded, interruptible_imports, terminated_as_interrupted


def main(argv: list[str] | None = None, *, prog: str = "python -m tri_apsp.tune") -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    `prog`: the command name shown in help and errors.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """

    def run() -> int:
        with interruptible_imports():  # the options import torch
            from tri_apsp.tune.options import build_parser
        args = build_parser(prog).parse_args(argv)
        with interruptible_imports():
            from tri_apsp.tune.commands import run
        with terminated_as_interrupted():
            return run(args)

    return guarded(run)


if __name__ == "__main__":
    sys.exit(main())
