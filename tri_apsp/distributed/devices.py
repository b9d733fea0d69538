"""Block rows on devices of this machine by one process, with a thread for each."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from tri_apsp.device import current
from tri_apsp.distributed.communicator import Communicator, SingleRank
from tri_apsp.distributed.layout import bounds, even_counts
from tri_apsp.distributed.measurement import measure_host, measure_rates
from tri_apsp.distributed.model import predict
from tri_apsp.distributed.plan import BlockRowPlan, usable_memory
from tri_apsp.distributed.rows import FileRows, HostRows, Rows, TensorOnDevice, rows_of_tensor
from tri_apsp.distributed.run import row_facts, solve_rows
from tri_apsp.distributed.target import target_of
from tri_apsp.distributed.threads import run_ranks
from tri_apsp.errors import InputError
from tri_apsp.graphs.npy_file import NpyFile, map_file
from tri_apsp.plan import Progress
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name
from tri_apsp.shared_memory import shares_memory

T = TypeVar("T")


def plan(request: Request) -> BlockRowPlan:
    """Return the plan of a request in block rows, whose values are not read.

    Raises:
        InputError: the weights are no square matrix, or not one block on each device; `out` cannot
            take the distances.
        TooLargeError: the memory is too small.
    """
    rows, devices = _rows_of(request), request.devices
    n, dtype = rows[0].shape[1], rows[0].dtype
    return row_facts(
        tuple(part.shape[0] for part in rows),
        rows[0],
        target_of(request, (n, n), dtype),
        request,
        devices[0],
        memory=min(usable_memory(request.memory, each, len(devices)) for each in devices),
        sharers=len(devices),
    ).plan()


def run(request: Request, plan: BlockRowPlan, progress: Progress | None) -> Result:
    """Return the result of a request by its plan: one, with the rows of each device if there are
    several and no `out`.
    """
    devices, out = request.devices, request.out
    rows = _rows_of(request)
    n = rows[0].shape[1]
    target = target_of(request, (n, n), rows[0].dtype)

    def solve(ranks: Communicator) -> Result:
        device = devices[ranks.rank]
        own = rows[ranks.rank]
        if isinstance(own, TensorOnDevice) and own.tensor.device != device:
            own = TensorOnDevice(own.tensor.to(device))
        shown = progress if ranks.rank == 0 else None
        return solve_rows(ranks, own, target, request, device, plan=plan, progress=shown)

    found = (_run_alone if len(devices) == 1 else run_ranks)(devices, solve)
    if isinstance(out, torch.Tensor) and target is None:
        torch.cat([result.distances.to(out.device) for result in found], out=out)
    given = request.matrix if request.options.overwrite else None
    if len(found) > 1 and out is None and not isinstance(given, (torch.Tensor, NpyFile)):
        return Result.in_blocks(found)
    return _as_one(found, out if given is None else getattr(given, "path", given))


def predicted(request: Request, plan: BlockRowPlan) -> BlockRowPlan:
    """Return a plan with the time that it is expected to take, by rates that are measured here."""
    devices, rows = request.devices, _rows_of(request)
    n, dtype = rows[0].shape[1], rows[0].dtype
    if not n:
        return plan
    rates = measure_rates(devices, rows[0], plan.config, block=plan.block, strip=plan.strip)
    if plan.is_streamed:
        assert isinstance(rows[0], HostRows)
        host = measure_host(devices, rows[0], plan.strip, in_memory=plan.in_memory)
        rates = dataclasses.replace(rates, host=host)
    if devices[0].type == "cpu":  # ranks share its cores
        rates = dataclasses.replace(rates, product=rates.product / len(devices))
    expected = predict(
        rates,
        n,
        dtype.itemsize,
        ranks=len(devices),
        block=plan.block,
        streamed=plan.is_streamed,
    )
    return dataclasses.replace(plan, expected=expected)


def _as_one(found: Sequence[Result], out: Any) -> Result:
    """Return the results of all rows as one, with the distances in a tensor or a file."""
    first = found[0]
    distances, predecessors = first.distances, first.predecessors
    if isinstance(out, torch.Tensor):
        distances = out
    elif len(found) > 1:
        distances = torch.from_numpy(map_file(out, "r+"))
    if len(found) > 1 and predecessors is not None:
        parts = [each.predecessors for each in found if each.predecessors is not None]
        predecessors = torch.cat([part.to(distances.device) for part in parts])
    return dataclasses.replace(first, distances=distances, predecessors=predecessors, sources=None)


def _run_alone(devices: Sequence[torch.device], run: Callable[[Communicator], T]) -> list[T]:
    with current(devices[0]):
        return [run(SingleRank())]


def _rows_of(request: Request) -> list[Rows]:
    """Return the rows of each device, where they were given.

    Raises:
        InputError: the weights are no square matrix, or not one block for each device, there.
    """
    graph, devices, overwrite = request.matrix, request.devices, request.options.overwrite
    if isinstance(graph, tuple):
        _check_blocks(graph, devices, overwrite=overwrite)
        return [TensorOnDevice(block) for block in graph]
    if isinstance(graph, NpyFile):
        shares = _shares(graph.shape[0], devices)
        return [FileRows(graph, *part, request.name) for part in shares]
    assert graph is not None
    if graph.shape[0] != graph.shape[1]:
        raise InputError(
            f"`graph` must be square, (n, n), but has shape {tuple(graph.shape)}; pad missing "
            "vertices with no_edge."
        )
    if overwrite and graph.is_cuda and any(device != graph.device for device in devices):
        raise InputError(
            "`out` must not be weights that lie elsewhere than they are solved, but they are on "
            f"{graph.device} alone; give a block on each device, or weights on the CPU."
        )
    return [rows_of_tensor(graph[first:end]) for first, end in _shares(len(graph), devices)]


def _check_blocks(
    blocks: tuple[torch.Tensor, ...], devices: Sequence[torch.device], *, overwrite: bool
) -> None:
    if [block.device for block in blocks] != list(devices):
        raise InputError(
            "`graph` in blocks must have one on each `device`, but has "
            f"{', '.join(str(block.device) for block in blocks)} for "
            f"{', '.join(map(str, devices))}; move them, or give one tensor."
        )
    if {block.shape[1] for block in blocks} != {sum(map(len, blocks))}:
        raise InputError(
            "`graph` in blocks must add up to a square matrix, but has shapes "
            f"{', '.join(str(tuple(block.shape)) for block in blocks)}; give each row once."
        )
    if len({block.dtype for block in blocks}) > 1:
        raise InputError(
            "`graph` in blocks must have one dtype, but has "
            f"{', '.join(dtype_name(block.dtype) for block in blocks)}; convert some of them."
        )
    if overwrite and any(shares_memory(*pair) for pair in itertools.combinations(blocks, 2)):
        raise InputError("`out` must not be blocks that share memory with each other; give copies.")


def _shares(n: int, devices: Sequence[torch.device]) -> list[tuple[int, int]]:
    """Return the first row of each device, and the end of its rows."""
    return bounds(even_counts(n, len(devices), devices[0].type))
