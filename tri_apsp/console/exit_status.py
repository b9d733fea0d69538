"""Exit statuses, and the guard that turns an error into one sentence on stderr and an exit status."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tri_apsp.errors import ApspError, InputError, TuningWarning

__all__ = ["BAD_INPUT", "BROKEN_PIPE", "FAILED", "INTERRUPTED", "guarded"]

FAILED, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141


def guarded(run: Callable[[], int]) -> int:
    """Return the exit status of `run`; an error that it raises becomes one sentence on stderr and the status of its kind.

    Args:
        run: a command, which returns its exit status.

    Raises:
        Exception: any other error of `run`, which is a bug.
    """
    try:
        with _tuning_warnings_in_one_line():
            status = run()
        sys.stdout.flush()  # a closed pipe must raise here, where it is caught
    except ApspError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, InputError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more when it exits, which must not fail again.
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
def _tuning_warnings_in_one_line() -> Iterator[None]:
    """Print each TuningWarning as one line without its source line; other warnings appear as they always do."""
    show = warnings.showwarning

    def show_in_one_line(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, TuningWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            show(message, category, *rest, **named)

    with warnings.catch_warnings():
        warnings.showwarning = show_in_one_line
        yield


def _ran_out_of_memory(error: Exception) -> bool:
    # torch raises a RuntimeError on every device, and on the CPU has no class of its own for it.
    message = str(error)
    return isinstance(error, MemoryError) or "out of memory" in message or "can't allocate memory" in message
