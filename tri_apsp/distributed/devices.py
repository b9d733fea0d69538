"""Solves on devices of this machine by one process, with a thread for each."""

import itertools
import os
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch

from tri_apsp.arguments import as_integer, check_config, check_options
from tri_apsp.configs import Config
from tri_apsp.device import cuda_count, current, current_gpu, resolve
from tri_apsp.distributed.arguments import Place, rows_tensor, target_of, weights_file
from tri_apsp.distributed.communicator import Alone, Communicator
from tri_apsp.distributed.layout import even_counts
from tri_apsp.distributed.rows import FileRows, Rows, TensorOnDevice, TensorRows
from tri_apsp.distributed.run import Wishes, solve_rows
from tri_apsp.distributed.threads import run_ranks
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.messages import shown
from tri_apsp.plan import Options, Progress
from tri_apsp.result import Result

DeviceName: TypeAlias = str | torch.device
Devices: TypeAlias = DeviceName | Sequence[DeviceName]
BlockRows: TypeAlias = Place | Sequence[torch.Tensor]
"""Weights (n, n) in memory or in a `.npy` file, or in blocks of rows."""

T = TypeVar("T")

# Rows of a device are a multiple of this many, as far as they can be: whole tiles.
_WHOLE = 128


def solve_on_devices(
    graph: BlockRows,
    devices: Sequence[torch.device],
    *,
    out: Place | None = None,
    config: Config | None = None,
    memory: int | None = None,
    options: Options = Options(),
    progress: Progress | None = None,
) -> list[Result]:
    """Return the distances of the rows of each device; see tri_apsp.shortest_paths."""
    check_config(config)
    check_options(options)
    held = None if memory is None else as_integer(memory, "memory", least=1)
    whole, rows = _rows_of(graph, devices)
    n, dtype = rows[0].shape[1], rows[0].dtype
    target = target_of(whole, out, (n, n), dtype, overwrite=options.overwrite)
    run = _run_alone if len(devices) == 1 else run_ranks

    def solve(ranks: Communicator) -> Result:
        wishes = Wishes(devices[ranks.rank], config, options, held)
        own = progress if ranks.rank == 0 else None
        return solve_rows(ranks, rows[ranks.rank], target, wishes, own)

    found = run(devices, solve)
    if isinstance(out, torch.Tensor) and target is None:
        torch.cat([result.distances.to(out.device) for result in found], out=out)
    return found


def devices_of(devices: Devices) -> list[torch.device]:
    """Return the devices that a caller names: "all" GPUs, or the CPU where there is none; one; or a
    list.

    Raises:
        InputError: one is not there, or they are of different kinds.
    """
    if isinstance(devices, (str, torch.device)):
        if str(devices) == "all":
            count = cuda_count()
            return [torch.device("cuda", index) for index in range(count)] or [torch.device("cpu")]
        devices = [devices]
    if not isinstance(devices, Sequence) or not devices:
        raise InputTypeError(
            f'`devices` must be "all" or a list of devices, but is {shown(devices)}; give one.'
        )
    found = [resolve(str(device)) for device in devices]
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


def _run_alone(devices: Sequence[torch.device], run: Callable[[Communicator], T]) -> list[T]:
    with current(devices[0]):
        return [run(Alone())]


def _rows_of(
    graph: BlockRows, devices: Sequence[torch.device]
) -> tuple[torch.Tensor | NpyFile, list[Rows]]:
    """Return the weights as one, or the first block of several, and the rows of each device.

    Raises:
        InputError: they are no square matrix, or not one block for each device, there.
    """
    if isinstance(graph, (list, tuple)):
        blocks = [rows_tensor(block, "graph") for block in graph]
        if [block.device for block in blocks] != list(devices):
            raise InputError(
                f"`graph` in blocks must have one on each of `devices`, but has "
                f"{', '.join(str(block.device) for block in blocks)} for "
                f"{', '.join(map(str, devices))}; move them, or give one tensor."
            )
        return blocks[0], [_rows(block) for block in blocks]
    if isinstance(graph, (str, os.PathLike)):
        file = weights_file(graph, "graph")
        counts = even_counts(file.shape[0], len(devices), _WHOLE)
        return file, [FileRows(file, *part, "graph") for part in _parts(counts)]
    whole = rows_tensor(graph, "graph")
    counts = even_counts(len(whole), len(devices), _WHOLE)
    blocks = [whole[first:end] for first, end in _parts(counts)]
    if whole.device.type == "cuda":
        blocks = [block.to(device) for block, device in zip(blocks, devices, strict=True)]
    return whole, [_rows(block) for block in blocks]


def _rows(block: torch.Tensor) -> Rows:
    return TensorRows(block) if block.device.type == "cpu" else TensorOnDevice(block)


def _parts(counts: Sequence[int]) -> list[tuple[int, int]]:
    ends = list(itertools.accumulate(counts))
    return list(zip([0, *ends[:-1]], ends, strict=True))
