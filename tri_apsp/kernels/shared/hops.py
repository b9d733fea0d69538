"""Breadth-first search from many vertices at once, one bit for each source, in plain Triton.

    now[s] = the bit of s, for each source s                         # _start_kernel
    for level = 1, 2, ...:
        later[v] = or of now[u] over the edges (u, v),               # _gather_kernel, _level_kernel
                   without the bits that v has seen
        now, later = later, now
    out[s, v] = the level at which v was found from s                # _unpack_kernel

A row has a bit for each source of a slab: words of 32 bits, [words]. The level of each bit is kept
in binary, one matrix of bits for each binary digit: a bit that is found on level 5 = 101 in binary
is set in the matrices of digits 0 and 2. Lists of edges that are too long for one program are
gathered in chunks first.

Source: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, 2014.
"""

import triton
import triton.language as tl

from tri_apsp.kernels.shared.tight_edges import count_bits, wide


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _start_kernel(
    now_ptr,  # (n, words) of int32, 0 in the rows of the sources
    seen_ptr,  # (n, words) of int32, 0
    found_ptr,  # (n,) of int32
    starts_ptr,  # (sources,) of int64
    sources,
    words,
    BLOCK: tl.constexpr,
):
    """Set the bits of BLOCK sources, several of which may be the same vertex."""
    source = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = source < sources
    v = tl.load(starts_ptr + source, mask=mask, other=0)
    bit = tl.full([BLOCK], 1, tl.int32) << (source % 32)
    tl.atomic_or(now_ptr + v * words + source // 32, bit, mask=mask, sem="relaxed")
    tl.atomic_or(seen_ptr + v * words + source // 32, bit, mask=mask, sem="relaxed")
    tl.store(found_ptr + v, tl.zeros_like(source), mask=mask)


@triton.jit
def _gather(
    now_ptr,
    found_ptr,
    sources_ptr,
    edge,
    end,
    level,
    words,
    EDGES: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Return the bits of the rows that the last level found, over the edges from `edge` to `end`,
    EDGES rows at a time.
    """
    # Rows of edges are combined by word, and with each other after the loop.
    offs = tl.arange(0, WORDS)
    rows = tl.zeros([EDGES, WORDS], tl.int32)
    while edge < end:
        edges = edge + tl.arange(0, EDGES)
        u = tl.load(sources_ptr + edges, mask=edges < end, other=0).to(tl.int64)
        found = tl.load(found_ptr + u, mask=edges < end, other=-2) == level - 1
        rows |= tl.load(
            now_ptr + u[:, None] * words + offs[None, :],
            mask=found[:, None] & (offs < words)[None, :],
            other=0,
        )
        edge += EDGES
    return tl.reduce(rows, 0, _or)


@triton.jit
def _gather_kernel(
    gathered_ptr,  # (long lists, words) of int32, 0 before
    now_ptr,  # (n, words) of int32: what the last level found, in rows with found = level - 1
    found_ptr,  # (n,) of int32: the last level, among level - 1, level - 3, ..., that found a bit
    complete_ptr,  # (n,) of int32: 1 where a row has seen every source
    lists_ptr,
    vertices_ptr,
    firsts_ptr,
    ends_ptr,  # (chunks,): a long list, its vertex, and which edges of it
    sources_ptr,  # edges by destination
    level,
    words,
    EDGES: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Gather a chunk of a list that is too long for one program."""
    chunk = tl.program_id(0)
    if tl.load(complete_ptr + tl.load(vertices_ptr + chunk)) == 0:
        first, end = tl.load(firsts_ptr + chunk), tl.load(ends_ptr + chunk)
        bits = _gather(now_ptr, found_ptr, sources_ptr, first, end, level, words, EDGES, WORDS)
        offs = tl.arange(0, WORDS)
        to = gathered_ptr + tl.load(lists_ptr + chunk).to(tl.int64) * words + offs
        tl.atomic_or(to, bits, mask=(offs < words) & (bits != 0), sem="relaxed")


@triton.jit
def _level_kernel(
    later_ptr,  # (n, words) of int32: receives the rows that this level finds
    now_ptr,
    found_ptr,
    complete_ptr,  # as above
    later_found_ptr,  # (n,) of int32: becomes `level` in these rows
    seen_ptr,  # (n, words) of int32
    digits_ptr,  # (digits, n, words) of int32: the binary digits of the level of each bit
    total_ptr,
    reached_ptr,
    farthest_ptr,  # (n,) of int64, int64 and int32
    any_ptr,  # (1,) of int32: set to 1 if a bit is found
    offsets_ptr,
    sources_ptr,  # edges by destination
    list_ptr,  # (n,) of int32: the number of a long list, else -1
    gathered_ptr,  # as above; becomes 0
    level,
    n,
    words,
    DIGITS: tl.constexpr,
    VERTICES: tl.constexpr,
    EDGES: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Find VERTICES rows, one after another. With DIGITS, keep the level of each bit; without, add
    up the levels of a row.
    """
    offs = tl.arange(0, WORDS)
    mask = offs < words
    for v in range(tl.program_id(0) * VERTICES, tl.minimum(n, (tl.program_id(0) + 1) * VERTICES)):
        if tl.load(complete_ptr + v) == 0:
            # The bits of all edges to v, [WORDS]: gathered before, for a long list, or now.
            number = tl.load(list_ptr + v)
            gathered = gathered_ptr + tl.maximum(number, 0).to(tl.int64) * words + offs
            bits = tl.load(gathered, mask=mask & (number >= 0), other=0)
            tl.store(gathered, tl.zeros_like(bits), mask=mask & (bits != 0))
            first = tl.load(offsets_ptr + v)
            end = tl.where(number >= 0, first, tl.load(offsets_ptr + v + 1))
            bits |= _gather(now_ptr, found_ptr, sources_ptr, first, end, level, words, EDGES, WORDS)
            # Those that v has not seen; seen is loaded only if there are any bits.
            row = wide(v) * words + offs
            some = tl.max((bits != 0).to(tl.int32)) == 1
            seen = tl.load(seen_ptr + row, mask=mask & some, other=-1)
            new = bits & ~seen
            if tl.max((new != 0).to(tl.int32)) == 1:
                tl.store(later_ptr + row, new, mask=mask)
                tl.store(seen_ptr + row, seen | new, mask=mask & (new != 0))
                tl.store(later_found_ptr + v, level)
                tl.store(any_ptr, 1)
                # The level of the new bits, in binary; or counts of them.
                for digit in tl.static_range(DIGITS):
                    if (level >> digit) & 1 == 1:
                        digits = digits_ptr + digit * (wide(n) * words) + row
                        tl.store(
                            digits,
                            tl.load(digits, mask=mask & (new != 0), other=0) | new,
                            mask=mask & (new != 0),
                        )
                if DIGITS == 0:
                    count = tl.sum(count_bits(new)).to(tl.int64)
                    tl.store(total_ptr + v, tl.load(total_ptr + v) + count * level)
                    tl.store(reached_ptr + v, tl.load(reached_ptr + v) + count)
                    tl.store(farthest_ptr + v, tl.maximum(tl.load(farthest_ptr + v), level))
                if tl.min(((seen | new) == -1).to(tl.int32)) == 1:
                    tl.store(complete_ptr + v, 1)


@triton.jit
def _unpack_kernel(
    out_ptr,  # (sources, n), uninitialised
    seen_ptr,  # (words, n) of int32
    digits_ptr,  # (digits, words, n) of int32
    sources,
    n,
    words,
    UNREACHABLE: tl.constexpr,
    DIGITS: tl.constexpr,
    VERTICES: tl.constexpr,
):
    """Write the levels of the 32 sources of a word, at VERTICES vertices."""
    # Program id to vertices [VERTICES] and to a word, whose bits are 32 sources.
    rows = tl.program_id(0) * VERTICES + tl.arange(0, VERTICES)
    word = tl.program_id(1)
    mask = rows < n
    offs = wide(word) * n + rows
    seen = tl.load(seen_ptr + offs, mask=mask, other=0)
    for bit in range(tl.minimum(32, sources - word * 32)):
        level = tl.zeros([VERTICES], tl.int32)
        for digit in tl.static_range(DIGITS):
            digits = tl.load(digits_ptr + digit * (wide(n) * words) + offs, mask=mask, other=0)
            level |= ((digits >> bit) & 1) << digit
        level = tl.where((seen >> bit) & 1 == 1, level, UNREACHABLE)
        out = out_ptr + wide(word * 32 + bit) * n + rows
        tl.store(out, level.to(out_ptr.dtype.element_ty), mask=mask)
