"""Weights of the filled graph from those of the graph, in Numba.

    for v in descending positions:
        for descendants p of v, by edges (p, v):
            for ancestors a of p above v:
                up(v, a) = min(up(v, a), down(v, p) + up(p, a))
                down(a, v) = min(down(a, v), down(a, p) + up(p, v))

Source: Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 7.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import inner, kernel
from tri_apsp.kernels.cpu.elimination_tree import filled_edge


@kernel
def customize(
    offsets,
    ancestors,
    by_ancestor,
    descents,
    descendants,
    upward,
    downward,
    symmetric,
    part,
    feasible,
):
    """Lower the weights of the edges from some positions; those from descendants outside `part` are
    final.

    Args:
        offsets, ancestors, by_ancestor, descents, descendants: of filled_edges.
        upward, downward: [edges]; of symmetric weights the same array.
        part: the positions, ascending.
        feasible: [1] of bool, set to False if a cycle through a descendant weighs less than 0;
            where it is False, the kernel ends early.
    """
    place = np.empty(len(offsets), np.int64)
    for i in range(len(part) - 1, -1, -1):
        v = part[i]
        for e in range(offsets[v], offsets[v + 1]):
            place[ancestors[e]] = e
        if not feasible[0]:
            return
        for d in range(by_ancestor[v], by_ancestor[v + 1]):
            f = descents[d]
            down, up = downward[f], upward[f]
            if down + up < 0:
                feasible[0] = False
                return
            begin = offsets[descendants[d]]
            if symmetric:
                for g in range(begin, f):
                    e = place[ancestors[g]]
                    upward[e] = min(upward[e], up + upward[g])
            else:
                for g in range(begin, f):
                    e = place[ancestors[g]]
                    upward[e] = min(upward[e], down + upward[g])
                    downward[e] = min(downward[e], downward[g] + up)


@kernel
def middle_positions(
    offsets, ancestors, by_ancestor, descents, descendants, upward, downward, middles
):
    """middles [2, edges] <- the descendant through which the lightest path of each edge leads,
    upward and downward; it stays where the edge of the graph weighs as little.

    Of several lightest paths, one of the fewest edges is taken, which passes no vertex twice even
    where cycles weigh 0.

    Args:
        middles: on entry -1 where an edge of the graph has the weight, else -2.
    """
    place = np.empty(len(offsets), np.int64)
    hops = np.full(middles.shape, len(offsets), np.int32)  # more than any path has
    for i in range(2):
        for e in range(middles.shape[1]):
            hops[i, e] = 1 if middles[i, e] == -1 else hops[i, e]
    for v in range(len(offsets) - 2, -1, -1):
        for e in range(offsets[v], offsets[v + 1]):
            place[ancestors[e]] = e
        for d in range(by_ancestor[v], by_ancestor[v + 1]):
            f, p = descents[d], descendants[d]
            for g in range(offsets[p], f):
                e = place[ancestors[g]]
                up, down = hops[1, f] + hops[0, g], hops[1, g] + hops[0, f]
                if up < hops[0, e] and downward[f] + upward[g] == upward[e]:
                    middles[0, e], hops[0, e] = p, up
                if down < hops[1, e] and downward[g] + upward[f] == downward[e]:
                    middles[1, e], hops[1, e] = p, down


@inner
def _with_place(values, count):
    """Return an array that begins with `count` values and has a place for one more."""
    if count < len(values):
        return values
    longer = np.empty(2 * count, np.int64)
    for i in range(count):
        longer[i] = values[i]
    return longer


@inner
def _pushed(heap, count, e):
    """Return a heap of numbers, the largest first, with one more."""
    heap = _with_place(heap, count)
    at = count
    while at > 0 and heap[(at - 1) // 2] < e:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = e
    return heap


@inner
def _popped(heap, count):
    """Return the largest number of a heap of `count`, which it leaves."""
    top, e, at = heap[0], heap[count - 1], 0
    while True:
        below = 2 * at + 1
        if below >= count - 1:
            break
        if below + 1 < count - 1 and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= e:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = e
    return top


@kernel
def customize_above(
    offsets,
    ancestors,
    by_ancestor,
    descents,
    descendants,
    given,
    upward,
    downward,
    changed,
):
    """Bring the weights of the filled graph up to date after those of some of its edges changed in
    `given`, from deeper positions to their ancestors; return the edges whose weight changed. No
    weight is negative.

    Args:
        offsets, ancestors, by_ancestor, descents, descendants: of filled_edges.
        given: [2, edges], the weights of the graph, upward and downward.
        upward, downward: [edges].
        changed: the edges, in any order.
    """
    heap, count = np.empty(64, np.int64), np.int64(0)
    for i in range(len(changed)):
        heap = _pushed(heap, count, changed[i])
        count += 1
    found, total, last = np.empty(64, np.int64), np.int64(0), np.int64(-1)
    while count:
        e = _popped(heap, count)
        count -= 1
        if e == last:
            continue
        last = e
        v, above = 0, len(offsets) - 1  # the position whose edge it is
        while above - v > 1:
            middle = (v + above) // 2
            if offsets[middle] <= e:
                v = middle
            else:
                above = middle
        a, up, down = ancestors[e], given[0, e], given[1, e]
        for i in range(by_ancestor[v], by_ancestor[v + 1]):
            f = descents[i]
            g = filled_edge(offsets, ancestors, descendants[i], a)
            if g >= 0:
                up = min(up, downward[f] + upward[g])
                down = min(down, downward[g] + upward[f])
        if up == upward[e] and down == downward[e]:
            continue
        before_up, before_down = upward[e], downward[e]
        upward[e], downward[e] = up, down
        found = _with_place(found, total)
        found[total] = e
        total += 1
        for g in range(offsets[v], offsets[v + 1]):
            b = ancestors[g]
            if b == a:
                continue
            # The path over v from the deeper of a and b to the other, and back.
            other = filled_edge(offsets, ancestors, max(a, b), min(a, b))
            if b < a:
                there, back = down + upward[g], downward[g] + up
                was_there, was_back = before_down + upward[g], downward[g] + before_up
            else:
                there, back = downward[g] + up, down + upward[g]
                was_there, was_back = downward[g] + before_up, before_down + upward[g]
            if (
                there < upward[other]
                or back < downward[other]
                or (was_there == upward[other] and there != was_there)
                or (was_back == downward[other] and back != was_back)
            ):
                heap = _pushed(heap, count, other)
                count += 1
    return found[:total]
