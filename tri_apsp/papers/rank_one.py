"""One launch per vertex k, which all systems without tiles share: a path over k may be shorter than
the best one known.
"""

from abc import abstractmethod
from typing import Any

import triton
import triton.language as tl

from tri_apsp.engines.base import Block, Engine
from tri_apsp.engines.triton_base import in_parts
from tri_apsp.methods.base import Observer
from tri_apsp.papers.base import PaperMethod, floor_of, launcher

EDGE = 16
"""Rows and columns of a square block of threads."""

THREADS = EDGE * EDGE
"""Threads of a program."""


@triton.jit
def relax(d_ij, d_ik, d_kj, FLOOR: tl.constexpr):
    """Return max(min(d_ij, d_ik + d_kj), FLOOR); FLOOR is None where no weight is negative."""
    if FLOOR is None:
        return tl.minimum(d_ij, d_ik + d_kj)
    else:  # FLOOR makes int32 of int16
        return tl.maximum(tl.minimum(d_ij, d_ik + d_kj), FLOOR).to(d_ij.dtype)


@triton.jit
def relax_block(d_ptr, offs_m, offs_n, k, n, stride_dm, FLOOR: tl.constexpr):
    """Return pointers to rows offs_m [M] and columns offs_n [N] of D, the mask of those inside,
    their values and new values.
    """
    mask_m, mask_n = offs_m < n, offs_n < n
    mask = mask_m[:, None] & mask_n[None, :]
    rows = d_ptr + offs_m.to(tl.int64) * stride_dm
    ptrs = rows[:, None] + offs_n[None, :]
    d_ij = tl.load(ptrs, mask=mask)
    d_ik = tl.load(rows + k, mask=mask_m)
    d_kj = tl.load(d_ptr + k.to(tl.int64) * stride_dm + offs_n, mask=mask_n)
    return ptrs, mask, d_ij, relax(d_ij, d_ik[:, None], d_kj[None, :], FLOOR)


class RankOneMethod(PaperMethod):
    """For each vertex k one launch: D[i, j] <- min(D[i, j], D[i, k] + D[k, j]) for all i and j.

    Row and column k do not change in step k, since D[k, k] is 0: threads write there what they have
    read, or nothing. With a negative cycle they do change, in any order, but its vertices keep a
    negative diagonal, by which the solver finds it.
    """

    def solve(self, d: Block, engine: Engine, observer: Observer) -> None:
        batch, n, _ = d.shape
        kernel, constants, programs = self._kernel(n)
        launch = launcher(kernel, FLOOR=floor_of(engine), num_warps=THREADS // 32, **constants)
        for k in range(n):
            for (part,) in in_parts(d):
                launch((programs, part.shape[0], 1), part, n, k, *part.stride()[:2])
            observer.step(batch * n * n, d)

    @abstractmethod
    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        """Return the kernel, its constants besides FLOOR, and how many of its programs a graph of n
        vertices takes.
        """
