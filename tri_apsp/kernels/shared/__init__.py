"""Kernels in plain Triton that both GPU engines launch, those of sparse graphs, and the encoding of
products by exponents. Most are bound by memory.
"""
