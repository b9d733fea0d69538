"""The ranks that the study of scaling measures: processes of torch.distributed on this machine,
each with a GPU, or with one thread of the CPU. The first few of them form a group that solves one
problem.
"""

import enum
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection, wait
from statistics import median
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from scipy.sparse.csgraph import dijkstra
from torch._C._distributed_c10d import TCPStore
from tqdm import tqdm

from reports.studies.calls import scipy_matrix
from tri_apsp.api import direct_products, prepare
from tri_apsp.device import cpu_count, current, synchronize
from tri_apsp.distributed.layout import even_counts
from tri_apsp.distributed.measurement import STRIPS, measure_host, measure_rates
from tri_apsp.distributed.plan import BlockRowPlan
from tri_apsp.distributed.process_group import ProcessGroup
from tri_apsp.distributed.rows import TensorRows
from tri_apsp.distributed.run import solve_rows
from tri_apsp.distributed.sparse_rows import closeness
from tri_apsp.errors import EngineError
from tri_apsp.graphs.generators import roads
from tri_apsp.ranks.communicator import Wait
from tri_apsp.request import Request
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.workloads import WrongResultError

T = TypeVar("T")

RATES = ("product", "closure", "copy", "host", "broadcast", "latency")
"""The fields of Rates that are measured beside each solve."""

STREAMED_SHARE = 0.25
"""The share of a matrix on the host that each device may take while rows are streamed."""

# Seconds of a measurement, after which the ranks count as stuck.
_LIMIT_SECONDS = 900.0
# Timed runs after a first, which compiles kernels; none begins once all took _RUNS_SECONDS. A first
# run of more than _LONG_SECONDS is the only one, since compilation is a small part of it.
_RUNS, _RUNS_SECONDS, _LONG_SECONDS = 3, 2.0, 60.0
# Rates are measured this often.
_TIMINGS = 5
# The longest distance, and the factor by which the vertices of a path are scattered: a prime.
_LONGEST, _SCATTER = 4096, 1_000_003
# Values that are made or checked at a time.
_VALUES = 1 << 24


class ProblemKind(enum.Enum):
    """What ranks compute together."""

    DIRECT = enum.auto()
    """Solve a complete graph by direct products."""

    EXPONENTS = enum.auto()
    """Solve a complete graph of random weights from 1 to 4, with products by exponents."""

    STREAMED = enum.auto()
    """Solve a complete graph on the host; each device may take STREAMED_SHARE of it."""

    CLOSENESS = enum.auto()
    """Compute the closeness of the vertices of a road network."""


class Problem(NamedTuple):
    """A graph, and what is computed.

    Attributes:
        n: vertices.
        dtype: of the weights.
        ranks: processes.
        kind: what they compute.
    """

    n: int
    dtype: str
    ranks: int
    kind: ProblemKind = ProblemKind.DIRECT


Measured = tuple[list[float], dict[str, float]]
"""The seconds of each run, until the last rank is done; and other metrics of a solve: "block", the
vertices of a pivot block; "waiting", the largest share of the last run in which a rank waited for
rows of others; and those of RATES that are known.
"""


class RankProcesses:
    """Processes that wait for problems.

    Args:
        counts: of the ranks of each group; as many processes are started as the largest has.
        kind: of their devices, "cpu" or "cuda".
    """

    def __init__(self, counts: Sequence[int], kind: str) -> None:
        # The store is in this process, so that no port must be guessed.
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        context = mp.get_context("spawn")
        self._processes, self._pipes = [], list[Connection]()
        for rank in range(max(counts)):
            pipe, child_end = context.Pipe()
            arguments = rank, tuple(counts), kind, self._store.port, child_end
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            child_end.close()
            self._processes.append(process)
            self._pipes.append(pipe)

    def measure(self, problem: Problem) -> Measured:
        """Return what rank 0 measures, while all ranks of a problem solve it. After an error the
        processes must be closed: ranks may wait for each other.

        Raises:
            WrongResultError: distances are wrong.
            EngineError: a rank ended or is stuck.
            The first error of a rank.
        """
        pipes, found = self._pipes[: problem.ranks], dict[Connection, Any]()
        failed = list[Exception]()
        try:
            for pipe in pipes:
                pipe.send(problem)
            while left := [pipe for pipe in pipes if pipe not in found]:
                ready = wait(left, _LIMIT_SECONDS)
                if not ready:
                    raise EOFError
                for pipe in left:
                    if pipe in ready:
                        found[pipe] = pipe.recv()
                if failed := [each for each in found.values() if isinstance(each, Exception)]:
                    break  # the others may wait for it
        except (EOFError, OSError):
            raise EngineError(
                "the ranks of a solve must last until it is done, but one ended or is stuck; "
                "repeat the command."
            ) from None
        if failed:
            raise failed[0]
        measured: Measured = found[pipes[0]]
        return measured

    def close(self) -> None:
        """End the processes, which have nothing to save."""
        for process in self._processes:
            process.kill()
        for process, pipe in zip(self._processes, self._pipes, strict=True):
            process.join()
            pipe.close()


def _serve(rank: int, counts: Sequence[int], kind: str, port: int, pipe: Connection) -> None:
    """Join the group of all ranks, and measure problems until the other end of the pipe closes."""
    # Ctrl-C reaches the whole process group; the command decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Multicast of NVLink can put the GPUs of a host that others share out of service.
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    # The default lock, of several processes, would be left behind by this one, which is killed.
    tqdm.set_lock(threading.RLock())
    device = torch.device(kind) if kind == "cpu" else torch.device(kind, rank)
    store = TCPStore("127.0.0.1", port, is_master=False)
    with current(device):
        backend = "gloo" if kind == "cpu" else "nccl"
        dist.init_process_group(backend, store=store, rank=rank, world_size=max(counts))
        groups = {count: dist.new_group(list(range(count))) for count in counts}
        while True:
            try:
                problem = pipe.recv()
            except (EOFError, OSError):
                return
            result: Measured | Exception
            try:
                result = _Rank(groups[problem.ranks], device, problem).measure()
            except Exception as error:
                result = error
            pipe.send(result)


class _TimedGroup(ProcessGroup):
    """The ranks of a group, of which this one times its waits for rows of others."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device) -> None:
        super().__init__(group)
        self._device = device
        self._waits = list[tuple[Any, Any]]()

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        wait = super().broadcast(tensor, owner)

        def timed() -> None:
            begun = self._now()
            wait()
            self._waits.append((begun, self._now()))

        return timed

    def _now(self) -> Any:
        if self._device.type == "cpu":
            return time.perf_counter()
        event = torch.Event(self._device.type, enable_timing=True)
        event.record()
        return event

    def waited(self) -> float:
        """Return the seconds of all waits, once the device is idle."""
        if self._device.type == "cpu":
            return float(sum(end - begun for begun, end in self._waits))
        return float(sum(begun.elapsed_time(end) for begun, end in self._waits)) / 1000


class _Rank:
    """One of the ranks that solve a problem together: all of them make the same calls."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device, problem: Problem) -> None:
        self._group, self._device, self._problem = group, device, problem
        rank, counts = dist.get_rank(group), even_counts(problem.n, problem.ranks, device.type)
        self._first, self._count = sum(counts[:rank]), counts[rank]
        self._dtype = DTYPES_BY_NAME[problem.dtype]
        # A CPU has one thread per rank; the threads of a GPU's rank only copy rows.
        torch.set_num_threads(1 if device.type == "cpu" else max(1, cpu_count() // problem.ranks))

    def measure(self) -> Measured:
        """Check the result of a first run, and time others."""
        if self._problem.kind == ProblemKind.CLOSENESS:
            return self._measure_closeness()
        seconds, plan, ranks = self._solves()  # whose rows are gone: rates take their memory
        waiting = self._largest(ranks.waited()) / seconds[-1]
        return seconds, {"block": plan.block, "waiting": waiting, **self._rates(plan)}

    def _solves(self) -> tuple[list[float], BlockRowPlan, _TimedGroup]:
        """Return the seconds of each solve; and the plan and the ranks of the last."""
        by_exponents = self._problem.kind == ProblemKind.EXPONENTS
        place = torch.device("cpu") if self._problem.kind == ProblemKind.STREAMED else self._device
        rows = torch.empty((self._count, self._problem.n), dtype=self._dtype, device=place)

        def check(found: tuple[BlockRowPlan, _TimedGroup]) -> None:
            if by_exponents and not found[0].exponents:
                raise EngineError("weights must be solved by exponents, but direct products won.")
            self._check(rows)

        seconds, found = self._times(lambda: self._solve(rows), check, lambda: self._fill(rows))
        return seconds, *found

    def _measure_closeness(self) -> Measured:
        graph = prepare(roads(self._problem.n), dtype=self._dtype, device=self._device)

        def check(found: torch.Tensor) -> None:
            """Compare the closeness of a vertex with SciPy's distances, which go both ways."""
            matrix = scipy_matrix(graph.to(torch.device("cpu")))
            expected = (graph.n - 1) / dijkstra(matrix, indices=0).sum()
            if not math.isclose(found[0], expected, rel_tol=1e-12):
                raise WrongResultError(f"a closeness is {found[0]}, not {expected}")

        seconds, _ = self._times(lambda: closeness(graph, self._group, weighted=True), check)
        return seconds, {"ops_per_second": graph.n**2 / median(seconds)}

    def _times(
        self,
        run: Callable[[], T],
        check: Callable[[T], None],
        begin: Callable[[], None] = lambda: None,
    ) -> tuple[list[float], T]:
        """Return the seconds of each run, and the last result; `begin` comes before each, `check`
        after the first.
        """
        seconds = list[float]()
        for number in range(_RUNS + 1):
            begin()
            self._largest(0.0)
            begun = time.perf_counter()
            found = run()
            synchronize(self._device)
            seconds.append(self._largest(time.perf_counter() - begun))
            if not number:
                check(found)
            if sum(seconds) > (_RUNS_SECONDS if number else _LONG_SECONDS):
                break
        return seconds[1:] or seconds, found

    def _solve(self, rows: torch.Tensor) -> tuple[BlockRowPlan, _TimedGroup]:
        """Solve rows in place; return the plan, and the ranks with the timed waits."""
        kind, device = self._problem.kind, self._device
        target = TensorRows(rows) if rows.device.type == "cpu" else None
        size = self._problem.n**2 * self._dtype.itemsize
        memory = int(STREAMED_SHARE * size) if kind == ProblemKind.STREAMED else None
        request = Request.of(rows, out=rows, memory=memory, block_rows_because="a study")
        ranks = _TimedGroup(self._group, device)
        with ranks, nullcontext() if kind == ProblemKind.EXPONENTS else direct_products():
            result = solve_rows(ranks, TensorRows(rows), target, request, device)
        assert isinstance(result.plan, BlockRowPlan)
        return result.plan, ranks

    def _parts(self, rows: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
        """Yield the rows in parts that take little memory, with weights and distances of each."""
        n = self._problem.n
        step = max(1, _VALUES // n)
        make = self._random if self._problem.kind == ProblemKind.EXPONENTS else self._path
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            yield part, *make(torch.arange(len(part), device=self._device) + self._first + begin)

    def _path(self, vertices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weights and distances from some vertices. All lie on a path, scattered over the
        matrix. Edges of the path have the distance of their ends, all others more: each distance is
        that along the path.
        """
        n = self._problem.n
        places = torch.arange(n, device=self._device) * _SCATTER % n
        positions = places * _LONGEST // n
        hops = (places[vertices, None] - places).abs()
        distances = (positions[vertices, None] - positions).abs()
        return distances + (hops > 1) * (1 + hops % 100), distances

    def _random(self, vertices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return weights and distances from some vertices.

        Weights are random, 1 to 4. A distance is the weight, but at most 2: with n intermediate
        vertices, no path of two edges of weight 1 exists with probability (15/16)^n.
        """
        generator = torch.Generator(self._device).manual_seed(int(vertices[0]))
        shape, device = (len(vertices), self._problem.n), self._device
        weights = torch.randint(1, 5, shape, generator=generator, device=device)
        weights[torch.arange(len(vertices), device=device), vertices] = 0
        return weights, weights.clamp(max=2)

    def _fill(self, rows: torch.Tensor) -> None:
        """Set rows to the weights."""
        for part, weights, _ in self._parts(rows):
            part.copy_(weights)

    def _check(self, found: torch.Tensor) -> None:
        """Compare all distances, and raise the same error on all ranks."""
        wrong = 0
        for part, _, distances in self._parts(found):
            wrong += int((part.to(self._device) != distances).sum())
        if wrong := int(self._largest(wrong)):
            raise WrongResultError(f"{wrong} distances of a rank are wrong")

    def _rates(self, plan: BlockRowPlan) -> dict[str, float]:
        """Return the rates of this rank, which all ranks measure at the same time; the least of the
        host of all; and those of a broadcast.
        """
        device, n = self._device, self._problem.n
        some = max(1, _VALUES // n, STRIPS * plan.strip)
        weights = TensorRows(torch.ones((min(some, self._count), n), dtype=self._dtype))
        samples = [
            measure_rates([device], weights, plan.config, block=plan.block, strip=plan.strip)
            for _ in range(_TIMINGS)
        ]
        rates = {name: median(getattr(each, name) for each in samples) for name in RATES[:3]}
        if plan.is_streamed:
            self._largest(0.0)  # so that all ranks begin together
            rates["host"] = -self._largest(-measure_host([device], weights, plan.strip))
        if self._problem.ranks > 1:
            message = torch.ones((plan.block, n), dtype=self._dtype, device=device)
            latency = self._broadcast_seconds(message[:1, :1].clone())
            seconds = self._broadcast_seconds(message)
            # A message that takes hardly longer than the shortest says little of the rate.
            rates["broadcast"] = message.nbytes / max(seconds - latency, seconds / 10)
            rates["latency"] = latency
        return {name: rate for name, rate in rates.items() if rate != float("inf")}

    def _broadcast_seconds(self, message: torch.Tensor) -> float:
        samples = []
        for _ in range(_TIMINGS):
            self._largest(0.0)
            begun = time.perf_counter()
            # As bytes, since neither NCCL nor Gloo sends int16.
            dist.broadcast(message.view(torch.uint8), group=self._group, group_src=0)
            synchronize(self._device)
            samples.append(self._largest(time.perf_counter() - begun))
        return min(samples)

    def _largest(self, value: float) -> float:
        """Return the largest value of all ranks, once all are here and their devices are idle."""
        tensor = torch.tensor(value, dtype=torch.float64, device=self._device)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self._group)
        synchronize(self._device)
        return float(tensor)
