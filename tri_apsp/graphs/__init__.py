"""Graphs: reading and writing files, converting from other libraries, generating random ones."""

from tri_apsp.graphs.cast import cast_weights, integer_limit, warn_of_rounding
from tri_apsp.graphs.convert import from_networkx, from_numpy, from_scipy
from tri_apsp.graphs.edge_index import from_edge_index
from tri_apsp.graphs.files import Format, ReadOptions
from tri_apsp.graphs.formats import FORMATS, GRAPH_FORMATS, READ_FORMATS
from tri_apsp.graphs.generators import (
    GENERATORS,
    GraphKind,
    chain,
    complete,
    erdos_renyi,
    generate,
    grid_of,
    roads,
    sparse_rows,
)
from tri_apsp.graphs.graph import DenseGraph, EdgeList, Graph
from tri_apsp.graphs.read import load_graph, read_graph, read_sparse_graph
from tri_apsp.graphs.sparse import SPARSE_DTYPES, SparseGraph, is_sparse, sparse_graph
from tri_apsp.graphs.write import (
    DISTANCE_FORMATS,
    check_output,
    write_distances,
    write_graph,
    write_predecessors,
    write_rows_of_sources,
    write_vertex_values,
)

__all__ = [
    "DISTANCE_FORMATS",
    "FORMATS",
    "GENERATORS",
    "GRAPH_FORMATS",
    "READ_FORMATS",
    "SPARSE_DTYPES",
    "DenseGraph",
    "EdgeList",
    "Format",
    "Graph",
    "GraphKind",
    "ReadOptions",
    "SparseGraph",
    "cast_weights",
    "chain",
    "check_output",
    "complete",
    "erdos_renyi",
    "from_edge_index",
    "from_networkx",
    "from_numpy",
    "from_scipy",
    "generate",
    "grid_of",
    "integer_limit",
    "is_sparse",
    "load_graph",
    "read_graph",
    "read_sparse_graph",
    "roads",
    "sparse_graph",
    "sparse_rows",
    "warn_of_rounding",
    "write_distances",
    "write_graph",
    "write_predecessors",
    "write_rows_of_sources",
    "write_vertex_values",
]
