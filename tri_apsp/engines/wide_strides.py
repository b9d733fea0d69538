"""Products of matrices with row strides beyond int32: kernels address within a tile in 32 bits."""

from collections.abc import Iterator

import torch

from tri_apsp.engines.base import Engine, Update, block

MAX_ROW_STRIDE = 1 << 18
"""The largest row stride, beyond that of a dense matrix, with which every tile of a GPU kernel
spans less than 2^31 values.
"""

# Rows and columns of B that are copied at a time.
_PART = 4096
_SPAN = (1 << 31) - 1


def has_wide_strides(update: Update, rows: int) -> bool:
    """Return whether `rows` rows of a block of the update, the most that a tile has, span more
    values than int32 counts.
    """
    return any(x.stride(1) * rows > _SPAN and x.shape[1] > 1 for x in update[:3])


def multiply_in_parts(engine: Engine, update: Update) -> None:
    """Compute an update by products of contiguous copies of its parts."""
    c, a, b = update[:3]
    _, m, k = a.shape
    all_rows, (start, stop) = (0, m), update.skip
    for columns in _parts(b.shape[2]):
        part = block(c, all_rows, columns)
        c_part = part.clone(memory_format=torch.contiguous_format)
        for depth in _parts(k):
            a_part, b_part = (
                block(a, all_rows, depth).contiguous(),
                block(b, depth, columns).contiguous(),
            )
            engine.product(Update(c_part, a_part, b_part, fresh=update.fresh and depth[0] == 0))
        first, last = columns
        for rows in ((0, min(start, m)), (stop, m)):
            for left, right in ((first, min(start, last)), (max(stop, first), last)):
                if rows[0] < rows[1] and left < right:
                    block(c, rows, (left, right)).copy_(
                        block(c_part, rows, (left - first, right - first))
                    )


def _parts(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _PART):
        yield start, min(start + _PART, count)
