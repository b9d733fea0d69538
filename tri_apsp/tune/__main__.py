"""python -m tri_apsp.tune"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator

from tri_apsp.console.exit_status import guarded
from tri_apsp.tune.options import build_parser
from tri_apsp.tune.workers import processes

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """
    args = build_parser().parse_args(argv)

    def run() -> int:
        if args.action in (None, "verify") and args.export is None and args.imported is None:  # others start no process
            processes.start_server()  # it imports torch while this process does
        from tri_apsp.tune.commands import run

        return run(args)

    with _terminated_as_interrupted():
        return guarded(run)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Make SIGTERM, which batch systems and `timeout` send, end the process as Ctrl-C does: the results so far are kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
