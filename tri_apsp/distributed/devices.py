"""Block rows on devices of this machine by one process, with a thread for each."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from tri_apsp.distributed.layout import bounds, even_counts
from tri_apsp.distributed.measurement import measure_host, measure_rates
from tri_apsp.distributed.model import predict
from tri_apsp.distributed.plan import BlockRowPlan, RowSpec, usable_memory
from tri_apsp.distributed.rows import FileRows, Rows, TensorRows
from tri_apsp.distributed.run import solve_rows
from tri_apsp.distributed.target import targets_of
from tri_apsp.errors import InputError
from tri_apsp.graphs.npy_file import NpyFile, map_file
from tri_apsp.plan import Progress
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.ranks.threads import run_ranks
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name
from tri_apsp.shared_memory import shares_memory


def plan(request: Request) -> BlockRowPlan:
    """Return the plan of a request in block rows, whose values are not read.

    Raises:
        InputError: the weights are no square matrix, or not one block on each device; `out` cannot
            take the distances.
        TooLargeError: the memory is too small.
    """
    rows, devices = _rows_of(request), request.devices
    counts, n = tuple(part.shape[0] for part in rows), rows[0].shape[1]
    targets = targets_of(request, bounds(counts), (n, n), rows[0].dtype)
    spec = RowSpec.of(
        counts,
        rows[0],
        targets[0],
        request,
        devices[0],
        memory=min(usable_memory(request.memory, each, len(devices)) for each in devices),
        sharers=len(devices),
    )
    return dataclasses.replace(spec.plan(), parts=tuple(zip(rows, targets, strict=True)))


def run(request: Request, plan: BlockRowPlan, progress: Progress | None) -> Result:
    """Return the result of a request by its plan: one, with the rows of each device if there are
    several and no `out`.
    """
    devices = request.devices

    def solve(ranks: Communicator) -> Result:
        device, (own, target) = devices[ranks.rank], plan.parts[ranks.rank]
        if isinstance(own, TensorRows) and not own.are_on_host:
            own = TensorRows(own.tensor.to(device))
        shown = progress if ranks.rank == 0 else None
        return solve_rows(ranks, own, target, request, device, plan=plan, progress=shown)

    found = run_ranks(devices, solve)
    place: Any = request.matrix if request.options.overwrite else request.out
    if len(found) > 1 and (place is None or isinstance(place, tuple)):
        return Result.in_blocks(found)
    distances, predecessors = found[0].distances, found[0].predecessors
    if isinstance(place, torch.Tensor):
        distances = place
        if not plan.parts[0][1] and place is request.out:
            torch.cat([each.distances.to(place.device) for each in found], out=place)
    elif len(found) > 1:
        distances = torch.from_numpy(map_file(getattr(place, "path", place), "r+"))
    if len(found) > 1 and predecessors is not None:
        parts = [each.predecessors for each in found if each.predecessors is not None]
        predecessors = torch.cat([part.to(distances.device) for part in parts])
    return dataclasses.replace(
        found[0], distances=distances, predecessors=predecessors, sources=None
    )


def predicted(request: Request, plan: BlockRowPlan) -> BlockRowPlan:
    """Return a plan with the time that it is expected to take, by rates that are measured here."""
    devices, rows = request.devices, plan.parts[0][0]
    n, dtype = rows.shape[1], rows.dtype
    plan = dataclasses.replace(plan, parts=())
    if not n:
        return plan
    rates = measure_rates(devices, rows, plan.config, block=plan.block, strip=plan.strip)
    if plan.is_streamed:
        host = measure_host(devices, rows, plan.strip, in_memory=plan.in_memory)
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


def _rows_of(request: Request) -> list[Rows]:
    """Return the rows of each device, where they were given.

    Raises:
        InputError: the weights are no square matrix, or not one block for each device, there.
    """
    graph, devices, overwrite = request.matrix, request.devices, request.options.overwrite
    if isinstance(graph, tuple):
        _check_blocks(graph, devices, overwrite=overwrite)
        return [TensorRows(block) for block in graph]
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
    return [TensorRows(graph[first:end]) for first, end in _shares(len(graph), devices)]


def _check_blocks(
    blocks: tuple[torch.Tensor, ...], devices: Sequence[torch.device], *, overwrite: bool
) -> None:
    if [block.device for block in blocks] != list(devices):
        raise InputError(
            "`graph` in blocks must have one on each `device`, but has "
            f"{', '.join(str(block.device) for block in blocks)} for "
            f"{', '.join(map(str, devices))}; leave `device` out, or give one tensor."
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
