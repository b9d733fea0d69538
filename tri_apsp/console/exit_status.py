"""Exit statuses, and what turns an error into a sentence on stderr and a status: the guard of a
command, and the parser of its arguments.
"""

import argparse
import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tri_apsp.console.interrupts import INTERRUPTED as INTERRUPTED
from tri_apsp.console.interrupts import (
    interrupted,
    interruptible_imports,
    say,
    terminated_as_interrupted,
)
from tri_apsp.errors import ApspError, ApspWarning, InputError, RoundingWarning

FAILED, BAD_INPUT, BROKEN_PIPE = 1, 2, 141

# A disk that is full, a quota or a limit that is reached, or a disk that fails.
_CANNOT_WRITE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG, errno.EIO)


# The options of arguments that messages name as Python does: `limit`, `header=True`, method="auto".
_OPTIONS = {
    **{
        name: f"--{name}"
        for name in (
            *("sources", "targets", "method", "dtype", "device", "engine", "limit", "format"),
            *("out", "predecessors", "n", "p", "seed"),
            *("base", "vertices", "columns", "header", "matrix", "missing"),
            *("limits", "values", "costs", "turns"),
            *("memory", "checkpoint", "every", "page", "folder"),
        )
    },
    "k": "-k",
    "negative_cycles": "--negative-cycles",
    "weight_error": "--weight-error",
    "directed": "--undirected",
    "header=False": "--no-header",
    "matrix=False": "--no-matrix",
}


def in_options(message: str) -> str:
    """Return a message with the options of the command line in place of arguments in Python."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        name = f"{name}={value}" if f"{name}={value}" in _OPTIONS else name
        if name not in _OPTIONS:
            return found[0]
        return _OPTIONS[name] + (f" {value}" if value not in (None, "True", "False") else "")

    message = message.replace(
        "solve blocks of rows with distance_blocks", "write all rows with solve -o FILE.npy"
    )
    message = message.replace("`columns=''`", '--columns ""')
    value = r"""=["']?([\w,]+)["']?"""
    message = re.sub(rf"`(\w+)(?:{value})?`", option, message)
    return re.sub(rf"\b(\w+){value}", option, message)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports an error as one sentence and exits with BAD_INPUT. Options are
    written in full, and each that has a value is given once.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.register("action", None, _StoreOnce)  # of an argument that names no action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given: set[argparse.Action] = set()
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:  # argparse would hide a full disk
            print(message, end="", file=file)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"error: {message.rstrip('.')}; see {self.prog} --help.\n")


class _StoreOnce(argparse._StoreAction):
    def __call__(self, parser: Any, *values: Any) -> None:
        if self in parser.given:
            parser.error(
                f"{'/'.join(self.option_strings)} must be given once, with all its values, but is "
                "given again"
            )
        parser.given.add(self)
        super().__call__(parser, *values)


def guarded(run: Callable[[], int]) -> int:
    """Return the exit status of `run`; an error that it raises becomes one sentence on stderr and
    the status of its kind.

    Args:
        run: a command, which returns its exit status.

    Raises:
        SystemExit: as `run` does.
        Exception: any other error of `run`, which is a bug.
    """
    try:
        if sys.stdout is None:
            raise InputError(
                "the output must be written, but standard output is closed; redirect it to a file."
            )
        with _warnings_in_one_line():
            status = _flushed(lambda: _or_interrupt(run))
    except (ApspError, ApspWarning) as error:  # a warning, where python -W error asks for it
        say(f"error: {in_options(str(error))}")
        return BAD_INPUT if isinstance(error, (InputError, ApspWarning)) else FAILED
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        _discard_stdout()
        say(
            f"error: the output must be written, but it cannot be ({error.strerror}); free some "
            "space, or write it to another place."
        )
        return BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        if not _ran_out_of_memory(error):
            raise
        say(
            "error: the problem must fit the memory of its device, but an allocation failed; use "
            "a narrower dtype, a smaller graph, or a device with more memory."
        )
        return FAILED
    return status


def _or_interrupt(run: Callable[[], int]) -> int:
    """Return what `run` does; raise KeyboardInterrupt also where a library hid it behind an error
    of its own, as Optuna's lock does while it cleans up.
    """
    try:
        return run()
    except Exception as error:
        before: BaseException | None = error
        while before is not None:
            if isinstance(before, KeyboardInterrupt):
                raise before from None
            before = before.__context__
        raise


def run_command(
    build_parser: Callable[[], Parser],
    run: Callable[[argparse.Namespace], int],
    argv: list[str] | None,
) -> int:
    """Parse `argv`, by default the arguments of the process, run a command on them, and return the
    exit status, as `guarded` does.

    Args:
        build_parser: may import libraries.
        run: the command.
        argv: the arguments.

    Raises:
        SystemExit: as argparse does, after --help (0) and for arguments that it refuses (2).
    """

    def command() -> int:
        with interruptible_imports():
            parser = build_parser()
        args, unknown = parser.parse_known_args(argv)
        if unknown:
            parser.prog += f" {getattr(args, 'command', None) or ''}".rstrip()
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        with terminated_as_interrupted():
            return run(args)

    return guarded(command)


def _flushed(run: Callable[[], int]) -> int:
    """Return what `run` returns, once its output is written: a closed pipe or a full disk must
    raise here, not at exit.
    """
    try:
        return run()
    finally:  # argparse leaves by SystemExit after it has printed a help
        sys.stdout.flush()


def _discard_stdout() -> None:
    """Discard the rest of the buffer of stdout: Python flushes it once more at exit, which must not
    fail again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Print each warning of this package as one line without its source line; other warnings appear
    as they always do.

    Of the warnings of rounding only the first is printed, since another dtype helps against all of
    them.
    """
    show, rounded = warnings.showwarning, False

    def show_in_one_line(
        message: Warning | str, category: type[Warning], *rest: Any, **named: Any
    ) -> None:
        nonlocal rounded
        if issubclass(category, RoundingWarning) and rounded:
            return
        rounded = rounded or issubclass(category, RoundingWarning)
        if issubclass(category, ApspWarning):
            say(f"warning: {in_options(str(message))}")
        else:
            show(message, category, *rest, **named)

    with warnings.catch_warnings():
        warnings.showwarning = show_in_one_line
        yield


def _ran_out_of_memory(error: Exception) -> bool:
    # torch raises a RuntimeError on every device, and on the CPU has no class of its own for it.
    message = str(error)
    return (
        isinstance(error, MemoryError)
        or "out of memory" in message
        or "can't allocate memory" in message
    )
