"""Copying graphs between a packed tensor, where each has its own values, and padded matrices."""

import torch

from tri_apsp.device import current
from tri_apsp.engines.cpu_tasks import run_tasks, thread_count
from tri_apsp.gpu.launcher import cached_launcher

# Values per task on a CPU, and at most per program on a GPU.
_TASK, _BLOCK = 1 << 16, 1024
# The time to copy a value, in min-plus operations.
_COPY = 4
# Values are moved as integers of their size, whatever their dtype is.
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def unpacked(
    values: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor, n: int, fill: float | int
) -> torch.Tensor:
    """Return some graphs of a packed tensor as matrices (graphs, n, n).

    Args:
        values: (total,), of any dtype: graph g has sizes[g]^2 values in row order from starts[g]
            on.
        starts, sizes: (graphs,) of int64 on the device of the values; sizes of at most n.
        fill: the value of padding.
    """
    matrices = values.new_empty((len(sizes), n, n))
    _move(matrices, _stored(values), starts, sizes, fill, pack=False)
    return matrices


def pack_into(
    values: torch.Tensor, matrices: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor
) -> None:
    """Write the graphs of matrices (graphs, n, n) into a packed tensor, which is contiguous; see
    `unpacked`.
    """
    _move(_stored(matrices), values, starts, sizes, 0, pack=True)


def _stored(tensor: torch.Tensor) -> torch.Tensor:
    """Return a contiguous tensor whose memory holds its values."""
    return tensor.contiguous().resolve_conj().resolve_neg()


def _move(
    matrices: torch.Tensor,
    values: torch.Tensor,
    starts: torch.Tensor,
    sizes: torch.Tensor,
    fill: float | int,
    *,
    pack: bool,
) -> None:
    if not matrices.numel():
        return
    if matrices.dtype.itemsize in _BITS:
        bits = _BITS[matrices.dtype.itemsize]
        fill = torch.tensor(fill, dtype=matrices.dtype).view(bits).item()
        matrices, values = matrices.view(bits), values.view(bits)
    if values.device.type != "cpu":
        _move_on_gpu(matrices, values, starts, sizes, fill, pack)
        return
    from tri_apsp.kernels.cpu import pack_graphs as kernels

    graphs = max(1, _TASK // matrices[0].numel())
    flat = values.numpy()
    padding = flat.dtype.type(fill)
    tasks = [
        (matrices[part].numpy(), flat, starts[part].numpy(), sizes[part].numpy(), padding)
        for part in (slice(first, first + graphs) for first in range(0, len(sizes), graphs))
    ]
    run_tasks(
        kernels.pack if pack else kernels.unpack,
        tasks,
        _COPY * matrices.numel(),
        thread_count(),
    )


def _move_on_gpu(
    matrices: torch.Tensor,
    values: torch.Tensor,
    starts: torch.Tensor,
    sizes: torch.Tensor,
    fill: float | int,
    pack: bool,
) -> None:
    from tri_apsp.kernels.shared.copy_packed import _copy_packed_kernel

    graphs, n, _ = matrices.shape
    block = min(_BLOCK, 1 << max(5, (n * n - 1).bit_length()))
    blocks = -(-n * n // block)
    launch = cached_launcher(
        _copy_packed_kernel, PACK=pack, FILL=fill, WIDE=n * n >= 1 << 31, BLOCK=block, num_warps=4
    )
    with current(values.device):
        launch((graphs * blocks, 1, 1), matrices, values, starts, sizes, n, blocks)
