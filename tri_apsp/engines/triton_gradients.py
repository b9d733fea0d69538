"""Gradients on a GPU: sums of whole numbers, whose order does not matter, so that every run gives the same bits.

A gradient is multiplied by a power of two and rounded, such that a sum of all gradients of a graph has at most 62 bits: of n^2
values, each keeps all bits down to n^2 / 2^62 of the largest.
"""

from __future__ import annotations

from functools import cache

import torch

from tri_apsp.device import is_captured
from tri_apsp.gpu.launcher import Launcher

__all__ = ["argmin", "argmin_constants", "edge_gradient", "factor_gradients"]

_BITS = 62


def edge_gradient(gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
    """See Engine.edge_gradient; of paths of up to 2^r edges in r rounds, each of which doubles how far a path is followed."""
    n = gradient.shape[-1]
    source = torch.arange(n, device=gradient.device)[:, None]
    reachable = predecessors >= 0
    before = torch.where(reachable, predecessors, source).to(torch.int64)
    sums, scale = _whole_numbers(gradient, reachable)
    ancestor, done = before, 1
    while done < n and (is_captured(gradient.device) or bool((ancestor != source).any())):
        sums = sums.scatter_add(-1, ancestor, sums)  # those of the source itself are not used
        ancestor = ancestor.gather(-1, ancestor)
        done *= 2
    of_edges = torch.zeros_like(sums).scatter_add_(1, before, torch.where(reachable, sums, 0))
    return _gradients(of_edges, scale, gradient.dtype)


def argmin(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """See Engine.argmin."""
    batch, m, n = c.shape
    found = torch.empty(c.shape, dtype=torch.int32, device=c.device)
    if found.numel():
        constants = argmin_constants()
        tiles = -(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"])
        _argmin_launcher()((batch * tiles, 1, 1), found, a.mT.contiguous(), b.contiguous(), c, m, n, a.shape[2])
    return found


def argmin_constants() -> dict[str, int]:
    """Return the constants of _argmin_kernel."""
    return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 8, "num_warps": 4}


@cache
def _argmin_launcher() -> Launcher:
    from tri_apsp.kernels.shared.argmin import _argmin_kernel

    return Launcher(_argmin_kernel, argmin_constants())


def factor_gradients(gradient: torch.Tensor, chosen: torch.Tensor, depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    """See Engine.factor_gradients."""
    batch, m, n = gradient.shape
    terms, scale = _whole_numbers(gradient, chosen >= 0)
    place = chosen.clamp(min=0).to(torch.int64)
    of_a = terms.new_zeros((batch, m, depth)).scatter_add_(2, place, terms)
    of_b = terms.new_zeros((batch, depth, n)).scatter_add_(1, place, terms)
    return _gradients(of_a, scale, gradient.dtype), _gradients(of_b, scale, gradient.dtype)


def _whole_numbers(gradient: torch.Tensor, used: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients (batch, m, n) that are used, and 0 elsewhere, as int64; and what they were multiplied by."""
    values = torch.where(used, gradient, 0).to(torch.float64)
    largest = values.abs().amax(dim=(1, 2), keepdim=True)
    bits = torch.ceil(torch.log2(largest * (values.shape[1] * values.shape[2])))
    scale = torch.exp2((_BITS - bits).clamp(max=1000))
    return (values * scale).round_().to(torch.int64), scale


def _gradients(sums: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the gradients that sums of whole numbers stand for; NaN where a gradient was not finite."""
    return torch.where(scale > 0, sums.to(torch.float64) / scale, torch.nan).to(dtype)
