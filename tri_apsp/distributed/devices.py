"""Solves on devices of this machine by one process, with a thread for each."""

import dataclasses
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from tri_apsp import tuned
from tri_apsp.arguments import check_writable
from tri_apsp.configs import Config
from tri_apsp.device import cuda_count, current, current_gpu, resolve
from tri_apsp.distributed.arguments import (
    EVERY,
    BlockRows,
    DeviceName,
    Devices,
    Place,
    request_of,
    rows_tensor,
    target_of,
    weights_file,
)
from tri_apsp.distributed.communicator import Communicator, SingleRank
from tri_apsp.distributed.layout import bounds, even_counts
from tri_apsp.distributed.measurement import measure_host, measure_rates
from tri_apsp.distributed.model import predict
from tri_apsp.distributed.plan import BlockRowPlan, usable_memory
from tri_apsp.distributed.rows import FileRows, HostRows, Rows, TensorOnDevice, rows_of_tensor
from tri_apsp.distributed.run import plan_rows, solve_rows
from tri_apsp.distributed.shared_memory import shares_memory
from tri_apsp.distributed.threads import run_ranks
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.npy_file import NpyFile, map_file
from tri_apsp.messages import counted
from tri_apsp.plan import Options, Progress
from tri_apsp.progress import progress_bar
from tri_apsp.result import Result
from tri_apsp.semirings import dtype_name

T = TypeVar("T")

# The defaults of other arguments of shortest_paths that are not None.
_DEFAULTS = {"directed": True, "method": "auto", "check": True}


def refuse_others(**given: Any) -> None:
    """Refuse arguments that do not go with a solve of block rows, but for their defaults."""
    for name, value in given.items():
        default = _DEFAULTS.get(name)
        if value is not default and (not isinstance(value, str) or value != default):
            raise InputError(
                f"`{name}` must not be given with `device`, `devices`, `memory`, `checkpoint` or "
                f"weights in a file, which are for whole dense matrices; leave `{name}` out, or "
                "load a file by read_graph."
            )


def shortest_paths(
    graph: Any,
    device: DeviceName | None,
    devices: Devices | None,
    *,
    out: Place | None,
    progress: bool,
    **options: Any,
) -> Result | tuple[Result, ...]:
    """Return what tri_apsp.shortest_paths does for several devices, or one that is named."""
    chosen = _chosen_devices(graph, device, devices)
    with progress_bar(progress) as report:
        found = solve_on_devices(graph, chosen, out=out, progress=report, **options)
    if devices is not None and out is None:
        return tuple(found)
    return as_one(found, out)


def select(
    graph: Any,
    device: DeviceName | None,
    devices: Devices | None,
    *,
    out: Place | None,
    config: Config | None,
    options: Options,
    memory: int | None,
    checkpoint: str | os.PathLike[str] | None,
) -> BlockRowPlan:
    """Return the plan of shortest_paths with the same arguments, and the time that it is expected
    to take by rates that are measured here.
    """
    chosen = _chosen_devices(graph, device, devices)
    request = request_of(chosen[0], config, options, memory, checkpoint, EVERY)
    whole, rows = _rows_of(graph, chosen, overwrite=options.overwrite)
    n, dtype = rows[0].shape[1], rows[0].dtype
    target = target_of(
        whole,
        out,
        (n, n),
        dtype,
        overwrite=options.overwrite,
        checkpoint=request.checkpoint,
    )
    plan = plan_rows(
        tuple(part.shape[0] for part in rows),
        rows[0],
        dataclasses.replace(request, config=tuned.with_forced(config)),
        memory=min(usable_memory(memory, each, len(chosen)) for each in chosen),
        target=target,
        sharers=len(chosen),
    )
    if not n:
        return plan
    rates = measure_rates(chosen, rows[0], plan.config, block=plan.block, strip=plan.strip)
    if plan.is_streamed:
        assert isinstance(rows[0], HostRows)
        host = measure_host(chosen, rows[0], plan.strip, in_memory=plan.in_memory)
        rates = dataclasses.replace(rates, host=host)
    if chosen[0].type == "cpu":  # ranks share its cores
        rates = dataclasses.replace(rates, product=rates.product / len(chosen))
    expected = predict(
        rates,
        n,
        dtype.itemsize,
        ranks=len(chosen),
        block=plan.block,
        streamed=plan.is_streamed,
    )
    return dataclasses.replace(plan, expected=expected)


def _chosen_devices(
    graph: Any, device: DeviceName | None, devices: Devices | None
) -> list[torch.device]:
    """Return the devices that a caller names, or that of the weights."""
    if device is not None and devices is not None:
        raise InputError("`device` must not be given with `devices`; leave one of them out.")
    if isinstance(graph, (list, tuple)) and devices is None:
        raise InputError(
            "`graph` in blocks needs `devices`, one for each block, but there are none; name them."
        )
    if devices is not None:
        return devices_of(devices)
    if device is None:
        device = graph.device if isinstance(graph, torch.Tensor) else "cpu"
    return devices_of(resolve(str(device)))


def solve_on_devices(
    graph: BlockRows,
    devices: Sequence[torch.device],
    *,
    out: Place | None = None,
    config: Config | None = None,
    options: Options = Options(),
    memory: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = EVERY,
    progress: Progress | None = None,
) -> list[Result]:
    """Return the result of the rows of each device; tri_apsp.shortest_paths documents the
    arguments.
    """
    request = request_of(devices[0], config, options, memory, checkpoint, every)
    whole, rows = _rows_of(graph, devices, overwrite=options.overwrite)
    n, dtype = rows[0].shape[1], rows[0].dtype
    target = target_of(
        whole,
        out,
        (n, n),
        dtype,
        overwrite=options.overwrite,
        checkpoint=request.checkpoint,
    )
    run = _run_alone if len(devices) == 1 else run_ranks

    def solve(ranks: Communicator) -> Result:
        own = dataclasses.replace(request, device=devices[ranks.rank])
        shown = progress if ranks.rank == 0 else None
        return solve_rows(ranks, rows[ranks.rank], target, own, shown)

    found = run(devices, solve)
    if isinstance(out, torch.Tensor) and target is None:
        torch.cat([result.distances.to(out.device) for result in found], out=out)
    return found


def as_one(found: Sequence[Result], out: Place | None) -> Result:
    """Return the results of all rows as one, with the distances in `out`; of a single device
    where they are.
    """
    first = found[0]
    distances, predecessors = first.distances, first.predecessors
    if isinstance(out, torch.Tensor):
        distances = out
    elif len(found) > 1:
        assert out is not None
        distances = torch.from_numpy(map_file(out, "r+"))
    if len(found) > 1 and predecessors is not None:
        parts = [each.predecessors for each in found if each.predecessors is not None]
        predecessors = torch.cat([part.to(distances.device) for part in parts])
    return dataclasses.replace(first, distances=distances, predecessors=predecessors, sources=None)


def devices_of(devices: Devices) -> list[torch.device]:
    """Return the devices that a caller names: "all" GPUs, or the CPU where there is none; one, or
    several with commas; or a list.

    Raises:
        InputError: one is not there, or they are of different kinds.
    """
    if str(devices) == "all":
        count = cuda_count()
        return [torch.device("cuda", index) for index in range(count)] or [torch.device("cpu")]
    if isinstance(devices, (str, torch.device)):
        devices = [name.strip() for name in str(devices).split(",")]
    if (
        not isinstance(devices, Sequence)
        or not devices
        or not all(isinstance(device, (str, torch.device)) for device in devices)
        or any(str(device) in ("", "all") for device in devices)
    ):
        raise InputTypeError(
            f'`devices` must be "all" or names of devices, but is {str(devices)[:60]}; give names '
            'such as "cuda:0,cuda:1".'
        )
    found = [_existing(str(device)) for device in devices]
    found = [
        current_gpu() if device.type == "cuda" and device.index is None else device
        for device in found
    ]
    gpus = [device for device in found if device.type == "cuda"]
    if gpus and (len(gpus) < len(found) or len(set(gpus)) < len(gpus)):
        raise InputError(
            "`devices` must be different devices of one kind, but are "
            f"{', '.join(map(str, found))}; leave some of them out."
        )
    return found


def _existing(name: str) -> torch.device:
    try:
        return resolve(name)
    except InputError:
        raise InputError(
            f'`devices` must be "all", or names of devices of this machine, which has cpu and '
            f'{counted(cuda_count(), "usable CUDA device")}, but has {name!r}; give "all".'
        ) from None


def _run_alone(devices: Sequence[torch.device], run: Callable[[Communicator], T]) -> list[T]:
    with current(devices[0]):
        return [run(SingleRank())]


def _rows_of(
    graph: BlockRows, devices: Sequence[torch.device], *, overwrite: bool
) -> tuple[torch.Tensor | NpyFile | Sequence[torch.Tensor], list[Rows]]:
    """Return the weights, checked, and the rows of each device.

    Raises:
        InputError: they are no square matrix, or not one block for each device, there.
    """
    if isinstance(graph, (list, tuple)):
        blocks = [rows_tensor(block, "graph") for block in graph]
        if [block.device for block in blocks] != list(devices):
            raise InputError(
                f"`graph` in blocks must have one on each of `devices`, but has "
                f"{', '.join(str(block.device) for block in blocks) or 'none'} for "
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
        for block in blocks if overwrite else ():
            check_writable(block, "graph")
        if overwrite and any(shares_memory(*pair) for pair in itertools.combinations(blocks, 2)):
            raise InputError(
                "`graph` in blocks that share memory must not be given with `overwrite`; give "
                "copies."
            )
        return blocks, [TensorOnDevice(block) for block in blocks]
    if isinstance(graph, (str, os.PathLike)):
        file = weights_file(graph, "graph")
        return file, [FileRows(file, *part, "graph") for part in _shares(file.shape[0], devices)]
    whole = rows_tensor(graph, "graph")
    if whole.shape[0] != whole.shape[1]:
        raise InputError(
            f"`graph` must be square, (n, n), but has shape {tuple(whole.shape)}; pad missing "
            "vertices with no_edge."
        )
    blocks = [whole[first:end] for first, end in _shares(len(whole), devices)]
    if whole.device.type == "cuda":
        if overwrite and any(device != whole.device for device in devices):
            raise InputError(
                "`overwrite` needs weights that are where they are solved, but they are on "
                f"{whole.device} alone; give a block on each of `devices`, or weights on the CPU."
            )
        blocks = [block.to(device) for block, device in zip(blocks, devices, strict=True)]
    return whole, [rows_of_tensor(block) for block in blocks]


def _shares(n: int, devices: Sequence[torch.device]) -> list[tuple[int, int]]:
    """Return the first row of each device, and the end of its rows."""
    return bounds(even_counts(n, len(devices), devices[0].type))
