"""Gluon under the names of every Triton from 3.6 on; only here is triton.experimental imported."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language import PropagateNan

__all__ = [
    "OVERSIZED_VIEWS",
    "PROPAGATE_NAN",
    "barrier",
    "commit_group",
    "copy_async",
    "fence_async_shared",
    "gl",
    "gluon",
    "wait_group",
    "warpgroup_mma",
    "warpgroup_mma_wait",
]

# The barrier for all threads of a program: gl.thread_barrier in 3.6, gl.barrier from 3.7.
barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier

# Of minimum and maximum: NaN if one of the values is.
PROPAGATE_NAN = gl.constexpr(PropagateNan.ALL)

# Copies from global to shared memory, in groups that a program can wait for: renamed in 3.9, where
# the old name raises.
copy_async = (
    async_copy.async_load
    if hasattr(async_copy, "async_load")
    else async_copy.async_copy_global_to_shared
)
commit_group, wait_group = async_copy.commit_group, async_copy.wait_group

# Whether a view of shared memory may extend past the memory that it was made from: Triton refuses
# that from 3.9 on.
OVERSIZED_VIEWS = not hasattr(gl.shared_memory_descriptor, "reinterpret")

# A method of shared memory that was private before 3.9; kernels call it by the public name.
if not hasattr(gl.shared_memory_descriptor, "reinterpret"):
    gl.shared_memory_descriptor.reinterpret = gl.shared_memory_descriptor._reinterpret
