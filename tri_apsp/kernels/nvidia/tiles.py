"""The inner loop of the nvidia engine: C <- min(C, A B) for a tile of C in registers, and slices of
A and B in shared memory.

    for each four columns k of A and rows k of B:          # unrolled
        a [BLOCK_M, 4], b [4, BLOCK_N] from shared memory, in the layout of acc
        acc[i, j] = min(acc[i, j], a[i, k] * b[k, j])      # acc [BLOCK_M, BLOCK_N], in registers

The times of the semiring, *, is the sum of two values, the greater of them, or their product.

ACC is the layout of acc: a thread owns some rows, and in each of them groups of four neighbouring
columns. A and B are loaded in the same layout, so that the sum of a [BLOCK_M, 1] and b [1, BLOCK_N]
is a broadcast within the registers of a thread. A thread then issues a few 16-byte loads for some
hundred pairs of add and min; plain Triton cannot express that.

STRATEGY selects the instructions for * and the min, by semiring, dtype, sign and GPU. The names on
the right are machine instructions (SASS): VIMNMX takes the minimum or maximum of two values,
VIMNMX3 of three, VIADDMNMX the minimum of one value and a sum of two.

    "nonnegative"  float32 without negative values, which order like their bits:
                   FADD FADD VIMNMX3 for two pairs (from sm_90)
    "float"        other float32: FADD FMNMX
    "int32"        VIADDMNMX (from sm_90)
    "int16x2"      two int16 in a word: VIADDMNMX.S16x2 for two pairs (sm_90 only)
    "compare"      float64 and int64, for which no GPU has a minimum: add, compare, select
    "max_int32"    the greater of int32: VIMNMX VIMNMX VIMNMX3 for two pairs (from sm_90)
    "max_int16x2"  two int16 in a word, likewise
    "max_compare"  int64: compare, select, compare, select
    "times"        products of float32 that are not positive, which order against their bits:
                   FMUL FMUL VIMNMX3 for two pairs (from sm_90)
    "times_compare"  float64: multiply, compare, select

For a GPU without such an instruction, the same lines compile to a plain add and min.
"""

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon
from tri_apsp.kernels.nvidia.int16x2 import broadcast_int16x2


@gluon.jit
def _add_min_two_nonnegative(acc, a0, b0, a1, b1):
    """Return min(acc, a0 + b0, a1 + b1) in one block of PTX: LLVM would take apart a minimum of
    three that it sees.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .f32 s, t; .reg .s32 u, v, w; add.f32 s, $1, $2; add.f32 t, $3, $4; mov.b32 u, s; "
        "mov.b32 v, t; mov.b32 w, $5; min.s32 u, u, v; min.s32 u, u, w; mov.b32 $0, u; }",
        "=f,f,f,f,f,f",
        [a0, b0, a1, b1, acc],
        gl.float32,
        True,
        1,
    )


@gluon.jit
def _add_min_int32(acc, a, b):
    """Return min(acc, a + b) in one block of PTX, which ptxas fuses into one instruction."""
    return gl.inline_asm_elementwise(
        "{ .reg .s32 s; add.s32 s, $1, $2; min.s32 $0, s, $3; }",
        "=r,r,r,r",
        [a, b, acc],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _add_min_int16x2(acc, a, b):
    """Return min(acc, a + b) for both halves of each word, likewise."""
    return gl.inline_asm_elementwise(
        "{ .reg .b32 s; add.s16x2 s, $1, $2; min.s16x2 $0, s, $3; }",
        "=r,r,r,r",
        [a, b, acc],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _max_min_two_int32(acc, a0, b0, a1, b1):
    """Return min(acc, max(a0, b0), max(a1, b1)) in one block of PTX, likewise."""
    return gl.inline_asm_elementwise(
        "{ .reg .s32 u, v; max.s32 u, $1, $2; max.s32 v, $3, $4; min.s32 u, u, v; "
        "min.s32 $0, u, $5; }",
        "=r,r,r,r,r,r",
        [a0, b0, a1, b1, acc],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _max_min_two_int16x2(acc, a0, b0, a1, b1):
    """Return min(acc, max(a0, b0), max(a1, b1)) for both halves of each word, likewise."""
    return gl.inline_asm_elementwise(
        "{ .reg .b32 u, v; max.s16x2 u, $1, $2; max.s16x2 v, $3, $4; min.s16x2 u, u, v; "
        "min.s16x2 $0, u, $5; }",
        "=r,r,r,r,r,r",
        [a0, b0, a1, b1, acc],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _times_min_two(acc, a0, b0, a1, b1):
    """Return min(acc, a0 b0, a1 b1), likewise: of values that are not positive the least has the
    greatest bits, and 0 the least.
    """
    return gl.inline_asm_elementwise(
        "{ .reg .f32 s, t; .reg .u32 u, v, w; mul.f32 s, $1, $2; mul.f32 t, $3, $4; mov.b32 u, s; "
        "mov.b32 v, t; mov.b32 w, $5; max.u32 u, u, v; max.u32 u, u, w; mov.b32 $0, u; }",
        "=f,f,f,f,f,f",
        [a0, b0, a1, b1, acc],
        gl.float32,
        True,
        1,
    )


@gluon.jit
def _max_int16x2(x, y):
    """Return max(x, y) for both halves of each word."""
    return gl.inline_asm_elementwise("max.s16x2 $0, $1, $2;", "=r,r,r", [x, y], gl.int32, True, 1)


@gluon.jit
def times(a, b, STRATEGY: gl.constexpr):
    """Return a * b, of values that are not packed."""
    if STRATEGY == "max_int32":
        return gl.maximum(a, b)
    elif STRATEGY == "max_compare":
        return gl.where(a < b, b, a)
    elif STRATEGY == "times" or STRATEGY == "times_compare":
        return a * b
    else:
        return a + b


@gluon.jit
def _compare(acc, a, b, STRATEGY: gl.constexpr):
    """Return min(acc, a * b) for a dtype without a minimum."""
    total = times(a, b, STRATEGY)
    return gl.where(total < acc, total, acc)


@gluon.jit
def accumulate(acc, a, b, STRATEGY: gl.constexpr):
    """Return min(acc, a * b)."""
    if STRATEGY == "int32":
        return _add_min_int32(acc, a, b)
    elif STRATEGY == "int16x2":
        return _add_min_int16x2(acc, a, b)
    elif STRATEGY == "max_int16x2":
        return _max_min_two_int16x2(acc, a, b, a, b)
    elif STRATEGY == "compare" or STRATEGY == "max_compare" or STRATEGY == "times_compare":
        return _compare(acc, a, b, STRATEGY)
    else:
        return gl.minimum(acc, times(a, b, STRATEGY))


@gluon.jit
def accumulate_two(acc, a0, b0, a1, b1, STRATEGY: gl.constexpr):
    """Return min(acc, a0 * b0, a1 * b1) for acc [BLOCK_M, BLOCK_N], a0 and a1 [BLOCK_M, 1], b0 and
    b1 [1, BLOCK_N].
    """
    if STRATEGY == "nonnegative":
        return _add_min_two_nonnegative(acc, a0, b0, a1, b1)
    elif STRATEGY == "max_int32":
        return _max_min_two_int32(acc, a0, b0, a1, b1)
    elif STRATEGY == "max_int16x2":
        return _max_min_two_int16x2(acc, a0, b0, a1, b1)
    elif STRATEGY == "times":
        return _times_min_two(acc, a0, b0, a1, b1)
    else:
        return accumulate(accumulate(acc, a0, b0, STRATEGY), a1, b1, STRATEGY)


@gluon.jit
def clamp(x, FLOOR: gl.constexpr, STRATEGY: gl.constexpr):
    """Return max(x, FLOOR), or x itself if FLOOR is None, as for weights without negatives."""
    if FLOOR is None:
        return x
    elif STRATEGY == "int16x2" or STRATEGY == "max_int16x2":
        # FLOOR in both halves. It is negative, and so is the word as int32: hence - 2^32.
        return _max_int16x2(x, (FLOOR & 0xFFFF) * 65537 - (1 << 32))
    elif STRATEGY == "compare" or STRATEGY == "max_compare":
        return gl.where(x < FLOOR, FLOOR, x)
    else:
        return gl.maximum(x, FLOOR)


@gluon.jit
def split_columns(a, ROWS: gl.constexpr):
    """Return the four columns [M, 1] of a register tile [M, 4]; no data moves. ROWS is the layout
    of a column as a vector.
    """
    # Columns 0 1 2 3 are [[0, 1], [2, 3]]: a split along the last axis leaves 0 2 and 1 3.
    even, odd = gl.split(gl.reshape(a, [a.shape[0], 2, 2]))
    a0, a2 = gl.split(even)
    a1, a3 = gl.split(odd)
    a0 = gl.expand_dims(gl.convert_layout(a0, ROWS, assert_trivial=True), 1)
    a1 = gl.expand_dims(gl.convert_layout(a1, ROWS, assert_trivial=True), 1)
    a2 = gl.expand_dims(gl.convert_layout(a2, ROWS, assert_trivial=True), 1)
    a3 = gl.expand_dims(gl.convert_layout(a3, ROWS, assert_trivial=True), 1)
    return a0, a1, a2, a3


@gluon.jit
def rank_k_update(acc, a_smem, b_smem, K: gl.constexpr, ACC: gl.constexpr, STRATEGY: gl.constexpr):
    """Return min(acc, A B) for acc [M, N] in registers, and K columns of A and K rows of B in
    shared memory.

    Of packed int16, B and acc count words; A holds int16 values, or words with each value twice.
    """
    # Loads have the layout of acc, in which a slice of one row or a few columns is repeated for all
    # threads that need it: so a0 + b0 is a sum within the registers of a thread, [M, N].
    ROWS: gl.constexpr = gl.SliceLayout(1, ACC)
    for k in gl.static_range(0, K, 4):
        a = a_smem.slice(k, 4, dim=1).load(ACC)  # [M, 4]
        if a.dtype == gl.int16:
            a = broadcast_int16x2(a)
        a0, a1, a2, a3 = split_columns(a, ROWS)  # [M, 1] each
        b0 = b_smem.slice(k, 1, dim=0).load(ACC)  # [1, N]
        b1 = b_smem.slice(k + 1, 1, dim=0).load(ACC)
        acc = accumulate_two(acc, a0, b0, a1, b1, STRATEGY)
        b2 = b_smem.slice(k + 2, 1, dim=0).load(ACC)
        b3 = b_smem.slice(k + 3, 1, dim=0).load(ACC)
        acc = accumulate_two(acc, a2, b2, a3, b3, STRATEGY)
    return acc
