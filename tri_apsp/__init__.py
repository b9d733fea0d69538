"""All-pairs shortest paths on GPUs and CPUs: torch tensors in, every distance out.

A name is imported when it is first used, so that a command line handles Ctrl-C and prints its help
before torch is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tri_apsp.api import (
        NegativeCycle,
        Plan,
        Result,
        closeness,
        diameter,
        distance_blocks,
        eccentricities,
        hops,
        mean_distance,
        min_plus,
        ordinary_products,
        pack,
        prepare,
        reachability,
        read_sparse_graph,
        select,
        shortest_paths,
        unpack,
        warmup,
    )
    from tri_apsp.configs import Config, CpuTiles, GpuTiles
    from tri_apsp.errors import (
        ApspError,
        DistanceRangeError,
        EngineError,
        InputError,
        NegativeCycleError,
        RoundingWarning,
        TooLargeError,
        TuningWarning,
    )
    from tri_apsp.graphs import (
        from_edge_index,
        from_networkx,
        from_numpy,
        from_scipy,
        read_graph,
        write_distances,
    )
    from tri_apsp.paths import Paths
    from tri_apsp.semirings import no_edge

__all__ = [
    "ApspError",
    "Config",
    "CpuTiles",
    "DistanceRangeError",
    "EngineError",
    "GpuTiles",
    "InputError",
    "NegativeCycle",
    "NegativeCycleError",
    "Paths",
    "Result",
    "RoundingWarning",
    "Plan",
    "TooLargeError",
    "TuningWarning",
    "__version__",
    "distance_blocks",
    "closeness",
    "diameter",
    "eccentricities",
    "from_edge_index",
    "from_networkx",
    "from_numpy",
    "from_scipy",
    "hops",
    "mean_distance",
    "min_plus",
    "no_edge",
    "ordinary_products",
    "pack",
    "reachability",
    "read_graph",
    "read_sparse_graph",
    "select",
    "shortest_paths",
    "prepare",
    "unpack",
    "warmup",
    "write_distances",
]

__version__ = "0.1.0"

# The names above by their module, for __getattr__; a test compares them with the imports that type
# checkers read.
_NAMES = {
    "api": (
        *("NegativeCycle", "Result", "Plan"),
        *("distance_blocks", "closeness", "diameter", "eccentricities", "hops", "mean_distance"),
        *(
            "min_plus",
            "ordinary_products",
            "pack",
            "reachability",
            "read_sparse_graph",
            "select",
            "shortest_paths",
            "prepare",
            "unpack",
            "warmup",
        ),
    ),
    "configs": ("Config", "CpuTiles", "GpuTiles"),
    "errors": (
        *("ApspError", "DistanceRangeError", "EngineError", "InputError", "NegativeCycleError"),
        *("RoundingWarning", "TooLargeError", "TuningWarning"),
    ),
    "graphs": (
        "from_edge_index",
        "from_networkx",
        "from_numpy",
        "from_scipy",
        "read_graph",
        "write_distances",
    ),
    "paths": ("Paths",),
    "semirings": ("no_edge",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


if not TYPE_CHECKING:  # which would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
            return value
        if name in _submodules():
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_submodules()})


def _submodules() -> set[str]:
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(__path__) if not module.name.startswith("_")}
