"""Negative cycles, of dense and of sparse graphs: the search, potentials, components, and what they
reach.
"""
