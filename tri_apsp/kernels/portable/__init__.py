"""Kernels of the portable engine, in plain Triton: for GPUs of any vendor, and for Triton's
interpreter.
"""
