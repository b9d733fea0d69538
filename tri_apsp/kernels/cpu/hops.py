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

from tri_apsp.kernels.cpu.bits import count_bits
from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.transpose import transpose
from tri_apsp.kernels.cpu.vectors import addresses

# Vertices whose levels are unpacked together: their block, 64 values each, stays in the L1 cache.
_BLOCK = 256


@intrinsic(prefer_literal=True)
def _gather(typing_context, v, later, seen, now, active, sources, begin, end, words):
    """later[v] = seen[v] | the rows of now at the active of sources[begin:end]; return whether that
    is more than seen[v].

    Args:
        later, seen, now: [n, words] of uint64, of which a vector of registers holds a row.
        words: a constant.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index, row = ir.IntType(64), ir.VectorType(ir.IntType(64), words.literal_value)
        at = addresses(context, builder, signature.args[1:6], args[1:6])

        def address(array: int, item: Any, kind: ir.Type, size: int) -> Any:
            offset = builder.mul(item, ir.Constant(index, size))
            return builder.inttoptr(builder.add(at[array], offset), kind.as_pointer())

        def differs(x: Any, y: Any) -> Any:
            bits = builder.bitcast(builder.icmp_unsigned("!=", x, y), ir.IntType(row.count))
            return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

        # The row of v stays in a vector of registers; the loop ends once all its bits are set.
        ones, row_bytes = ir.Constant(row, [-1] * row.count), 8 * row.count
        before = builder.load(address(1, args[0], row, row_bytes), align=8)
        found = cgutils.alloca_once_value(builder, before)
        vertex = context.get_data_type(sources.dtype)
        with cgutils.for_range(builder, builder.sub(args[7], args[6])) as loop:
            edge = builder.add(args[6], loop.index)
            u = builder.load(address(4, edge, vertex, sources.dtype.bitwidth // 8))
            u = context.cast(builder, u, sources.dtype, types.int64)
            is_active = builder.load(address(3, u, ir.IntType(8), 1))
            with builder.if_then(
                builder.icmp_unsigned("!=", is_active, ir.Constant(ir.IntType(8), 0))
            ):
                bits = builder.or_(
                    builder.load(found), builder.load(address(2, u, row, row_bytes), align=8)
                )
                builder.store(bits, found)
                with builder.if_then(builder.not_(differs(bits, ones))):
                    loop.do_break()
        after = builder.load(found)
        builder.store(after, address(0, args[0], row, row_bytes), align=8)
        return differs(after, before)

    return types.boolean(v, later, seen, now, active, sources, begin, end, words), emit


@inner
def _pull(offsets, sources, now, active, seen, complete, later, touched):
    """later[v] <- seen[v] and the bits of now over the edges to v; write the v with more to
    `touched`, return their number.
    """
    count = 0
    for v in range(len(now)):
        if not complete[v]:
            begin, end = offsets[v], offsets[v + 1]
            if now.shape[1] == 1:
                more = _gather(v, later, seen, now, active, sources, begin, end, 1)
            else:
                more = _gather(v, later, seen, now, active, sources, begin, end, 8)
            if more:
                touched[count] = v
                count += 1
    return count


@inner
def _push(offsets, targets, now, queue, queued, complete, later, marked, touched):
    """The same over the edges from the vertices in queue[:queued]; `marked` is False before, and
    True at the touched ones after.
    """
    count = 0
    for i in range(queued):
        u = queue[i]
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
def _advance(edges_to, edges_from, level, count, following, seen, complete):
    """Find the level that follows, and set which vertices have seen every source.

    Args:
        level: the bits of this level [n, words]; which vertices have one, all False after; and
            these vertices, `count` of an array [n].
        following: receives the same of the level that follows; no vertex has a bit before.

    Returns the number of vertices that have a bit of the level that follows.
    """
    now, active, queue = level
    later, active_later, queue_later = following
    offsets, targets = edges_from
    # Push along the edges of the level if they are few: an eighth of all.
    edges = 0
    for i in range(count):
        edges += offsets[queue[i] + 1] - offsets[queue[i]]
    if 8 * edges < len(targets):
        touched = _push(
            offsets, targets, now, queue, count, complete, later, active_later, queue_later
        )
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
    for i in range(count):
        active[queue[i]] = False
    return found


@inner
def _begin(starts, n, words):
    """Return the level of the sources `starts`, the number of its vertices, memory for another
    level, and what was seen; see _advance().
    """
    now, seen = np.empty((n, words), np.uint64), np.empty((n, words), np.uint64)
    active, active_later = np.empty(n, np.bool_), np.empty(n, np.bool_)
    complete, queue = np.empty(n, np.bool_), np.empty(n, np.int64)
    for v in range(n):
        active[v] = active_later[v] = complete[v] = False
        for w in range(words):
            now[v, w] = seen[v, w] = 0
            if len(starts) < 64 * w + 64:  # bits without a source count as seen
                seen[v, w] = ~np.uint64(0) << np.uint64(max(0, len(starts) - 64 * w))
    count = 0
    for s in range(len(starts)):
        v, bit = starts[s], np.uint64(1) << np.uint64(s % 64)
        now[v, s // 64] |= bit
        seen[v, s // 64] |= bit
        if not active[v]:
            active[v] = True
            queue[count] = v
            count += 1
    following = np.empty((n, words), np.uint64), active_later, np.empty(n, np.int64)
    return (now, active, queue), count, following, seen, complete


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
    level, count, following, seen, complete = _begin(starts, n, words)
    depth = 0
    while True:
        count = _advance(edges_to, edges_from, level, count, following, seen, complete)
        if count == 0:
            break
        depth += 1
        if depth == unreachable:
            return True
        level, following = following, level
        # Keep the depth of the new bits, in binary.
        for i in range(count):
            v = level[2][i]
            for w in range(words):
                bits = level[0][v, w]
                if bits:
                    digit = 0
                    while depth >> digit:
                        if depth >> digit & 1:
                            digits[digit, v, w] |= bits
                        digit += 1
    used = 0
    while depth >> used:
        used += 1
    _unpack(seen, digits, used, unreachable, rows)
    return False


@inner
def _unpack(seen, digits, used, unreachable, rows):
    """rows[s, v] <- the sum of 2^d over the digits[d, v] with bit s of the first `used`, or
    `unreachable` where bit s of seen[v] is not set.
    """
    sources, n = rows.shape
    block = np.empty((_BLOCK, 64), rows.dtype)
    for begin in range(0, n, _BLOCK):
        end = min(n, begin + _BLOCK)
        for w in range((sources + 63) // 64):
            for v in range(begin, end):
                levels, reached = block[v - begin], seen[v, w]
                for bit in range(64):  # LLVM vectorizes this loop
                    is_seen = (reached >> np.uint64(bit)) & np.uint64(1)
                    levels[bit] = 0 if is_seen else unreachable
                for d in range(used):
                    word = digits[d, v, w]
                    if word:
                        for bit in range(64):
                            levels[bit] += ((word >> np.uint64(bit)) & np.uint64(1)) << np.uint64(d)
            last = min(sources, 64 * w + 64)
            transpose(rows[64 * w : last, begin:end], block[: end - begin, : last - 64 * w])


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
    level, count, following, seen, complete = _begin(starts, len(total), words)
    for s in range(len(starts)):
        reached[starts[s]] += 1
    depth = 0
    while count > 0:
        count = _advance(edges_to, edges_from, level, count, following, seen, complete)
        level, following = following, level
        depth += 1
        for i in range(count):
            v = level[2][i]
            bits = 0
            for w in range(words):
                bits += count_bits(level[0][v, w])
            total[v] += depth * bits
            reached[v] += bits
            farthest[v] = max(farthest[v], depth)
