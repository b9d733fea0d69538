"""Matrices whose rows GPU kernels can move 16 bytes at a time: Triton does so only where 16 divides sizes and strides.

A graph of n vertices is then stored as one of the next multiple of 16, whose other vertices no edge touches.
"""

from __future__ import annotations

import torch

from tri_apsp.device import has_room

__all__ = ["GRAIN", "aligned", "stored"]

GRAIN = 16
# Tiles of the smallest graphs reach past their end anyway.
_LEAST = 64


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
