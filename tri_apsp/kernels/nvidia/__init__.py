"""Kernels of the nvidia engine, in Gluon, Triton's language for code that chooses its own layouts
and shared memory.

Read product.py first, then tiles.py, which holds its inner loop. closure.py and solve.py build on
tile_closure.py.
"""
