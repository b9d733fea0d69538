"""Graphs: reading and writing files, converting from other libraries, and generating random ones."""

from __future__ import annotations

from tri_apsp.graphs.cast import cast_weights, warn_of_rounding, whole_end
from tri_apsp.graphs.convert import from_networkx, from_numpy, from_scipy
from tri_apsp.graphs.dense import DenseGraph, Graph
from tri_apsp.graphs.edge_index import from_edge_index
from tri_apsp.graphs.edges import EdgeList
from tri_apsp.graphs.generators import (
    GENERATORS,
    Kind,
    chain,
    complete,
    erdos_renyi,
    generate,
    grid,
    grid_of,
    sparse_rows,
)
from tri_apsp.graphs.read import FORMATS, READ_FORMATS, Format, load_graph, read_graph
from tri_apsp.graphs.write import (
    DISTANCE_FORMATS,
    GRAPH_FORMATS,
    VERTEX_FORMATS,
    check_output,
    write_distances,
    write_graph,
    write_predecessors,
    write_vertex_values,
)

__all__ = [
    "DISTANCE_FORMATS",
    "FORMATS",
    "GENERATORS",
    "GRAPH_FORMATS",
    "READ_FORMATS",
    "VERTEX_FORMATS",
    "DenseGraph",
    "EdgeList",
    "Format",
    "Graph",
    "Kind",
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
    "grid",
    "grid_of",
    "load_graph",
    "read_graph",
    "sparse_rows",
    "warn_of_rounding",
    "whole_end",
    "write_distances",
    "write_graph",
    "write_predecessors",
    "write_vertex_values",
]
