from .model import Prediction
from .plan import BlockRowPlan
from .processes import shortest_paths
from .sparse_rows import (
    HopRows,
    accessibility,
    closeness,
    diameter,
    distance_blocks,
    eccentricities,
    hops,
    mean_distance,
)

__all__ = [
    "BlockRowPlan",
    "HopRows",
    "Prediction",
    "accessibility",
    "closeness",
    "diameter",
    "distance_blocks",
    "eccentricities",
    "hops",
    "mean_distance",
    "shortest_paths",
]
