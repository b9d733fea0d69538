"""Elimination of the vertices of a sparse graph one after another, and the two sweeps that give distances then, in Numba.

    for v with the fewest edges to it times edges from it (Markowitz's rule):  # eliminate
        for edges u -> v -> w between vertices that are left:
            weight(u, w) = min(weight(u, w), weight(u, v) + weight(v, w))
    for v in this order:     x[w] = min(x[w], x[v] + weight(v, w)) over the edges from v when it was eliminated    # sweeps
    for v in reverse order:  x[v] = min(x[v], x[u] + weight(u, v)) over the edges to v when it was eliminated

A shortest path first leads to vertices that are eliminated later and later, and then earlier and earlier.

Source: Carré, An Algebra for Network Routing Problems, 1971; the order: Markowitz, The Elimination Form of the Inverse and Its
Application to Linear Programming, 1957; the sweeps: Delling, Goldberg, Nowatzyk, Werneck, PHAST:
Hardware-Accelerated Shortest Path Trees, 2011.
"""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

__all__ = ["eliminate", "sweep_down", "sweep_up", "write_rows"]

_TILE_ROWS = 16


@njit(nogil=True, cache=True)
def _lists(offsets, vertices, weights):  # type: ignore[no-untyped-def]
    """Return lists that may grow: where each starts, its length and its capacity; and the edges, in arrays twice as long."""
    n = len(offsets) - 1
    count = offsets[1:] - offsets[:-1]
    ends, values = np.empty(2 * len(vertices) + 16, np.int32), np.empty(2 * len(vertices) + 16, weights.dtype)
    ends[: len(vertices)], values[: len(vertices)] = vertices, weights
    used = np.array([len(vertices)])
    return offsets[:n].copy(), count, count.copy(), ends, values, used


@njit(nogil=True, cache=True)
def _edges_of(lists, v):  # type: ignore[no-untyped-def]
    """Return copies of the edges in the list of v: their other ends and their weights."""
    begin, end = lists[0][v], lists[0][v] + lists[1][v]
    return lists[3][begin:end].copy(), lists[4][begin:end].copy()


@njit(nogil=True, cache=True)
def _reserve(lists, heads, new):  # type: ignore[no-untyped-def]
    """Return the lists with memory for `new` more edges in each of those of `heads`, should all of them move."""
    first, count, capacity, ends, values, used = lists
    needed = 0
    for u in heads:
        needed += 2 * (count[u] + new)
    if used[0] + needed <= len(ends):
        return lists
    size = 2 * (count.sum() + needed)
    new_ends, new_values = np.empty(size, np.int32), np.empty(size, values.dtype)
    place = 0
    for v in range(len(first)):
        length = count[v]
        new_ends[place : place + length] = ends[first[v] : first[v] + length]
        new_values[place : place + length] = values[first[v] : first[v] + length]
        first[v] = place
        capacity[v] = length
        place += length
    used[0] = place
    return first, count, capacity, new_ends, new_values, used


@njit(nogil=True, cache=True)
def _connect(lists, v, others, to_others, heads, from_heads, place, limit):  # type: ignore[no-untyped-def]
    """Take v out of the list of each of `heads`, and add the edges over v from it to each of `others`, if they are lighter.

    Args:
        to_others, from_heads: the weights of the edges from v to `others`, and from `heads` to v.
        place: (n,) of int32, -1 before and after.
        limit: heavier edges are left out.
    """
    first, count, capacity, ends, values, used = lists
    for h in range(len(heads)):
        u, weight = heads[h], from_heads[h]
        begin, length = first[u], count[u]
        if length + len(others) > capacity[u]:
            capacity[u] = 2 * (length + len(others))
            ends[used[0] : used[0] + length] = ends[begin : begin + length]
            values[used[0] : used[0] + length] = values[begin : begin + length]
            begin = first[u] = used[0]
            used[0] += capacity[u]
        for e in range(begin, begin + length):
            place[ends[e]] = e
        gap = place[v]
        length -= 1
        ends[gap], values[gap] = ends[begin + length], values[begin + length]
        place[ends[gap]] = gap
        place[v] = -1
        for o in range(len(others)):
            w, total = others[o], weight + to_others[o]
            if w != u and total <= limit:
                if place[w] < 0:
                    ends[begin + length], values[begin + length] = w, total
                    length += 1
                else:
                    values[place[w]] = min(values[place[w]], total)
        for e in range(begin, begin + length):
            place[ends[e]] = -1
        count[u] = length


@njit(nogil=True, cache=True)
def eliminate(by_source, by_destination, limit, max_eliminated, max_left):  # type: ignore[no-untyped-def]
    """Eliminate all vertices by Markowitz's rule: always one with the fewest edges to it times edges from it.

    Args:
        by_source, by_destination: offsets, vertices and weights of the edges from and to each vertex; no weight is negative.
        limit: heavier paths are left out.
        max_eliminated: the most edges and fill-in that may be at vertices when they are eliminated, all together.
        max_left: the most edges between remaining vertices.

    Returns:
        The vertices in their order, or fewer if there are more edges than that; then for each of them, in this order, the
        edges from it and those to it, when it was eliminated: (up offsets, up vertices, up weights), (down ...).
    """
    n = len(by_source[0]) - 1
    successors, predecessors = _lists(*by_source), _lists(*by_destination)
    place = np.full(n, -1, np.int64)
    order, left = np.empty(n, np.int32), np.ones(n, np.bool_)
    up, down = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    up_ends, down_ends = np.empty(4 * len(by_source[1]) + 16, np.int32), np.empty(4 * len(by_source[1]) + 16, np.int32)
    up_values, down_values = np.empty(len(up_ends), by_source[2].dtype), np.empty(len(up_ends), by_source[2].dtype)
    counts = successors[1] * predecessors[1]
    queued = counts.copy()  # the key of each vertex in the heap, at most its count
    heap = [counts[v] * n + v for v in range(n)]
    heapq.heapify(heap)
    done, edges_left = 0, len(by_source[1])
    while len(heap) > 0:
        entry = heapq.heappop(heap)
        v = entry % n
        if not left[v] or entry // n != queued[v]:
            continue
        if queued[v] < counts[v]:  # it has risen since
            queued[v] = counts[v]
            heapq.heappush(heap, counts[v] * n + v)
            continue
        targets, to_targets = _edges_of(successors, v)
        sources, from_sources = _edges_of(predecessors, v)
        if up[done] + down[done] + len(targets) + len(sources) > max_eliminated or edges_left > max_left:
            break
        edges_left -= len(targets)
        for u in sources:
            edges_left -= successors[1][u]
        up_ends, up_values = _append(up_ends, up_values, up, done, targets, to_targets)
        down_ends, down_values = _append(down_ends, down_values, down, done, sources, from_sources)
        successors = _reserve(successors, sources, len(targets))
        predecessors = _reserve(predecessors, targets, len(sources))
        _connect(successors, v, targets, to_targets, sources, from_sources, place, limit)
        _connect(predecessors, v, sources, from_sources, targets, to_targets, place, limit)
        for u in sources:
            edges_left += successors[1][u]
        for ends in (sources, targets):
            for u in ends:
                counts[u] = successors[1][u] * predecessors[1][u]
                if counts[u] < queued[u]:
                    queued[u] = counts[u]
                    heapq.heappush(heap, counts[u] * n + u)
        left[v] = False
        order[done] = v
        done += 1
    ups = up[: done + 1], up_ends[: up[done]], up_values[: up[done]]
    return order[:done], ups, (down[: done + 1], down_ends[: down[done]], down_values[: down[done]])


@njit(nogil=True, cache=True)
def _append(ends, values, offsets, done, new_ends, new_values):  # type: ignore[no-untyped-def]
    """Append the edges at the vertex that is eliminated as number `done`; return the arrays, which may be new ones."""
    begin = offsets[done]
    end = begin + len(new_ends)
    if end > len(ends):
        larger_ends, larger_values = np.empty(2 * end, np.int32), np.empty(2 * end, values.dtype)
        larger_ends[:begin], larger_values[:begin] = ends[:begin], values[:begin]
        ends, values = larger_ends, larger_values
    ends[begin:end], values[begin:end] = new_ends, new_values
    offsets[done + 1] = end
    return ends, values


@njit(nogil=True, cache=True)
def sweep_up(offsets, targets, weights, reached, x):  # type: ignore[no-untyped-def]
    """Lower x [n, sources] along the edges from each row that is reached, in ascending order.

    Args:
        offsets, targets, weights: the edges from each row, to later ones.
        reached: [n] of bool, the rows of the sources; rows that they reach are added.
    """
    n, width = x.shape
    for v in range(n):
        if reached[v]:
            row = x[v]
            for e in range(offsets[v], offsets[v + 1]):
                other, w = x[targets[e]], weights[e]
                reached[targets[e]] = True
                for s in range(width):  # LLVM vectorizes this loop
                    other[s] = min(other[s], row[s] + w)


@njit(nogil=True, cache=True)
def sweep_down(offsets, sources, weights, x):  # type: ignore[no-untyped-def]
    """Lower x [n, sources] along the edges to each row, in descending order.

    Args:
        offsets, sources, weights: the edges to each row, from later ones.
    """
    n, width = x.shape
    for v in range(n - 1, -1, -1):
        row = x[v]
        for e in range(offsets[v], offsets[v + 1]):
            other, w = x[sources[e]], weights[e]
            for s in range(width):
                row[s] = min(row[s], other[s] + w)


@njit(nogil=True, cache=True)
def write_rows(x, rank, limit, no_edge, d):  # type: ignore[no-untyped-def]
    """Write x[rank[v], s] to d[s, v], or no_edge where it exceeds the limit."""
    n = len(rank)
    for begin in range(0, n, _TILE_ROWS):  # so many rows of x fit the L1 cache, and as many values of d a line of it
        end = min(n, begin + _TILE_ROWS)
        for s in range(len(d)):
            for v in range(begin, end):
                value = x[rank[v], s]
                d[s, v] = value if value <= limit else no_edge
