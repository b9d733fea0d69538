"""python -m tri_apsp.tune"""

from __future__ import annotations

import sys

from tri_apsp.cli.main import guarded
from tri_apsp.tune import processes
from tri_apsp.tune.options import build_parser

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """
    args = build_parser().parse_args(argv)

    def run() -> int:
        if not (args.dry_run or args.list or args.show):  # which start no process
            processes.begin()  # beside the imports of this process, which take as long
        from tri_apsp.tune.commands import run

        return run(args)

    return guarded(run)


if __name__ == "__main__":
    sys.exit(main())
