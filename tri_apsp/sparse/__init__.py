"""Shortest paths in sparse graphs: from chosen sources by edge lists, never by a matrix of n^2
weights.
"""
