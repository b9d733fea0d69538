"""Products of matrices whose rows lie so far apart that kernels, which count in 32 bits within a tile, cannot address them."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tri_apsp.engines.base import Engine, Update, block

__all__ = ["is_far", "multiply_in_parts"]

# Rows and columns of B that are copied at a time.
_PART = 4096
_SPAN = (1 << 31) - 1


def is_far(update: Update, rows: int) -> bool:
    """Return whether so many rows of one of the blocks of an update, as a tile has at most, span more than 32 bits count."""
    return any(x.stride(1) * rows > _SPAN and x.shape[1] > 1 for x in update[:3])


def multiply_in_parts(engine: Engine, update: Update) -> None:
    """Compute an update by products of copies of its parts, whose rows lie close together."""
    c, a, b = update[:3]
    _, m, k = a.shape
    every, (start, stop) = (0, m), update.skip
    for columns in _parts(b.shape[2]):
        part = block(c, every, columns)
        near = part.clone(memory_format=torch.contiguous_format)
        for between in _parts(k):
            near_a, near_b = block(a, every, between).contiguous(), block(b, between, columns).contiguous()
            engine.product(Update(near, near_a, near_b, fresh=update.fresh and between[0] == 0))
        first, last = columns
        for rows in ((0, min(start, m)), (stop, m)):
            for left, right in ((first, min(start, last)), (max(stop, first), last)):
                if rows[0] < rows[1] and left < right:
                    block(c, rows, (left, right)).copy_(block(near, rows, (left - first, right - first)))


def _parts(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _PART):
        yield start, min(start + _PART, count)
