"""Kernels of the nvidia engine, in Gluon."""
