"""Matrices whose rows GPU kernels can move 16 bytes at a time: Triton does so only where 16 divides sizes and strides.

A graph of n vertices is then stored as one of the next multiple of 16, whose other vertices no edge touches.
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from tri_apsp.device import has_room
from tri_apsp.semirings import no_edge

__all__ = ["GRAIN", "aligned", "for_product", "stored"]

GRAIN = 16
# Tiles of the smallest graphs reach past their end anyway.
_LEAST = 64
# Operations of a graph from which on a product is faster by more than it takes to align its rows: on an H200 one of n = 700
# takes 279 instead of 215 us in int16, and as long in float32; of n = 2500, 853 instead of 1133, and 1264 instead of 1349.
_LEAST_PRODUCT = 1 << 31


def aligned(n: int) -> int:
    """Return the least multiple of GRAIN from n on."""
    return -(-n // GRAIN) * GRAIN


def stored(graphs: torch.Tensor, matrices: float) -> int:
    """Return how many rows and columns to store of each of the `graphs` (batch, n, n), which are on a GPU.

    That is n, unless more makes a solve faster, and so many `matrices` of that size fit the memory, with the result.
    """
    batch, n, _ = graphs.shape
    size = aligned(n)
    if size == n or n <= _LEAST or not has_room(matrices * batch * size**2 * graphs.itemsize, graphs.device):
        return n
    return size


def for_product(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return operands a (batch, m, k), b (batch, k, n), c (batch, m, n) or None with unit strides in the last dimension.

    Those of a large product on a GPU have aligned rows, and more of them and columns where 16 divides k or n not: no_edge. Then
    their product has more columns than n.
    """
    batch, m, k = a.shape
    n = b.shape[2]
    ready = all(x.stride(2) == 1 and x.stride(1) % GRAIN == x.data_ptr() % GRAIN == 0 for x in (a, b)) and n % GRAIN == 0
    deep, wide = aligned(k), aligned(n)
    size = batch * (m * deep + deep * wide + 2 * m * wide) * a.itemsize
    if ready or not a.is_cuda or m * k * n < _LEAST_PRODUCT or not has_room(size, a.device):
        return _unit_stride(a), _unit_stride(b), c
    infinity = no_edge(a.dtype)
    return (
        pad(a, (0, deep - k), value=infinity),
        pad(b, (0, wide - n, 0, deep - k), value=infinity),
        None if c is None else pad(c, (0, wide - n), value=infinity),
    )


def _unit_stride(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
