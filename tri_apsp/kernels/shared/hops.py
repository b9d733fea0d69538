"""Breadth-first search from many vertices at once, one bit for each source, in plain Triton.

    for level = 1, 2, ...:
        later[v] |= now[u] over the edges (u, v) from rows that the last level found    # _gather_kernel
        later[v] &= not seen[v]; seen[v] |= later[v]; now = later                       # _settle_kernel
    out[s, v] = the level at which v was found from s                                   # _unpack_kernel

A row has a bit for each source of a slab. The level of each bit is kept in binary, one matrix of bits for each binary digit.

Source: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, 2014.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.shared.bits import count_bits
from tri_apsp.kernels.shared.tight_edges import wide

__all__ = ["_gather_kernel", "_settle_kernel", "_unpack_kernel"]


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _gather_kernel(
    later_ptr,  # (n, words) of int32, 0 before
    now_ptr,  # (n, words) of int32: what the last level found
    found_ptr,  # (n,) of int32: the last level that found a bit of each row
    complete_ptr,  # (n,) of int32: 1 where a row has seen every source
    vertices_ptr, firsts_ptr, ends_ptr,  # (chunks,): a vertex, and which edges to it
    sources_ptr,  # edges by destination
    level, chunks, words,
    CHUNKS: tl.constexpr, EDGES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Gather CHUNKS chunks of edges, one after another, EDGES of them at a time."""
    offs = tl.arange(0, WORDS)
    mask = offs < words
    for chunk in range(tl.program_id(0) * CHUNKS, tl.minimum(chunks, (tl.program_id(0) + 1) * CHUNKS)):
        v = tl.load(vertices_ptr + chunk).to(tl.int64)
        if tl.load(complete_ptr + v) == 0:
            edge, end = tl.load(firsts_ptr + chunk), tl.load(ends_ptr + chunk)
            rows = tl.zeros([EDGES, WORDS], tl.int32)
            while edge < end:
                edges = edge + tl.arange(0, EDGES)
                u = tl.load(sources_ptr + edges, mask=edges < end, other=0).to(tl.int64)
                found = tl.load(found_ptr + u, mask=edges < end, other=-2) == level - 1
                rows |= tl.load(now_ptr + u[:, None] * words + offs[None, :], mask=found[:, None] & mask[None, :], other=0)
                edge += EDGES
            bits = tl.reduce(rows, 0, _or)
            # Other chunks of the vertex may gather too.
            tl.atomic_or(later_ptr + v * words + offs, bits, mask=mask & (bits != 0), sem="relaxed")


@triton.jit
def _settle_kernel(
    later_ptr, now_ptr, found_ptr, complete_ptr,  # as above; now becomes 0
    seen_ptr,  # (n, words) of int32
    digits_ptr,  # (digits, n, words) of int32: the binary digits of the level at which each bit was found
    total_ptr, reached_ptr, farthest_ptr,  # (n,) of int64, int64 and int32
    any_ptr,  # (1,) of int32: set to 1 if a bit is found
    level, n, words,
    DIGITS: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Settle ROWS rows: with DIGITS, keep the level of each bit; without, add levels up in total, reached and farthest."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    words_offs = tl.arange(0, WORDS)
    offs = rows.to(tl.int64)[:, None] * words + words_offs[None, :]
    inside = rows < n
    mask = inside[:, None] & (words_offs < words)[None, :]
    before = tl.load(found_ptr + rows, mask=inside, other=-1) == level - 1
    tl.store(now_ptr + offs, tl.zeros([ROWS, WORDS], tl.int32), mask=mask & before[:, None])
    bits = tl.load(later_ptr + offs, mask=mask, other=0)
    some = tl.max((bits != 0).to(tl.int32), axis=1) == 1
    seen = tl.load(seen_ptr + offs, mask=mask & some[:, None], other=-1)
    new = bits & ~seen
    tl.store(later_ptr + offs, new, mask=mask & (new != bits))
    tl.store(seen_ptr + offs, seen | new, mask=mask & (new != 0))
    some = tl.max((new != 0).to(tl.int32), axis=1) == 1
    tl.store(found_ptr + rows, tl.zeros_like(rows) + level, mask=inside & some)
    complete = tl.min(seen | new, axis=1) == -1
    complete = complete & (tl.max(seen | new, axis=1) == -1)
    tl.store(complete_ptr + rows, tl.full([ROWS], 1, tl.int32), mask=inside & some & complete)
    for digit in tl.static_range(DIGITS):
        if (level >> digit) & 1 == 1:
            digits = digits_ptr + digit * (wide(n) * words) + offs
            tl.store(digits, tl.load(digits, mask=mask & (new != 0), other=0) | new, mask=mask & (new != 0))
    if DIGITS == 0:
        count = tl.sum(count_bits(new), axis=1).to(tl.int64)
        update = inside & some
        tl.store(total_ptr + rows, tl.load(total_ptr + rows, mask=update, other=0) + count * level, mask=update)
        tl.store(reached_ptr + rows, tl.load(reached_ptr + rows, mask=update, other=0) + count, mask=update)
        farthest = tl.load(farthest_ptr + rows, mask=update, other=0)
        tl.store(farthest_ptr + rows, tl.maximum(farthest, level), mask=update)
    if tl.max(some.to(tl.int32)) == 1:
        tl.store(any_ptr, 1)


@triton.jit
def _unpack_kernel(
    out_ptr,  # (sources, n), uninitialised
    seen_ptr, digits_ptr,  # as above
    sources, n, words,
    UNREACHABLE: tl.constexpr, DIGITS: tl.constexpr, VERTICES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Write the levels of WORDS words of sources, at VERTICES vertices."""
    rows = tl.program_id(0) * VERTICES + tl.arange(0, VERTICES)
    word = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    mask = (word < words)[:, None] & (rows < n)[None, :]
    offs = rows.to(tl.int64)[None, :] * words + word[:, None]  # (WORDS, VERTICES)
    seen = tl.load(seen_ptr + offs, mask=mask, other=0)
    for bit in range(32):
        level = tl.zeros([WORDS, VERTICES], tl.int32)
        for digit in tl.static_range(DIGITS):
            digits = tl.load(digits_ptr + digit * (wide(n) * words) + offs, mask=mask, other=0)
            level |= ((digits >> bit) & 1) << digit
        level = tl.where((seen >> bit) & 1 == 1, level, UNREACHABLE)
        source = word * 32 + bit
        out = out_ptr + source.to(tl.int64)[:, None] * n + rows[None, :]
        tl.store(out, level.to(out_ptr.dtype.element_ty), mask=mask & (source < sources)[:, None])
