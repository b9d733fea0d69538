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
from tri_apsp.tuned.call import LookupCall
from tri_apsp.tuned.delayed_warnings import collect
from tri_apsp.tuned.hashes import kernel_hash
from tri_apsp.tuned.store import reload

SECONDS = 20.0
"""The longest time that a call may wait, for the tuner and for other processes that tune."""

# Seconds of a tuner's run before its search begins and after it has ended.
_OVERHEAD = 7.0
# Seconds before the end at which a tuner is told to stop; it keeps the results so far.
_STOP = 3.0

# Tasks that failed in this process, which are not tried again.
_failed: set[str] = set()


def tune(call: LookupCall, is_missing: Callable[[], bool]) -> None:
    """Run the tuner for a call for which nothing was tuned, so that later lookups find what it
    writes.

    Processes of this user that miss something on GPUs of one model, such as the ranks of a
    distributed program, tune one after the other: measurements at the same time would falsify each
    other, and the first process usually tunes what the others lack too. A failure is collected as a
    warning, and not tried again, neither by this process nor by later ones.

    Args:
        call: the call.
        is_missing: returns whether the call still has no tuned entry; another process may have
            written one.
    """
    import filelock

    # A power of two stands for all sizes near it, so that a failure costs a program that solves
    # many sizes its 20 s once.
    task = f"{call.device.slug}-{call.engine}-{call.dtype}-{call.kind}-{1 << call.n.bit_length()}"
    if task in _failed or os.environ.get("TRI_APSP_TUNED_FOR"):
        return  # lookups would not use what the tuner writes
    end = time.monotonic() + SECONDS
    folder = platformdirs.user_cache_path("tri_apsp", appauthor=False)
    kernels = "-".join(kernel_hash(call.engine, kernel)[:8] for kernel in call.kernels_to_tune())
    # For later processes, until the kernels change.
    failed_before = folder / f"{task}-{kernels}.failed"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / f"tuner-{call.device.slug}.lock", timeout=SECONDS):
            reload()
            if task in _failed or not is_missing():
                return
            failure = "it was tried before"
            if not failed_before.exists():
                failure = _run(call, end)
                reload()
                if is_missing():
                    failed_before.touch()
    except filelock.Timeout:
        failure = f"other processes tuned for {SECONDS:g} s"
    except OSError as error:
        failure = f"it could not be started ({error.strerror})"
    reload()
    if is_missing():
        _failed.add(task)
        collect(
            f"automatic {task}",
            f"the tuner found nothing for {call.dtype}, n = {call.n}: {failure}; "
            f"to tune: {call.command()}",
        )


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
