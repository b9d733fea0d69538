"""Signals that end a command while libraries are imported, and while it runs. This module imports
little, so that Ctrl-C is handled before anything else is imported.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer, main_thread

INTERRUPTED = 130


@contextmanager
def interruptible_imports() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM end the process at once, with the status of the signal, inside a
    `with` that imports libraries and does nothing else.

    Some libraries, such as NumPy, discard a KeyboardInterrupt that is raised while they are
    imported.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    usual = signal.default_int_handler, signal.SIG_DFL
    # Others are kept, such as ignored in a background job.
    before = {number: handler for number, handler in before.items() if handler in usual}
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    interrupted()
    os._exit(128 + number)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Make SIGTERM, which batch systems and `timeout` send, end the process as Ctrl-C does, inside
    a `with`.

    So results are kept, child processes end, and no part of an output is left. A KeyboardInterrupt
    that is raised where Python discards it, such as in a callback of Numba's compiler, is raised
    again soon.
    """
    before, hook = signal.signal(signal.SIGTERM, signal.default_int_handler), sys.unraisablehook

    def show(discarded: "sys.UnraisableHookArgs") -> None:
        if isinstance(discarded.exc_value, KeyboardInterrupt):
            Timer(0.05, _interrupt_main_thread).start()
        else:
            hook(discarded)

    sys.unraisablehook = show
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)


def _interrupt_main_thread() -> None:
    """Raise SIGINT in the main thread, so that a wait of it ends too, where the system can."""
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)


def interrupted() -> int:
    """Say that the command was interrupted, and return its exit status."""
    say("interrupted")
    return INTERRUPTED


def say(message: str) -> None:
    """Print a line on stderr; do nothing if that is closed or full, since the exit status tells the
    same.
    """
    if sys.stderr is not None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)
