"""The studies by name, the shortest first. Each is imported when it is first used, as it needs
matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tri_apsp.report.study import Study


STUDIES: dict[str, tuple[str, str]] = {
    "concurrency": (
        "variants",
        "the steps of a level of the recursion side by side, beside Henriod",
    ),
    "squaring": ("variants", "repeated squaring, beside Malison"),
    "paths": (
        "variants",
        "predecessors and marked negative cycles beside distances alone",
    ),
    "exponents": (
        "exponents",
        "products and solves by exponents on an NVIDIA GPU, beside torch and direct products",
    ),
    "sparse": (
        "sparse",
        "sparse graphs from one source, many and all, beside SciPy and Malison",
    ),
    "energy": ("systems", "joules of solves on an NVIDIA GPU, beside Buluç"),
    "cutoff": ("fields", "the recursion cutoff β, beside Henriod"),
    "stages": ("fields", "pipeline depth and slices of k, beside Lund & Smith"),
    "threads": (
        "fields",
        "warps per program, or CPU threads, beside Henriod, Lund & Smith and Catinello",
    ),
    "block-size": ("fields", "edges of tiles and blocks, beside Catinello and Katz & Kider"),
    "roofline": (
        "systems",
        "bytes/s and operations/s of each system and of the GPU, beside Lund & Smith, Buluç and "
        "Catinello",
    ),
    "implementations": (
        "systems",
        "every system of the papers, this project and SciPy, beside Lund & Smith, Buluç and "
        "Catinello",
    ),
}
"""By name, the module of `report/` whose tuple STUDIES holds a study, and the help."""


def study_of(name: str) -> Study:
    """Return the study that is called `name`."""
    module = import_module(f"tri_apsp.report.{STUDIES[name][0]}")
    found: dict[str, Study] = {study.name: study for study in module.STUDIES}
    return found[name]
