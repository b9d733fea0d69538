"""Adjacencies to packed bits, and packed bits to bytes, in plain Triton: bound by memory."""

import triton
import triton.language as tl


@triton.jit
def _tile(n, ROWS: tl.constexpr, WORDS: tl.constexpr):
    """Return the rows [ROWS], columns [32 WORDS] and words [WORDS] of this program's tile of a
    matrix with n columns.
    """
    tiles_n = tl.cdiv(n, 32 * WORDS)
    pid = tl.program_id(0)
    start_w = pid % tiles_n * WORDS
    rows = pid // tiles_n * ROWS + tl.arange(0, ROWS)
    return rows, start_w * 32 + tl.arange(0, 32 * WORDS), start_w + tl.arange(0, WORDS)


@triton.jit
def _pack_kernel(
    words_ptr,  # (batch, size, size // 32), contiguous
    adjacency_ptr,  # (batch, n, n)
    size,
    n,
    stride_ab,
    stride_am,
    stride_an,
    NO_EDGE: tl.constexpr,  # an element less than this is an edge; None: an element that is not 0
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Bit b of word (i, w) <- whether (i, 32 w + b) is an edge or i = 32 w + b, 0 past n, for a
    tile [ROWS, WORDS] of words.

    Axis 0 of the grid is the tiles; axis 1 is the graph.
    """
    offs_m, offs_n, offs_w = _tile(size, ROWS, WORDS)
    pid_b = tl.program_id(1).to(tl.int64)
    mask = (offs_m < n)[:, None] & (offs_n < n)[None, :]
    ptrs = (
        adjacency_ptr
        + pid_b * stride_ab
        + offs_m.to(tl.int64)[:, None] * stride_am
        + offs_n.to(tl.int64)[None, :] * stride_an
    )
    values = tl.load(ptrs, mask=mask, other=0 if NO_EDGE is None else NO_EDGE)
    edges = values != 0 if NO_EDGE is None else values < NO_EDGE
    edges = edges | (mask & (offs_m[:, None] == offs_n[None, :]))  # [ROWS, 32 WORDS]
    # Each bit at its place, and 32 of them to a word: a sum of different bits is their or.
    bits = edges.to(tl.int32) << (offs_n % 32)[None, :]
    words = tl.sum(tl.reshape(bits, [ROWS, WORDS, 32]), axis=2)  # [ROWS, WORDS]
    rows = words_ptr + (pid_b * size + offs_m)[:, None] * (size // 32)
    tl.store(
        rows + offs_w[None, :],
        words,
        mask=(offs_m < size)[:, None] & (offs_w < size // 32)[None, :],
    )


@triton.jit
def _unpack_kernel(
    bytes_ptr,  # uint8 (batch, rows, columns), or (batch, columns, rows) if TRANSPOSED, contiguous
    words_ptr,  # (batch, rows, columns / 32 rounded up), unit column stride
    rows,
    columns,
    stride_wb,
    stride_wm,
    TRANSPOSED: tl.constexpr,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Byte (i, 32 w + b), or (32 w + b, i), <- bit b of word (i, w), for a tile [ROWS, WORDS] of
    words; grid as above.
    """
    offs_m, offs_n, offs_w = _tile(columns, ROWS, WORDS)
    pid_b = tl.program_id(1).to(tl.int64)
    ptrs = (
        words_ptr + pid_b * stride_wb + offs_m.to(tl.int64)[:, None] * stride_wm + offs_w[None, :]
    )
    words = tl.load(
        ptrs, mask=(offs_m < rows)[:, None] & (offs_w < tl.cdiv(columns, 32))[None, :], other=0
    )
    # [ROWS, WORDS, 32], then [ROWS, 32 WORDS].
    bits = tl.reshape(words[:, :, None] >> tl.arange(0, 32), [ROWS, 32 * WORDS]) & 1
    bytes_ptr += pid_b * rows * columns
    if TRANSPOSED:
        bits = tl.trans(bits.to(tl.uint8))
        ptrs = bytes_ptr + offs_n.to(tl.int64)[:, None] * rows + offs_m[None, :]
        tl.store(ptrs, bits, mask=(offs_n < columns)[:, None] & (offs_m < rows)[None, :])
    else:
        ptrs = bytes_ptr + offs_m.to(tl.int64)[:, None] * columns + offs_n[None, :]
        tl.store(
            ptrs, bits.to(tl.uint8), mask=(offs_m < rows)[:, None] & (offs_n < columns)[None, :]
        )
