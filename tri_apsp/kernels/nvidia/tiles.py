"""What the kernels of the nvidia engine share: one add and min on registers, and products of tiles in shared memory.

A tile of C lives in registers, in the layout ACC: a thread owns some rows, and in each of them groups of consecutive columns.
Tiles of A and B lie in shared memory, row by row. Four columns of A, or a row of B, are loaded in the layout of C itself, so
that their sum broadcasts in registers: a few 16-byte loads for some hundred pairs of add and min, which plain Triton cannot
express.

The operation is a STRATEGY, by dtype, sign and GPU:

    "nonnegative"  float32 without negative values, which order like their bits: FADD FADD VIMNMX3 for two pairs (from sm_90)
    "float"        other float32: FADD FMNMX
    "int32"        VIADDMNMX (from sm_90)
    "int16x2"      two int16 in a word: VIADDMNMX.S16x2 for two pairs (sm_90 only)
    "compare"      float64 and int64, for which no GPU has a minimum: add, compare, select

A GPU without such an instruction runs the plain add and min that the same lines compile to.
"""

from __future__ import annotations

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import twice

__all__ = ["clamp", "columns_of", "one_sum", "rank_update"]


@gluon.jit
def _two_sums_nonnegative(acc, a0, b0, a1, b1):
    """min(acc, a0 + b0, a1 + b1). One block of PTX: a minimum of three that LLVM sees it takes apart again."""
    return gl.inline_asm_elementwise(
        "{ .reg .f32 s, t; .reg .s32 u, v, w; add.f32 s, $1, $2; add.f32 t, $3, $4;"
        " mov.b32 u, s; mov.b32 v, t; mov.b32 w, $5; min.s32 u, u, v; min.s32 u, u, w; mov.b32 $0, u; }",
        "=f,f,f,f,f,f",
        [a0, b0, a1, b1, acc],
        gl.float32,
        True,
        1,
    )


@gluon.jit
def _sum_int32(acc, a, b):
    """min(acc, a + b) in one block of PTX, which ptxas then fuses."""
    return gl.inline_asm_elementwise(
        "{ .reg .s32 s; add.s32 s, $1, $2; min.s32 $0, s, $3; }", "=r,r,r,r", [a, b, acc], gl.int32, True, 1
    )


@gluon.jit
def _sum_int16x2(acc, a, b):
    """min(acc, a + b) on both halves of a word, likewise."""
    return gl.inline_asm_elementwise(
        "{ .reg .b32 s; add.s16x2 s, $1, $2; min.s16x2 $0, s, $3; }", "=r,r,r,r", [a, b, acc], gl.int32, True, 1
    )


@gluon.jit
def _greater_int16x2(x, floor):
    """max(x, floor) on both halves of a word."""
    return gl.inline_asm_elementwise("max.s16x2 $0, $1, $2;", "=r,r,r", [x, floor], gl.int32, True, 1)


@gluon.jit
def _sum_compare(acc, a, b):
    total = a + b
    return gl.where(total < acc, total, acc)


@gluon.jit
def one_sum(acc, a, b, STRATEGY: gl.constexpr):
    """min(acc, a + b)."""
    if STRATEGY == "int32":
        return _sum_int32(acc, a, b)
    elif STRATEGY == "int16x2":
        return _sum_int16x2(acc, a, b)
    elif STRATEGY == "compare":
        return _sum_compare(acc, a, b)
    else:
        return gl.minimum(acc, a + b)


@gluon.jit
def _two_sums(acc, a0, b0, a1, b1, STRATEGY: gl.constexpr):
    """min(acc, a0 + b0, a1 + b1) for acc [M, N], a [M, 1], b [1, N]."""
    if STRATEGY == "nonnegative":
        return _two_sums_nonnegative(acc, a0, b0, a1, b1)
    elif STRATEGY == "float":
        return gl.minimum(gl.minimum(acc, a0 + b0), a1 + b1)
    elif STRATEGY == "int32":
        return _sum_int32(_sum_int32(acc, a0, b0), a1, b1)
    elif STRATEGY == "int16x2":
        return _sum_int16x2(_sum_int16x2(acc, a0, b0), a1, b1)
    else:
        return _sum_compare(_sum_compare(acc, a0, b0), a1, b1)


@gluon.jit
def clamp(x, FLOOR: gl.constexpr, STRATEGY: gl.constexpr):
    """max(x, FLOOR); x itself where FLOOR is None, as without negative weights."""
    if FLOOR is None:
        return x
    elif STRATEGY == "int16x2":
        return _greater_int16x2(x, (FLOOR & 0xFFFF) * 65537 - (1 << 32))  # FLOOR in both halves
    elif STRATEGY == "compare":
        return gl.where(x < FLOOR, FLOOR, x)
    else:
        return gl.maximum(x, FLOOR)


@gluon.jit
def columns_of(tile, ROWS: gl.constexpr):
    """Split a register tile [M, 4] into its columns [M, 1]; no data moves."""
    even, odd = gl.split(gl.reshape(tile, [tile.shape[0], 2, 2]))
    a0, a2 = gl.split(even)
    a1, a3 = gl.split(odd)
    a0 = gl.expand_dims(gl.convert_layout(a0, ROWS, assert_trivial=True), 1)
    a1 = gl.expand_dims(gl.convert_layout(a1, ROWS, assert_trivial=True), 1)
    a2 = gl.expand_dims(gl.convert_layout(a2, ROWS, assert_trivial=True), 1)
    a3 = gl.expand_dims(gl.convert_layout(a3, ROWS, assert_trivial=True), 1)
    return a0, a1, a2, a3


@gluon.jit
def rank_update(acc, a_smem, b_smem, K: gl.constexpr, ACC: gl.constexpr, STRATEGY: gl.constexpr):
    """Return min(acc, A * B) for acc [M, N] in registers, and the first K columns of A and rows of B in shared memory.

    Of pairs, A may be int16, or hold each value twice already.
    """
    ROWS: gl.constexpr = gl.SliceLayout(1, ACC)
    for x in gl.static_range(0, K, 4):
        four = a_smem.slice(x, 4, dim=1).load(ACC)
        if four.dtype == gl.int16:
            four = twice(four)
        a0, a1, a2, a3 = columns_of(four, ROWS)
        b0 = b_smem.slice(x, 1, dim=0).load(ACC)
        b1 = b_smem.slice(x + 1, 1, dim=0).load(ACC)
        acc = _two_sums(acc, a0, b0, a1, b1, STRATEGY)
        b2 = b_smem.slice(x + 2, 1, dim=0).load(ACC)
        b3 = b_smem.slice(x + 3, 1, dim=0).load(ACC)
        acc = _two_sums(acc, a2, b2, a3, b3, STRATEGY)
    return acc
