"""Kernels of the portable engine, in plain Triton."""
