"""Flows from rows of distances: shortest paths are counted away from a source, and demand is handed
back along them towards it.
"""

import numpy as np

from tri_apsp.kernels.cpu.compilation import kernel

TOO_MANY, CYCLIC = 1, 2
"""Faults of add_flows: a number of paths exceeds float64; shortest paths have a cycle."""


@kernel
def add_flows(
    by_source,
    by_destination,
    starts,
    distances,
    no_path,
    demand,
    demand_rows,
    lost,
    fault,
    through,
    over,
):
    """Add the flows from some starts to those of others: what travels from each to all vertices, a
    path's share by the number of shortest paths.

    An edge is tight if it is the last of a shortest path: d[u] + w is exactly d[v]. A vertex comes
    after all from which a tight edge leads to it. Distances do not tell this order, since a small
    weight may be lost in the rounding of a sum.

    Source: Brandes, A Faster Algorithm for Betweenness Centrality, 2001.

    Args:
        by_source, by_destination: offsets, vertices and positive weights of the edges.
        starts: [starts], the source of each row of distances.
        distances: [starts, n], `no_path` where there is none.
        demand: [starts, rows], what travels from each start to a vertex of each row; [1, rows] if
            it is the same from each.
        demand_rows: [n], the row of each vertex.
        lost: [starts], 0; becomes the demand without a path.
        fault: [1], 0; becomes TOO_MANY or CYCLIC, and the flows are then not complete.
        through: [n], what passes through each vertex, without that of its ends.
        over: [edges], what travels over each edge, in the order of `by_destination`.
    """
    offsets, targets, weights = by_source
    in_offsets, sources, in_weights = by_destination
    n = distances.shape[1]
    # Paths from the source, those that pass through, and tight edges from vertices still to come.
    paths, flows = np.empty(n, np.float64), np.empty(n, np.float64)
    pending = np.empty(n, np.int64)
    order = np.empty(n, np.int32)
    for row in range(len(starts)):
        d, start, wanted = distances[row], starts[row], demand[min(row, len(demand) - 1)]
        reached = 0
        for v in range(n):
            paths[v], flows[v], pending[v] = 0.0, 0.0, 0
            if d[v] < no_path:
                reached += 1
                for e in range(in_offsets[v], in_offsets[v + 1]):
                    pending[v] += d[sources[e]] + in_weights[e] == d[v]
            else:
                lost[row] += wanted[demand_rows[v]]
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
            through[v] += flows[v]
            flow = wanted[demand_rows[v]] + flows[v]
            for e in range(in_offsets[v], in_offsets[v + 1]):
                u = sources[e]
                if d[u] + in_weights[e] == d[v]:
                    share = flow * (paths[u] / paths[v])
                    flows[u] += share
                    over[e] += share
