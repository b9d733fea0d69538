"""What NetworkX reads about this backend when it is imported; so this module imports nothing."""

from typing import Any

FUNCTIONS = (
    "floyd_warshall",
    "floyd_warshall_numpy",
    "floyd_warshall_predecessor_and_distance",
    "johnson",
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "all_pairs_bellman_ford_path",
    "all_pairs_bellman_ford_path_length",
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "average_shortest_path_length",
    "eccentricity",
    "diameter",
    "radius",
    "center",
    "periphery",
    "wiener_index",
    "harmonic_centrality",
    "closeness_centrality",
    "betweenness_centrality",
    "edge_betweenness_centrality",
    "global_efficiency",
)
"""The functions of NetworkX that networkx_backend.py implements."""

_NOTE = (
    "Solves in float64, as a dense matrix or, if the graph has few edges, row by row. What it "
    "cannot serve, such as a callable weight, raises NotImplementedError, or is left to the next "
    "backend."
)


def backend_info() -> dict[str, Any]:
    """Return the entry of this backend in networkx.utils.backends.backend_info."""
    return {
        "backend_name": "tri_apsp",
        "project": "tri_apsp",
        "package": "tri_apsp",
        "short_summary": "Shortest paths between all pairs on a GPU or every CPU core.",
        "default_config": {"device": "auto"},  # or "cpu", "cuda", "cuda:1"
        "functions": {name: {"additional_docs": _NOTE} for name in FUNCTIONS},
    }
