"""Breadth-first search from many vertices at once, one bit for each source, in Numba.

    seen = now = {the bit of each source, at its vertex}
    for level = 1, 2, ...:
        # 64 sources per word; by all edges to v (_pull), or by edges from the last level (_push)
        later[v] = (OR of now[u] over the edges (u, v)) and not seen[v]
        seen[v] |= later[v]
        now = later

The level of each bit is kept as binary digits, of which one word holds those of 64 sources, and
unpacked at the end.

Source: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, 2014.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.transpose import transpose
from tri_apsp.kernels.cpu.vectors import addresses

# Vertices whose levels are unpacked together: their block, 64 values each, stays in the L1 cache.
_BLOCK = 256


@intrinsic(prefer_literal=True)
def _gather(typing_context, later, seen, now, active, sources, words):
    """later = seen | the rows of now at the active of `sources`; return whether that is more than
    seen.

    Args:
        later, seen: [words] of uint64, which a vector of registers holds meanwhile.
        words: a constant.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index, row = ir.IntType(64), ir.VectorType(ir.IntType(64), words.literal_value)
        at = addresses(context, builder, signature.args[:5], args[:5])

        def address(array: int, item: Any, kind: ir.Type, size: int) -> Any:
            offset = builder.mul(item, ir.Constant(index, size))
            return builder.inttoptr(builder.add(at[array], offset), kind.as_pointer())

        def differs(x: Any, y: Any) -> Any:
            bits = builder.bitcast(builder.icmp_unsigned("!=", x, y), ir.IntType(row.count))
            return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

        # The row of v stays in a vector of registers; the loop ends once all its bits are set.
        first, ones = ir.Constant(index, 0), ir.Constant(row, [-1] * row.count)
        before = builder.load(address(1, first, row, 0), align=8)
        found = cgutils.alloca_once_value(builder, before)
        vertex = context.get_data_type(sources.dtype)
        length = cgutils.unpack_tuple(
            builder, context.make_array(sources)(context, builder, args[4]).shape, 1
        )[0]
        with cgutils.for_range(builder, length) as loop:
            u = builder.load(address(4, loop.index, vertex, sources.dtype.bitwidth // 8))
            u = context.cast(builder, u, sources.dtype, types.int64)
            is_active = builder.load(address(3, u, ir.IntType(8), 1))
            with builder.if_then(
                builder.icmp_unsigned("!=", is_active, ir.Constant(ir.IntType(8), 0))
            ):
                bits = builder.or_(
                    builder.load(found), builder.load(address(2, u, row, 8 * row.count), align=8)
                )
                builder.store(bits, found)
                with builder.if_then(builder.not_(differs(bits, ones))):
                    loop.do_break()
        after = builder.load(found)
        builder.store(after, address(0, first, row, 0), align=8)
        return differs(after, before)

    return types.boolean(later, seen, now, active, sources, words), emit


@inner
def _pull(offsets, sources, now, active, seen, complete, later, touched):
    """later[v] <- seen[v] and the bits of now over the edges to v; write the v with more to
    `touched`, return their number.
    """
    count = 0
    for v in range(len(now)):
        if not complete[v]:
            edges = sources[offsets[v] : offsets[v + 1]]
            if now.shape[1] == 1:
                more = _gather(later[v], seen[v], now, active, edges, 1)
            else:
                more = _gather(later[v], seen[v], now, active, edges, 8)
            if more:
                touched[count] = v
                count += 1
    return count


@inner
def _push(offsets, targets, now, queue, complete, later, marked, touched):
    """The same over the edges from the vertices in `queue`; `marked` is False before, and True at
    the touched ones after.
    """
    count = 0
    for u in queue:
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if not complete[v]:
                if not marked[v]:
                    for w in range(now.shape[1]):
                        later[v, w] = now[u, w]
                    touched[count] = v
                    count += 1
                    marked[v] = True
                else:
                    for w in range(now.shape[1]):
                        later[v, w] |= now[u, w]
    return count


@inner
def _advance(
    edges_to, edges_from, now, active, queue, seen, complete, later, active_later, queue_later
):
    """Find the next level: set `later`, the vertices that have a bit of it, and those that have
    seen every source.

    Args:
        active: which vertices have a bit of `now`, all False after; active_later is False before.
        queue: these vertices; queue_later is [n].

    Returns the number of vertices in queue_later.
    """
    offsets, targets = edges_from
    # Push along the edges of the level if they are few: an eighth of all.
    edges = 0
    for u in queue:
        edges += offsets[u + 1] - offsets[u]
    if 8 * edges < len(targets):
        touched = _push(offsets, targets, now, queue, complete, later, active_later, queue_later)
    else:
        touched = _pull(edges_to[0], edges_to[1], now, active, seen, complete, later, queue_later)
    # What is new in the touched rows; those with nothing new leave the queue.
    found = 0
    for i in range(touched):
        v = queue_later[i]
        bits, common = np.uint64(0), ~np.uint64(0)
        for w in range(now.shape[1]):
            later[v, w] &= ~seen[v, w]
            seen[v, w] |= later[v, w]
            bits |= later[v, w]
            common &= seen[v, w]
        complete[v] = common == ~np.uint64(0)
        active_later[v] = bits != 0
        if bits != 0:
            queue_later[found] = v
            found += 1
    for u in queue:
        active[u] = False
    return found


@inner
def _begin(starts, n, words):
    """Return now, active, queue, seen, complete, later, active_later and queue_later for the
    sources `starts`.
    """
    now = np.zeros((n, words), np.uint64)
    active, queue = np.zeros(n, np.bool_), np.empty(n, np.int64)
    count = 0
    for s in range(len(starts)):
        now[starts[s], s // 64] |= np.uint64(1) << np.uint64(s % 64)
        if not active[starts[s]]:
            active[starts[s]] = True
            queue[count] = starts[s]
            count += 1
    seen = now.copy()
    for w in range(len(starts) // 64, words):  # bits without a source count as seen
        seen[:, w] |= ~np.uint64(0) << np.uint64(max(0, len(starts) - 64 * w))
    later, queue_later = np.empty((n, words), np.uint64), np.empty(n, np.int64)
    return (
        now,
        active,
        queue,
        count,
        seen,
        np.zeros(n, np.bool_),
        later,
        np.zeros(n, np.bool_),
        queue_later,
    )


@kernel
def hops_of_slab(edges_to, edges_from, starts, unreachable, digits, rows):
    """rows[s, v] <- the edges of a shortest path from starts[s] to v, or `unreachable`.

    Args:
        edges_to, edges_from: offsets and vertices of the edges by destination, and by source.
        digits: [d, n, words] of uint64, 0 before: the binary digits of the level of each bit, 64
            sources in each word.

    Returns whether a path has `unreachable` edges or more; then rows are not written.
    """
    _, n, words = digits.shape
    now, active, queue, count, seen, complete, later, active_later, queue_later = _begin(
        starts, n, words
    )
    level = 1
    while True:
        count = _advance(
            edges_to,
            edges_from,
            now,
            active,
            queue[:count],
            seen,
            complete,
            later,
            active_later,
            queue_later,
        )
        if count == 0:
            break
        if level == unreachable:
            return True
        # Keep the level of the new bits, in binary.
        for i in range(count):
            v = queue_later[i]
            for w in range(words):
                bits = later[v, w]
                if bits:
                    digit = 0
                    while level >> digit:
                        if level >> digit & 1:
                            digits[digit, v, w] |= bits
                        digit += 1
        now, later, active, active_later, queue, queue_later = (
            later,
            now,
            active_later,
            active,
            queue_later,
            queue,
        )
        level += 1
    used = 0
    while (level - 1) >> used:
        used += 1
    _unpack(seen, digits[:used], unreachable, rows)
    return False


@inner
def _unpack(seen, digits, unreachable, rows):
    """rows[s, v] <- the sum of 2^d over the digits[d, v] with bit s, or `unreachable` where bit s
    of seen[v] is not set.
    """
    sources, n = rows.shape
    block = np.empty((_BLOCK, 64), rows.dtype)
    for begin in range(0, n, _BLOCK):
        end = min(n, begin + _BLOCK)
        for w in range(-(-sources // 64)):
            for v in range(begin, end):
                _unpack_word(block[v - begin], seen[v, w], digits[:, v, w], unreachable)
            last = min(sources, 64 * w + 64)
            transpose(rows[64 * w : last, begin:end], block[: end - begin, : last - 64 * w])


@inner
def _unpack_word(levels, seen, digits, unreachable):
    for bit in range(64):
        levels[bit] = 0 if (seen >> np.uint64(bit)) & np.uint64(1) else unreachable
    for d in range(len(digits)):
        word = digits[d]
        if word:
            for bit in range(64):
                levels[bit] += ((word >> np.uint64(bit)) & np.uint64(1)) << np.uint64(d)


@kernel
def totals_of_slab(edges_to, edges_from, starts, words, total, reached, farthest):
    """Add the distances from all sources to each vertex v, each a number of edges, to what other
    slabs found.

    Args:
        edges_to, edges_from, starts, words: as above.
        total: [n], + the sum of the distances to v.
        reached: [n], + from how many sources v is reached.
        farthest: [n], the largest of these distances.
    """
    now, active, queue, count, seen, complete, later, active_later, queue_later = _begin(
        starts, len(total), words
    )
    for s in starts:
        reached[s] += 1
    level = 1
    while count > 0:
        count = _advance(
            edges_to,
            edges_from,
            now,
            active,
            queue[:count],
            seen,
            complete,
            later,
            active_later,
            queue_later,
        )
        for i in range(count):
            v = queue_later[i]
            bits = np.int64(0)
            for w in range(words):
                bits += _count_bits(later[v, w])
            total[v] += level * bits
            reached[v] += bits
            farthest[v] = max(farthest[v], level)
        now, later, active, active_later, queue, queue_later = (
            later,
            now,
            active_later,
            active,
            queue_later,
            queue,
        )
        level += 1


@inner
def _count_bits(x):
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
