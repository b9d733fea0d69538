"""The bytes that calls move by the GPU's own counters, which NVIDIA Nsight Compute (ncu) reads. No
clock is changed.

ncu starts report.counted_calls in a process of its own, and runs it again for each pass that the
counters take. That module solves once for each name, between cudaProfilerStart and
cudaProfilerStop, which ncu reports as one range each.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence

import torch

from tri_apsp.python_process import module_command
from tri_apsp.report.traffic import Traffic
from tri_apsp.tune.space.task import Task

__all__ = ["METRICS", "CountingTimeoutError", "NotCountedError", "counted_traffic", "parse"]

METRICS = ("lts__t_bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")
"""The counters: bytes of the L2 cache, bytes read from memory, bytes written to memory."""

_MODULE = "tri_apsp.report.counted_calls"
_LONGEST = 200  # characters of a reason


class NotCountedError(Exception):
    """The counters were not read; the text is the reason, as the end of a sentence."""


class CountingTimeoutError(NotCountedError):
    """There was not enough time to count; another call may take less."""


def counted_traffic(
    task: Task, names: Sequence[str], device: torch.device, seconds: float
) -> dict[str, Traffic]:
    """Return the bytes of a solve by each of `names`, on the graph of `task`.

    Raises:
        CountingTimeoutError: it takes longer than `seconds`.
        NotCountedError: there is no ncu here, or it failed, as where the driver keeps the counters
            from users.

    Cost: a process that imports torch and solves once by each name, for each pass of ncu.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise NotCountedError("ncu is not on the PATH")
    options = [
        "--clock-control",
        "none",
        "--cache-control",
        "none",
        "--replay-mode",
        "app-range",
        "--metrics",
        ",".join(METRICS),
    ]
    options += ["--csv", "--page", "raw", "--print-units", "base"]
    call = [*module_command(_MODULE), str(device), task.engine, str(task.n), task.dtype, *names]
    begin = time.monotonic()
    try:
        ended = _run([ncu, *options, *call], seconds)
    except subprocess.TimeoutExpired:
        raise CountingTimeoutError(f"ncu was not done within {seconds:.0f} s") from None
    except OSError as error:
        raise NotCountedError(f"ncu failed: {error}"[:_LONGEST]) from None
    ranges = [] if ended.returncode else parse(ended.stdout)
    if (
        0 < len(ranges) < len(names)
    ):  # an ncu that reports fewer ranges than there are gets one call at a time
        return {
            one: counted_traffic(task, [one], device, _left(begin + seconds))[one] for one in names
        }
    if len(ranges) != len(names):
        raise NotCountedError(_reason(ended, f"{len(ranges)} ranges for {len(names)} calls"))
    return dict(zip(names, ranges, strict=True))


def _left(end: float) -> float:
    """Return the seconds until `end`.

    Raises:
        CountingTimeoutError: there are none.
    """
    left = end - time.monotonic()
    if left <= 0:
        raise CountingTimeoutError("ncu was not done with all calls in time")
    return left


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run ncu in a session of its own, so that after a timeout or Ctrl-C the process that it
    started ends with it.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()  # after Ctrl-C the `with` does not
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def parse(output: str) -> list[Traffic]:
    """Return the bytes of each range in the standard output of ncu: messages, names of columns,
    units, and a line per range.

    Raises:
        NotCountedError: a counter is missing, is not in bytes, or is no number.
    """
    lines = [
        line for line in output.splitlines() if line.startswith('"')
    ]  # other lines are messages
    try:
        units, *ranges = [*csv.DictReader(io.StringIO("\n".join(lines)))] or [{}]
        counts = [
            [float((values[name] or "").replace(",", "")) for name in METRICS] for values in ranges
        ]
    except (KeyError, ValueError, csv.Error) as error:
        raise NotCountedError(f"ncu has not reported a counter: {error}") from None
    if counts and {units[name] for name in METRICS} != {"byte"}:
        raise NotCountedError(
            f"ncu has reported {', '.join(str(units[name]) for name in METRICS)} in place of bytes"
        )
    return [Traffic(l2, read + written) for l2, read, written in counts]


def _reason(ended: subprocess.CompletedProcess[str], otherwise: str) -> str:
    """Return why ncu failed: its first line of error, else the last line of the process, else
    `otherwise`.
    """
    lines = [
        line.strip() for line in (ended.stdout + "\n" + ended.stderr).splitlines() if line.strip()
    ]
    errors = [
        line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")
    ]
    reason = errors[0] if errors else lines[-1] if ended.returncode and lines else otherwise
    return f"ncu failed: {reason}"[:_LONGEST]
