"""Smallest and largest values of a tensor of any strides in one pass, in plain Triton.

    for each tile [ROWS, BLOCK] that is this program's turn
        lowest, highest, highest below BELOW, each with the tile    # [ROWS, BLOCK], in registers
    out[:, pid] = (lowest, lowest of the diagonal, highest, highest below BELOW, whether any is NaN)

Nothing is masked: rows and columns past the end repeat the last one, and a value that is read twice changes no minimum.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import wide
from tri_apsp.kernels.shared.extremes import no_extremes, store_extremes, with_tile

__all__ = ["_scan_kernel"]


@triton.jit
def _row_offsets(offs_r, m, stride_b, stride_m):
    """Return where rows `offs_r` of all matrices begin."""
    return (offs_r // m).to(tl.int64) * stride_b + (offs_r % m).to(tl.int64) * stride_m


@triton.jit
def _lowest(d_ptr, count, n, stride_db, stride_dn, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    """Return the smallest d[item, i] of this program's turns among `count` values, BLOCK at a time."""
    lowest = wide(tl.full([BLOCK], LARGEST, d_ptr.dtype.element_ty))
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        offs = tl.minimum(start + tl.arange(0, BLOCK), count - 1)
        lowest = tl.minimum(lowest, wide(tl.load(d_ptr + _row_offsets(offs, n, stride_db, stride_dn))))
    return tl.min(lowest)


# Only stride_xn is specialised, which is nearly always 1: no other size, stride or alignment makes a load any wider.
@triton.jit(
    do_not_specialize=[
        "x_ptr", "d_ptr", "first", "most", "rows", "m", "n", "stride_xb", "stride_xm",
        "count", "length", "stride_db", "stride_dn",
    ]
)  # fmt: skip
def _scan_kernel(
    x_ptr,  # X (batch, m, n), not empty: all the values, in whatever order
    d_ptr,  # D (batch, length): the diagonals
    out_ptr,  # of the dtype of X; from out[first] on, (5, most), for what each program finds
    first, most,
    rows, m, n,  # rows = batch * m < 2**30, which int32 counts; n may be any
    stride_xb, stride_xm, stride_xn,
    count, length, stride_db, stride_dn,  # count = batch * length < 2**30
    SMALLEST: tl.constexpr, LARGEST: tl.constexpr,  # of the dtype; infinities for floats
    BELOW: tl.constexpr,  # None: out[3] is the largest value
    DIAGONAL: tl.constexpr,  # without it D is not read, and out[1] is LARGEST
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write what the tiles of one program hold: tiles pid, pid + programs, ... of all rows of all matrices, row by row.

    A value that is NaN shows in out[4, pid] alone.
    """
    pid = tl.program_id(0)
    lowest, highest, highest_below = no_extremes(x_ptr, ROWS, BLOCK, SMALLEST, LARGEST)
    tiles_n = tl.cdiv(n.to(tl.int64), BLOCK).to(tl.int32)
    for tile in range(pid, tl.cdiv(rows, ROWS) * tiles_n, tl.num_programs(0)):
        offs_r = tl.minimum(tile // tiles_n * ROWS + tl.arange(0, ROWS), rows - 1)
        first_n = (tile % tiles_n).to(tl.int64) * BLOCK
        offs_n = tl.minimum(tl.arange(0, BLOCK), tl.minimum(n - 1 - first_n, BLOCK).to(tl.int32))
        row_ptrs = x_ptr + first_n * stride_xn + _row_offsets(offs_r, m, stride_xb, stride_xm)
        x = wide(tl.load(row_ptrs[:, None] + (offs_n.to(tl.int64) * stride_xn)[None, :]))
        lowest, highest, highest_below = with_tile(lowest, highest, highest_below, x, SMALLEST, BELOW)
    loop = LARGEST
    if DIAGONAL:
        loop = _lowest(d_ptr, count, length, stride_db, stride_dn, LARGEST, 256)
    store_extremes(out_ptr + first, most, lowest, loop, highest, highest_below, BELOW)
