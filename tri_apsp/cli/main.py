"""Run one command line, and turn what goes wrong into one sentence and an exit status."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tri_apsp.cli.parser import BAD_INPUT, BROKEN_PIPE, FAILED, INTERRUPTED, build_parser
from tri_apsp.errors import ApspError, InputError, TuningWarning

__all__ = ["guarded", "main"]


def main(argv: list[str] | None = None) -> int:
    """Run `argv`, or the arguments of the process, and return the exit status.

    Raises:
        SystemExit: as argparse does, after --help and --version (0) and for arguments that it refuses (2).
    """
    arguments = sys.argv[1:] if argv is None else argv

    def run() -> int:
        parser = build_parser(arguments)
        args = parser.parse_args(arguments)
        if args.command is None:
            parser.print_help(sys.stderr)
            return BAD_INPUT
        args.run(args)
        return 0

    return guarded(run)


def guarded(run: Callable[[], int]) -> int:
    """Return the exit status that `run` returns, or that of what went wrong in it, which becomes one sentence on stderr."""
    try:
        with _warnings_in_one_line():
            status = run()
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
    return status


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print our own warnings like errors, without the line of code that is behind them; leave others as they are."""
    show = warnings.showwarning

    def show_ours(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, TuningWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            show(message, category, *rest, **named)

    with warnings.catch_warnings():
        warnings.showwarning = show_ours
        yield


def _ran_out_of_memory(error: Exception) -> bool:
    # torch raises a RuntimeError for this on every device, on the CPU without a class of its own.
    said = str(error)
    return isinstance(error, MemoryError) or "out of memory" in said or "can't allocate memory" in said
