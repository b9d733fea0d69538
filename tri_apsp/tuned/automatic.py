"""TRI_APSP_TUNE=auto: the first call for which nothing was tuned runs the tuner, in a process of
its own.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

import platformdirs

from tri_apsp.python_process import module_command
from tri_apsp.tuned.lookup import LookupCall
from tri_apsp.tuned.store import reload

SECONDS = 20.0
"""The longest time that a call may wait, for the tuner and for other processes that tune."""

# Seconds of a tuner's run before its search begins and after it has ended.
_OVERHEAD = 7.0
# Seconds before the end at which a tuner is told to stop; it keeps the results so far.
_STOP = 3.0

# Tasks that were tried in this process, which are not tried again.
_tried: set[str] = set()


def tune(call: LookupCall, is_missing: Callable[[], bool]) -> str | None:
    """Run the tuner for a call for which nothing was tuned, so that later lookups find what it
    writes; return why nothing was found, or None.

    Processes of this user that miss something on GPUs of one model, such as the ranks of a
    distributed program, tune one after the other: measurements at the same time would falsify each
    other, and the first process usually tunes what the others lack too.

    Args:
        call: the call.
        is_missing: returns whether the call still has no tuned entry; another process may have
            written one.
    """
    import filelock

    # A power of two stands for all sizes near it, so that a failure costs a program that solves
    # many sizes its 20 s once.
    task = f"{call.device.slug}-{call.engine}-{call.dtype}-{call.kind}-{1 << call.n.bit_length()}"
    if task in _tried:
        return None
    _tried.add(task)
    end = time.monotonic() + SECONDS
    folder = platformdirs.user_cache_path("tri_apsp", appauthor=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / f"tuner-{call.device.slug}.lock", timeout=SECONDS):
            reload()
            failure = _run(call, end) if is_missing() else None
            reload()
    except filelock.Timeout:
        failure = f"other processes tuned for {SECONDS:g} s"
    except OSError as error:
        failure = f"it could not be started ({error.strerror})"
    return failure if is_missing() else None


def _run(call: LookupCall, end: float) -> str:
    """Run the tuner until `end`, a time of the monotonic clock, and return why it may have found
    nothing.
    """
    seconds = end - time.monotonic() - _OVERHEAD
    if seconds <= 0:
        return "other processes left it no time"
    options = ["--kernel", *call.kernels_to_tune(), "--time-budget", f"{seconds:.1f}"]
    process = subprocess.Popen(
        [*module_command("tri_apsp.tune"), *call.tuner_arguments(), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # which may be the output of a program; progress goes to stderr
        env={**os.environ, "TRI_APSP_TUNE": "off"},
        start_new_session=True,  # so that _kill ends its workers too
    )
    try:
        status = process.wait(max(0.0, end - _STOP - time.monotonic()))
        return f"it ended with status {status}"
    except subprocess.TimeoutExpired:
        process.terminate()  # which the tuner takes as Ctrl-C
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))
        return f"it was not done after {SECONDS - _STOP:g} s"
    finally:
        if process.poll() is None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
