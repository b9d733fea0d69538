"""The bytes that calls move by the GPU's own counters, which NVIDIA Nsight Compute (ncu) reads. No
clock is changed.

ncu starts this module in a process of its own, and runs it again for each pass that the counters
take: python -m reports.studies.counters DEVICE ENGINE N DTYPE METHOD ... Each method solves a small
graph, so that its kernels are loaded, and then a graph of N vertices between cudaProfilerStart and
cudaProfilerStop, which ncu reports as one range.
"""

import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

import torch

from tri_apsp.api import direct_products
from tri_apsp.bench.cases import Case
from tri_apsp.bench.measure import solve_by
from tri_apsp.configs import Config
from tri_apsp.device import synchronize
from tri_apsp.errors import EngineError
from tri_apsp.python_process import module_command
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.tasks import TuningTask

METRICS = ("lts__t_bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum")
"""The counters: bytes of the L2 cache, bytes read from memory, bytes written to memory."""

_OPTIONS = "--clock-control none --cache-control none --replay-mode app-range --csv --page raw"
_LONGEST = 200  # characters of a reason
_SMALL = 2048  # enough vertices that every kernel of a large graph runs


Traffic = dict[str, float]
"""The bytes of a call between multiprocessors and the L2 cache ("l2_bytes"), and from and to memory
("dram_bytes").
"""


def counted_traffic(
    task: TuningTask, names: Sequence[str], device: torch.device, seconds: float
) -> dict[str, Traffic]:
    """Return the bytes of a solve by each of `names`, on the graph of `task`.

    Raises:
        EngineError: there is no ncu here, it takes longer than `seconds`, or it failed, as where
            the driver keeps the counters from users.

    Cost: a process that imports torch and solves once by each name, for each pass of ncu.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise EngineError("the bytes of a call are counted by ncu, which is not on the PATH.")
    options = [*_OPTIONS.split(), "--print-units", "base", "--metrics", ",".join(METRICS)]
    call = [str(device), task.engine, str(task.n), task.dtype, *names]
    output = _run([ncu, *options, *module_command(__spec__.name), *call], seconds)
    ranges = parse(output)
    if len(ranges) != len(names):
        lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
        errors = [line for line in lines if line.startswith("==ERROR==")]
        raise EngineError(f"ncu failed: {[*errors, lines[-1]][0]}"[:_LONGEST])
    return dict(zip(names, ranges, strict=True))


def _run(command: list[str], seconds: float) -> str:
    """Return the output of ncu, which runs in a session of its own, so that after a timeout or
    Ctrl-C the process that it started ends with it.
    """
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(
        command, stdout=pipe, stderr=both, text=True, start_new_session=True
    ) as process:
        try:
            return process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            raise EngineError(
                f"ncu takes longer than the {seconds:.0f} s that are left; give a larger --budget."
            ) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()  # after Ctrl-C the `with` does not


def parse(output: str) -> list[Traffic]:
    """Return the bytes of each range in the output of ncu: messages, names of columns, units, and a
    line per range.

    Raises:
        EngineError: a counter is missing, is not in bytes, or is no number.
    """
    table = (line for line in output.splitlines() if line.startswith('"'))
    try:
        units, *ranges = [*csv.DictReader(table)] or [{}]
        counts = [[float(values[name].replace(",", "")) for name in METRICS] for values in ranges]
        if counts and {units[name] for name in METRICS} != {"byte"}:
            raise ValueError(f"units are {', '.join(units[name] for name in METRICS)}")
    except (AttributeError, KeyError, ValueError, csv.Error) as error:
        raise EngineError(f"ncu has not reported a counter: {error}") from None
    return [{"l2_bytes": l2, "dram_bytes": read + written} for l2, read, written in counts]


def main(argv: Sequence[str]) -> None:
    """Solve by each method of `argv`, on the same graphs as `bench`."""
    name, engine, n, dtype, *methods = argv
    device, config = torch.device(name), Config(engine=engine)
    small, large = (
        Case(size, DTYPES_BY_NAME[dtype]).weights(device) for size in (min(_SMALL, int(n)), int(n))
    )
    with direct_products():
        for method in methods:
            solve_by(method, small, config)
            synchronize(device)
            with torch.cuda.profiler.profile():
                solve_by(method, large, config)
                synchronize(device)


if __name__ == "__main__":
    main(sys.argv[1:])
