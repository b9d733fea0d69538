"""Predecessors, the paths that they lead along, and gradients, which flow along these paths."""
