"""SciPy's functions for shortest paths, by tri_apsp: a drop-in for those of scipy.sparse.csgraph,
on the CPU in float64.

    from tri_apsp.csgraph import shortest_path

Graphs, arguments and results are SciPy's, with two exceptions, in which SciPy's methods differ
among themselves: an unmasked 0 of a masked array is an edge of weight 0 in every function, and a
loop of negative weight is a negative cycle in every function (SciPy's Floyd-Warshall takes neither
into account). Distances are exact for integers below 2**53, else within rounding; of several
shortest paths, the predecessors may follow another one than SciPy's.
"""

from scipy.sparse.csgraph import NegativeCycleError, construct_dist_matrix, reconstruct_path

from tri_apsp.csgraph.functions import (
    bellman_ford,
    dijkstra,
    floyd_warshall,
    johnson,
    shortest_path,
)

__all__ = [
    "NegativeCycleError",
    "bellman_ford",
    "construct_dist_matrix",
    "dijkstra",
    "floyd_warshall",
    "johnson",
    "reconstruct_path",
    "shortest_path",
]
