"""Run one command line, and turn what goes wrong into one sentence and an exit status."""

from __future__ import annotations

import os
import sys

from tri_apsp.cli.parser import BAD_INPUT, BROKEN_PIPE, FAILED, INTERRUPTED, build_parser
from tri_apsp.errors import ApspError, InputError

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does, after --help and --version (0) and for arguments that it refuses (2).
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        parser = build_parser(arguments)
        args = parser.parse_args(arguments)
        if args.command is None:
            parser.print_help(sys.stderr)
            return BAD_INPUT
        args.run(args)
        sys.stdout.flush()  # here, where a reader that went away can still be caught
    except ApspError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, InputError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # What is left in the buffer must go somewhere when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (MemoryError, RuntimeError) as error:
        if not _ran_out_of_memory(error):
            raise
        print(
            "error: the problem must fit the memory of its device, but an allocation failed; use a narrower dtype, a smaller "
            "graph, or a device with more memory.",
            file=sys.stderr,
        )
        return FAILED
    return 0


def _ran_out_of_memory(error: Exception) -> bool:
    # torch raises a RuntimeError for this on every device, on the CPU without a class of its own.
    said = str(error)
    return isinstance(error, MemoryError) or "out of memory" in said or "can't allocate memory" in said
