"""The elimination tree of an order, and the edges of the filled graph, in Numba.

    for i, v in enumerate(order):                        # the parent of each vertex
        for u in neighbours(v) that are eliminated before v:
            the root of the subtree of u, if it is not v, gets the parent v
    for v in order:                                      # the filled graph
        ancestors(v) = later neighbours of v, and ancestors of the children of v other than v

Source: Liu, The Role of Elimination Trees in Sparse Factorization, 1990.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel


@inner
def enlarged(values, size):
    """Return an array of this size that begins with `values`, of int32."""
    larger = np.empty(size, np.int32)
    for i in range(len(values)):
        larger[i] = values[i]
    return larger


@kernel
def neighbour_lists(offsets, targets, in_offsets, sources):
    """Return the offsets [n + 1] and the neighbours of each vertex in either direction, ascending
    and without itself.

    Args:
        offsets, targets, in_offsets, sources: the edges by source and by destination.
    """
    n = len(offsets) - 1
    both, neighbours = np.empty(n + 1, np.int64), np.empty(2 * len(targets), np.int32)
    count = both[0] = 0
    for v in range(n):
        e, end, f, in_end = offsets[v], offsets[v + 1], in_offsets[v], in_offsets[v + 1]
        while e < end or f < in_end:
            if f == in_end or (e < end and targets[e] <= sources[f]):
                u = targets[e]
                f += f < in_end and sources[f] == u
                e += 1
            else:
                u = sources[f]
                f += 1
            if u != v:
                neighbours[count] = u
                count += 1
        both[v + 1] = count
    return both, neighbours[:count]


@kernel
def tree_positions(offsets, neighbours, order):
    """Return the elimination tree of an order as a preorder: a root comes first, and the children
    of large subtrees come last, so that few values are live in a walk over it.

    Args:
        offsets, neighbours: the symmetric structure.
        order: [n], the vertices in the order of elimination.

    Returns:
        The position of each vertex [n]; then by position, the parent, -1 at roots, and the end of
        the subtree.
    """
    n = len(order)
    # Parents by rank; `above` skips to the root of a subtree, and is shortened on the way.
    rank, parent, above = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    size, starts = np.empty(n, np.int32), np.empty(n, np.int64)
    for i in range(n):
        rank[order[i]], parent[i], above[i], size[i], starts[i] = i, -1, -1, 1, 0
    for i in range(n):
        v = order[i]
        for e in range(offsets[v], offsets[v + 1]):
            u = rank[neighbours[e]]
            while u < i and above[u] != i:
                following = above[u]
                above[u] = i
                if following < 0:
                    parent[u] = i
                    break
                u = following
    for i in range(n):
        if parent[i] >= 0:
            size[parent[i]] += size[i]
    # By size, largest first: a parent comes before its children, and each takes the end of what
    # its parent has left.
    for i in range(n):
        starts[n - size[i]] += 1
    total = 0
    for k in range(n):
        total += starts[k]
        starts[k] = total - starts[k]
    by_size, position, left = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        by_size[starts[n - size[i]]] = i
        starts[n - size[i]] += 1
    roots_left = n
    for k in range(n):
        i = by_size[k]
        if parent[i] < 0:
            position[i] = roots_left = roots_left - size[i]
        else:
            position[i] = left[parent[i]] = left[parent[i]] - size[i]
        left[i] = position[i] + size[i]
    positions, parents, ends = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        p = position[i]
        positions[order[i]] = p
        parents[p] = -1 if parent[i] < 0 else position[parent[i]]
        ends[p] = p + size[i]
    return positions, parents, ends


@kernel
def filled_edges(offsets, neighbours, positions, ends, most, stop):
    """Return the edges of the filled graph from each position to its ancestors.

    Args:
        offsets, neighbours: the symmetric structure.
        positions, ends: what tree_positions returns.
        most: edges at most.
        stop: [1] of bool; another thread may set it, which ends this as too many edges do.

    Returns:
        Whether these are all; then the offsets of the edges of each position [n + 1], and their
        ancestors, ascending; then of the same edges by ancestor: the offsets [n + 1], their
        numbers, and the descendants, ascending.
    """
    n = len(positions)
    vertices, seen = np.empty(n, np.int32), np.empty(n, np.int32)
    for v in range(n):
        vertices[positions[v]], seen[v] = v, -1
    # Positions in descending order, so that a list is made of those of children.
    begins, counts = np.empty(n, np.int64), np.empty(n, np.int64)
    found, used = np.empty(len(neighbours) + 16, np.int32), 0
    for p in range(n - 1, -1, -1):
        begin, v = used, vertices[p]
        needed = offsets[v + 1] - offsets[v]
        child = p + 1
        while child < ends[p]:
            needed += counts[child]
            child = ends[child]
        if used + needed > len(found):
            found = enlarged(found, 2 * (used + needed))
        seen[p] = p
        for e in range(offsets[v], offsets[v + 1]):
            a = positions[neighbours[e]]
            if a < p and seen[a] != p:
                seen[a] = p
                found[used] = a
                used += 1
        child = p + 1
        while child < ends[p]:
            for e in range(begins[child], begins[child] + counts[child]):
                a = found[e]
                if seen[a] != p:
                    seen[a] = p
                    found[used] = a
                    used += 1
            child = ends[child]
        begins[p], counts[p] = begin, used - begin
        if used > most or stop[0]:
            return False, counts, found, counts, counts, found
    # By ancestor: descendants ascend there; then by descendant again, so that ancestors ascend. In
    # both, offset p + 1 is where the next edge of p goes, and in the end where its edges end.
    by_ancestor, edge_offsets = np.empty(n + 2, np.int64), np.empty(n + 2, np.int64)
    for p in range(n + 2):
        by_ancestor[p] = edge_offsets[p] = 0
    for e in range(used):
        by_ancestor[found[e] + 2] += 1
    for p in range(n):
        by_ancestor[p + 2] += by_ancestor[p + 1]
        edge_offsets[p + 2] = edge_offsets[p + 1] + counts[p]
    descendants, descents = np.empty(used, np.int32), np.empty(used, np.int64)
    for p in range(n):
        for e in range(begins[p], begins[p] + counts[p]):
            a = found[e] + 1
            descendants[by_ancestor[a]] = p
            by_ancestor[a] += 1
    for a in range(n):
        for d in range(by_ancestor[a], by_ancestor[a + 1]):
            p = descendants[d] + 1
            e = edge_offsets[p]
            edge_offsets[p] += 1
            found[e], descents[d] = a, e
    edges = found[:used].copy()
    return True, edge_offsets[: n + 1], edges, by_ancestor[: n + 1], descents, descendants


@kernel
def weight_indices(tails, heads, positions, edge_offsets, ancestors):
    """Return where the weight of each of some edges goes: e for the upward edge e of the filled
    graph, edges + e for the downward one; -1 for a loop, and for an edge that the filled graph does
    not have.

    Args:
        tails, heads: the ends of each.
    """
    indices = np.empty(len(tails), np.int64)
    for f in range(len(tails)):
        p, a = positions[tails[f]], positions[heads[f]]
        shift = 0
        if a > p:
            p, a, shift = a, p, len(ancestors)
        e = filled_edge(edge_offsets, ancestors, p, a)
        indices[f] = shift + e if e >= 0 else -1
    return indices


@inner
def filled_edge(offsets, ancestors, p, a):
    """Return the edge of the filled graph from p to its ancestor a, -1 if there is none."""
    low, high = offsets[p], offsets[p + 1]
    while low < high:
        middle = (low + high) // 2
        if ancestors[middle] < a:
            low = middle + 1
        else:
            high = middle
    return low if low < offsets[p + 1] and ancestors[low] == a else -1


@kernel
def live_slots(by_ancestor, descendants):
    """Return in which slot a walk over ascending positions keeps the value of each, -1 if no later
    one reads it, and the number of slots.

    Args:
        by_ancestor, descendants: of filled_edges.
    """
    n = len(by_ancestor) - 1
    slots, free = np.empty(n, np.int32), np.empty(n, np.int32)
    # The positions whose last reader is p, as a list: the first, and the next of each.
    first, following = np.empty(n, np.int32), np.empty(n, np.int32)
    for p in range(n):
        slots[p] = first[p] = -1
    count = used = 0
    for p in range(n):
        a = first[p]
        while a >= 0:
            free[count] = slots[a]
            count += 1
            a = following[a]
        if by_ancestor[p] == by_ancestor[p + 1]:
            continue
        if count:
            count -= 1
            slots[p] = free[count]
        else:
            slots[p] = used
            used += 1
        last = descendants[by_ancestor[p + 1] - 1]
        following[p] = first[last]
        first[last] = p
    return slots, used


@kernel
def tree_depths(parents):
    """Return the number of ancestors of each position in the tree, [n]."""
    depths = np.zeros(len(parents), np.int32)
    for p in range(len(parents)):
        if parents[p] >= 0:
            depths[p] = depths[parents[p]] + 1
    return depths
