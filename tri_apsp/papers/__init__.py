"""The systems of the papers behind this project, to be run and measured beside its own methods.

    from tri_apsp import papers
    result = papers.solve(weights, "staged_load", parameter=4)

Each class has the pseudo-code of its paper: in rank_one.py those with one launch per vertex; in
katz_kider.py and staged_load.py those with three launches per tile, which share blocked.py; in
recursive.py the recursion.
"""

from tri_apsp.papers.systems import SYSTEMS, System, SystemParameter, require_runnable, solve

__all__ = [
    "SYSTEMS",
    "System",
    "SystemParameter",
    "require_runnable",
    "solve",
]
