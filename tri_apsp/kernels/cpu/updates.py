"""Distances after some weights rose, in Numba: those that change are found and computed anew.

For each row: a vertex is *affected* if no edge supports its distance any more, that is, leads to it
from a nearer vertex that is not affected and adds up to no more. The first candidates are the ends
of the edges that rose, and each affected vertex makes those behind it candidates. Then Dijkstra's
algorithm starts at the affected vertices, with their edges from others.

A vertex that is as near does not support another, since a cycle of weight 0 would support itself:
so a distance may be computed anew without need, but not kept wrongly.

Source: Ramalingam, Reps, An Incremental Algorithm for a Generalization of the Shortest-Path
Problem, 1996.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.sparse import sift_down, sift_up


@inner
def _is_supported(v, offsets, sources, weights, potentials, none, row, before, place):
    """Return whether an edge supports the distance of v; its source becomes the predecessor, if
    `before` has them.
    """
    for e in range(offsets[v], offsets[v + 1]):
        u, w = sources[e], weights[e]
        if place[u] < 0 and row[u] < none and w < none and row[u] + w <= row[v]:
            if row[u] - potentials[u] < row[v] - potentials[v]:
                if len(before):
                    before[v] = u
                return True
    return False


@inner
def _is_affected(
    u,
    v,
    w,
    start,
    offsets,
    sources,
    weights,
    potentials,
    none,
    relative,
    absolute,
    row,
    before,
    place,
):
    """Return whether v may have its distance by the edge (u, v) of weight w, and no edge supports
    that; false if v is affected already.
    """
    if place[v] >= 0 or v == start or row[u] >= none or row[v] >= none or w >= none:
        return False
    if row[u] + w > row[v] + relative * abs(row[v]) + absolute:
        return False
    return not _is_supported(v, offsets, sources, weights, potentials, none, row, before, place)


@kernel
def repair(
    in_offsets,
    in_sources,
    in_weights,
    out_offsets,
    out_targets,
    out_weights,
    potentials,
    tails,
    heads,
    old_weights,
    none,
    relative,
    absolute,
    starts,
    writes,
    d,
    predecessors,
    totals,
):
    """Find the affected vertices of each row, and their new distances.

    Args:
        in_offsets, in_sources, in_weights: the edges by destination, with the new weights.
        out_offsets, out_targets, out_weights: the edges by source.
        potentials: [n], such that w + potentials[u] >= potentials[v] for each edge (u, v).
        tails, heads, old_weights: of the edges that rose.
        none: a distance without a path.
        relative, absolute: by which share of a distance, and by how much more, rounding may
            separate it from an equal sum.
        starts: [rows], which rows.
        writes: whether d and the predecessors change.
        d: [n, n], distances before the weights rose, <- those after it.
        predecessors: [n, n]; [0, 0] if they are not wanted.
        totals: [rows, 5] of float64, <- how many vertices are computed anew, how many of these are
            farther, by how much together, how many have no path any more, and how many sums were
            `none` or more.
    """
    n = len(d)
    # Of each affected vertex: its place in the queue, else -1; its new distance and predecessor by
    # that place, and where it is in the heap.
    place, queue, at = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    new, pred = np.empty(n, d.dtype), np.empty(n, np.int32)
    keys, heap = np.empty(n, d.dtype), np.empty(n, np.int32)
    none_before = np.empty(0, np.int32)
    for v in range(n):
        place[v] = -1
    for s in range(len(starts)):
        start, count = starts[s], 0
        row = d[start]
        before = predecessors[start] if len(predecessors) else none_before
        for c in range(len(tails)):
            u, v, w = tails[c], heads[c], old_weights[c]
            if _is_affected(
                u,
                v,
                w,
                start,
                in_offsets,
                in_sources,
                in_weights,
                potentials,
                none,
                relative,
                absolute,
                row,
                before,
                place,
            ):
                place[v], queue[count] = count, v
                count += 1
        taken = 0
        while taken < count:
            u = queue[taken]
            taken += 1
            for e in range(out_offsets[u], out_offsets[u + 1]):
                v, w = out_targets[e], out_weights[e]
                if _is_affected(
                    u,
                    v,
                    w,
                    start,
                    in_offsets,
                    in_sources,
                    in_weights,
                    potentials,
                    none,
                    relative,
                    absolute,
                    row,
                    before,
                    place,
                ):
                    place[v], queue[count] = count, v
                    count += 1
        queued, beyond = 0, 0
        for k in range(count):
            v, best, nearest = queue[k], none, -1
            for e in range(in_offsets[v], in_offsets[v + 1]):
                u, w = in_sources[e], in_weights[e]
                if place[u] < 0 and row[u] < none and w < none:
                    beyond += row[u] + w >= none
                    if row[u] + w < best:
                        best, nearest = row[u] + w, u
            new[k], pred[k] = best, nearest
            if best < none:
                # With potentials no edge is negative, so that no vertex is taken twice.
                sift_up(keys, heap, at, best - potentials[v], v, queued)
                queued += 1
            else:
                at[v] = -1
        while queued:
            u = heap[0]
            nearest = new[place[u]]
            at[u] = -1
            queued -= 1
            if queued:
                sift_down(keys, heap, at, keys[queued], heap[queued], queued)
            for e in range(out_offsets[u], out_offsets[u + 1]):
                v, w = out_targets[e], out_weights[e]
                k = place[v]
                if k >= 0 and w < none:
                    beyond += nearest + w >= none
                    if nearest + w < new[k]:
                        new[k], pred[k] = nearest + w, u
                        if at[v] < 0:
                            at[v] = queued
                            queued += 1
                        sift_up(keys, heap, at, new[k] - potentials[v], v, at[v])
        farther, lost, grown = 0.0, 0, 0
        for k in range(count):
            v = queue[k]
            grown += new[k] > row[v]
            if new[k] < none:
                farther += new[k] - row[v]
            else:
                lost += 1
            place[v] = -1
            if writes:
                row[v] = new[k]
                if len(before):
                    before[v] = pred[k]
        totals[s, 0], totals[s, 1], totals[s, 2] = count, grown, farther
        totals[s, 3], totals[s, 4] = lost, beyond


@kernel
def grow_trees(offsets, sources, weights, none, rounding, right, children, siblings):
    """Set the shortest-path tree of each row of distances: the first child of each vertex, and its
    next sibling; -1 where there is none.

    Args:
        offsets, sources, weights: the edges by destination.
        rounding: by which share of a distance an equal sum may differ from it.
        right: [depth, n], distances; `none` where there is no path.
        children: [depth, n + 1], <- the first child; that of n are the roots: the start, and all
            vertices without a shortest path over a nearer one.
        siblings: [depth, n], <- the next sibling.
    """
    n = right.shape[1]
    for k in range(len(right)):
        row = right[k]
        for v in range(n + 1):
            children[k, v] = -1
        for v in range(n):
            if row[v] >= none:
                continue
            parent, least = n, none
            for e in range(offsets[v], offsets[v + 1]):
                u, w = sources[e], weights[e]
                if row[u] < row[v] and w < none and row[u] + w < least:
                    parent, least = u, row[u] + w
            if least > row[v] + rounding * abs(row[v]):
                parent = n
            siblings[k, v], children[k, parent] = children[k, parent], v


@inner
def _descend(start, rest, children, siblings, stack, before, row, pred, most):
    """Lower the distances of a row along a shortest-path tree, as far as they change; return
    whether more than `most` did, and then not all have their value.

    If a path leads over a vertex, and does not shorten the distance to it, it shortens none behind
    it.
    """
    count, changed, v = 0, 0, children[len(row)]
    while True:
        while v >= 0:
            stack[count] = siblings[v]
            if start + rest[v] < row[v]:
                row[v] = start + rest[v]
                if len(before):
                    pred[v] = before[v]
                changed += 1
                count += 1
                v = children[v]
            else:
                v = siblings[v]
        if count == 0 or changed > most:
            return changed > most
        count -= 1
        v = stack[count]


@kernel
def join(left, right, reached, children, siblings, none, before, d, predecessors, first, end):
    """Take the minimum of some rows of d and of a product of small depth.

    Args:
        left: [n, depth]; right: [depth, n]; `none` where there is no path.
        reached: [n, depth], such that a row gains only by a k with left < reached; [0, 0]: not
            known.
        children, siblings: of grow_trees, for `right`; [0, 0] if they are not known.
        before: [depth, n], the predecessors on the paths of `right`; [0, 0] if they are not wanted.
        d, predecessors: [n, n], <- the minimum, and the predecessors on the paths that gave it.
        first, end: which rows.
    """
    n = d.shape[1]
    stack, unused = np.empty(n, np.int32), np.empty(0, np.int32)
    for i in range(first, end):
        row = d[i]
        pred = predecessors[i] if len(before) else unused
        for k in range(len(right)):
            start, rest = left[i, k], right[k]
            if start >= none or (len(reached) and start >= reached[i, k]):
                continue
            known = before[k] if len(before) else unused
            if len(children) and not _descend(
                start, rest, children[k], siblings[k], stack, known, row, pred, n // 8
            ):
                continue
            if len(before):
                for j in range(n):
                    if rest[j] < none and start + rest[j] < row[j]:
                        row[j], pred[j] = start + rest[j], known[j]
            else:
                for j in range(n):
                    total = start + rest[j]
                    is_less = (rest[j] < none) & (total < row[j])
                    row[j] = total if is_less else row[j]
