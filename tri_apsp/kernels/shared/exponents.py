"""Min-plus products by exponents: small distances as powers of two, so that a product of matrices finds minima; encoding.

    r[i] = the least A[i, k], c[j] = the least B[k, j] of a slice of at most 128 k          # _encode_kernel
    P[i, k] = 2^(60 - 8 (A[i, k] - r[i])), but 0 for NO_EDGE and for more than r[i] + 23; Q[k, j] likewise
    T = P Q                                                             # in float32, on tensor cores
    s[i, j] = (0x7F00 - the upper 16 bits of T[i, j]) >> 10             # the least (A - r) + (B - c) of the slice
    X[i, j] = min(C[i, j], r[i] + c[j] + s[i, j] of every slice)

X[i, j] is certain, that is equal to min(C[i, j], min over k of A[i, k] + B[k, j]), if it is at most L + 23, where L is a lower
bound of r[i] + c[j] over all slices: the products take the sum of the least r and the least c of a tile.

Proof. Consider a slice, and the terms of T[i, j] in it, 2^(120 - 8 t) with t = (A[i, k] - r[i]) + (B[k, j] - c[j]). Let s be
the least t.

1. If s <= 30, the sum decodes to s. It is no less than its largest term, 2^(120 - 8 s), which is a normal number, and no more
   than 128 such terms, 2^(127 - 8 s) (all terms may be equal). Adding in any order, with each sum rounded to nearest or cut
   off, keeps both bounds: rounding is monotone, and m 2^(120 - 8 s) is a float for m = 1 to 128. The upper 16 bits of a float
   from 2^(120 - 8 s) to 2^(127 - 8 s), its sign, exponent and 7 bits of its fraction, are (247 - 8 s) 2^7 to (254 - 8 s) 2^7;
   subtracted from 0x7F00 = 254 2^7 and divided by 2^10, both give s. The largest exponent, for s = 0, is 127: no sum overflows.
2. If s >= 31, or if there is no term, the sum is at most 2^-121, whether or not the hardware keeps subnormal numbers. It
   decodes to 31.
3. What T[i, j] leaves out is NO_EDGE, or exceeds r[i] + c[j] + 23, since one part exceeds its least by 24 or more and the
   other is no less than its own.

So each r[i] + c[j] + s[i, j] is a sum A[i, k] + B[k, j], or exceeds L + 30; and each sum that is not found exceeds L + 23. If
X[i, j] <= L + 23, then X[i, j] is C[i, j] or a sum, and no sum is less. QED.

A slice of a row without edges has r = 16360; others at most 8000, which bounds their values from below. NO_EDGE counts as 16383
here: it is certain if r[i] + c[j] >= 16360 in every slice, so that A or B has no edge there. Rows with a value that is not a
whole number from 0 on have r = -20000, so that nothing is certain.

Source: tri_apsp; no earlier implementation is known to its authors.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["CONSTANTS", "DECODE", "WINDOW", "_encode_kernel"]

WINDOW = 23
"""How far above the least of its slice a value may be."""
CONSTANTS = {"WINDOW": WINDOW, "TOP": 187, "NONE": 16360, "LARGEST_LEAST": 8000, "REFUSED": -20000}
"""Of the encoding: the window, the exponent of 2^60 as bf16 holds it, and the least of a slice without edges, of any other
slice at most, and of one that is refused."""

DECODE = (
    "{ .reg .b32 s, o; prmt.b32 s, $1, $2, 0x7632; sub.s32 s, 0x7F007F00, s; shr.u32 s, s, 10; and.b32 s, s, 0x001F001F;"
    " add.s32 o, $4, $5; add.s16x2 s, s, o; min.s16x2 $0, s, $3; }"
)
"""PTX: $0 = min($3, r + c + s) in words of two columns, for two floats of T ($1, $2) and r + c ($4 + $5)."""


@triton.jit(do_not_specialize=["slices"])
def _encode_kernel(
    powers_ptr,  # bf16 (batch, tiles, slices * SLICE // PART) blocks: [TILE, PART] of A, or [PART, TILE] of B
    least_ptr,  # int16 (batch, slices, tiles * TILE): r or c
    tile_least_ptr,  # int32 (batch, slices, tiles): the least of those of a tile
    x_ptr,  # A (batch, lines, depth), or B (batch, depth, lines), any strides
    lines, depth, slices, stride_xb, stride_xl, stride_xk,  # of x: between graphs, lines and k
    K_AXIS: tl.constexpr,  # 1 for A, whose lines are rows; 0 for B, whose lines are columns
    NO_EDGE: tl.constexpr, TILE: tl.constexpr, SLICE: tl.constexpr, PART: tl.constexpr,
    WINDOW: tl.constexpr, NONE: tl.constexpr, LARGEST_LEAST: tl.constexpr, REFUSED: tl.constexpr, TOP: tl.constexpr,
):  # fmt: skip
    """A program encodes one slice of one tile of lines; lines and k past the end have no edges. PART divides SLICE."""
    tile, slice_, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    tiles = tl.num_programs(0)
    offs_l, offs_k = tl.arange(0, TILE), tl.arange(0, SLICE)
    line, k = (tile * TILE + offs_l).to(tl.int64), (slice_ * SLICE + offs_k).to(tl.int64)
    part = offs_k // PART
    if K_AXIS == 1:
        offs = line[:, None] * stride_xl + k[None, :] * stride_xk
        inside = (line < lines)[:, None] & (k < depth)[None, :]
        target = (part * (TILE * PART) + offs_k % PART)[None, :] + (offs_l * PART)[:, None]
    else:
        offs = k[:, None] * stride_xk + line[None, :] * stride_xl
        inside = (k < depth)[:, None] & (line < lines)[None, :]
        target = (offs_k * TILE)[:, None] + offs_l[None, :]
    x = tl.load(x_ptr + batch * stride_xb + offs, mask=inside, other=NO_EDGE)
    edge = x < NO_EDGE
    valid = (x >= 0) | (x >= NO_EDGE)  # not NaN
    if x.dtype.is_floating():
        valid &= (x >= NO_EDGE) | (x == tl.floor(x))
    whole = tl.where(edge & valid, tl.minimum(x, 32767), 32767).to(tl.int32)
    least = tl.min(whole, K_AXIS)  # [TILE]
    least = tl.where(least < 32767, tl.minimum(least, LARGEST_LEAST), NONE)
    least = tl.where(tl.min(valid.to(tl.int32), K_AXIS) == 1, least, REFUSED)
    above = whole - tl.expand_dims(least, K_AXIS)
    encoded = tl.where(edge & (above <= WINDOW) & (above >= 0), (TOP - 8 * above) << 7, 0)
    start = ((batch * tiles + tile) * slices + slice_) * (TILE * SLICE)
    tl.store(powers_ptr + start + target, encoded.to(tl.int16).to(tl.bfloat16, bitcast=True))
    row = batch * slices + slice_
    tl.store(least_ptr + (row * tiles + tile) * TILE + offs_l, least.to(tl.int16))
    tl.store(tile_least_ptr + row * tiles + tile, tl.min(least, 0))
