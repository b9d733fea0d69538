"""The shortest path around some vertices and edges, for shortest simple paths."""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel
from tri_apsp.kernels.cpu.sparse import sift_down, sift_up


@kernel
def shortest_detour(
    offsets, targets, weights, to_target, no_path, closed, banned, start, target, workspace
):
    """Return the vertices of a shortest path from `start` to `target`, and its weight; no vertex if
    there is no path. A* search: it settles only vertices that may be on a path as short.

    Args:
        offsets, targets, weights: the edges by source; weights are not negative.
        to_target: [n], the distance of each vertex to `target`, `no_path` where there is none.
        closed: [n] of bool, the vertices that the path must not pass through.
        banned: [m], the vertices that must not come second.
        workspace: of earlier calls for this graph: d [n], `no_path` in each; keys [n]; heap,
            touched, pred and place [n] of int32, -1 in each place.
    """
    d, keys, heap, touched, pred, place = workspace
    # place[v] is the position of v in the heap, -1 before it is there and -2 once it is settled.
    # keys[at] is the least weight of a path to `target` by way of the vertex at that position.
    d[start] = 0
    keys[0], heap[0], place[start], touched[0] = to_target[start], start, 0, start
    count, seen = 1, 1
    while count and heap[0] != target:
        u = heap[0]
        place[u] = -2
        count -= 1
        if count:
            sift_down(keys, heap, place, keys[count], heap[count], count)
        for e in range(offsets[u], offsets[u + 1]):
            v, total = targets[e], d[u] + weights[e]
            if closed[v] or to_target[v] >= no_path or place[v] == -2 or total >= d[v]:
                continue
            if u == start and (banned == v).any():
                continue
            at = place[v]
            if at < 0:
                at = count
                count += 1
                touched[seen] = v
                seen += 1
            d[v], pred[v] = total, u
            sift_up(keys, heap, place, total + to_target[v], v, at)
    weight, length = d[target], 0
    if count:
        v = target
        length = 1
        while v != start:
            v = pred[v]
            length += 1
    path = np.empty(length, np.int64)
    v = target
    for index in range(length - 1, -1, -1):
        path[index] = v
        v = pred[v]
    for index in range(seen):
        d[touched[index]], place[touched[index]] = no_path, -1
    return path, weight
