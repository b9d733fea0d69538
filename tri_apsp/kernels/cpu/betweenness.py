"""Betweenness from rows of distances: shortest paths are counted away from a source, and shared out
to the vertices on them back towards it.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel

TOO_MANY, CYCLIC = 1, 2
"""Faults of add_betweenness: a number of paths exceeds float64; shortest paths have a cycle."""


@kernel
def add_betweenness(by_source, by_destination, starts, distances, no_path, endpoints, found, fault):
    """found[v] += the share of the shortest paths from each of `starts` that pass through v.

    An edge is tight if it is the last of a shortest path: d[u] + w is exactly d[v]. A vertex comes
    after all from which a tight edge leads to it. Distances do not tell this order, since a small
    weight may be lost in the rounding of a sum.

    Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001.

    Args:
        by_source, by_destination: offsets, vertices and positive weights of the edges.
        starts: [rows], the source of each row.
        distances: [rows, n], `no_path` where there is none.
        endpoints: whether a path also passes through its ends.
        found: [n] of float64.
        fault: [1], 0; becomes TOO_MANY or CYCLIC, and `found` is then not complete.
    """
    offsets, targets, weights = by_source
    in_offsets, sources, in_weights = by_destination
    n = distances.shape[1]
    # Paths from the source, those that pass through, and tight edges from vertices still to come.
    paths, shares = np.empty(n, np.float64), np.empty(n, np.float64)
    pending = np.empty(n, np.int64)
    order = np.empty(n, np.int32)
    for row in range(len(starts)):
        d, start = distances[row], starts[row]
        reached = 0
        for v in range(n):
            paths[v], shares[v], pending[v] = 0.0, 0.0, 0
            if d[v] < no_path:
                reached += 1
                for e in range(in_offsets[v], in_offsets[v + 1]):
                    pending[v] += d[sources[e]] + in_weights[e] == d[v]
        paths[start] = 1.0
        order[0] = start
        count = 1
        for index in range(n):
            if index == count:
                break
            u = order[index]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if d[u] + weights[e] == d[v]:
                    paths[v] += paths[u]
                    pending[v] -= 1
                    if pending[v] == 0:
                        order[count] = v
                        count += 1
            if paths[u] == np.inf:
                fault[0] = TOO_MANY
                return
        if count < reached:
            fault[0] = CYCLIC
            return
        for index in range(count - 1, 0, -1):  # but for the source
            v = order[index]
            share = (1.0 + shares[v]) / paths[v]
            for e in range(in_offsets[v], in_offsets[v + 1]):
                u = sources[e]
                if d[u] + in_weights[e] == d[v]:
                    shares[u] += paths[u] * share
            found[v] += shares[v] + 1.0 if endpoints else shares[v]
        if endpoints:
            found[start] += count - 1
