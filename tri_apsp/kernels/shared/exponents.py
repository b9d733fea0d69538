"""Min-plus products by exponents: small distances become powers of two, so that a product of
matrices finds minima.

    y = 0                                              # scores
    for each slice of k:
        r[i] = the least A[i, k], c[j] = the least B[k, j] of the slice        # _encode_kernel
        P[i, k] = 2^(65 - u - 2 u (A[i, k] - r[i])), but 0 for NO_EDGE and above r[i] + WINDOW
        Q[k, j] = 2^(64 - u - 2 u (B[k, j] - c[j])), likewise
        T = P Q                                        # in float32, on tensor cores
        w[i, j] = the upper byte of T[i, j]            # its exponent, divided by 2
        y[i, j] = max(y[i, j], u (Z - r[i]) + u (Z - c[j]) + w[i, j])
    X[i, j] = 2 Z - floor((y[i, j] - (128 - u)) / u)

The larger of two powers nearly hides the other in their sum, and the larger one stands for the
smaller distance: so the exponent of a sum of powers is a minimum of distances. 65 and 64 use the
whole range of exponents: the largest sum, 2^(2 u - 1) terms 2^(65 - u) 2^(64 - u), is 2^128, just
past the largest float32.

An example, with u = 4 and Z = 2700:

    A = 1 3     B = 2 5     r = 1 0     c = 0 1         # r of the rows of A, c of the columns of B
        0 2         0 1

    P = [2^61  2^45]    Q = [2^44  2^28]
        [2^61  2^45]        [2^60  2^60]

    T[0, 0] = 2^61 * 2^44 + 2^45 * 2^60 = 2^105 + 2^105 = 2^106
    T[0, 1] = 2^61 * 2^28 + 2^45 * 2^60 = 2^89 + 2^105
    T[1, :] = T[0, :], since both rows of A lie 0 and 2 above their r

A float32 holds 2^106 by the exponent 106 + 127 = 233, and 2^105 + 2^89 by 232. Its upper byte is
the sign, 0, and the upper 7 of the 8 bits of the exponent, so w = 233 // 2 = 232 // 2 = 116. The
score y[0, 0] is 4 (2700 - 1) + 4 (2700 - 0) + 116 = 21712, and 128 - u = 124, so

    X[0, 0] = 5400 - floor((21712 - 124) / 4) = 3 = min(1 + 2, 3 + 0)
    X[0, 1] = 5400 - floor((21708 - 124) / 4) = 4 = min(1 + 5, 3 + 1)
    X[1, 0] = 5400 - floor((21716 - 124) / 4) = 2 = min(0 + 2, 2 + 0)
    X[1, 1] = 5400 - floor((21712 - 124) / 4) = 3 = min(0 + 5, 2 + 1)

A slice has at most 2^(2 u - 1) values of k: 128 for u = 4, 512 for u = 5. WINDOW is 23 or 18, and
REACH 30 or 24:

    WINDOW = (190 - u) // (2 u)     the greatest distance above c whose power,
                                    2^(64 - u - 2 u WINDOW), is at least 2^-126: a normal float32
    REACH = (255 - 2 u) // (2 u)    the greatest s of the proof below whose exponent,
                                    256 - 2 u - 2 u s, is at least 1

Decoding takes three instructions for two results, on pairs of 16 bits: of T, r and c only sums and
maxima are formed. Before encoding, _sample_kernel computes some results, by which a product that
would leave most tiles uncertain does not begin.

The letters of the proof and the names of the code, here and in nvidia/exponents.py, beside which
exponents_model.py has the arithmetic in NumPy:

    u, Z          UNITS, ZERO
    r[i], c[j]    least of a slice; its scores u (Z - r[i]), u (Z - c[j]) are a_scores, b_scores
    P, Q          powers (a_powers, b_powers), which are the operands a and b of the product kernel
    T, y, X       sums, y (scores), x
    R[i], S[j]    lowest of a line of A or B (a_ranges, b_ranges), over all slices
    H[i], L[j]    highest of a line; H[i] - R[i] and L[j] - S[j] are its span
    w             formed only in the assembly of _decode
    t, s          only in the proof

In _encode_slice, `above` is A[i, k] - r[i] or B[k, j] - c[j].

Let R[i] and H[i] be the least and the greatest value of row i of A, and S[j] and L[j] those of
column j of B, over all slices. min(C[i, j], X[i, j]) is the result if one of these holds:

    exact:    H[i] - R[i] <= WINDOW, L[j] - S[j] <= WINDOW, and their sum is at most REACH.
              Then X[i, j] > H[i] + L[j] means that there is no path.
    certain:  min(C[i, j], X[i, j]) <= R[i] + S[j] + WINDOW.

Proof. Consider a slice, and the terms of T[i, j] in it, 2^(129 - 2 u - 2 u t) with t = (A[i, k] -
r[i]) + (B[k, j] - c[j]). Let s be the least t.

1. If s <= REACH, the slice contributes r[i] + c[j] + s. The sum is no less than its largest term, a
   normal number, and no more than 2^(2 u - 1) such terms (all may be equal). Adding in any order,
   with each sum rounded to nearest or cut off, keeps both bounds: rounding is monotone, and m terms
   are a float for m = 1 to 2^(2 u - 1). Tensor cores add several values at a time, and cut each off
   below some bit of the greatest: the greatest stays whole, and cutting off only lowers the sum. So
   the exponent of the sum, as float32 holds it, is 256 - 2 u - 2 u s plus 0 to 2 u - 1; its half,
   rounded down, is w = 128 - u - u s plus 0 to u - 1. The greatest, for s = 0 and all terms equal,
   is 255: infinity, which as a sum of positive numbers stays infinity.
2. If s > REACH, or if there is no term, the sum is at most 2^(128 - 2 u (REACH + 1)), whose w is at
   most 3 or 2, whether or not the hardware keeps subnormal numbers: it counts as s = REACH + 1.
3. Each sum A[i, k] + B[k, j] that T[i, j] leaves out is NO_EDGE or exceeds r[i] + c[j] + WINDOW:
   one of A[i, k] - r[i] and B[k, j] - c[j] exceeds WINDOW, and the other is not negative.

Since r[i] >= R[i] and c[j] >= S[j], each sum that is left out exceeds R[i] + S[j] + WINDOW, and
each X[i, j] that is not a sum is at least R[i] + S[j] + REACH + 1. REACH is more than WINDOW, so a
certain result is the minimum. If a pair is exact, no sum is left out, all have s <= REACH, and all
are at most H[i] + L[j] <= R[i] + S[j] + REACH, less than any X[i, j] that is not a sum. QED.

Values at the edges of these ranges:

* r and R are clamped to Z - 1, so scores of slices with an edge are at least u. A slice without
  edges has the score 0, as if its r were Z, and y starts at 0, as if r and c were Z: these are no
  less than R and S, so step 2 holds for them too.
* H is clamped to Z + 64: a line with a greater value spans 65 or more, and is not exact. Any number
  from WINDOW on would do for 64.
* A line without any edge has R = Z and H = -16384: it is exact with each line of integers, and
  X[i, j] > H[i] + L[j] always holds.
* A line with a value that is not a non-negative integer is neither exact nor certain.

Sources: G. Yuval, An algorithm for finding all shortest paths using N^2.81 infinite-precision
multiplications, Information Processing Letters 4 (1976), and N. Alon, Z. Galil, O. Margalit, On the
exponent of the all pairs shortest path problem, Journal of Computer and System Sciences 54 (1997):
powers of a base above the number of terms, in exact arithmetic. Slices, float32 and the conditions
for certainty are tri_apsp's. How tensor cores add is measured, not documented: M. Fasi, N. J.
Higham, M. Mikaitis, S. Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7
(2021) e330, on compute capability 7.x and 8.0; tests/engines/test_exponents.py ran on 9.0.
"""

import triton
import triton.language as tl

# What a sample holds for NO_EDGE, in every dtype: more than the sum of two edges, each at most
# Z + 64 = 2764.
_SAMPLED_NO_EDGE = tl.constexpr(16384)


@triton.jit
def _sampled(x, NO_EDGE: tl.constexpr, HIGHEST: tl.constexpr):
    """Return int32: edges, cut off at HIGHEST, and _SAMPLED_NO_EDGE."""
    return tl.where(x < NO_EDGE, tl.minimum(x, HIGHEST), _SAMPLED_NO_EDGE).to(tl.int32)


@triton.jit
def _range_of_sample(least, highest, WINDOW: tl.constexpr, REACH: tl.constexpr, ZERO: tl.constexpr):
    """Return R, and the span H - R, for lines with these least and greatest edges; the span is
    REACH + 1, so that no pair is exact, if it is above WINDOW.
    """
    lowest = tl.where(least < _SAMPLED_NO_EDGE, tl.minimum(least, ZERO - 1), ZERO)
    span = highest - lowest
    return lowest, tl.where(span > WINDOW, REACH + 1, span)


@triton.jit(do_not_specialize=["zero_count", "batch", "m", "fresh", "skip_start", "skip_stop"])
def _sample_kernel(
    sample_ptr,  # int32 (programs,): 0 if its tile is not in the sample, 1 if uncertain, else 2
    zeros_ptr,  # int32 (zero_count,), set to 0: the ranges and counts of later kernels
    zero_count,
    c_ptr,
    a_ptr,
    b_ptr,  # C (batch, m, n), A (batch, m, depth), B (batch, depth, n), unit column stride
    batch,
    m,
    n,
    depth,
    fresh,
    skip_start,
    skip_stop,  # as in product.py
    stride_cb,
    stride_cm,
    stride_ab,
    stride_am,
    stride_bb,
    stride_bk,
    NO_EDGE: tl.constexpr,
    WINDOW: tl.constexpr,
    REACH: tl.constexpr,
    ZERO: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EDGE: tl.constexpr,
    BLOCK_K: tl.constexpr,
    MARGIN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A program computes EDGE x EDGE results of one tile of one graph, and whether all of them
    would be exact or certain.

    A certain result must be at least MARGIN below its bound, since the rest of the tile may have
    greater results. It is not checked whether values are integers. A tile is not in the sample if
    all its sampled results are skipped. All graphs share one sample; each is in it if there are no
    more graphs than programs. The programs also share the work of setting memory to 0.
    """
    # The part of zeros that this program sets.
    pid, programs = tl.program_id(0), tl.num_programs(0)
    offs, offs_k = tl.arange(0, EDGE), tl.arange(0, BLOCK_K)
    for start in range(pid * BLOCK_K, zero_count, programs * BLOCK_K):
        tl.store(zeros_ptr + start + offs_k, 0, mask=start + offs_k < zero_count)
    # Program id to graph and tile, and EDGE of its rows and of its columns.
    # The rows of tiles in order, and the columns of tiles in another order, since 37 is prime to
    # the number of programs, which is a power of 2. In a tile, rows are BLOCK_M // EDGE apart, and
    # columns adjacent, since B is read along them.
    graph = (pid % batch).to(tl.int64)
    pid_m = pid * tl.cdiv(m, BLOCK_M) // programs
    pid_n = pid * 37 % programs * tl.cdiv(n, BLOCK_N) // programs
    row = tl.minimum(pid_m * BLOCK_M + offs * (BLOCK_M // EDGE) + pid % (BLOCK_M // EDGE), m - 1)
    column = (
        tl.minimum(pid_n * (BLOCK_N // EDGE) + pid % (BLOCK_N // EDGE), (n - 1) // EDGE) * EDGE
        + offs
    )
    a_ptrs = a_ptr + graph * stride_ab + row.to(tl.int64)[:, None] * stride_am
    b_ptrs = b_ptr + graph * stride_bb + column[None, :]
    # Running minima and maxima, reduced over BLOCK_K only after the loop.
    sums = tl.full((EDGE, EDGE, BLOCK_K), 2 * _SAMPLED_NO_EDGE, tl.int32)  # [EDGE, EDGE, BLOCK_K]
    a_least = tl.full((EDGE, BLOCK_K), _SAMPLED_NO_EDGE, tl.int32)  # [EDGE, BLOCK_K]
    a_highest = tl.full((EDGE, BLOCK_K), -_SAMPLED_NO_EDGE, tl.int32)
    b_least, b_highest = a_least, a_highest  # of columns, likewise
    # Main loop over k; B is transposed, so that k is the last axis of both.
    for start in tl.range(0, depth, BLOCK_K, num_stages=STAGES):
        k = start + offs_k
        a = tl.load(a_ptrs + k[None, :], mask=(k < depth)[None, :], other=NO_EDGE)
        b_mask = (k < depth)[:, None] & (column < n)[None, :]
        b = tl.load(b_ptrs + k.to(tl.int64)[:, None] * stride_bk, mask=b_mask, other=NO_EDGE)
        a, b = _sampled(a, NO_EDGE, ZERO + 64), _sampled(tl.trans(b), NO_EDGE, ZERO + 64)
        sums = tl.minimum(sums, a[:, None, :] + b[None, :, :])
        a_least, b_least = tl.minimum(a_least, a), tl.minimum(b_least, b)
        a_highest = tl.maximum(a_highest, tl.where(a < _SAMPLED_NO_EDGE, a, -_SAMPLED_NO_EDGE))
        b_highest = tl.maximum(b_highest, tl.where(b < _SAMPLED_NO_EDGE, b, -_SAMPLED_NO_EDGE))
    # R and span of the sampled rows [EDGE], and of the columns.
    a_lowest, a_span = _range_of_sample(
        tl.min(a_least, 1), tl.max(a_highest, 1), WINDOW, REACH, ZERO
    )
    b_lowest, b_span = _range_of_sample(
        tl.min(b_least, 1), tl.max(b_highest, 1), WINDOW, REACH, ZERO
    )
    # Epilogue: the results with those of C, [EDGE, EDGE], and whether they are certain.
    row, column = row[:, None], column[None, :]
    kept = (
        ((row >= skip_start) & (row < skip_stop))
        | ((column >= skip_start) & (column < skip_stop))
        | (column >= n)
    )
    mask = (column < n) & (fresh == 0)
    before = tl.load(
        c_ptr + graph * stride_cb + row.to(tl.int64) * stride_cm + column, mask=mask, other=NO_EDGE
    )
    found = tl.minimum(_sampled(before, NO_EDGE, 2 * ZERO + 64), tl.min(sums, 2))
    bound = a_lowest[:, None] + (b_lowest + (WINDOW - MARGIN))[None, :]
    uncertain = ~kept & (a_span[:, None] + b_span[None, :] > REACH) & (found > bound)
    included = tl.min(tl.min(kept.to(tl.int32), 1), 0) == 0
    certain = tl.max(tl.max(uncertain.to(tl.int32), 1), 0) == 0
    tl.store(sample_ptr + pid, tl.where(included, 1 + certain.to(tl.int32), 0))


@triton.jit
def _integers(x, MISSING: tl.constexpr, NO_EDGE: tl.constexpr, ZERO: tl.constexpr):
    """Return int32: MISSING for NO_EDGE, less than 0 for what is no non-negative integer; floats
    are at most ZERO + 64.
    """
    if x.dtype.is_floating():
        # The sign bit refuses -0.0 too, since sums of it keep its sign; NaN equals no floor.
        whole = (x.to(tl.int32, bitcast=True) >= 0) & ((x >= NO_EDGE) | (x == tl.floor(x)))
        return tl.where(whole, tl.where(x < NO_EDGE, tl.minimum(x, ZERO + 64), MISSING), -1).to(
            tl.int32
        )
    else:
        return x.to(tl.int32)


@triton.jit(do_not_specialize=["m", "slices"])
def _encode_kernel(
    counts_ptr,  # int32 (2,), see exponent_product; written if too few sampled tiles are certain
    sample_ptr,  # int32 (SAMPLED,), see _sample_kernel
    a_powers_ptr,
    a_scores_ptr,
    a_ranges_ptr,
    b_powers_ptr,
    b_scores_ptr,
    b_ranges_ptr,  # see _encode_slice
    a_ptr,
    b_ptr,  # A (batch, m, depth), B (batch, depth, n), unit column stride
    m,
    n,
    depth,
    slices,
    stride_ab,
    stride_am,
    stride_bb,
    stride_bk,
    NO_EDGE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    LINES: tl.constexpr,
    SLICE: tl.constexpr,
    PART: tl.constexpr,
    UNITS: tl.constexpr,
    WINDOW: tl.constexpr,
    ZERO: tl.constexpr,
    SAMPLED: tl.constexpr,
    SAMPLE_WORTHWHILE: tl.constexpr,
    LEAST_TRIED: tl.constexpr,
):
    """A program encodes one slice of LINES rows of A, or of LINES columns of B.

    If too few tiles of the sample are certain, nothing is encoded, and the counts are those of a
    product that has failed.
    """
    # Encode nothing if fewer than one in SAMPLE_WORTHWHILE tiles of the sample is certain.
    pid, slice_, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    found = tl.load(sample_ptr + tl.arange(0, SAMPLED))
    if tl.sum((found > 0).to(tl.int32) - SAMPLE_WORTHWHILE * (found > 1).to(tl.int32)) > 0:
        first = (pid == 0) & (slice_ == 0) & (batch == 0)
        tl.store(counts_ptr, LEAST_TRIED, mask=first)
        tl.store(counts_ptr + 1, 0, mask=first)
        return
    # Program id to lines: rows of A come first, padded to whole tiles, then columns of B.
    lines_m, lines_n = tl.cdiv(m, BLOCK_M) * BLOCK_M, tl.cdiv(n, BLOCK_N) * BLOCK_N
    programs_a = lines_m // LINES
    if pid < programs_a:
        _encode_slice(
            a_powers_ptr,
            a_scores_ptr,
            a_ranges_ptr,
            a_ptr,
            batch,
            pid,
            slice_,
            m,
            lines_m,
            depth,
            slices,
            stride_ab,
            stride_am,
            1,
            1,
            NO_EDGE,
            BLOCK_M,
            LINES,
            SLICE,
            PART,
            UNITS,
            WINDOW,
            ZERO,
        )
    else:
        _encode_slice(
            b_powers_ptr,
            b_scores_ptr,
            b_ranges_ptr,
            b_ptr,
            batch,
            pid - programs_a,
            slice_,
            n,
            lines_n,
            depth,
            slices,
            stride_bb,
            1,
            stride_bk,
            0,
            NO_EDGE,
            BLOCK_N,
            LINES,
            SLICE,
            PART,
            UNITS,
            WINDOW,
            ZERO,
        )


@triton.jit
def _encode_slice(
    powers_ptr,  # bf16 (batch, tiles, slices * SLICE // PART) blocks, [TILE, PART]; B [PART, TILE]
    scores_ptr,  # int16 (batch, slices, tiles * TILE): u (Z - r), or 0 without edges
    ranges_ptr,  # int32 (batch, 2, tiles * TILE), 0 before: the greatest score and 1 + H of a line
    x_ptr,  # A (batch, lines, depth), or B (batch, depth, lines); [LINES, SLICE] of it
    batch,  # which slice: its graph,
    index,  # its first line divided by LINES,
    slice_,  # and its number along k
    lines,
    all_lines,  # `lines` rounded up to whole tiles
    depth,
    slices,
    stride_xb,  # of x, between graphs,
    stride_xl,  # between lines
    stride_xk,  # and along k
    K_AXIS: tl.constexpr,  # 1 for A, whose lines are rows; 0 for B, whose lines are columns
    NO_EDGE: tl.constexpr,
    TILE: tl.constexpr,
    LINES: tl.constexpr,
    SLICE: tl.constexpr,
    PART: tl.constexpr,
    UNITS: tl.constexpr,
    WINDOW: tl.constexpr,
    ZERO: tl.constexpr,
):
    """Encode one slice of LINES lines, which divides TILE; lines and k past the end have no edges.

    LINES lines, and SLICE values of k, span at most 2^31 values of x.
    """
    # Line and k of each value, and where its power goes: to a block of TILE lines and PART k.
    tile = index // (TILE // LINES)
    offs_k, offs_l = tl.arange(0, SLICE), tl.arange(0, LINES)
    line, k = index * LINES + offs_l, slice_ * SLICE + offs_k
    in_tile, part = (index % (TILE // LINES)) * LINES + offs_l, offs_k // PART
    # 127 is the bias of an exponent: P begins at 2^(65 - u), Q at 2^(64 - u).
    if K_AXIS == 1:  # tiles [LINES, SLICE]
        offs = offs_l[:, None] * stride_xl + offs_k[None, :] * stride_xk
        inside = (line < lines)[:, None] & (k < depth)[None, :]
        target = (part * (TILE * PART) + offs_k % PART)[None, :] + (in_tile * PART)[:, None]
        highest_exponent: tl.constexpr = 127 + 65 - UNITS
    else:  # tiles [SLICE, LINES]
        offs = offs_k[:, None] * stride_xk + offs_l[None, :] * stride_xl
        inside = (k < depth)[:, None] & (line < lines)[None, :]
        target = (offs_k * TILE)[:, None] + in_tile[None, :]
        highest_exponent: tl.constexpr = 127 + 64 - UNITS
    x_ptr += (
        batch * stride_xb
        + index.to(tl.int64) * LINES * stride_xl
        + slice_.to(tl.int64) * SLICE * stride_xk
    )
    x = tl.load(x_ptr + offs, mask=inside, other=NO_EDGE)
    # The integer that stands for NO_EDGE: for floats 32767, which is more than Z + 64.
    missing: tl.constexpr = 32767 if x.dtype.is_floating() else NO_EDGE
    value = _integers(x, missing, NO_EDGE, ZERO)
    # r and its score, [LINES]. As unsigned numbers, refused values, which are negative, are the
    # greatest.
    least = tl.min(value.to(tl.uint32, bitcast=True), K_AXIS).to(tl.int32, bitcast=True)
    score = tl.where(
        least.to(tl.uint32, bitcast=True) < missing, UNITS * (ZERO - tl.minimum(least, ZERO - 1)), 0
    )
    # Powers: the exponent falls by 2 u for each unit above r; 0 outside the window.
    above = value - tl.expand_dims(tl.minimum(least, ZERO - 1), K_AXIS)
    # A line of which all values in the slice are refused may get powers, but it is never certain.
    in_window = above.to(tl.uint32, bitcast=True) <= WINDOW  # false where `above` is negative
    # Bits of a float32, not of a bfloat16: ptxas of CUDA 12.8 drops some of the sums that are
    # formed in 16 bits. The exponent lies above the 23 bits of the mantissa.
    bits = tl.where(in_window, (highest_exponent - 2 * UNITS * above) << 23, 0)
    # Epilogue: powers, scores, and what the slice adds to R and H of its lines.
    start = ((batch * (all_lines // TILE) + tile) * slices + slice_) * (TILE * SLICE)
    tl.store(powers_ptr + start + target, bits.to(tl.float32, bitcast=True))
    tl.store(scores_ptr + (batch * slices + slice_) * all_lines + line, score.to(tl.int16))
    highest = tl.minimum(tl.max(tl.where(value < missing, value, -1), K_AXIS), ZERO + 64)
    refused = tl.min(value, K_AXIS) < 0
    # A score of 2^30 marks a line with a refused value: its R is below -2^27 then, and its span
    # more than 65536, by which _range of the product kernel tells it from others.
    ranges_ptr += batch * 2 * all_lines + line
    tl.atomic_max(ranges_ptr, tl.where(refused, 1 << 30, score), sem="relaxed")
    tl.atomic_max(ranges_ptr + all_lines, highest + 1, sem="relaxed")
