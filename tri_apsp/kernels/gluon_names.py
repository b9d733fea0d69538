"""Gluon under the names of every Triton from 3.6 on; no other module imports triton.experimental."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

__all__ = ["async_copy", "barrier", "gl", "gluon"]

# All threads of a program meet here: gl.thread_barrier in 3.6, gl.barrier from 3.7.
barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
