"""Shortest paths between all pairs of vertices, or from some of them, on GPUs and CPUs.

    shortest_paths(graph)                      distances of all pairs
    shortest_paths(graph, sources=[0, 7])      some rows; with targets=, a table
    shortest_paths(graph, predecessors=True)   also paths: result.path(i, j)
    prepare(graph)                             a graph for many calls, as of roads
    nearest, skims, accessibility, edge_flows  facilities, costs along paths, reach, loads
    closeness, betweenness, diameter           measures
    min_plus, reachability, widest_paths       products, closures, other semirings

A graph is a torch tensor of weights (inf: no edge), a sparse matrix of SciPy or torch, what
from_networkx, from_pandas and others return, or a file (read_sparse_graph). Results are tensors on
the device of the graph. help(tri_apsp.shortest_paths) has every option; `python -m tri_apsp --help`
lists the commands.
"""

# A name of __init__.pyi is imported when it is first used, so that a command line handles Ctrl-C
# and prints its help before torch is imported.
from lazy_loader import attach_stub

__version__ = "0.3.0.dev0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
