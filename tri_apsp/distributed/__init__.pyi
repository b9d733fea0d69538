from .model import Prediction
from .plan import BlockRowPlan
from .processes import shortest_paths
from .sparse_rows import (
    HopRows,
    accessibility,
    betweenness,
    closeness,
    diameter,
    distance_blocks,
    eccentricities,
    edge_betweenness,
    edge_flows,
    hops,
    mean_distance,
)

__all__ = [
    "BlockRowPlan",
    "HopRows",
    "Prediction",
    "accessibility",
    "betweenness",
    "closeness",
    "diameter",
    "distance_blocks",
    "eccentricities",
    "edge_betweenness",
    "edge_flows",
    "hops",
    "mean_distance",
    "shortest_paths",
]
