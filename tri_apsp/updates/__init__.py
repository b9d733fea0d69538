"""Distances of all pairs after a change of the graph, without a new solve.

graphs   the graph of a result, its changed edges, and the changed graph
raises   edges that rise: the affected pairs alone are computed anew
cuts     edges that fall: products of the distances with those between their ends
run      an update as a whole
closing  what closing each of many edges would change
"""

from tri_apsp.updates.closing import Criticality, criticality
from tri_apsp.updates.run import Updated, update

__all__ = ["Criticality", "Updated", "criticality", "update"]
