"""Predecessors, the paths that they lead along, and gradients, which flow along these paths."""

from tri_apsp.paths.following import Paths, find_next_hops, find_paths

__all__ = ["Paths", "find_next_hops", "find_paths"]
