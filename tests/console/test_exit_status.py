"""guarded(): which error becomes which exit status, and what it prints."""

import ctypes
import re
import signal
import sys
import time
import warnings

import pytest
import torch

from tri_apsp.console.exit_status import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    Parser,
    guarded,
    run_command,
)
from tri_apsp.errors import ApspWarning, InputError, TooLargeError, TuningWarning


def outcome(capsys, error):
    """Return the exit status for a command that raises `error`, and its stderr; stdout must stay
    empty.
    """

    def fail():
        raise error

    status = guarded(fail)
    out, err = capsys.readouterr()
    assert out == ""
    return status, err


@pytest.mark.parametrize("status", [0, 5])
def test_the_status_of_a_command(status):
    assert guarded(lambda: status) == status


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InputError("a must be b; do c."), BAD_INPUT, "error: a must be b; do c.\n"),
        (TooLargeError("a must be b; do c."), FAILED, "error: a must be b; do c.\n"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted\n"),
    ],
)
def test_expected_errors(capsys, error, status, message):
    assert outcome(capsys, error) == (status, message)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
    ],
)
def test_memory(capsys, error):
    status, message = outcome(capsys, error)
    assert status == FAILED
    assert re.fullmatch(r"error: [^\n]*memory[^\n]*\.\n", message)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), ZeroDivisionError(), AssertionError()])
def test_a_bug_is_not_caught(capsys, error):
    with pytest.raises(type(error)):
        outcome(capsys, error)


@pytest.mark.filterwarnings("default::tri_apsp.TuningWarning")
def test_a_tuning_warning_is_one_line(capsys):
    show = warnings.showwarning

    def warn():
        warnings.warn(TuningWarning("nothing was tuned."), stacklevel=1)
        return 0

    assert guarded(warn) == 0
    assert capsys.readouterr().err == "warning: nothing was tuned.\n"
    assert warnings.showwarning is show


def test_other_warnings_appear_as_always():
    def warn():
        warnings.warn("something", DeprecationWarning, stacklevel=1)
        return 0

    with pytest.warns(DeprecationWarning, match="something"):
        guarded(warn)


def test_a_warning_as_an_error(capsys):
    assert outcome(capsys, ApspWarning("something")) == (BAD_INPUT, "error: something\n")


def test_an_interrupt_that_python_discards(capsys):
    """An exception cannot leave a callback of C."""
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))

    def run(_):
        callback()
        time.sleep(10)
        return 0

    begun = time.monotonic()
    assert run_command(lambda: Parser(prog="p"), run, []) == INTERRUPTED
    assert sys.platform == "win32" or time.monotonic() - begun < 5
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupt_that_a_library_hid(capsys):
    hidden = OSError("while it cleaned up")
    hidden.__context__ = KeyboardInterrupt()
    assert outcome(capsys, hidden) == (INTERRUPTED, "interrupted\n")
