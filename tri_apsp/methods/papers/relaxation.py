"""The step that every system repeats, in Triton and in Gluon: a path over k may be shorter than the
best one known.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tri_apsp.kernels.nvidia.gluon_names import gl, gluon

__all__ = ["relax", "relax_block", "relax_tile"]


@triton.jit
def relax(d_ij, d_ik, d_kj, FLOOR: tl.constexpr):
    """Return max(min(d_ij, d_ik + d_kj), FLOOR); FLOOR is None where no weight is negative."""
    if FLOOR is None:
        return tl.minimum(d_ij, d_ik + d_kj)
    else:
        return tl.maximum(tl.minimum(d_ij, d_ik + d_kj), FLOOR).to(
            d_ij.dtype
        )  # FLOOR makes int32 of int16


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


@gluon.jit
def relax_tile(d_ij, d_ik, d_kj, FLOOR: gl.constexpr):
    """The same for a tile d_ij [M, N], a column d_ik [M, 1] and a row d_kj [1, N] in its layout."""
    if FLOOR is None:
        return gl.minimum(d_ij, d_ik + d_kj)
    else:
        return gl.maximum(gl.minimum(d_ij, d_ik + d_kj), FLOOR).to(d_ij.dtype)
