"""The public names, by their modules: type checkers read them here, and __init__.py at run time."""

from . import csgraph, tuned
from .api import (
    NegativeCycle,
    Plan,
    Result,
    RowBlock,
    SparseGraph,
    closeness,
    diameter,
    direct_products,
    distance_blocks,
    eccentricities,
    hops,
    mean_distance,
    min_plus,
    pack,
    prepare,
    reachability,
    select,
    shortest_paths,
    unpack,
    warmup,
)
from .configs import (
    Config,
    CpuTiles,
    GpuTiles,
)
from .errors import (
    ApspError,
    DistanceRangeError,
    EngineError,
    InputError,
    InputTypeError,
    NegativeCycleError,
    RoundingWarning,
    TooLargeError,
    TuningWarning,
)
from .graphs import (
    from_edge_index,
    from_networkx,
    from_numpy,
    from_scipy,
    read_graph,
    read_sparse_graph,
    write_distances,
)
from .paths.following import (
    Paths,
)
from .semirings import (
    no_edge,
)

__all__ = [
    "ApspError",
    "Config",
    "CpuTiles",
    "DistanceRangeError",
    "EngineError",
    "GpuTiles",
    "InputError",
    "InputTypeError",
    "NegativeCycle",
    "NegativeCycleError",
    "Paths",
    "Plan",
    "Result",
    "RoundingWarning",
    "RowBlock",
    "SparseGraph",
    "TooLargeError",
    "TuningWarning",
    "closeness",
    "csgraph",
    "diameter",
    "direct_products",
    "distance_blocks",
    "eccentricities",
    "from_edge_index",
    "from_networkx",
    "from_numpy",
    "from_scipy",
    "hops",
    "mean_distance",
    "min_plus",
    "no_edge",
    "pack",
    "prepare",
    "reachability",
    "read_graph",
    "read_sparse_graph",
    "select",
    "shortest_paths",
    "tuned",
    "unpack",
    "warmup",
    "write_distances",
]

__version__: str
