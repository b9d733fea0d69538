"""The bytes that calls move by the GPU's own counters, which NVIDIA Nsight Compute (ncu) reads. No
clock is changed.

ncu starts report.counted_calls in a process of its own, and runs it again for each pass that the
counters take. That module solves once for each name, between cudaProfilerStart and
cudaProfilerStop, which ncu reports as one range each.
"""

from __future__ import annotations

import csv
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

__all__ = ["METRICS", "NotCountedError", "counted_traffic", "parse"]

METRICS = ("lts__t_bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")
"""The counters: bytes of the L2 cache, bytes read from memory, bytes written to memory."""

_OPTIONS = "--clock-control none --cache-control none --replay-mode app-range --csv --page raw"
_MODULE = "tri_apsp.report.counted_calls"
_LONGEST = 200  # characters of a reason


class NotCountedError(Exception):
    """The counters were not read; the text is the reason.

    Attributes:
        timed_out: whether there was not enough time.
    """

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason[:_LONGEST])
        self.timed_out = timed_out


def counted_traffic(
    task: Task, names: Sequence[str], device: torch.device, seconds: float
) -> dict[str, Traffic]:
    """Return the bytes of a solve by each of `names`, on the graph of `task`.

    Raises:
        NotCountedError: it takes longer than `seconds`, there is no ncu here, or it failed, as
            where the driver keeps the counters from users.

    Cost: a process that imports torch and solves once by each name, for each pass of ncu.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise NotCountedError("ncu is not on the PATH")
    options = [*_OPTIONS.split(), "--print-units", "base", "--metrics", ",".join(METRICS)]
    call = [*module_command(_MODULE), str(device), task.engine, str(task.n), task.dtype, *names]
    end = time.monotonic() + seconds
    output, failed = _run([ncu, *options, *call], seconds)
    ranges = [] if failed else parse(output)
    if 0 < len(ranges) < len(names):
        # An ncu that reports fewer ranges than there are gets one call at a time.
        return {
            one: counted_traffic(task, [one], device, end - time.monotonic())[one] for one in names
        }
    if len(ranges) != len(names):
        lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
        errors = [line for line in lines if line.startswith("==ERROR==")]
        raise NotCountedError(f"ncu failed: {[*errors, lines[-1]][0]}")
    return dict(zip(names, ranges, strict=True))


def _run(command: list[str], seconds: float) -> tuple[str, bool]:
    """Return the output of ncu and whether it failed. It runs in a session of its own, so that after
    a timeout or Ctrl-C the process that it started ends with it.
    """
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=max(0.0, seconds))
        except subprocess.TimeoutExpired:
            raise NotCountedError(f"ncu takes over {seconds:.0f} s", timed_out=True) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()  # after Ctrl-C the `with` does not
    return output, process.returncode != 0


def parse(output: str) -> list[Traffic]:
    """Return the bytes of each range in the output of ncu: messages, names of columns, units, and a
    line per range.

    Raises:
        NotCountedError: a counter is missing, is not in bytes, or is no number.
    """
    table = (line for line in output.splitlines() if line.startswith('"'))
    try:
        units, *ranges = [*csv.DictReader(table)] or [{}]
        counts = [[float(values[name].replace(",", "")) for name in METRICS] for values in ranges]
        if counts and {units[name] for name in METRICS} != {"byte"}:
            raise ValueError(f"units are {', '.join(units[name] for name in METRICS)}")
    except (AttributeError, KeyError, ValueError, csv.Error) as error:
        raise NotCountedError(f"ncu has not reported a counter: {error}") from None
    return [Traffic(l2, read + written) for l2, read, written in counts]
