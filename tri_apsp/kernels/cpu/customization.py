"""Weights of the filled graph from those of the graph, in Numba.

    for v in descending positions:
        for descendants p of v, by edges (p, v):
            for ancestors a of p above v:
                up(v, a) = min(up(v, a), down(v, p) + up(p, a))
                down(a, v) = min(down(a, v), down(a, p) + up(p, v))

Source: Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016, section 7.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


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
