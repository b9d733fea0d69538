"""The public names, by their modules: type checkers read them here, and __init__.py at run time."""

from . import csgraph, graphs, papers, tuned
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
    ApspWarning,
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
from .interop.dataframes import (
    from_pandas,
    to_pandas,
)
from .paths.following import (
    Paths,
)
from .semirings import (
    no_edge,
)

__all__ = [
    "ApspError",
    "ApspWarning",
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
    "from_pandas",
    "from_scipy",
    "graphs",
    "hops",
    "mean_distance",
    "min_plus",
    "no_edge",
    "pack",
    "papers",
    "prepare",
    "reachability",
    "read_graph",
    "read_sparse_graph",
    "select",
    "shortest_paths",
    "to_pandas",
    "tuned",
    "unpack",
    "warmup",
    "write_distances",
]

__version__: str
