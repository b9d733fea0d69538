"""C <- min(C, A B) by exponents on the tensor cores of compute capability 9.x, in Gluon.

Read shared/exponents.py first: it states the arithmetic, with an example, and what the letters are.
exponents_model.py is the same arithmetic in NumPy.

    for each tile of C:                            # one program of eight warps
        y = 0                                      # scores [BLOCK_M, BLOCK_N], two per word
        for each slice of k:
            for each part of the slice:            # P part [BLOCK_M, PART], Q part [PART, BLOCK_N]
                T += P part Q part                 # wgmma, float32 [BLOCK_M, BLOCK_N] in registers
                start to copy part + BUFFERS - 2, to the buffer of part - 2
            y = max(y, scores of r and c + w(T))
        C tile = min(C tile, X) if all of it is certain, else the tile is reported

If too few of the tiles computed so far are certain, a program computes nothing and reports its
tile.

Timeline of the parts, for BUFFERS = 6. A part is copied four steps before it is multiplied; the
copy begins once all warps have multiplied the part that its buffer held, which was two steps ago:

    step        0          1          2          3          4          5          6
    copied      4          5          6          7          8          9          10
    to buffer   4          5          0          1          2          3          4
    multiplied  0          1          2          3          4          5          6

A thread holds pairs of neighbouring columns of T, as the instruction wgmma leaves them: warp w has
rows 16 w to 16 w + 15, and thread t of it the columns 8 c + 2 (t % 4) and the next, for each c, of
the rows t // 4 and t // 4 + 8. So two neighbours become one word of y without a move.
"""

from tri_apsp.kernels.nvidia.gluon_names import (
    barrier,
    commit_group,
    copy_async,
    fence_async_shared,
    gl,
    gluon,
    wait_group,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from tri_apsp.kernels.nvidia.int16x2 import unpack_int16x2
from tri_apsp.kernels.nvidia.product import tile_of_program


@gluon.jit
def _decode(y, sums, r, c):
    """Return max(y, r + c + w) for y [M, N // 2], sums [M, N], scores r [M, 1] and c [1, N // 2];
    all but the sums are words.
    """
    M: gl.constexpr = sums.shape[0]
    N: gl.constexpr = sums.shape[1]
    WORDS: gl.constexpr = y.type.layout
    low, high = gl.split(gl.reshape(sums, [M, N // 2, 2]))
    low, high = (
        gl.convert_layout(low, WORDS, assert_trivial=True),
        gl.convert_layout(high, WORDS, assert_trivial=True),
    )
    # s = w of both sums (not the s of the proof): prmt picks bytes by 4-bit numbers, from the
    # lowest. 3 and 7 are the upper bytes of $1 and $2; B and F repeat the signs of these bytes,
    # which are 0. o = scores of r + c: a 32-bit sum, since no half overflows. Then, in halves,
    # y = max(y, s + o).
    return gl.inline_asm_elementwise(
        "{ .reg .b32 s, o; prmt.b32 s, $1, $2, 0xF7B3; add.s32 o, $4, $5;"
        " add.s16x2 s, s, o; max.s16x2 $0, s, $3; }",
        "=r,f,f,r,r,r",
        [low, high, y, r, c],
        gl.int32,
        True,
        1,
    )


@gluon.jit
def _start_copy(a_smem, b_smem, a_ptr, b_ptr, offs_a, offs_b, exists):
    """Start to copy a part of P and Q, if it exists."""
    copy_async(a_smem, a_ptr + offs_a, mask=exists)
    copy_async(b_smem, b_ptr + offs_b, mask=exists)
    commit_group()


@gluon.jit
def _accumulate(
    a_ptr,
    b_ptr,
    a_scores_ptr,
    b_scores_ptr,  # of the first slice of the tile
    lines_m,  # scores of A per slice
    words_n,  # words of scores of B per slice
    slices,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    SLICE: gl.constexpr,
    PART: gl.constexpr,
    BUFFERS: gl.constexpr,
):
    """Return y of one tile, [BLOCK_M, BLOCK_N // 2] words that hold two neighbouring columns."""
    # Layouts: [3, 0] is the version of wgmma, of which an instruction has 16 rows per warp, BLOCK_N
    # columns and 16 values of k. A thread copies 8 values of 2 bytes at a time.
    WARPS: gl.constexpr = gl.num_warps()
    PARTS: gl.constexpr = SLICE // PART
    AHEAD: gl.constexpr = BUFFERS - 2  # parts that are being copied while one is multiplied
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BLOCK_N, 16])
    COPY_A: gl.constexpr = gl.BlockedLayout(
        [1, 8], [32 // (PART // 8), PART // 8], [WARPS, 1], [1, 0]
    )
    COPY_B: gl.constexpr = gl.BlockedLayout(
        [1, 8], [32 // (BLOCK_N // 8), BLOCK_N // 8], [WARPS, 1], [1, 0]
    )
    offs_am = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, COPY_A))[:, None]
    offs_ak = gl.arange(0, PART, layout=gl.SliceLayout(0, COPY_A))[None, :]
    offs_bk = gl.arange(0, PART, layout=gl.SliceLayout(1, COPY_B))[:, None]
    offs_bn = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, COPY_B))[None, :]
    offs_a, offs_b = offs_am * PART + offs_ak, offs_bk * BLOCK_N + offs_bn
    # NVMMASharedLayout(bytes of a swizzled row, bits of a value, dimensions). A row of a part of P
    # has 2 * PART bytes; one of Q has more than 128, the most that can be swizzled.
    a_smem = gl.allocate_shared_memory(
        a_ptr.dtype.element_ty, [BUFFERS, BLOCK_M, PART], gl.NVMMASharedLayout(2 * PART, 16, 2)
    )
    b_smem = gl.allocate_shared_memory(
        b_ptr.dtype.element_ty, [BUFFERS, PART, BLOCK_N], gl.NVMMASharedLayout(128, 16, 2)
    )
    # Prologue: start to copy the first AHEAD parts.
    for part in gl.static_range(AHEAD):
        _start_copy(
            a_smem.index(part),
            b_smem.index(part),
            a_ptr,
            b_ptr,
            offs_a,
            offs_b,
            part < slices * PARTS,
        )
        a_ptr += BLOCK_M * PART
        b_ptr += BLOCK_N * PART
    # T, and the layout of words that a split of its pairs of columns gives.
    sums = gl.full([BLOCK_M, BLOCK_N], 0, gl.float32, layout=SUMS)  # [BLOCK_M, BLOCK_N]
    half, _other = gl.split(gl.reshape(sums, [BLOCK_M, BLOCK_N // 2, 2]))
    WORDS: gl.constexpr = half.type.layout
    offs_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, WORDS))
    offs_w = gl.arange(0, BLOCK_N // 2, layout=gl.SliceLayout(0, WORDS))
    y = gl.full([BLOCK_M, BLOCK_N // 2], 0, gl.int32, layout=WORDS)  # [BLOCK_M, BLOCK_N // 2]
    # Main loop: `buffer` is multiplied, and `target` receives a copy.
    buffer, target = 0, AHEAD
    for slice_ in range(slices):
        token = sums
        for part in gl.static_range(PARTS):
            # This part has arrived, for all warps; the fence shows it to the tensor cores.
            wait_group(AHEAD - 1)
            fence_async_shared()
            barrier()
            token = warpgroup_mma(
                a_smem.index(buffer), b_smem.index(buffer), token, use_acc=part > 0, is_async=True
            )
            # When all warps have passed the next barrier, the previous part is multiplied, and its
            # buffer may be overwritten. The last part of a slice is waited for below.
            if part + 1 < PARTS:
                token = warpgroup_mma_wait(1, deps=[token])
            later = slice_ * PARTS + part + AHEAD
            _start_copy(
                a_smem.index(target),
                b_smem.index(target),
                a_ptr,
                b_ptr,
                offs_a,
                offs_b,
                later < slices * PARTS,
            )
            a_ptr += BLOCK_M * PART
            b_ptr += BLOCK_N * PART
            buffer, target = _next(buffer, BUFFERS), _next(target, BUFFERS)
        # Decode the slice, once its last part is multiplied. 65537 = 2^16 + 1: the score of r in
        # both halves of a word.
        r = gl.load(a_scores_ptr + offs_m).to(gl.int32) * 65537  # [BLOCK_M]
        c = gl.load(b_scores_ptr + offs_w)  # [BLOCK_N // 2]
        sums = warpgroup_mma_wait(0, deps=[token])
        y = _decode(y, sums, r[:, None], c[None, :])
        a_scores_ptr += lines_m
        b_scores_ptr += words_n
    wait_group(0)
    return y


@gluon.jit
def _next(buffer, BUFFERS: gl.constexpr):
    return gl.where(buffer + 1 < BUFFERS, buffer + 1, 0)


@gluon.jit
def _range(
    ptr,
    lines,
    offs,
    UNITS: gl.constexpr,
    WINDOW: gl.constexpr,
    REACH: gl.constexpr,
    ZERO: gl.constexpr,
):
    """Return (R, H, span) of lines: the least and the greatest value, and their difference.

    The span is REACH + 1 if it is above WINDOW, so that no pair of the line is exact. It is
    negative for a line without edges.
    """
    best = gl.load(ptr + offs)  # the greatest score: of the least value
    lowest = ZERO - best // UNITS
    # -16384: H of a line without edges (see "Values at the edges" in shared/exponents.py). Its span
    # is so negative that it is exact with each line of integers.
    highest = gl.where(best > 0, gl.load(ptr + lines + offs) - 1, -16384)
    span = highest - lowest
    # A span of 65536 or more marks a line that has a value which is no non-negative integer; it is
    # never exact.
    return lowest, highest, gl.where((span > WINDOW) & (span < 65536), REACH + 1, span)


@gluon.jit
def _update_if_certain(
    c_ptr,
    y,
    a_ranges_ptr,
    b_ranges_ptr,
    lines_m,
    lines_n,
    start_m,
    start_n,
    m,
    n,
    fresh,
    skip_start,
    skip_stop,
    stride_cm,
    NO_EDGE: gl.constexpr,
    UNITS: gl.constexpr,
    WINDOW: gl.constexpr,
    REACH: gl.constexpr,
    ZERO: gl.constexpr,
):
    """C tile <- min(C tile, X), but for skipped rows and columns, if all of it is certain; return 1
    if it is not, else 0.
    """
    scores = unpack_int16x2(y)  # [BLOCK_M, BLOCK_N]
    # X = 2 Z - floor((y - (128 - u)) / u). 32 u is added before the division, which rounds to 0, so
    # that its operand is not negative.
    x = (2 * ZERO + 32) - (scores.to(gl.int32) + (33 * UNITS - 128)) // UNITS
    VALUES: gl.constexpr = scores.type.layout
    line = start_m + gl.arange(0, scores.shape[0], layout=gl.SliceLayout(1, VALUES))
    column = start_n + gl.arange(0, scores.shape[1], layout=gl.SliceLayout(0, VALUES))
    row_lowest, row_highest, row_span = _range(
        a_ranges_ptr, lines_m, line, UNITS, WINDOW, REACH, ZERO
    )
    column_lowest, column_highest, column_span = _range(
        b_ranges_ptr, lines_n, column, UNITS, WINDOW, REACH, ZERO
    )
    # The two conditions of the proof, [BLOCK_M, BLOCK_N].
    exact = row_span[:, None] + column_span[None, :] <= REACH
    missing = exact & (x > row_highest[:, None] + column_highest[None, :])
    bound = row_lowest[:, None] + (column_lowest + WINDOW)[None, :]
    # Epilogue: store the tile only if no element of it is uncertain.
    line, column = line[:, None], column[None, :]
    kept = ((line >= skip_start) & (line < skip_stop)) | (
        (column >= skip_start) & (column < skip_stop)
    )
    inside = (line < m) & (column < n) & ~kept
    c_ptrs = c_ptr + (line.to(gl.int64) * stride_cm + column)
    dtype: gl.constexpr = c_ptr.dtype.element_ty
    before = gl.load(c_ptrs, mask=inside & (fresh == 0), other=NO_EDGE)
    found = gl.minimum(before, gl.where(missing, NO_EDGE, x.to(dtype)).to(dtype))
    uncertain = gl.max(gl.max(gl.where(inside & ~exact & (found > bound), 1, 0), 1), 0)
    gl.store(c_ptrs, found, mask=inside & (uncertain == 0))
    return uncertain


@gluon.jit
def _is_skipped(start, length: gl.constexpr, size, skip_start, skip_stop):
    """Return whether all rows, or columns, of a tile that starts at `start` are skipped; there are
    `size`.
    """
    return (start >= skip_start) & (gl.minimum(start + length, size) <= skip_stop)


@gluon.jit
def _report(ptr, first, count, uncertain, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """Store whether a tile is uncertain, once for each BLOCK_M columns of it."""
    for part in gl.static_range(BLOCK_N // BLOCK_M):
        gl.store(ptr + first + part, uncertain, mask=first + part < count)


@gluon.jit(do_not_specialize=["slices", "fresh"])
def _exponent_product_kernel(
    c_ptr,  # C (batch, m, n), unit column stride
    uncertain_ptr,  # int32 (batch, blocks of BLOCK_M rows and columns): 1 where C is left as it was
    counts_ptr,  # int32 (2,): the tiles that were computed, and those of them that are certain
    a_ptr,
    b_ptr,  # the powers of A and B, see _encode_slice, as the next four
    a_scores_ptr,
    b_scores_ptr,  # in words of two
    a_ranges_ptr,
    b_ranges_ptr,
    m,
    n,
    slices,
    fresh,
    skip_start,
    skip_stop,
    stride_cb,
    stride_cm,  # as in product.py
    NO_EDGE: gl.constexpr,
    UNITS: gl.constexpr,
    WINDOW: gl.constexpr,
    REACH: gl.constexpr,
    ZERO: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    SLICE: gl.constexpr,
    PART: gl.constexpr,
    BUFFERS: gl.constexpr,
    GROUP_M: gl.constexpr,
    LEAST_TRIED: gl.constexpr,  # tiles that are computed before the product can fail
    WORTHWHILE: gl.constexpr,  # it fails if fewer than one in WORTHWHILE computed tiles is certain
):
    """C <- min(C, A B) in the tiles in which every result is certain; one program per tile and
    graph.

    A direct product must compute the blocks that `uncertain` reports.
    """
    # Program id to tile, and its flags: one for each BLOCK_M of its columns.
    n, batch = gl.to_tensor(n), gl.program_id(1).to(gl.int64)
    tiles_m, tiles_n = gl.cdiv(m, BLOCK_M), gl.cdiv(n, BLOCK_N)
    lines_m, lines_n = tiles_m * BLOCK_M, tiles_n * BLOCK_N
    start_m, start_n = tile_of_program(gl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP_M)
    pid_m, pid_n = start_m // BLOCK_M, start_n // BLOCK_N
    flags_n = gl.cdiv(n, BLOCK_M)
    uncertain_ptr += (batch * tiles_m + pid_m) * flags_n
    first_flag = pid_n * (BLOCK_N // BLOCK_M)
    # Whether the product has failed. Atomic additions of 0 read a count once for all threads, while
    # other programs change it.
    certain = gl.atomic_add(counts_ptr + 1, 0, sem="relaxed")
    tried = gl.atomic_add(counts_ptr, 0, sem="relaxed")
    skipped = _is_skipped(start_m, BLOCK_M, m, skip_start, skip_stop) | _is_skipped(
        start_n, BLOCK_N, n, skip_start, skip_stop
    )
    if skipped:
        _report(uncertain_ptr, first_flag, flags_n, 0, BLOCK_M, BLOCK_N)
    elif (tried >= LEAST_TRIED) & (certain * WORTHWHILE < tried):
        _report(uncertain_ptr, first_flag, flags_n, 1, BLOCK_M, BLOCK_N)
    else:
        y = _accumulate(
            a_ptr + (batch * tiles_m + pid_m) * slices * (BLOCK_M * SLICE),
            b_ptr + (batch * tiles_n + pid_n) * slices * (BLOCK_N * SLICE),
            a_scores_ptr + batch * slices * lines_m + start_m,
            b_scores_ptr + (batch * slices * lines_n + start_n) // 2,
            lines_m,
            lines_n // 2,
            slices,
            BLOCK_M,
            BLOCK_N,
            SLICE,
            PART,
            BUFFERS,
        )
        uncertain = _update_if_certain(
            c_ptr + batch * stride_cb,
            y,
            a_ranges_ptr + batch * 2 * lines_m,
            b_ranges_ptr + batch * 2 * lines_n,
            lines_m,
            lines_n,
            start_m,
            start_n,
            m,
            n,
            fresh,
            skip_start,
            skip_stop,
            stride_cm,
            NO_EDGE,
            UNITS,
            WINDOW,
            REACH,
            ZERO,
        )
        _report(uncertain_ptr, first_flag, flags_n, uncertain, BLOCK_M, BLOCK_N)
        gl.atomic_add(counts_ptr, 1, sem="relaxed")
        gl.atomic_add(counts_ptr + 1, 1 - uncertain, sem="relaxed")
