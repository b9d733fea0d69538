"""Kernels that both GPU engines launch, in plain Triton."""
