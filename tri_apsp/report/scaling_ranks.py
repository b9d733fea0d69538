"""The ranks that the study of scaling measures: processes that torch.distributed joins, each with a
GPU, or with one thread of the CPU. The first few of them form a group that solves one matrix.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from multiprocessing.connection import Connection, wait
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._C._distributed_c10d import TCPStore

from tri_apsp import engines, tuned
from tri_apsp.api import direct_products
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import current, describe, synchronize
from tri_apsp.distributed.arguments import target_of
from tri_apsp.distributed.block_rows import BlockRowSolver
from tri_apsp.distributed.communicator import Wait
from tri_apsp.distributed.device_rows import ResidentRows
from tri_apsp.distributed.layout import Layout, even_counts
from tri_apsp.distributed.measurement import measure_rates
from tri_apsp.distributed.plan import BlockRowPlan, columns_of, plan_block_rows, usable_memory
from tri_apsp.distributed.process_group import ProcessGroup
from tri_apsp.distributed.rows import TensorOnDevice, TensorRows
from tri_apsp.distributed.run import Wishes, solve_rows
from tri_apsp.errors import EngineError
from tri_apsp.plan import Options
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.workloads import WrongResultError

# Seconds of a call of all ranks, after which they count as stuck.
_LIMIT_SECONDS = 900.0
# A solve that takes longer is not repeated. Others run again, until they took this time, or this
# often.
_LONG_SECONDS, _RUNS_SECONDS, _RUNS = 5.0, 2.0, 3
# Broadcasts and other parts are timed this often.
_TIMINGS = 7
# Rows of a GPU are a multiple of this many: whole tiles.
_WHOLE = 128
# Values that are drawn or summed at a time.
_VALUES = 1 << 24
# Odd factors of the hash of a pair of vertices, and how many bits of a checksum are kept: a float
# holds them.
_ROW, _COLUMN, _MIX, _BITS = 0x9E3779B97F4A7C15 - (1 << 64), 0x85EBCA6B, 0x2C1B3C6D, 48
_FAR = 1 << 30


class Problem(NamedTuple):
    """A complete graph with random integer weights, and how it is solved.

    Attributes:
        n: vertices.
        dtype: of the weights.
        greatest: weights are 1 to this.
        direct: whether no product is computed by exponents.
        ranks: processes.
        threads: of each of them, on a CPU.
        memory: the bytes that a rank may take on its device, beyond which rows are streamed from
            the host; 0: rows stay on the device.
    """

    n: int
    dtype: str
    greatest: int = 100
    direct: bool = True
    ranks: int = 1
    threads: int = 1
    memory: int = 0


class Solved(NamedTuple):
    """What a group measured.

    Attributes:
        seconds: of each run, until the last rank was done.
        waiting: the share of the time in which a rank waited for broadcasts, in the mean.
        block: vertices of a pivot block.
        checksum: of all distances.
    """

    seconds: list[float]
    waiting: float
    block: int
    checksum: int


class RankProcesses:
    """Processes that wait for calls.

    Args:
        counts: of the ranks of each group; as many processes are started as the largest has.
        kind: of their devices, "cpu" or "cuda".
    """

    def __init__(self, counts: Sequence[int], kind: str) -> None:
        # Of this process, so that no port must be guessed.
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

    def run(self, count: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return function(group, *arguments) of each of the first `count` ranks.

        Raises:
            The first error of a rank, after which the processes have ended, since others may wait
            for it; EngineError if one ended or is stuck.
        """
        try:
            for pipe in self._pipes:
                pipe.send((count, function, arguments))
            found = dict[int, Any]()
            while len(found) < count:
                left = [rank for rank in range(count) if rank not in found]
                ready = wait(
                    [*(self._pipes[rank] for rank in left), *self._sentinels()], _LIMIT_SECONDS
                )
                for rank in left:
                    if self._pipes[rank] in ready:
                        found[rank] = self._pipes[rank].recv()
                        if isinstance(found[rank], Exception):
                            raise found[rank]
                if not any(pipe in ready for pipe in self._pipes):
                    raise EOFError
        except (EOFError, OSError):
            self.close()
            raise EngineError(
                "the ranks of a solve must last until it is done, but one ended or is stuck; "
                "repeat the command."
            ) from None
        except BaseException:
            self.close()
            raise
        return [found[rank] for rank in range(count)]

    def close(self) -> None:
        """End the processes, which have nothing to save."""
        for process in self._processes:
            process.kill()
        for process, pipe in zip(self._processes, self._pipes, strict=True):
            process.join()
            pipe.close()

    def _sentinels(self) -> list[int]:
        return [process.sentinel for process in self._processes]


def _serve(rank: int, counts: Sequence[int], kind: str, port: int, pipe: Connection) -> None:
    """Join the group of all ranks, and serve calls until the other end of the pipe is closed."""
    # Ctrl-C reaches the whole process group; the command decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Multicast of NVLink can put the GPUs of a host that others share out of service.
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    torch.set_num_threads(1)
    device = torch.device(kind) if kind == "cpu" else torch.device(kind, rank)
    store = TCPStore("127.0.0.1", port, is_master=False)
    with current(device):
        backend = "gloo" if kind == "cpu" else "nccl"
        dist.init_process_group(backend, store=store, rank=rank, world_size=max(counts))
        groups = {count: dist.new_group(list(range(count))) for count in counts}
        while True:
            try:
                count, function, arguments = pipe.recv()
            except (EOFError, OSError):
                return
            if rank < count:
                try:
                    with RankGroup(groups[count], device) as group:
                        result = function(group, *arguments)
                except Exception as error:
                    result = error
                pipe.send(result)


class RankGroup(ProcessGroup):
    """The first few ranks. It measures how long their broadcasts are waited for, on a GPU by
    events.

    Attributes:
        device: of this rank.
    """

    def __init__(self, group: dist.ProcessGroup, device: torch.device) -> None:
        super().__init__(group)
        self.device, self._joined = device, group
        self._waits = list[tuple[Any, Any]]()

    def meet(self) -> None:
        """Wait until all ranks are here, and their devices are idle."""
        self.least(torch.zeros(1, device=self.device))
        synchronize(self.device)

    def least(self, values: torch.Tensor) -> torch.Tensor:
        """Return the least of the values of all ranks, in their memory."""
        dist.all_reduce(values, op=dist.ReduceOp.MIN, group=self._joined)
        return values

    def broadcast(self, tensor: torch.Tensor, owner: int) -> Wait:
        wait_for_it = super().broadcast(tensor, owner)

        def timed() -> None:
            begun = self._now()
            wait_for_it()
            self._waits.append((begun, self._now()))

        return timed

    def waited(self) -> float:
        """Return the seconds of all waits since the last call, once the device is done."""
        waits, self._waits = self._waits, []
        if self.device.type == "cpu":
            return float(sum(ended - begun for begun, ended in waits))
        return float(sum(begun.elapsed_time(ended) for begun, ended in waits)) / 1000

    def _now(self) -> Any:
        if self.device.type == "cpu":
            return time.perf_counter()
        event = torch.Event(self.device.type, enable_timing=True)
        event.record()
        return event


def solve(ranks: RankGroup, problem: Problem, checksum: int | None) -> Solved:
    """Solve a problem a few times together with the other ranks, once its distances are checked:
    their checksum, or if none is known some of their rows.

    Raises:
        WrongResultError: distances are wrong, on all ranks alike.
    """
    torch.set_num_threads(problem.threads)
    device, dtype = ranks.device, DTYPES_BY_NAME[problem.dtype]
    counts = _counts(problem, device)
    first, place = sum(counts[: ranks.rank]), torch.device("cpu") if problem.memory else device
    rows = torch.empty((counts[ranks.rank], problem.n), dtype=dtype, device=place)
    # What the rows take already, a solve in their memory may take too.
    memory = problem.memory or usable_memory(None, device) + rows.nbytes
    wishes = Wishes(device, options=Options(overwrite=True), memory=memory)
    seconds = list[float]()
    while True:
        for begin, part in _parts(rows):
            part.copy_(_weights(problem, first + begin, len(part), device))
        if not seconds and problem.direct and not problem.memory:
            _solve_last_block(ranks, rows, problem, counts)
        given = TensorRows(rows) if place.type == "cpu" else TensorOnDevice(rows)
        target = target_of(rows, None, rows.shape, dtype, overwrite=True, first=first)
        ranks.meet()
        ranks.waited()  # of what was measured before
        begun = time.perf_counter()
        with direct_products() if problem.direct else nullcontext():
            result = solve_rows(ranks, given, target, wishes)
        synchronize(device)
        own = time.perf_counter() - begun
        every = ranks.gather((own, ranks.waited()))
        if not seconds:
            found = sum(ranks.gather(_checksum(result.distances, first, device))) % (1 << _BITS)
            if checksum is None:
                _check_rows(ranks, result.distances, problem, counts)
            elif found != checksum:
                raise WrongResultError("the distances differ from those of one rank")
        seconds.append(max(each for each, _ in every))
        repeated = seconds[1:]
        if len(repeated) == _RUNS or sum(repeated) > _RUNS_SECONDS or seconds[0] > _LONG_SECONDS:
            break
        del result  # the next run needs its memory
    waiting = sum(waited / each for each, waited in every) / len(every)
    assert isinstance(result.plan, BlockRowPlan)
    return Solved(repeated or seconds, waiting, result.plan.block, found)


def _solve_last_block(
    ranks: RankGroup, rows: torch.Tensor, problem: Problem, counts: Sequence[int]
) -> None:
    """Lower rows by paths through the last pivot block, so that the kernels of a solve of the same
    shapes are compiled and loaded. It changes no distance.
    """
    if columns_of(problem.n, ranks.device) > problem.n:
        return  # the solve takes other memory
    block = _block(problem, ranks.device)
    last = Layout(tuple(counts), block).pivots()[-1]
    BlockRowSolver(
        ResidentRows(rows[None], problem.n),
        Layout(tuple(counts), block, last.begin),
        ranks,
        _config(problem, ranks.device),
        nonnegative=True,
        last=lambda begin, solved: None,
    ).solve()


def rates_alone(ranks: RankGroup, problem: Problem) -> dict[str, float]:
    """Return the rates of one rank: product, closure, copy and host, in the median."""
    torch.set_num_threads(problem.threads)
    device, dtype = ranks.device, DTYPES_BY_NAME[problem.dtype]
    config, block = _config(problem, device), _block(problem, device)
    height = min(problem.n, max(1, _VALUES // problem.n))
    weights = TensorRows(torch.ones((height, problem.n), dtype=dtype))
    found = [
        measure_rates([device], weights, config, block=block, rows=problem.n // 2)
        for _ in range(_TIMINGS)
    ]
    return {
        name: median(getattr(each, name) for each in found)
        for name in ("product", "closure", "copy", "host")
    }


def rates_together(ranks: RankGroup, problem: Problem) -> dict[str, float]:
    """Return the bytes per second and the latency of a broadcast of rows of a pivot block."""
    size = _block(problem, ranks.device), problem.n
    large = torch.ones(size, dtype=DTYPES_BY_NAME[problem.dtype], device=ranks.device)
    latency, seconds = (
        max(ranks.gather(_broadcast_seconds(ranks, tensor)))
        for tensor in (large[:1, :1].clone(), large)
    )
    # A message that takes hardly longer than the shortest says little of the bytes per second.
    sending = max(seconds - latency, seconds / 10)
    return {"broadcast": large.nbytes / sending, "latency": latency}


def _broadcast_seconds(ranks: RankGroup, tensor: torch.Tensor) -> float:
    samples = []
    for _ in range(_TIMINGS):
        ranks.meet()
        begun = time.perf_counter()
        ranks.broadcast(tensor, 0)()
        synchronize(ranks.device)
        samples.append(time.perf_counter() - begun)
    return min(samples)


def _counts(problem: Problem, device: torch.device) -> tuple[int, ...]:
    return even_counts(problem.n, problem.ranks, 1 if device.type == "cpu" else _WHOLE)


def _config(problem: Problem, device: torch.device) -> CompleteConfig:
    dtype = DTYPES_BY_NAME[problem.dtype]
    engine = engines.choose(device, tuned.with_forced(None), dtype)
    call = tuned.call_of(engine, device, dtype, n=problem.n, nonnegative=True)
    return tuned.config_for_call(call, None)


def _block(problem: Problem, device: torch.device) -> int:
    """Return the vertices of a pivot block of rows that stay on their devices."""
    return plan_block_rows(
        _counts(problem, device),
        DTYPES_BY_NAME[problem.dtype],
        device,
        _config(problem, device),
        memory=describe(device).memory,
        may_stream=False,
    ).block


def _parts(rows: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
    """Return rows in parts that take little memory: the first row, and the rows."""
    step = max(1, _VALUES // rows.shape[1])
    return [(begin, rows[begin : begin + step]) for begin in range(0, len(rows), step)]


def _hash(first: int, count: int, n: int, device: torch.device) -> torch.Tensor:
    """Return a hash of each pair of the vertices from `first` on and all vertices, int64."""
    sources, targets = (torch.arange(x, device=device) for x in (count, n))
    mixed = (sources[:, None] + first) * _ROW + targets * _COLUMN
    mixed = (mixed ^ (mixed >> 29)) * _MIX
    return mixed ^ (mixed >> 32)


def _weights(problem: Problem, first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return weights of the vertices from `first` on, int32: the same for any number of ranks."""
    bits = _hash(first, count, problem.n, device) & 0x7FFFFFFF
    weights = (bits % problem.greatest + 1).to(torch.int32)
    weights[:, first:].diagonal().zero_()
    return weights


def _checksum(distances: torch.Tensor, first: int, device: torch.device) -> int:
    """Return the sum of rows of distances, each times a hash of its place."""
    total = 0
    for begin, part in _parts(distances):
        place = _hash(first + begin, len(part), part.shape[1], device)
        total += int((part.to(device).to(torch.int64) * place).sum())
    return total


def _check_rows(
    ranks: RankGroup, distances: torch.Tensor, problem: Problem, counts: Sequence[int]
) -> None:
    """Compare the distances of three vertices i with d(i, j) = min(d(i, k) + w(k, j)) over all k
    but j, and d(i, i) = 0, which only the distances fulfil where all weights are positive.
    """
    n, first, device = problem.n, sum(counts[: ranks.rank]), ranks.device
    chosen = sorted({0, n // 2, n - 1})
    found = torch.empty((len(chosen), n), dtype=distances.dtype, device=device)
    for row, vertex in zip(found, chosen, strict=True):
        owner = next(rank for rank in range(ranks.size) if vertex < sum(counts[: rank + 1]))
        if owner == ranks.rank:
            row.copy_(distances[vertex - first])
        ranks.broadcast(row, owner)()
    known = found.to(torch.int32)
    least = torch.full_like(known, _FAR)
    for begin, part in _parts(distances):
        weights = _weights(problem, first + begin, len(part), device)
        weights[:, first + begin :].diagonal().fill_(_FAR)
        for row, lowest in zip(known, least, strict=True):
            through = row[first + begin : first + begin + len(part), None] + weights
            torch.minimum(lowest, through.amin(0), out=lowest)
    ranks.least(least)
    for row, vertex in zip(least, chosen, strict=True):
        row[vertex] = 0
    wrong = int((least != known).sum())
    if wrong:
        raise WrongResultError(f"{wrong} of {known.numel()} distances are wrong")
