"""The configuration of a solve or product, and what happens if nothing was tuned for it:
TRI_APSP_TUNE decides. With "auto", the first such call runs the tuner, in a process of its own.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

import platformdirs

from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.messages import warn_caller
from tri_apsp.python_process import module_command
from tri_apsp.tuned.lookup import LookupCall, look_up, policy
from tri_apsp.tuned.store import files, reload, usable

SECONDS = 20.0
"""The longest time that a call may wait, for the tuner and for other processes that tune."""

# Seconds of a tuner's run before its search begins and after it has ended.
_OVERHEAD = 7.0
# Seconds before the end at which a tuner is told to stop; it keeps the results so far.
_STOP = 3.0

_REQUIRED_FROM = 128
_WARNED_FROM = 512

WARNED: set[str] = set()
"""The topics on which this process has decided whether to warn."""


# Tasks that were tried in this process, which are not tried again.
_tried: set[str] = set()


def config_for_call(call: LookupCall, given: Config | None = None) -> CompleteConfig:
    """Return the configuration that a call runs with: that of `find`, except on a miss with
    "require" or "auto". Issue each warning once per process, at the line of the caller outside this
    package.

    With TRI_APSP_TUNE=require, a miss is an error. With "auto", the tuner runs first, in its own
    process, for at most 20 s. Both apply to calls of at least as many operations as one graph of
    128 vertices. Entries of other GPUs do not count.

    Args:
        call: the call.
        given: the fields that the caller sets.

    Raises:
        InputError: as `find`, or nothing was tuned for the call with "require".

    Cost: as for `find`.
    """
    found = look_up(call, given)
    for topic, message in found.problems.items():
        _warn_once(topic, message)
    operations = call.batch * call.n**3
    # Triton's interpreter is slow with any tiles.
    is_interpreted = call.engine != "cpu" and call.torch_device.type == "cpu"
    if not found.is_miss or operations < _REQUIRED_FROM**3 or is_interpreted:
        return found.config
    wanted = policy()
    if wanted == "require":
        raise InputError(
            "TRI_APSP_TUNE=require requires a tuned configuration, but there is none for "
            f"{call.dtype} near n = {call.n} on the {call.engine} engine; "
            f"tune it with {call.command()}, or unset the variable."
        )
    if wanted == "auto":
        failure = _tune(call, lambda: look_up(call, given).is_miss)
        if failure is not None:
            _warn_once(
                f"automatic {call.engine} {call.dtype} {call.kind}",
                f"the tuner found nothing for {call.dtype}, n = {call.n}: {failure}; "
                f"to tune: {call.command()}",
            )
        return look_up(call, given).config
    topic = f"miss {call.engine}"
    # A call of fewer operations takes less than milliseconds with any configuration.
    may_gain = operations >= _WARNED_FROM**3 and call.engine != "cpu"
    if wanted == "warn" and may_gain and found.config.source == "default" and topic not in WARNED:
        message = f"nothing was tuned for {call.dtype}, n = {call.n}; to tune: {call.command()}"
        if _is_covered(call):
            WARNED.add(topic)
        else:
            _warn_once(topic, message)
    return found.config


def _is_covered(call: LookupCall) -> bool:
    """Return whether lookups on this device use a file of the engine, for whatever size.

    The measured gains over the defaults are 1.02 in the geometric mean and at most 1.4 on an H200,
    from which the defaults come. On a GPU of another architecture other configurations may be
    faster.
    """
    return any(
        usable(path, call.device)[0] is not None for path in files(f"*/{call.engine}-*.json")
    )


def _warn_once(topic: str, message: str) -> None:
    if topic not in WARNED:
        WARNED.add(topic)
        warn_caller(message, TuningWarning)


def _tune(call: LookupCall, is_missing: Callable[[], bool]) -> str | None:
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
        start_new_session=True,  # so that killing its group ends its workers too
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
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
