"""Labels of vertices over an elimination tree, and the distances and paths of pairs by them, in
Numba.

The label of a vertex v has a value for each position on the path from the root to v, by depth: the
lightest path that only climbs from v to that position, or only descends to v. Then

    d(s, t) = min over common ancestors a of s and t:  up(s, a) + down(a, t)

Source: Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 8; Abraham et
al., Hierarchical Hub Labelings for Shortest Paths, 2012.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def label(tree, weights, start, missing, x):  # type: ignore[no-untyped-def]
    """x[k] <- the value of the ancestor of depth k of the position `start`, itself included.

    Args:
        tree: offsets, ancestors, parents and depths of the elimination tree.
        weights: [edges], `to` for paths from `start`, `back` for paths to it.
    """
    offsets, ancestors, parents, depths = tree
    p, depth = start, depths[start]
    x[: depth + 1] = missing
    x[depth] = 0
    while p >= 0:
        own = x[depth]
        if own < missing:
            for e in range(offsets[p], offsets[p + 1]):
                k = depths[ancestors[e]]
                x[k] = min(x[k], own + weights[e])
        p = parents[p]
        depth -= 1


@kernel
def labels(tree, weights, starts, missing, x):  # type: ignore[no-untyped-def]
    """x [starts, height] <- the labels of some positions."""
    for s in range(len(starts)):
        label(tree, weights, starts[s], missing, x[s])


@kernel
def table(tree, ends, up, starts, down, before, missing, limit, d):  # type: ignore[no-untyped-def]
    """d [starts, targets] <- the distances from each start to each target, `missing` beyond the
    limit.

    Args:
        tree: see label.
        ends: [n], of the subtrees.
        up: [starts, height], the labels of the starts.
        down: [height, targets], those of the targets, whose positions ascend.
        before: [n + 1], the number of targets before each position.
    """
    _, _, parents, depths = tree
    path = np.empty(len(down) + 1, np.int32)
    for s in range(len(starts)):
        row, p = d[s], starts[s]
        row[:] = missing
        depth = depths[p]
        for k in range(depth, -1, -1):
            path[k] = p
            p = parents[p]
        for k in range(depth + 1):
            first, end = before[path[k]], before[ends[path[k]]]
            if first == end:
                break  # the subtrees of deeper ones are parts of this
            if up[s, k] < missing:
                own, others = up[s, k], down[k]
                for t in range(first, end):  # LLVM vectorizes this loop
                    row[t] = min(row[t], own + others[t])
        for t in range(len(row)):
            row[t] = row[t] if row[t] <= limit else missing


@kernel
def pairs(tree, ends, to, back, starts, targets, missing, limit, height, d):  # type: ignore[no-untyped-def]
    """d [pairs] <- the distance of each pair, `missing` beyond the limit.

    Args:
        tree, ends: see table.
        to, back: [edges] of the filled graph.
        starts, targets: [pairs], positions; equal ones beside each other share a label.
    """
    up, down = np.empty(height, to.dtype), np.empty(height, to.dtype)
    for i in range(len(starts)):
        if i == 0 or starts[i] != starts[i - 1]:
            label(tree, to, starts[i], missing, up)
        if i == 0 or targets[i] != targets[i - 1]:
            label(tree, back, targets[i], missing, down)
        best = missing
        for k in range(_common(tree, ends, starts[i], targets[i])):
            best = min(best, up[k] + down[k])
        d[i] = best if best <= limit else missing


@kernel
def _common(tree, ends, s, t):  # type: ignore[no-untyped-def]
    """Return the number of common ancestors of two positions, themselves included."""
    _, _, parents, depths = tree
    while s >= 0 and not s <= t < ends[s]:
        s = parents[s]
    return depths[s] + 1 if s >= 0 else 0


@kernel
def paths_of_pairs(  # type: ignore[no-untyped-def]
    tree, ends, to, back, middles, starts, targets, missing, limit, height
):
    """Return the positions on a shortest path of each pair, both ends included and no position
    twice, one path after another, and their offsets [pairs + 1]; none beyond the limit.

    Args:
        tree, ends, to, back, starts, targets: see pairs.
        middles: [2, edges], through which position the path of each edge leads, to an ancestor and
            back; below 0 for edges of the graph.
    """
    up, down = np.empty(height, to.dtype), np.empty(height, to.dtype)
    last = np.empty(len(ends), np.int32)
    found, offsets = np.empty(1024, np.int32), np.zeros(len(starts) + 1, np.int64)
    count = 0
    for i in range(len(starts)):
        s, t = starts[i], targets[i]
        label(tree, to, s, missing, up)
        label(tree, back, t, missing, down)
        best, top = missing, -1
        for k in range(_common(tree, ends, s, t)):
            if up[k] + down[k] < best:
                best, top = up[k] + down[k], k
        if top >= 0 and best <= limit:
            # A path of the filled graph, then one of the graph.
            climbed, descended = _climbed(tree, to, up, s, top), _climbed(tree, back, down, t, top)
            path = _unpacked(tree, middles, np.concatenate((climbed, descended[:-1][::-1])))
            if count + len(path) > len(found):
                larger = np.empty(2 * (count + len(path)), np.int32)
                larger[:count] = found[:count]
                found = larger
            # A position that comes again closes a cycle of weight 0, which is left out.
            for j in range(len(path)):
                last[path[j]] = j
            j = 0
            while j < len(path):
                found[count] = path[j]
                count += 1
                j = last[path[j]] + 1
        offsets[i + 1] = count
    return found[:count].copy(), offsets


@kernel
def _climbed(tree, weights, x, start, top):  # type: ignore[no-untyped-def]
    """Return the positions by which the value at depth `top` of a label x came about, from `start`
    to the ancestor of that depth.
    """
    offsets, ancestors, parents, depths = tree
    depth = depths[start]
    path = np.empty(depth + 1, np.int32)
    p = start
    for k in range(depth, -1, -1):
        path[k] = p
        p = parents[p]
    found, count = np.empty(depth + 1, np.int32), 0
    k = top
    while True:
        found[count] = path[k]
        count += 1
        if k == depth:
            break
        # A deeper position with an edge to this one whose sum is exactly the value.
        following = -1
        for deeper in range(k + 1, depth + 1):
            q = path[deeper]
            e = _edge(offsets, ancestors, q, path[k])
            if e >= 0 and x[deeper] + weights[e] == x[k]:
                following = deeper
                break
        k = following
    return found[:count][::-1].copy()


@kernel
def _edge(offsets, ancestors, p, a):  # type: ignore[no-untyped-def]
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
def _unpacked(tree, middles, hops):  # type: ignore[no-untyped-def]
    """Return the path of the graph along the edges of the filled graph between `hops`."""
    offsets, ancestors, _, _ = tree
    result, count = np.empty(64, np.int32), 1
    result[0] = hops[0]
    # The ends of edges that are still to be unpacked, the next one last.
    stack = [hops[i] for i in range(len(hops) - 1, 0, -1)]
    while len(stack):
        u, w = result[count - 1], stack[-1]
        if u > w:
            middle = middles[0, _edge(offsets, ancestors, u, w)]
        else:
            middle = middles[1, _edge(offsets, ancestors, w, u)]
        if middle >= 0:
            stack.append(middle)
            continue
        stack.pop()
        if count == len(result):
            larger = np.empty(2 * count, np.int32)
            larger[:count] = result
            result = larger
        result[count] = w
        count += 1
    return result[:count].copy()
