"""The studies by name, the shortest first. Each is imported when it is first used, as it needs
matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tri_apsp.report.study import Study

__all__ = ["STUDIES", "study_of"]

STUDIES = {
    "concurrency": "the steps of a level of the recursion side by side, beside Henriod",
    "squaring": "repeated squaring, beside Malison",
    "paths": "predecessors and marked negative cycles beside distances alone, beside Okuyama, Ino and Hagihara",
    "exponents": "products and solves by exponents on an NVIDIA GPU, beside torch's matrix product and ordinary products",
    "sparse": "sparse graphs from one source, many and all, beside SciPy and Malison",
    "energy": "joules of products and solves on an NVIDIA GPU, beside Buluç",
    "cutoff": "the recursion cutoff β, beside Henriod",
    "stages": "pipeline depth and slices of k, beside Lund & Smith",
    "threads": "warps per program, or CPU threads, beside Henriod, Lund & Smith and Catinello",
    "block-size": "edges of tiles and blocks, beside Catinello and Katz & Kider",
    "roofline": "bytes/s and operations/s of each system and of the GPU, beside Lund & Smith, Buluç and Catinello",
    "implementations": "every system of the papers, this project and SciPy, beside Lund & Smith, Buluç and Catinello",
}
"""The summary of each study, by its name. The study block-size is the constant STUDY of
report/block_size.py, and so on.
"""


def study_of(name: str) -> Study:
    """Return the study that is called `name`."""
    study: Study = import_module(f"tri_apsp.report.{name.replace('-', '_')}").STUDY
    return study
