"""Solves of processes that torch.distributed has joined."""

import dataclasses
import os
from collections.abc import Sequence

import torch

from tri_apsp.arguments import check_flags
from tri_apsp.configs import Config
from tri_apsp.device import current, current_gpu
from tri_apsp.distributed.layout import bounds, even_counts
from tri_apsp.distributed.process_group import Group, group_of
from tri_apsp.distributed.rows import FileRows, Rows, TensorRows
from tri_apsp.distributed.run import solve_rows
from tri_apsp.distributed.target import targets_of
from tri_apsp.errors import InputError
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.plan import Checkpoint, NegativeCycles
from tri_apsp.progress import progress_bar
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.request import Place, Request
from tri_apsp.result import Result


def shortest_paths(
    local_rows: Place,
    group: Group = None,
    *,
    out: Place | None = None,
    device: torch.device | str | None = None,
    config: Config | None = None,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    weight_error: float = 0.0,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    progress: bool = False,
) -> Result:
    """Compute the distances of one graph whose rows are divided among the processes of
    torch.distributed. Each process calls this with its own rows, and gets their distances.

    Blocks of rows go by NCCL between GPUs, and by Gloo between CPUs. The distances are those of
    `tri_apsp.shortest_paths`: the same bits for integers and for floats whose sums are exact.

    Args:
        local_rows: (rows, n) of float32, float64, int16, int32 or int64, on the CPU or on the GPU
            of this rank: those of rank 0, then those of rank 1, and so on; the numbers may differ,
            and a rank may have none. Or the path of a `.npy` file (n, n) that all ranks can read:
            each takes an equal share of its rows.
        group: the ranks, a process group or a DeviceMesh of one dimension; None: the default group.
        out: where the distances go: a tensor like `local_rows`, which shares no memory with them;
            or a `.npy` file (n, n), of which each rank writes its rows. While it is not complete it
            is called NAME.npy.part; then it replaces a file of its name. `local_rows` themselves,
            or their file: solve in their memory. None: a new tensor on the device.
        device: where this rank computes, "cpu", "cuda" or "cuda:N"; None: where `local_rows` are.
            Rows on the CPU, or in a file, may be solved on a GPU: with `out`, they are streamed
            through it where they are larger than `memory`.
        config: as for `tri_apsp.shortest_paths`; that of rank 0 counts.
        predecessors: as for `tri_apsp.shortest_paths`.
        negative_cycles: as for `tri_apsp.shortest_paths`.
        weight_error: as for `tri_apsp.shortest_paths`.
        memory: the bytes that the solve may take on a device; None: what is free. If it differs
            between ranks, the least counts.
        checkpoint: a folder that all ranks can reach, or a `Checkpoint`. The solve writes its state
            there, and goes on from it if it finds one, with any number of ranks. It is emptied once
            the solve is complete.
        progress: show a bar on stderr, by rank 0.

    Returns:
        The rows of this rank: `Result.sources` are its vertices, and `distances` (rows, n) is `out`
            if that is a tensor, the rows in its file, or a new tensor on the device.

    Raises:
        InputError: rows that do not add up to a square; ranks that differ in n, dtype or kind of
            device; a group that does not join such devices; the errors of
            `tri_apsp.shortest_paths`; files that cannot be read or written; a checkpoint of another
            graph. Every rank raises the same error, but for two: a rank that is not in `group`
            raises its error alone, and so does one whose file fails during the solve; then the
            others raise RankError.
        NegativeCycleError, DistanceRangeError, TooLargeError: as `tri_apsp.shortest_paths`, on
            every rank; if an allocation fails during the solve, only on that rank.
        RankError: another rank ended or failed, which is found within 40 seconds, or does not make
            the call within ten minutes.

    Cost:
        n^2 operations for each row; n values are received for each row of another rank, while
        other rows are computed.

    Source:
        Kumar and Singh, Scalability of Parallel Algorithms for the All-Pairs Shortest-Path Problem,
        1991; Sao et al., Scalable All-Pairs Shortest Paths for Huge Graphs on Multi-GPU Clusters,
        2021.

    Examples:
        >>> import torch
        >>> import torch.distributed as dist
        >>> from tri_apsp import distributed
        >>> # One process; those that torchrun starts call dist.init_process_group().
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> graph = torch.tensor([[0.0, 1, 4], [4, 0, 2], [1, torch.inf, 0]])
        >>> result = distributed.shortest_paths(graph)
        >>> result.distances
        tensor([[0., 1., 3.],
                [3., 0., 2.],
                [1., 2., 0.]])
        >>> result.sources
        tensor([0, 1, 2])
        >>> dist.destroy_process_group()
    """
    with group_of(group, "shortest_paths") as ranks:

        def checked() -> tuple[Request, torch.device]:
            check_flags(progress=progress)
            request = Request.of(
                local_rows,
                config=config,
                out=out,
                predecessors=predecessors,
                negative_cycles=negative_cycles,
                weight_error=weight_error,
                device=device,
                memory=memory,
                checkpoint=checkpoint,
                block_rows_because="rows of several processes",
                name="local_rows",
            )
            home = local_rows.device if isinstance(local_rows, torch.Tensor) else None
            return request, _device(ranks, request.devices, home)

        request, own = ranks.together(checked)
        ranks.require_same(
            {"local_rows": _file_of(local_rows), "out": _file_of(out)},
            rule="the same file on all ranks, or a tensor on each",
            remedy="give all the same absolute path",
        )
        weights = request.matrix
        if isinstance(weights, NpyFile):
            counts: Sequence[int] = even_counts(weights.shape[0], ranks.size, own.type)
        else:
            assert isinstance(weights, torch.Tensor)
            counts = ranks.gather(len(weights))
        first, end = bounds(counts)[ranks.rank]

        rows: Rows = (
            FileRows(weights, first, end, request.name)
            if isinstance(weights, NpyFile)
            else TensorRows(weights)
        )
        (target,) = ranks.together(
            lambda: targets_of(request, [(0, end - first)], rows.shape, rows.dtype)
        )
        with current(own), progress_bar(progress and ranks.rank == 0) as report:
            result = solve_rows(ranks, rows, target, request, own, progress=report)
        if isinstance(out, torch.Tensor) and not request.options.overwrite:
            distances = out if target is not None else out.copy_(result.distances)
            return dataclasses.replace(result, distances=distances)
        return result


def _file_of(value: Place | None) -> str:
    """Return the absolute path of a file; empty for a tensor, or for None."""
    if not isinstance(value, (str, os.PathLike)):
        return ""
    # Links may differ between machines, so that they are not followed.
    return os.path.abspath(value)  # noqa: PTH100


def _device(
    ranks: Communicator, named: Sequence[torch.device], given: torch.device | None
) -> torch.device:
    """Return the device of this rank.

    Args:
        named: by the caller.
        given: that of its rows; None: they are in a file.

    Raises:
        InputError: it is not one device, or the group does not join such devices.
    """
    device = named[0]
    if len(named) > 1:
        raise InputError(
            f"`device` must be that of this rank, but names {len(named)}; name one on each rank."
        )
    if device.type == "cuda" and device.index is None:
        device = current_gpu()
    if given is not None and given.type == "cuda" and given != device:
        raise InputError(
            f"`device` must be that of rows on a GPU, {given}, but is {device}; leave it out."
        )
    return ranks.joined_device(device)
