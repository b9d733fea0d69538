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
def _advance(offsets, sources, now, active, seen, complete, later, active_later):  # type: ignore[no-untyped-def]
    """Set `later`, which vertices have a bit of it, and which have seen every source; return whether there is a bit."""
    n, words = now.shape
    found = False
    for v in range(n):
        reached = False
        for e in range(offsets[v], offsets[v] if complete[v] else offsets[v + 1]):
            u = sources[e]
            if active[u]:
                if not reached:
                    for w in range(words):
                        later[v, w] = now[u, w]
                else:
                    for w in range(words):  # LLVM vectorizes this loop
                        later[v, w] |= now[u, w]
                reached = True
        active_later[v] = False
        if reached:
            bits, common = np.uint64(0), ~np.uint64(0)
            for w in range(words):
                later[v, w] &= ~seen[v, w]
                seen[v, w] |= later[v, w]
                bits |= later[v, w]
                common &= seen[v, w]
            active_later[v] = bits != 0
            complete[v] = common == ~np.uint64(0)
            found = found or bits != 0
    return found


@njit(nogil=True, cache=True)
def _begin(starts, n, words):  # type: ignore[no-untyped-def]
    """Return now, active, seen, complete, later and active_later for the sources `starts`."""
    now = np.zeros((n, words), np.uint64)
    active = np.zeros(n, np.bool_)
    for s in range(len(starts)):
        now[starts[s], s // 64] |= np.uint64(1) << np.uint64(s % 64)
        active[starts[s]] = True
    seen = now.copy()
    for s in range(len(starts), 64 * words):  # bits without a source count as seen
        seen[:, s // 64] |= np.uint64(1) << np.uint64(s % 64)
    return now, active, seen, np.zeros(n, np.bool_), np.empty((n, words), np.uint64), np.empty(n, np.bool_)


@njit(nogil=True, cache=True)
def hops_of_slab(offsets, sources, starts, words, most, x):  # type: ignore[no-untyped-def]
    """x[v, s] <- the edges of a shortest path from starts[s] to v; what is not reached stays as it is.

    Args:
        offsets, sources: the edges by destination.
        words: of 64 sources.
        most: the largest number of edges that x can hold.
        x: [n, 64 * words].

    Returns whether a path has more edges than `most`.
    """
    now, active, seen, complete, later, active_later = _begin(starts, len(x), words)
    for s in range(len(starts)):
        x[starts[s], s] = 0
    level = 1
    while _advance(offsets, sources, now, active, seen, complete, later, active_later):
        if level > most:
            return True
        for v in range(len(x)):
            for w in range(words if active_later[v] else 0):
                bits = later[v, w]
                if bits:
                    for bit in range(64):  # LLVM vectorizes this loop
                        new = (bits >> np.uint64(bit)) & np.uint64(1)
                        x[v, 64 * w + bit] = level if new else x[v, 64 * w + bit]
        now, later, active, active_later = later, now, active_later, active
        level += 1
    return False


@njit(nogil=True, cache=True)
def totals_of_slab(offsets, sources, starts, words, total, reached, farthest):  # type: ignore[no-untyped-def]
    """Add the distances from all sources to each vertex v, each a number of edges, to what other slabs found.

    Args:
        offsets, sources, starts, words: as above.
        total: [n], + the sum of the distances to v.
        reached: [n], + from how many sources v is reached.
        farthest: [n], the largest of these distances.
    """
    now, active, seen, complete, later, active_later = _begin(starts, len(total), words)
    for s in starts:
        reached[s] += 1
    level = 1
    while _advance(offsets, sources, now, active, seen, complete, later, active_later):
        for v in range(len(total)):
            if active_later[v]:
                count = np.int64(0)
                for w in range(words):
                    count += _count_bits(later[v, w])
                total[v] += level * count
                reached[v] += count
                farthest[v] = max(farthest[v], level)
        now, later, active, active_later = later, now, active_later, active
        level += 1


@njit(nogil=True, cache=True)
def _count_bits(x):  # type: ignore[no-untyped-def]
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
