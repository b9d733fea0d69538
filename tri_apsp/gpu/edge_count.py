"""Counting edges on a GPU without blocking the host."""

from collections.abc import Callable

import torch

from tri_apsp.device import current, describe, synchronize_stream
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.gpu.result_buffers import ROW, result_buffer_for
from tri_apsp.semirings import no_edge

# A program reads this many values at a time, and up to this many programs are launched per
# multiprocessor: enough loads in flight to fill the memory bandwidth.
_BLOCK, _WARPS, _PROGRAMS_PER_UNIT = 4096, 8, 4


def queue_edge_count(matrices: torch.Tensor, step: int, *, loops: bool) -> Callable[[], int]:
    """Queue a count of the edges in some rows of matrices.

    Args:
        matrices: (batch, m, n), not empty, of any strides.
        step: rows 0, step, ... of each matrix are read, less than 2^30 in all.
        loops: whether values on the diagonal count.

    Returns:
        A function that blocks until the edges are counted, and returns their number; 0 if one is
        not an integer. Call it exactly once, which frees the result buffer. It does not keep the
        matrices alive.
    """
    from tri_apsp.kernels.shared.edge_count import _count_edges_kernel

    device, (batch, m, n) = matrices.device, matrices.shape
    rows_read = -(-m // step)
    programs = min(batch * rows_read, _PROGRAMS_PER_UNIT * describe(device).units)
    buffer = result_buffer_for(device, torch.int32, -(-programs // ROW))
    launch = cached_launcher(
        _count_edges_kernel,
        NO_EDGE=no_edge(matrices.dtype),
        LOOPS=loops,
        BLOCK=_BLOCK,
        num_warps=_WARPS,
    )
    with current(device):
        launch(
            (programs, 1, 1),
            matrices,
            buffer.tensor,
            batch * rows_read,
            rows_read,
            n,
            step,
            *matrices.stride(),
        )

    def read() -> int:
        synchronize_stream(device)
        counts = buffer.values.reshape(-1)[:programs]
        edges = int(counts.sum()) if counts.min() >= 0 else 0
        buffer.free()
        return edges

    return read
