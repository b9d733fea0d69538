"""Negative cycles by Bellman-Ford from all vertices at once, with a queue of vertices whose potential changed, in Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["bellman_ford"]


@njit(nogil=True, cache=True)
def bellman_ford(w, vertices, no_edge, lowest, absolute, relative, potentials, parents):  # type: ignore[no-untyped-def]
    """Lower potentials until none changes, or until the parents form a cycle, which is then negative.

    Args:
        w: [n, n], weights of any strides.
        vertices: the part of the graph to look at; distinct.
        lowest: no potential becomes smaller.
        absolute, relative: a potential p[j] becomes p[i] + w[i, j] only if it changes by more than `absolute` + `relative` *
            |p[i]|.
        potentials: [n] of float64 for floats, which have no lowest, or of int64; 0 at first.
        parents: [n] of int64, -1 at first.

    Returns:
        A vertex on the cycle; following `parents` from it runs along the cycle backwards. -1 if there is none.
    """
    n = len(vertices)
    queue = vertices.copy()
    waits = np.zeros(len(potentials), np.bool_)
    for vertex in vertices:
        waits[vertex] = True
    head, count, taken = 0, n, 0
    while count:
        k = queue[head]
        head = (head + 1) % n
        count -= 1
        waits[k] = False
        known = potentials[k]
        margin = absolute + relative * abs(known)
        for j in vertices:
            x = w[k, j]
            total = max(known + x, lowest)
            if x < no_edge and total < potentials[j] - margin:
                potentials[j] = total
                parents[j] = k
                if not waits[j]:
                    waits[j] = True
                    queue[(head + count) % n] = j
                    count += 1
        taken += 1
        if taken % n == 0 or parents[k] == k:
            vertex = _on_a_cycle(parents, vertices)
            if vertex >= 0:
                return vertex
    return -1


@njit(nogil=True, cache=True)
def _on_a_cycle(parents, vertices):  # type: ignore[no-untyped-def]
    """Return a vertex on a cycle of the graph v -> parents[v], or -1."""
    seen = np.zeros(len(parents), np.int64)
    for start in vertices:
        vertex = start
        while vertex >= 0 and seen[vertex] == 0:
            seen[vertex] = start + 1
            vertex = parents[vertex]
        if vertex >= 0 and seen[vertex] == start + 1:
            return vertex
    return -1
