"""Solves of processes that torch.distributed has joined."""

import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from tqdm import tqdm

from tri_apsp.arguments import as_integer, check_config, check_flags, check_options
from tri_apsp.configs import Config
from tri_apsp.device import current_gpu, resolve
from tri_apsp.distributed.arguments import Place, rows_tensor, target_of, weights_file
from tri_apsp.distributed.layout import even_counts
from tri_apsp.distributed.process_group import ProcessGroup
from tri_apsp.distributed.rows import FileRows, Rows, TensorOnDevice, TensorRows
from tri_apsp.distributed.run import Wishes, solve_rows
from tri_apsp.distributed.target import Target
from tri_apsp.errors import InputError
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.plan import NegativeCycles, Options
from tri_apsp.result import Result


@dataclass(frozen=True)
class _Task:
    """The checked arguments of a rank."""

    weights: torch.Tensor | NpyFile
    wishes: Wishes


def shortest_paths(
    local_rows: Place,
    group: Any = None,
    *,
    out: Place | None = None,
    device: torch.device | str | None = None,
    config: Config | None = None,
    memory: int | None = None,
    overwrite: bool = False,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    progress: bool = False,
) -> Result:
    """Compute the distances of one graph whose rows are divided among the processes of
    torch.distributed; each calls this with its own rows, and gets their distances.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise InputError(
            "torch.distributed must have joined the processes, but has not; call "
            "torch.distributed.init_process_group first, in processes that torchrun starts."
        )
    group = group.get_group() if hasattr(group, "get_group") else group
    with ProcessGroup(group) as ranks:

        def checked() -> _Task:
            check_config(config)
            check_flags(progress=progress)
            options = Options(overwrite, True, predecessors, negative_cycles)
            check_options(options)
            if isinstance(local_rows, (str, os.PathLike)):
                weights: torch.Tensor | NpyFile = weights_file(local_rows, "local_rows")
                place = torch.device("cpu")
            else:
                weights = rows_tensor(local_rows, "local_rows")
                place = weights.device
            chosen = _device(device, place, group)
            held = None if memory is None else as_integer(memory, "memory", least=1)
            return _Task(weights, Wishes(chosen, config, options, held))

        task = ranks.together(checked)
        weights = task.weights
        if isinstance(weights, NpyFile):
            counts = even_counts(weights.shape[0], ranks.size)
        else:
            counts = tuple(ranks.gather(len(weights)))
        first = sum(counts[: ranks.rank])
        end = first + counts[ranks.rank]

        def opened() -> tuple[Rows, Target | None]:
            rows = _rows(weights, first, end)
            shape = end - first, rows.shape[1]
            target = target_of(weights, out, shape, rows.dtype, overwrite=overwrite, first=first)
            return rows, target

        rows, target = ranks.together(opened)
        with tqdm(
            desc="solving", total=100, unit="%", disable=not progress or ranks.rank > 0
        ) as bar:

            def show(share: float) -> None:
                bar.update(round(100 * share) - bar.n)

            result = solve_rows(ranks, rows, target, task.wishes, show)
        if isinstance(out, torch.Tensor) and target is None:
            out.copy_(result.distances)
        return result


def _rows(weights: torch.Tensor | NpyFile, first: int, end: int) -> Rows:
    if isinstance(weights, NpyFile):
        return FileRows(weights, first, end, "local_rows")
    return TensorRows(weights) if weights.device.type == "cpu" else TensorOnDevice(weights)


def _device(
    wanted: torch.device | str | None, given: torch.device, group: dist.ProcessGroup | None
) -> torch.device:
    """Return the device of this rank.

    Raises:
        InputError: it does not exist, or the group does not join such devices.
    """
    device = given if wanted is None else resolve(str(wanted))
    if device.type == "cuda" and device.index is None:
        device = current_gpu()
    if given.type == "cuda" and given != device:
        raise InputError(
            f"`device` must be that of rows on a GPU, {given}, but is {device}; leave it out."
        )
    joined = dist.get_backend_config(group)
    if f"{device.type}:" not in joined:
        raise InputError(
            f"the group must join devices like {device}, but its backends are {joined}; make it "
            'with the backend "nccl" for GPUs, and "gloo" for CPUs.'
        )
    return device
