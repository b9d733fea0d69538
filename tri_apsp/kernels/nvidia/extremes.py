"""The extremes of weights and distances that the host checks after a solve in one launch, in Gluon.

These are eight values; NaN in W, and a size outside [0, n], count as SMALLEST:

    0  lowest of W        3  highest of W                     5  highest of D
    1  lowest of D        4  highest of W below NO_EDGE       6  highest of D below NO_EDGE
    2  lowest of D's diagonal                                 7  unused

Each program stores its own, and the last program of the launch reduces them all: the least of
columns 0 to 2, the greatest of the others.
"""

from dataclasses import dataclass
from typing import Any

from tri_apsp.kernels.nvidia.gluon_names import barrier, gl, gluon


@dataclass(frozen=True)
class ExtremesConstants:
    """What the extremes are compiled for, passed from function to function as one constexpr.

    Attributes:
        NO_EDGE, SMALLEST: the greatest and the least value of COMPUTE; SMALLEST is minus infinity
            for floats.
        COMPUTE: dtype of the values.
        ROW_LAYOUT: of eight values.
        BLOCK: rows that the last program reduces at a time.
        BLOCK_LAYOUT: of [BLOCK, 8].
    """

    NO_EDGE: float | int
    SMALLEST: float | int
    COMPUTE: Any
    ROW_LAYOUT: Any
    BLOCK: int
    BLOCK_LAYOUT: Any


@gluon.jit
def _combine_extremes(low, high0, high1, other_low, other_high0, other_high1):
    return (
        gl.minimum(low, other_low),
        gl.maximum(high0, other_high0),
        gl.maximum(high1, other_high1),
    )


@gluon.jit
def reduce_extremes(low, high0, high1):
    """Return the least value of one tile and the greatest of two others, by one reduction."""
    return gl.reduce((gl.ravel(low), gl.ravel(high0), gl.ravel(high1)), 0, _combine_extremes)


@gluon.jit
def extremes_row(
    lowest_w,
    lowest_d,
    lowest_diagonal,
    highest_w,
    below_w,
    highest_d,
    below_d,
    EXTREMES: gl.constexpr,
):
    """Return the extremes of a program as a row of eight values."""
    # A row [8] of scalars, column by column.
    ROW_LAYOUT: gl.constexpr = EXTREMES.ROW_LAYOUT
    offs = gl.arange(0, 8, layout=ROW_LAYOUT)
    row = gl.full([8], lowest_w, EXTREMES.COMPUTE, ROW_LAYOUT)
    row = gl.where(offs == 1, lowest_d, row)
    row = gl.where(offs == 2, lowest_diagonal, row)
    row = gl.where(offs == 3, highest_w, row)
    row = gl.where(offs == 4, below_w, row)
    row = gl.where(offs == 5, highest_d, row)
    return gl.where(offs == 6, below_d, row)


@gluon.jit
def store_extremes(row, partials_ptr, finished_ptr, extremes_ptr, finished, EXTREMES: gl.constexpr):
    """Store the extremes of this program; the last program to do so reduces those of all.

    Args:
        row: what extremes_row returned.
        partials_ptr: (programs, 8) of COMPUTE, workspace.
        finished_ptr: (1,) of int64, which reaches `finished` when the last program of the launch
            has stored its extremes.
        extremes_ptr: (8,) of COMPUTE, where the host reads them.
    """
    ROW_LAYOUT: gl.constexpr = EXTREMES.ROW_LAYOUT
    BLOCK_LAYOUT: gl.constexpr = EXTREMES.BLOCK_LAYOUT
    BLOCK: gl.constexpr = EXTREMES.BLOCK
    # This program's row of partials.
    offs = gl.arange(0, 8, layout=ROW_LAYOUT)
    graphs, programs = gl.num_programs(1), gl.num_programs(0)
    gl.store(partials_ptr + (gl.program_id(1) * programs + gl.program_id(0)) * 8 + offs, row)
    # The barrier lets all threads store before one counts this program; acq_rel makes the rows of
    # the others visible to the last program.
    barrier()
    if gl.atomic_add(finished_ptr, 1, sem="acq_rel", scope="gpu") + 1 == finished:
        # The last program reduces all rows, [BLOCK, 8] at a time.
        column = gl.arange(0, 8, layout=gl.SliceLayout(0, BLOCK_LAYOUT))
        least = gl.full([BLOCK, 8], EXTREMES.NO_EDGE, EXTREMES.COMPUTE, BLOCK_LAYOUT)
        most = gl.full([BLOCK, 8], EXTREMES.SMALLEST, EXTREMES.COMPUTE, BLOCK_LAYOUT)
        for start in range(0, graphs * programs, BLOCK):
            i = start + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, BLOCK_LAYOUT))
            inside = (i < graphs * programs)[:, None] & (column < 8)[None, :]
            x = gl.load(
                partials_ptr + i[:, None] * 8 + column[None, :], mask=inside, other=EXTREMES.NO_EDGE
            )
            least = gl.minimum(least, x)
            most = gl.maximum(most, gl.where(inside, x, EXTREMES.SMALLEST))
        gl.store(extremes_ptr + column, gl.where(column < 3, gl.min(least, 0), gl.max(most, 0)))
