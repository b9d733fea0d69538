"""Checks of edges, and lists of those from, and to, each vertex: by counting sorts."""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def first_wrong(n, sources, targets, weights, lowest, highest):
    """Return the place of the first edge with an end that is not in [0, n), or a weight that is not
    in [lowest, highest]; -1 if there is none.
    """
    for e in range(len(weights)):
        inside = 0 <= sources[e] < n and 0 <= targets[e] < n
        if not (inside and lowest <= weights[e] <= highest):
            return e
    return -1


@kernel
def are_canonical(n, offsets, targets, weights, no_edge):
    """Return whether offsets, targets and weights of floats are valid, and as lists_by_source
    returns them.
    """
    edges = len(targets)
    if len(offsets) != n + 1 or offsets[0] != 0 or offsets[n] != edges or len(weights) != edges:
        return False
    wrong, falls = False, 0  # targets that are not larger than that before
    for e in range(edges):  # LLVM vectorizes these loops
        wrong |= (targets[e] < 0) | (targets[e] >= n)
    for e in range(edges):
        wrong |= not ((weights[e] > -no_edge) & (weights[e] < no_edge))
    for e in range(1, edges):
        falls += targets[e] <= targets[e - 1]
    for u in range(n):
        begin, end = offsets[u], offsets[u + 1]
        if not 0 <= begin <= end <= edges:
            return False
        if 0 < begin < end:
            falls -= targets[begin] <= targets[begin - 1]
        for e in range(begin, end):
            wrong |= (targets[e] == u) & (weights[e] >= 0)
    return not wrong and falls == 0


@kernel
def lists_by_source(n, sources, targets, weights, no_edge):
    """Return offsets [n + 1] of int64, targets [edges] of int32 and weights [edges]: the edges from
    vertex v are those from offsets[v] to offsets[v + 1], in the order of their targets.

    Of several edges at one place the lightest counts; edges of weight no_edge and loops that are
    not negative are left out.

    Args:
        sources, targets: [given] of any integer type, in [0, n).
        weights: [given].
    """
    given, ascending = len(weights), True
    kept = np.empty(given, np.bool_)
    offsets = np.zeros(n + 1, np.int64)
    for e in range(given):
        source, target = sources[e], targets[e]
        kept[e] = weights[e] < no_edge and (source != target or weights[e] < 0)
        offsets[source + 1] += kept[e]
        if e and source <= sources[e - 1]:
            ascending &= source == sources[e - 1] and target > targets[e - 1]
    for v in range(n):
        offsets[v + 1] += offsets[v]
    if ascending:
        return offsets, targets[kept].astype(np.int32), weights[kept]
    # By target, then by source, which keeps the order of targets.
    by_target = _sorted(np.flatnonzero(kept), targets, n)
    order = _sorted(by_target, sources, n)
    vertices, values = targets[order].astype(np.int32), weights[order]
    count, begin = 0, 0
    for v in range(n):
        first, end = count, offsets[v + 1]
        for place in range(begin, end):
            if count > first and vertices[count - 1] == vertices[place]:
                values[count - 1] = min(values[count - 1], values[place])
            else:
                vertices[count], values[count] = vertices[place], values[place]
                count += 1
        begin, offsets[v + 1] = end, count
    return offsets, vertices[:count].copy(), values[:count].copy()


@kernel
def lists_by_destination(offsets, targets, weights):
    """Return the edges to each vertex, in the order of their sources, as lists_by_source returns
    those from each.
    """
    n, edges = len(offsets) - 1, len(targets)
    heads = np.zeros(n + 1, np.int64)
    for e in range(edges):
        heads[targets[e] + 1] += 1
    for v in range(n):
        heads[v + 1] += heads[v]
    places, vertices = heads[:n].copy(), np.empty(edges, np.int32)
    values = np.empty(edges, weights.dtype)
    for source in range(n):
        for e in range(offsets[source], offsets[source + 1]):
            place = places[targets[e]]
            places[targets[e]] += 1
            vertices[place], values[place] = source, weights[e]
    return heads, vertices, values


@kernel
def without_isolated(offsets, targets):
    """Return the vertices that have an edge, of int64, and the offsets and targets of the graph of
    these; edges by source.
    """
    n = len(offsets) - 1
    has_edge = offsets[1:] > offsets[:-1]
    for v in targets:
        has_edge[v] = True
    kept, place = np.flatnonzero(has_edge), np.empty(n, np.int32)
    fewer = np.empty(len(kept) + 1, np.int64)
    for i, v in enumerate(kept):
        place[v], fewer[i] = i, offsets[v]
    fewer[-1] = offsets[-1]
    return kept, fewer, place[targets]


@kernel
def _sorted(edges, keys, n):
    """Return `edges` in the order of keys[edges], each in [0, n); equal ones stay in order."""
    places = np.zeros(n + 1, np.int64)
    for e in edges:
        places[keys[e] + 1] += 1
    for v in range(n):
        places[v + 1] += places[v]
    result = np.empty_like(edges)
    for e in edges:
        result[places[keys[e]]] = e
        places[keys[e]] += 1
    return result
