"""Breadth-first search from many vertices at once, one bit for each source, in Numba.

    seen = now = {the bit of each source, at its vertex}
    for level = 1, 2, ...:
        later[v] = (OR of now[u] over the edges (u, v)) and not seen[v]     # 64 sources in each word
        seen[v] |= later[v];  now = later

Source: Then et al., The More the Merrier: Efficient Multi-Source Graph Traversal, 2014.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["hops_of_slab", "totals_of_slab"]


@njit(nogil=True, cache=True)
def _pull(offsets, sources, now, active, complete, later, touched):  # type: ignore[no-untyped-def]
    """later[v] <- the bits of now over the edges to v; write the v with any to `touched`, and return their number."""
    count = 0
    for v in range(len(now)):
        reached = False
        for e in range(offsets[v], offsets[v] if complete[v] else offsets[v + 1]):
            u = sources[e]
            if active[u]:
                if not reached:
                    for w in range(now.shape[1]):
                        later[v, w] = now[u, w]
                    touched[count] = v
                    count += 1
                    reached = True
                else:
                    for w in range(now.shape[1]):  # LLVM vectorizes this loop
                        later[v, w] |= now[u, w]
    return count


@njit(nogil=True, cache=True)
def _push(offsets, targets, now, queue, complete, later, marked, touched):  # type: ignore[no-untyped-def]
    """The same over the edges from the vertices in `queue`; `marked` is False before, and True at the touched ones after."""
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


@njit(nogil=True, cache=True)
def _advance(edges_to, edges_from, now, active, queue, seen, complete, later, active_later, queue_later):  # type: ignore[no-untyped-def]
    """Find the next level: set `later`, the vertices that have a bit of it, and those that have seen every source.

    Args:
        active: which vertices have a bit of `now`, all False after; active_later is False before.
        queue: these vertices; queue_later has room for n.

    Returns the number of vertices in queue_later.
    """
    offsets, targets = edges_from
    edges = 0
    for u in queue:
        edges += offsets[u + 1] - offsets[u]
    if 8 * edges < len(targets):
        touched = _push(offsets, targets, now, queue, complete, later, active_later, queue_later)
    else:
        touched = _pull(edges_to[0], edges_to[1], now, active, complete, later, queue_later)
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


@njit(nogil=True, cache=True)
def _begin(starts, n, words):  # type: ignore[no-untyped-def]
    """Return now, active, queue, seen, complete, later, active_later and queue_later for the sources `starts`."""
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
    for s in range(len(starts), 64 * words):  # bits without a source count as seen
        seen[:, s // 64] |= np.uint64(1) << np.uint64(s % 64)
    later, queue_later = np.empty((n, words), np.uint64), np.empty(n, np.int64)
    return now, active, queue, count, seen, np.zeros(n, np.bool_), later, np.zeros(n, np.bool_), queue_later


@njit(nogil=True, cache=True)
def hops_of_slab(edges_to, edges_from, starts, words, most, x):  # type: ignore[no-untyped-def]
    """x[v, s] <- the edges of a shortest path from starts[s] to v; what is not reached stays as it is.

    Args:
        edges_to, edges_from: offsets and vertices of the edges by destination, and by source.
        words: of 64 sources.
        most: the largest number of edges that x can hold.
        x: [n, 64 * words].

    Returns whether a path has more edges than `most`.
    """
    now, active, queue, count, seen, complete, later, active_later, queue_later = _begin(starts, len(x), words)
    for s in range(len(starts)):
        x[starts[s], s] = 0
    level = 1
    while True:
        count = _advance(edges_to, edges_from, now, active, queue[:count], seen, complete, later, active_later, queue_later)
        if count == 0 or level > most:
            return count > 0
        for i in range(count):
            v = queue_later[i]
            for w in range(words):
                bits = later[v, w]
                if bits:
                    for bit in range(64):  # LLVM vectorizes this loop
                        new = (bits >> np.uint64(bit)) & np.uint64(1)
                        x[v, 64 * w + bit] = level if new else x[v, 64 * w + bit]
        now, later, active, active_later, queue, queue_later = later, now, active_later, active, queue_later, queue
        level += 1


@njit(nogil=True, cache=True)
def totals_of_slab(edges_to, edges_from, starts, words, total, reached, farthest):  # type: ignore[no-untyped-def]
    """Add the distances from all sources to each vertex v, each a number of edges, to what other slabs found.

    Args:
        edges_to, edges_from, starts, words: as above.
        total: [n], + the sum of the distances to v.
        reached: [n], + from how many sources v is reached.
        farthest: [n], the largest of these distances.
    """
    now, active, queue, count, seen, complete, later, active_later, queue_later = _begin(starts, len(total), words)
    for s in starts:
        reached[s] += 1
    level = 1
    while count > 0:
        count = _advance(edges_to, edges_from, now, active, queue[:count], seen, complete, later, active_later, queue_later)
        for i in range(count):
            v = queue_later[i]
            bits = np.int64(0)
            for w in range(words):
                bits += _count_bits(later[v, w])
            total[v] += level * bits
            reached[v] += bits
            farthest[v] = max(farthest[v], level)
        now, later, active, active_later, queue, queue_later = later, now, active_later, active, queue_later, queue
        level += 1


@njit(nogil=True, cache=True)
def _count_bits(x):  # type: ignore[no-untyped-def]
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
