"""Counting edges on a GPU, while the host goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch

from tri_apsp.device import current, describe, synchronize_stream
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.gpu.result_buffers import ROW, result_buffer_for
from tri_apsp.semirings import no_edge

__all__ = ["queue_edge_count"]

# A program reads this many values at a time, and this many programs run on each multiprocessor: enough loads in flight to fill
# the memory bandwidth.
_BLOCK, _WARPS, _PROGRAMS_PER_UNIT = 4096, 8, 4


def queue_edge_count(matrices: torch.Tensor, step: int, *, loops: bool) -> Callable[[], int]:
    """Queue a count of the edges of matrices (batch, m, n) in rows 0, step, ....

    Args:
        matrices: not empty, of any strides, with less than 2^31 rows in all.
        step: at least 1.
        loops: whether values on the diagonal count.

    Returns:
        A function that blocks until they are counted, and returns the edges; 0 if one is not a whole number. To be called once.
    """
    batch, m, n = matrices.shape
    rows = batch * -(-m // step)
    programs = min(rows, _PROGRAMS_PER_UNIT * describe(matrices.device).units)
    buffer = result_buffer_for(matrices.device, torch.int32, -(-programs // ROW))
    with current(matrices.device):
        _launcher(matrices.dtype, loops)(
            (programs, 1, 1), matrices, buffer.tensor, rows, rows // batch, n, step, *matrices.stride()
        )

    def read() -> int:
        synchronize_stream(matrices.device)
        counts = buffer.values.reshape(-1)[:programs]
        edges = int(counts.sum()) if counts.min() >= 0 else 0
        buffer.free()
        return edges

    return read


@cache
def _launcher(dtype: torch.dtype, loops: bool) -> Launcher:
    from tri_apsp.kernels.shared.edge_count import _count_edges_kernel

    return Launcher(_count_edges_kernel, {"NO_EDGE": no_edge(dtype), "LOOPS": loops, "BLOCK": _BLOCK, "num_warps": _WARPS})
