"""What users wait for besides kernels: first calls in new processes with empty caches of compilers,
and the host's time of small calls in units of torch's.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from tri_apsp.api import prepare, select, shortest_paths
from tri_apsp.bench.first_call import FIRST_CALLS, OF_NETWORKX
from tri_apsp.cache_folder import VARIABLE
from tri_apsp.device import installed_version, synchronize
from tri_apsp.errors import EngineError
from tri_apsp.graphs.generators import roads
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.python_process import module_command

_FIRST = "{:24}  {:>8}  {:>9}  {:>9}  {:>7}"
_SMALL = "{:32}  {:>8}  {:>10}  {:>6}"
FIRST_TITLES = _FIRST.format("first call", "seconds", "process s", "functions", "kernels")
SMALL_TITLES = _SMALL.format("call", "us", "kernels us", "units")
"""The titles of the tables that `bench --latency` prints."""

# Calls of one figure: in rounds, of which the least median counts, since other work on the machine
# only adds to it.
_ROUNDS, _CALLS = 20, 50
_ROADS = 20_000


@dataclass(frozen=True)
class FirstCall:
    """The first call of a process whose caches of compilers are empty.

    Attributes:
        name: of FIRST_CALLS or OF_NETWORKX.
        seconds: of the call, after the imports and, on a GPU, torch's first operation there.
        process_seconds: of the whole process.
        functions: that Numba compiled.
        kernels: that Triton compiled.
    """

    name: str
    seconds: float
    process_seconds: float
    functions: int
    kernels: int


@dataclass(frozen=True)
class SmallCall:
    """The time of a small call.

    Attributes:
        name: what is solved, and how.
        microseconds: from the call until the device is done.
        kernel_microseconds: of it, that of the kernels on a GPU; None on a CPU.
        units: the rest, on a CPU all, in units of torch's addition of 1 to four numbers until the
            device is done.
    """

    name: str
    microseconds: float
    kernel_microseconds: float | None
    units: float


def first_line(call: FirstCall) -> str:
    """Return a line of the table of first calls."""
    seconds = f"{call.seconds:.2f}", f"{call.process_seconds:.1f}"
    return _FIRST.format(call.name, *seconds, call.functions, call.kernels)


def small_line(call: SmallCall) -> str:
    """Return a line of the table of small calls."""
    figures = call.microseconds, call.kernel_microseconds, call.units
    shown = ("" if figure is None else f"{figure:.1f}" for figure in figures)
    return _SMALL.format(call.name, *shown)


def first_calls(device: torch.device) -> Iterator[FirstCall]:
    """Yield the figures of each first call, in a process of its own.

    Raises:
        EngineError: such a process fails.
    """
    has_networkx = installed_version("networkx") is not None
    for name in (*FIRST_CALLS, *(OF_NETWORKX if has_networkx else ())):
        with tempfile.TemporaryDirectory() as folder:
            caches = {"NUMBA_CACHE_DIR": f"{folder}/numba", "TRITON_CACHE_DIR": f"{folder}/triton"}
            others = {key: value for key, value in os.environ.items() if key != VARIABLE}
            began = perf_counter()
            ended = subprocess.run(
                [*module_command("tri_apsp.bench.first_call"), name, str(device)],
                env=others | caches,
                stdout=subprocess.PIPE,
                text=True,
            )
            whole = perf_counter() - began
            if ended.returncode:
                raise EngineError(
                    f"the first call of {name} must run to its end, but ended with exit status "
                    f"{ended.returncode}; see what it printed above."
                )
            kernels = sum(1 for _ in Path(folder, "triton").rglob("*.cubin"))
        found = json.loads(ended.stdout)
        yield FirstCall(name, found["seconds"], whole, len(found["functions"]), kernels)


def small_calls(device: torch.device) -> Iterator[SmallCall]:
    """Yield the figures of torch's addition, and of small calls."""
    numbers = torch.ones(4, device=device)
    unit = _microseconds(lambda: numbers + 1, device)
    yield SmallCall("torch: 4 numbers + 1", unit, _kernels(lambda: numbers + 1, device), 1.0)
    for name, call in _calls(device):
        call()
        kernels = _kernels(call, device)
        total = _microseconds(call, device)
        yield SmallCall(name, total, kernels, (total - (kernels or 0)) / unit)


def _calls(device: torch.device) -> Iterator[tuple[str, Callable[[], object]]]:
    shapes = {"n = 8": (8, 8), "n = 64": (64, 64), "n = 256": (256, 256), "4096 of 8": (4096, 8, 8)}
    for name, shape in shapes.items():
        weights = torch.rand(shape, device=device)
        for check in (True, False):
            kind = name if check else f"{name}, check=False"
            plan = select(weights, check=check)
            yield kind, partial(shortest_paths, weights, check=check)
            yield f"{kind}, plan.run", partial(plan.run, weights)
    weights, batch = torch.rand(64, 64, device=device), torch.rand(16, 64, 64, device=device)
    sizes = torch.full((16,), 60, device=device)
    yield "n = 64, predecessors", partial(shortest_paths, weights, predecessors=True)
    yield "16 of 64, sizes", partial(shortest_paths, batch, sizes=sizes)
    graph = prepare(sparse_graph(roads(_ROADS, seed=0), dtype=torch.float32, device=device))
    yield f"one row of {_ROADS} crossings", partial(shortest_paths, graph, sources=5)


def _microseconds(call: Callable[[], object], device: torch.device) -> float:
    """Return the time of a call until the device is done."""
    found = []
    for _ in range(_ROUNDS):
        times = []
        for _ in range(_CALLS):
            began = perf_counter()
            call()
            synchronize(device)
            times.append(perf_counter() - began)
        found.append(median(times))
    return 1e6 * min(found)


def _kernels(call: Callable[[], object], device: torch.device) -> float | None:
    """Return the time of the kernels and copies of a call on a GPU."""
    if device.type == "cpu":
        return None
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(_CALLS):
            call()
        synchronize(device)
    total: float = sum(event.self_device_time_total for event in profile.key_averages())
    return total / _CALLS
