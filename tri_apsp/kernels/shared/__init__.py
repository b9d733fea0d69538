"""Kernels that both GPU engines launch, in plain Triton: they move and read matrices, and are bound
by memory.
"""
