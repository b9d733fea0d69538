"""Kernels of the cpu engine, in Numba."""
