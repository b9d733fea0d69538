"""Padding matrices so that kernels access rows 16 bytes at a time, which Triton does only where 16
divides sizes and strides.

A graph of n vertices is then stored with the next multiple of 16 rows and columns; no edge touches
the added vertices.
"""

import torch
from torch.nn.functional import pad

from tri_apsp.memory import fits_memory

ALIGNMENT = 16
# Graphs of up to this many vertices gain nothing: the tiles of the kernels are larger than the
# graph.
_LEAST = 64
# From this many operations per graph on, aligning the rows of a product saves more time than it
# takes: on an H200 a product of n = 700 takes 279 us aligned and 215 us as it is in int16, and the
# same time in float32; one of n = 2500 takes 853 us aligned and 1133 us as it is in int16, 1264 us
# and 1349 us in float32.
_MIN_PRODUCT = 1 << 31


def aligned(n: int) -> int:
    """Return the smallest multiple of ALIGNMENT that is at least n."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def padded_size(graphs: torch.Tensor, matrices: float) -> int:
    """Return the padded number of rows and columns of each of `graphs` (batch, n, n) on a GPU.

    Args:
        graphs: the weights.
        matrices: how many matrices of the padded size the solve needs, the result included.

    Returns:
        The next multiple of 16, or n where padding gains nothing or the matrices would not fit the
        free memory.
    """
    batch, n, _ = graphs.shape
    size = aligned(n)
    if (
        size == n
        or n <= _LEAST
        or not fits_memory(matrices * batch * size**2 * graphs.itemsize, graphs.device)
    ):
        return n
    return size


def pad_operands(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, missing: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None:
    """Return copies of operands a (batch, m, k), b (batch, k, n), c (batch, m, n) or None with
    aligned rows.

    k and n are padded to multiples of 16 with `missing`, so that the product of the copies may have
    more than n columns. None: the product is too small to gain by it, the rows are aligned already,
    or the copies do not fit the free memory.
    """
    batch, m, k = a.shape
    n = b.shape[2]
    ready = all(
        x.stride(2) == 1 and x.stride(1) % ALIGNMENT == x.data_ptr() % ALIGNMENT == 0
        for x in (a, b)
    )
    padded_k, padded_n = aligned(k), aligned(n)
    size = batch * (m * padded_k + padded_k * padded_n + 2 * m * padded_n) * a.itemsize
    if (ready and n == padded_n) or m * k * n < _MIN_PRODUCT or not fits_memory(size, a.device):
        return None
    return (
        pad(a, (0, padded_k - k), value=missing),
        pad(b, (0, padded_n - n, 0, padded_k - k), value=missing),
        None if c is None else pad(c, (0, padded_n - n), value=missing),
    )
