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
    """Return whether offsets, targets and weights of floats are valid, and in the order of
    SparseGraph.by_source.
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
def kept_edges(sources, targets, weights, no_edge):
    """Return the edges but those of weight no_edge and loops that are not negative: the sources and
    targets, of int32, and their places; and whether these are in the order of sources, then of
    targets, without two at one place.
    """
    given, count, in_order = len(weights), 0, True
    heads, tails = np.empty(given, np.int32), np.empty(given, np.int32)
    places = np.empty(given, np.int64)
    for e in range(given):
        source, target, weight = sources[e], targets[e], weights[e]
        heads[count], tails[count], places[count] = source, target, e
        if weight < no_edge and (source != target or weight < 0):
            if count > 0 and source <= heads[count - 1]:
                in_order &= source == heads[count - 1] and target > tails[count - 1]
            count += 1
    return heads[:count], tails[:count], places[:count], in_order


@kernel
def lists_by(n, owners, others, places):
    """Return offsets [n + 1] of int64, vertices [edges] and places [edges] of int64: the others of
    owner v, and their places, are those from offsets[v] to offsets[v + 1], in the order given.
    """
    # offsets[v + 1] is where the next edge of v goes, and in the end where its edges end.
    offsets = np.empty(n + 2, np.int64)
    vertices, kept = np.empty(len(others), np.int32), np.empty(len(others), np.int64)
    for v in range(n + 2):
        offsets[v] = 0
    for e in range(len(owners)):
        offsets[owners[e] + 2] += 1
    for v in range(n):
        offsets[v + 2] += offsets[v + 1]
    for e in range(len(owners)):
        at = offsets[owners[e] + 1]
        offsets[owners[e] + 1] += 1
        vertices[at], kept[at] = others[e], places[e]
    return offsets[: n + 1], vertices, kept
