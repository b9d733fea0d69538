"""The systems of the papers behind this project, to be run and measured beside its own methods.

    from tri_apsp import papers
    result = papers.solve(weights, "staged_load", parameter=4)

Each file opens with the pseudo-code of its paper, and holds kernels and the host code that launches
them. They share rank_one.py (one launch per vertex) or blocked.py (three launches per tile).
"""

from tri_apsp.papers.run import require_runnable, solve
from tri_apsp.papers.systems import SYSTEMS, System, SystemParameter

__all__ = [
    "SYSTEMS",
    "System",
    "SystemParameter",
    "require_runnable",
    "solve",
]
