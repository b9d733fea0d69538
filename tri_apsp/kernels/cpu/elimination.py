"""Elimination of the vertices of a sparse graph one after another, and the two sweeps that give
distances then, in Numba.

    for v with the fewest edges to it times edges from it (Markowitz's rule):  # eliminate
        for edges u -> v -> w between vertices that are left:
            weight(u, w) = min(weight(u, w), weight(u, v) + weight(v, w))
    # The sweeps, over the edges that v had when it was eliminated:
    for v in this order:     x[w] = min(x[w], x[v] + weight(v, w)) over the edges from v
    for v in reverse order:  x[v] = min(x[v], x[u] + weight(u, v)) over the edges to v

A shortest path first leads to vertices that are eliminated later and later, and then earlier and
earlier.

Source: Carré, An Algebra for Network Routing Problems, 1971; the order: Markowitz, The Elimination
Form of the Inverse and Its Application to Linear Programming, 1957; the sweeps: Delling, Goldberg,
Nowatzyk, Werneck, PHAST: Hardware-Accelerated Shortest Path Trees, 2011.
"""

import heapq

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel

_TILE_ROWS = 16


@kernel
def _lists(offsets, vertices, weights):  # type: ignore[no-untyped-def]
    """Return lists that may grow, as a tuple:

    first, count, capacity: [n], where each list begins, its length, and how long it may become.
    ends, values: the other ends and the weights of edges, in arrays with memory for as many more.
    used: [1], how much of these arrays is used.
    degree: [n], the edges of a list whose other ends are left; the rest are removed when the
        list is rewritten.
    """
    n = len(offsets) - 1
    count = offsets[1:] - offsets[:-1]
    ends, values = (
        np.empty(2 * len(vertices) + 16, np.int32),
        np.empty(2 * len(vertices) + 16, weights.dtype),
    )
    ends[: len(vertices)], values[: len(vertices)] = vertices, weights
    used = np.array([len(vertices)])
    return offsets[:n].copy(), count, count.copy(), ends, values, used, count.copy()


@kernel
def _edges_of(lists, v, left):  # type: ignore[no-untyped-def]
    """Return the edges in the list of v: their other ends, as far as they are left, and their
    weights.
    """
    first, count, _, ends, values, _, degree = lists
    found, weights = np.empty(degree[v], np.int32), np.empty(degree[v], values.dtype)
    length = 0
    for e in range(first[v], first[v] + count[v]):
        if left[ends[e]]:
            found[length], weights[length] = ends[e], values[e]
            length += 1
    return found, weights


@kernel
def _reserve(lists, heads, new):  # type: ignore[no-untyped-def]
    """Return the lists with memory for `new` more edges in each of those of `heads`, should all of
    them move.
    """
    first, count, capacity, ends, values, used, degree = lists
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
    return first, count, capacity, new_ends, new_values, used, degree


@kernel
def _connect(lists, left, others, to_others, heads, from_heads, place, limit):  # type: ignore[no-untyped-def]
    """Add the edges over an eliminated vertex v from each of `heads` to each of `others` to their
    lists, if they are lighter.

    Args:
        left: False at v.
        to_others, from_heads: the weights of the edges from v to `others`, and from `heads` to v.
        place: (n,) of int32, -1 before and after.
        limit: heavier edges are left out.

    Returns the change of the number of edges in these lists.
    """
    first, count, capacity, ends, values, used, degree = lists
    change = -len(heads)
    for h in range(len(heads)):
        # The list of u moves to the end of the memory if it may become longer than its capacity.
        u, weight = heads[h], from_heads[h]
        degree[u] -= 1
        if len(others) == 0 or (len(others) == 1 and others[0] == u):
            continue  # a list is not rewritten for a leaf: stars would take quadratic time
        begin, length = first[u], count[u]
        if length + len(others) > capacity[u]:
            capacity[u] = 2 * (length + len(others))
            ends[used[0] : used[0] + length] = ends[begin : begin + length]
            values[used[0] : used[0] + length] = values[begin : begin + length]
            begin = first[u] = used[0]
            used[0] += capacity[u]
        # Drop the edges to eliminated vertices; place[w] is where the edge to w is now.
        end = begin
        for e in range(begin, begin + length):
            if left[ends[e]]:
                ends[end], values[end] = ends[e], values[e]
                place[ends[end]] = end
                end += 1
        # Add the edges over v, or lower those that exist.
        for o in range(len(others)):
            w, total = others[o], weight + to_others[o]
            if w != u and total <= limit:
                if place[w] < 0:
                    ends[end], values[end] = w, total
                    end += 1
                else:
                    values[place[w]] = min(values[place[w]], total)
        for e in range(begin, end):
            place[ends[e]] = -1
        change += end - begin - degree[u]
        count[u] = degree[u] = end - begin
    return change


@kernel
def eliminate(by_source, by_destination, limit, max_eliminated, max_left, stop):  # type: ignore[no-untyped-def]
    """Eliminate all vertices by Markowitz's rule: always one with the fewest edges to it times
    edges from it.

    Args:
        by_source, by_destination: offsets, vertices and weights of the edges from and to each
            vertex; no weight is negative.
        limit: heavier paths are left out.
        max_eliminated: the most edges and fill-in that may be at vertices when they are eliminated,
            all together.
        max_left: the most edges between remaining vertices.
        stop: [1] of bool; another thread may set it, which ends this as too many edges do.

    Returns:
        The vertices in their order, or fewer if there are more edges than that; then for each of
        them, in this order, the edges from it and those to it, when it was eliminated: (up offsets,
        up vertices, up weights), (down ...).
    """
    n = len(by_source[0]) - 1
    successors, predecessors = _lists(*by_source), _lists(*by_destination)
    place = np.full(n, -1, np.int64)
    order, left = np.empty(n, np.int32), np.ones(n, np.bool_)
    up, down = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    up_ends, down_ends = (
        np.empty(4 * len(by_source[1]) + 16, np.int32),
        np.empty(4 * len(by_source[1]) + 16, np.int32),
    )
    up_values, down_values = (
        np.empty(len(up_ends), by_source[2].dtype),
        np.empty(len(up_ends), by_source[2].dtype),
    )
    counts = successors[-1] * predecessors[-1]
    # The heap holds count * n + vertex. queued[v] is the count in the newest entry of v, at most
    # counts[v]: an entry whose count has risen since is put back when it is taken.
    queued = counts.copy()
    heap = [counts[v] * n + v for v in range(n)]
    heapq.heapify(heap)
    done, edges_left = 0, len(by_source[1])
    while len(heap) > 0 and not stop[0]:
        entry = heapq.heappop(heap)
        v = entry % n
        if not left[v] or entry // n != queued[v]:
            continue
        if queued[v] < counts[v]:
            queued[v] = counts[v]
            heapq.heappush(heap, counts[v] * n + v)
            continue
        # The edges of v to vertices that are left; stop if they would be too many.
        targets, to_targets = _edges_of(successors, v, left)
        sources, from_sources = _edges_of(predecessors, v, left)
        if (
            up[done] + down[done] + len(targets) + len(sources) > max_eliminated
            or edges_left > max_left
        ):
            break
        # Eliminate v: keep its edges, and connect its predecessors to its successors.
        left[v] = False
        up_ends, up_values = _append(up_ends, up_values, up, done, targets, to_targets)
        down_ends, down_values = _append(down_ends, down_values, down, done, sources, from_sources)
        successors = _reserve(successors, sources, len(targets))
        predecessors = _reserve(predecessors, targets, len(sources))
        edges_left += _connect(
            successors, left, targets, to_targets, sources, from_sources, place, limit
        ) - len(targets)
        _connect(predecessors, left, sources, from_sources, targets, to_targets, place, limit)
        # Only the counts of its neighbours have changed.
        for ends in (sources, targets):
            for u in ends:
                counts[u] = successors[-1][u] * predecessors[-1][u]
                if counts[u] < queued[u]:
                    queued[u] = counts[u]
                    heapq.heappush(heap, counts[u] * n + u)
        order[done] = v
        done += 1
    ups = up[: done + 1], up_ends[: up[done]], up_values[: up[done]]
    return order[:done], ups, (down[: done + 1], down_ends[: down[done]], down_values[: down[done]])


@kernel
def _append(ends, values, offsets, done, new_ends, new_values):  # type: ignore[no-untyped-def]
    """Append the edges at the vertex that is eliminated as number `done`; return the arrays, which
    may be new ones.
    """
    begin = offsets[done]
    end = begin + len(new_ends)
    if end > len(ends):
        larger_ends, larger_values = np.empty(2 * end, np.int32), np.empty(2 * end, values.dtype)
        larger_ends[:begin], larger_values[:begin] = ends[:begin], values[:begin]
        ends, values = larger_ends, larger_values
    ends[begin:end], values[begin:end] = new_ends, new_values
    offsets[done + 1] = end
    return ends, values


@kernel
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


@kernel
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


@kernel
def write_rows(x, rank, limit, no_edge, d):  # type: ignore[no-untyped-def]
    """Write x[rank[v], s] to d[s, v], or no_edge where it exceeds the limit."""
    n = len(rank)
    # _TILE_ROWS rows of x fit the L1 cache, and _TILE_ROWS values of d a line of it.
    for begin in range(0, n, _TILE_ROWS):
        end = min(n, begin + _TILE_ROWS)
        for s in range(len(d)):
            for v in range(begin, end):
                value = x[rank[v], s]
                d[s, v] = value if value <= limit else no_edge
