"""Predecessors, the paths that they lead along, and gradients, which flow along these paths."""

from tri_apsp.paths.following import Paths, next_hops, paths

__all__ = ["Paths", "next_hops", "paths"]
