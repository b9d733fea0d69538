"""The extremes of a tensor of any strides in one pass, in plain Triton.

    for each tile [ROWS, BLOCK] of this program:
        lowest, highest, highest below BELOW, each with the tile    # [ROWS, BLOCK], in registers
    out[:, pid] = (lowest, lowest on the diagonal, highest, highest below BELOW, whether any is NaN)

Nothing is masked: rows and columns past the end repeat the last one, and a value that is read twice
changes no extreme.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.portable.tiles import widen
from tri_apsp.kernels.shared.extremes import empty_extremes, store_extremes, update_extremes


@triton.jit
def _row_offsets(offs_r, m, stride_b, stride_m):
    """Return the offsets at which rows `offs_r` of all matrices begin."""
    return (offs_r // m).to(tl.int64) * stride_b + (offs_r % m).to(tl.int64) * stride_m


@triton.jit
def _lowest(d_ptr, count, n, stride_db, stride_dn, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    """Return the smallest of this program's blocks of D (batch, n), which has `count` values."""
    lowest = widen(tl.full([BLOCK], LARGEST, d_ptr.dtype.element_ty))
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        offs = tl.minimum(start + tl.arange(0, BLOCK), count - 1)
        lowest = tl.minimum(
            lowest, widen(tl.load(d_ptr + _row_offsets(offs, n, stride_db, stride_dn)))
        )
    return tl.min(lowest)


# Only stride_xn is specialised, which is nearly always 1: no other size, stride or alignment makes
# a load any wider.
@triton.jit(
    do_not_specialize=[
        "x_ptr",
        "d_ptr",
        "out_offset",
        "max_programs",
        "rows",
        "m",
        "n",
        "stride_xb",
        "stride_xm",
        "count",
        "length",
        "stride_db",
        "stride_dn",
    ]
)
def _value_range_kernel(
    x_ptr,  # X (batch, m, n), not empty: all the values, in any order
    d_ptr,  # D (batch, length): the diagonals
    out_ptr,  # of the dtype of X
    out_offset,
    max_programs,  # the extremes of all programs, (5, max_programs), begin at out[out_offset]
    rows,
    m,
    n,  # rows = batch * m < 2**30, which int32 counts; n may need 64 bits
    stride_xb,
    stride_xm,
    stride_xn,
    count,
    length,
    stride_db,
    stride_dn,  # count = batch * length < 2**30
    SMALLEST: tl.constexpr,
    LARGEST: tl.constexpr,  # of the dtype; infinities for floats
    BELOW: tl.constexpr,  # None: out[3] is the highest value
    DIAGONAL: tl.constexpr,  # False: D is not read, and out[1] is LARGEST
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store the extremes of one program, which owns tiles pid, pid + programs, ..., counted along
    rows of tiles.

    NaN shows in out[4, pid] alone.
    """
    pid = tl.program_id(0)
    lowest, highest, highest_below = empty_extremes(x_ptr, ROWS, BLOCK, SMALLEST, LARGEST)
    tiles_n = tl.cdiv(n.to(tl.int64), BLOCK).to(tl.int32)
    for tile in range(pid, tl.cdiv(rows, ROWS) * tiles_n, tl.num_programs(0)):
        # Tile to rows of all matrices, and columns; start_n may need 64 bits, offsets within a tile
        # do not.
        offs_r = tl.minimum(tile // tiles_n * ROWS + tl.arange(0, ROWS), rows - 1)
        start_n = (tile % tiles_n).to(tl.int64) * BLOCK
        offs_n = tl.minimum(tl.arange(0, BLOCK), tl.minimum(n - 1 - start_n, BLOCK).to(tl.int32))
        x_rows = x_ptr + start_n * stride_xn + _row_offsets(offs_r, m, stride_xb, stride_xm)
        x = widen(tl.load(x_rows[:, None] + (offs_n.to(tl.int64) * stride_xn)[None, :]))
        lowest, highest, highest_below = update_extremes(
            lowest, highest, highest_below, x, SMALLEST, BELOW
        )
    lowest_diagonal = LARGEST
    if DIAGONAL:
        lowest_diagonal = _lowest(d_ptr, count, length, stride_db, stride_dn, LARGEST, 256)
    store_extremes(
        out_ptr + out_offset, max_programs, lowest, lowest_diagonal, highest, highest_below, BELOW
    )
