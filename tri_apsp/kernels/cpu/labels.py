"""Labels of vertices over an elimination tree, and the distances and paths of pairs by them, in
Numba.

The label of a vertex v has a value for each position on the path from the root to v, by depth: the
lightest path that only climbs from v to that position, or only descends to v. Then

    label(v)[k] = min over edges e from v to ancestors a of depth >= k:  weight[e] + label(a)[k]
    d(s, t) = min over common ancestors a of s and t:  up(s, a) + down(a, t)

Source: Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 8; Abraham et
al., Hierarchical Hub Labelings for Shortest Paths, 2012.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.elimination_tree import enlarged, filled_edge


@kernel
def labels(tree, weights, touched, begins, missing, x):
    """x[begins[i] + k] <- the value of the label of touched[i] at depth k, up to its own.

    Args:
        tree: offsets, ancestors and depths of the elimination tree.
        weights: [edges], upward for paths from a vertex, downward for paths to it.
        touched: positions, ascending, with all of their ancestors in the tree.
    """
    offsets, ancestors, depths = tree
    place = np.empty(len(depths), np.int32)
    for i in range(len(touched)):
        p = touched[i]
        place[p] = i
        own = x[begins[i] : begins[i] + depths[p] + 1]
        own[:] = missing
        own[depths[p]] = 0
        for e in range(offsets[p], offsets[p + 1]):
            w, begin = weights[e], begins[place[ancestors[e]]]
            if w < missing:
                other = x[begin : begin + depths[ancestors[e]] + 1]
                for k in range(len(other)):  # LLVM vectorizes this loop
                    own[k] = min(own[k], other[k] + w)


@kernel
def table(parents, depths, ends, starts, targets, up, down, width, least, d):
    """d [starts, targets] <- min(d, up[s, k] + down[t, k]) at the depths k of common ancestors of s
    and t, but for blocks of at least `least` sums, which are returned: [blocks, 6], each as begin
    and end of its starts, targets and depths.

    Args:
        parents, depths, ends: [n], of the tree.
        starts, targets: positions, ascending. The subtree of a position has a range of each, whose
            pairs have common ancestors from the root to that position.
        up, down: [starts, height] and [targets, height], their labels.
        width: the targets of one part of the table after another, whose distances fit a cache.
    """
    parts = (len(targets) + width - 1) // width
    blocks, count = np.empty((2 * (parts * len(starts) + len(targets)), 6), np.int64), 0
    # Ranges of starts and targets below one position, and the depth of its children. Those of one
    # part share no start.
    stack, left = np.empty((parts + len(starts), 5), np.int64), parts
    for i in range(parts):
        end = len(targets) - i * width
        stack[i, 0], stack[i, 1], stack[i, 2] = 0, len(starts), max(0, end - width)
        stack[i, 3], stack[i, 4] = end, 0
    while left:
        left -= 1
        s, s_end, t = stack[left, 0], stack[left, 1], stack[left, 2]
        t_end, depth = stack[left, 3], stack[left, 4]
        while s < s_end and t < t_end:
            # The next child p, with its ranges up to s_next and t_next.
            first = min(starts[s], targets[t])
            p = first
            while depths[p] > depth:
                p = parents[p]
            # What lies at the position above has no further ancestor.
            end = ends[p] if depths[p] == depth else p + 1
            s_next, t_next = s, t
            while s_next < s_end and starts[s_next] < end:
                s_next += 1
            while t_next < t_end and targets[t_next] < end:
                t_next += 1
            if s < s_next and t < t_next and depths[p] == depth:
                # The deepest common ancestor of all in both ranges.
                last = max(starts[s_next - 1], targets[t_next - 1])
                p = first
                while ends[p] <= last:
                    p = parents[p]
                deep = depths[p] + 1
                if (s_next - s) * (t_next - t) * (deep - depth) >= least:
                    block = blocks[count]
                    block[0], block[1], block[2], block[3] = s, s_next, t, t_next
                    block[4], block[5] = depth, deep
                    count += 1
                else:
                    for i in range(s, s_next):
                        for j in range(t, t_next):
                            best = d[i, j]
                            for k in range(depth, deep):
                                best = min(best, up[i, k] + down[j, k])
                            d[i, j] = best
                below = stack[left]
                below[0], below[1], below[2], below[3], below[4] = s, s_next, t, t_next, deep
                left += 1
            s, t = s_next, t_next
    return blocks[:count]


@inner
def _common(depths, minima, s, t):
    """Return the number of common ancestors of two positions, themselves included.

    In a preorder, it is the smallest depth after the first of them, up to the other.

    Args:
        minima: [levels, n], the smallest of 2^level depths from each position on.
    """
    if s == t:
        return depths[s] + 1
    first, last = min(s, t) + 1, max(s, t)
    level = 0
    while (2 << level) <= last - first + 1:
        level += 1
    return min(minima[level, first], minima[level, last - (1 << level) + 1])


@inner
def _least(depths, minima, up, down, s, t, s_begin, t_begin, missing):
    """Return the distance from s to t, and the depth of the ancestor that has it; -1 without."""
    best, top = missing, -1
    for k in range(_common(depths, minima, s, t)):
        total = up[s_begin + k] + down[t_begin + k]
        if total < best:
            best, top = total, k
    return best, top


@kernel
def pairs(depths, minima, up, down, starts, targets, up_begins, down_begins, missing, limit, d):
    """d [pairs] <- the distance of each pair, `missing` beyond the limit.

    Args:
        depths, minima: see _common.
        up, down, up_begins, down_begins: labels, and where those of each pair begin.
        starts, targets: [pairs], positions.
    """
    for i in range(len(starts)):
        best, _ = _least(
            depths,
            minima,
            up,
            down,
            starts[i],
            targets[i],
            up_begins[i],
            down_begins[i],
            missing,
        )
        d[i] = best if best <= limit else missing


@kernel
def paths_of_pairs(
    tree, minima, up, down, upward, downward, middles, starts, targets, missing, limit
):
    """Return the positions on a shortest path of each pair, both ends included and no position
    twice, one path after another, and their offsets [pairs + 1]; none beyond the limit.

    Args:
        tree, minima: see labels and _common.
        up, down: labels, each as values, where the label of each position begins [n].
        upward, downward: [edges] of the filled graph.
        middles: [2, edges], through which position the path of each edge leads, upward and
            downward; below 0 for edges of the graph.
        starts, targets: [pairs], positions.
    """
    last = np.empty(len(tree[2]), np.int32)
    found, offsets = np.empty(1024, np.int32), np.zeros(len(starts) + 1, np.int64)
    count = 0
    for i in range(len(starts)):
        s, t = starts[i], targets[i]
        begins = up[1][s], down[1][t]
        best, top = _least(tree[2], minima, up[0], down[0], s, t, begins[0], begins[1], missing)
        if top >= 0 and best <= limit:
            # A path of the filled graph, then one of the graph.
            climbed = _climbed(tree, upward, up, s, top)
            descended = _climbed(tree, downward, down, t, top)
            path = _unpacked(tree, middles, np.concatenate((climbed, descended[:-1][::-1])))
            if count + len(path) > len(found):
                found = enlarged(found, 2 * (count + len(path)))
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


@inner
def _climbed(tree, weights, labels, p, depth):
    """Return the positions of the path that gave the value at a depth of the label of p, from p to
    the ancestor of that depth.
    """
    offsets, ancestors, depths = tree
    x, begins = labels
    found, count = np.empty(depths[p] - depth + 1, np.int32), 1
    found[0] = p
    while depths[p] > depth:
        value = x[begins[p] + depth]
        for e in range(offsets[p], offsets[p + 1]):
            a = ancestors[e]
            # The sum is the same as in labels(), so that it is exactly the value.
            if depths[a] >= depth and x[begins[a] + depth] + weights[e] == value:
                p = a
                break
        found[count] = p
        count += 1
    return found[:count].copy()


@inner
def _unpacked(tree, middles, hops):
    """Return the path of the graph along the edges of the filled graph between `hops`."""
    offsets, ancestors, _ = tree
    result, count = np.empty(64, np.int32), 1
    result[0] = hops[0]
    # The ends of edges that are still to be unpacked, the next one last.
    stack = [hops[i] for i in range(len(hops) - 1, 0, -1)]
    while len(stack):
        u, w = result[count - 1], stack[-1]
        if u > w:
            middle = middles[0, filled_edge(offsets, ancestors, u, w)]
        else:
            middle = middles[1, filled_edge(offsets, ancestors, w, u)]
        if middle >= 0:
            stack.append(middle)
            continue
        stack.pop()
        if count == len(result):
            result = enlarged(result, 2 * count)
        result[count] = w
        count += 1
    return result[:count].copy()
