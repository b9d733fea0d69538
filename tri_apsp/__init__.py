"""All-pairs shortest paths on GPUs and CPUs: torch tensors in, every distance out."""

from tri_apsp.api import Result, Selection, min_plus, select, shortest_paths
from tri_apsp.configs import Config, CpuTiles, GpuTiles
from tri_apsp.errors import (
    ApspError,
    DistanceRangeError,
    EngineError,
    InputError,
    NegativeCycleError,
    TooLargeError,
    TuningWarning,
)
from tri_apsp.graphs import from_networkx, from_numpy, from_scipy
from tri_apsp.semirings import no_edge

__all__ = [
    "ApspError",
    "Config",
    "CpuTiles",
    "DistanceRangeError",
    "EngineError",
    "GpuTiles",
    "InputError",
    "NegativeCycleError",
    "Result",
    "Selection",
    "TooLargeError",
    "TuningWarning",
    "__version__",
    "from_networkx",
    "from_numpy",
    "from_scipy",
    "min_plus",
    "no_edge",
    "select",
    "shortest_paths",
]

__version__ = "0.1.0"
