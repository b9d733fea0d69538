"""Shortest paths by edge lists, without a matrix of n^2 weights: rows of distances, hops, measures,
blocks of rows.
"""
