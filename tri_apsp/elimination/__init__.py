"""Elimination of vertices of a sparse graph: order once, set weights often, sweep for distances."""
