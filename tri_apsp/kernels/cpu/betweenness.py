"""Betweenness from rows of distances: shortest paths are counted away from a source, and shared out
to the vertices on them back towards it.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel


@kernel
def add_betweenness(  # type: ignore[no-untyped-def]
    offsets, sources, weights, starts, distances, no_path, endpoints, found
):
    """found[v] += the share of the shortest paths from each of `starts` that pass through v.

    Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001.

    Args:
        offsets, sources, weights: the edges by destination, of positive weights.
        starts: [rows], the source of each row.
        distances: [rows, n], `no_path` where there is none.
        endpoints: whether a path also passes through its ends.
        found: [n] of float64.
    """
    n = distances.shape[1]
    paths, shares = np.empty(n), np.empty(n)  # from the source, and those that pass through
    before = np.empty(len(sources), np.int32)  # the vertices before each one on shortest paths
    for row in range(len(starts)):
        d, start = distances[row], starts[row]
        reached = np.flatnonzero(d < no_path)
        order = reached[np.argsort(d[reached])]
        count = np.empty(len(order), np.int64)
        end = 0
        for index in range(len(order)):  # a vertex after all those before it: weights are positive
            v = order[index]
            total = 1.0 if v == start else 0.0
            for e in range(offsets[v], offsets[v + 1]):
                u = sources[e]
                if d[u] + weights[e] == d[v]:
                    total += paths[u]
                    before[end] = u
                    end += 1
            paths[v] = total
            shares[v] = 0.0
            count[index] = end
        for index in range(len(order) - 1, 0, -1):  # but for the source
            v = order[index]
            share = (1.0 + shares[v]) / paths[v]
            for place in range(count[index - 1], count[index]):
                shares[before[place]] += paths[before[place]] * share
            found[v] += shares[v] + 1.0 if endpoints else shares[v]
        if endpoints:
            found[start] += len(order) - 1
