"""Additions and minima in registers alone, in Gluon: the ceiling of every kernel that does them with the same instructions.

    load a [4, BLOCK_M] and b [4, BLOCK_N]                     # into registers, in the layout of acc
    for each step:
        for each column p of a and row q of b, two pairs at a time:
            acc[i, j] = min(acc[i, j], a[p, i] + b[q, j])      # acc [BLOCK_M, BLOCK_N]
    store acc

This is the inner loop of the product (kernels.nvidia.tiles) without its memory. A step repeats the 16 pairs of the one before,
which the compiler cannot know: there are far more sums than registers, so that it cannot keep them from step to step.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.kernels.nvidia.tiles import _add_min_two

__all__ = ["PAIRS", "_arithmetic_kernel"]

PAIRS = 16
"""Operations of a step for each value of acc."""


@gluon.jit
def _row(ptr, row, N: gl.constexpr, LAYOUT: gl.constexpr):
    """Return row `row` of a matrix with rows of N values."""
    return gl.load(ptr + row * N + gl.arange(0, N, layout=LAYOUT))


@gluon.jit
def _arithmetic_kernel(
    acc_ptr, a_ptr, b_ptr,  # acc (programs, BLOCK_M, BLOCK_N), a (4, BLOCK_M), b (4, BLOCK_N), contiguous
    steps,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, ACC: gl.constexpr, STRATEGY: gl.constexpr,
):  # fmt: skip
    """acc <- min(acc, a[p, i] + b[q, j] for all p and q), `steps` times: axis 0 of the grid is the programs."""
    ROWS: gl.constexpr = gl.SliceLayout(1, ACC)
    COLUMNS: gl.constexpr = gl.SliceLayout(0, ACC)
    # Program id to tile of acc, a pointer to each value.
    offs_m = gl.arange(0, BLOCK_M, layout=ROWS)
    offs_n = gl.arange(0, BLOCK_N, layout=COLUMNS)
    tile_ptr = acc_ptr + gl.program_id(0).to(gl.int64) * (BLOCK_M * BLOCK_N)
    ptrs = tile_ptr + offs_m[:, None] * BLOCK_N + offs_n[None, :]
    acc = gl.load(ptrs)  # [BLOCK_M, BLOCK_N]
    a0, a1 = _row(a_ptr, 0, BLOCK_M, ROWS)[:, None], _row(a_ptr, 1, BLOCK_M, ROWS)[:, None]  # [BLOCK_M, 1]
    a2, a3 = _row(a_ptr, 2, BLOCK_M, ROWS)[:, None], _row(a_ptr, 3, BLOCK_M, ROWS)[:, None]
    b0, b1 = _row(b_ptr, 0, BLOCK_N, COLUMNS)[None, :], _row(b_ptr, 1, BLOCK_N, COLUMNS)[None, :]  # [1, BLOCK_N]
    b2, b3 = _row(b_ptr, 2, BLOCK_N, COLUMNS)[None, :], _row(b_ptr, 3, BLOCK_N, COLUMNS)[None, :]
    for _ in range(steps):
        acc = _add_min_two(acc, a0, b0, a1, b1, STRATEGY)
        acc = _add_min_two(acc, a2, b2, a3, b3, STRATEGY)
        acc = _add_min_two(acc, a0, b1, a1, b2, STRATEGY)
        acc = _add_min_two(acc, a2, b3, a3, b0, STRATEGY)
        acc = _add_min_two(acc, a0, b2, a1, b3, STRATEGY)
        acc = _add_min_two(acc, a2, b0, a3, b1, STRATEGY)
        acc = _add_min_two(acc, a0, b3, a1, b0, STRATEGY)
        acc = _add_min_two(acc, a2, b1, a3, b2, STRATEGY)
    gl.store(ptrs, acc)
