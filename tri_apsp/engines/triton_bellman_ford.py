"""Bellman-Ford on a GPU, in rounds from all vertices whose potential changed in the last one."""

import math

import torch
import triton

from tri_apsp.device import current, describe
from tri_apsp.engines.bellman_ford_rounds import search_in_rounds
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.gpu.launcher import cached_launcher
from tri_apsp.kernels.shared.bellman_ford import _relax_kernel
from tri_apsp.semirings import no_edge

# Columns of a program, and programs of a launch on each multiprocessor.
_BLOCK, _PROGRAMS_PER_UNIT = 1024, 8


def search_on_gpu(
    weights: torch.Tensor,
    labels: Array,
    lowest: float,
    margins: tuple[tuple[float, float], float],
    parents: Array,
    on_cycle: Array,
) -> torch.Tensor:
    """Search weights (n, n) on a GPU for negative cycles; arguments and result as those of
    kernels.cpu.bellman_ford.
    """
    with current(weights.device):
        allowance = torch.tensor(margins[0], dtype=torch.float64, device=weights.device)
        device_labels = torch.from_numpy(labels).to(weights.device)
        dtype = torch.float64 if weights.is_floating_point() else torch.int64
        return search_in_rounds(
            lambda active, high, low: _relax(weights, active, device_labels, high, low, allowance),
            weights.new_zeros((2, len(weights)), dtype=dtype),
            labels,
            lowest,
            margins[1],
            parents,
            on_cycle,
        )


def _relax(
    weights: torch.Tensor,
    active: torch.Tensor,
    labels: torch.Tensor,
    high: torch.Tensor,
    low: torch.Tensor,
    allowance: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the least potential of each vertex over edges from `active`, both parts (n,), and from
    which of them.
    """
    n, count, blocks = len(weights), len(active), triton.cdiv(len(weights), _BLOCK)
    parts = min(count, triton.cdiv(_PROGRAMS_PER_UNIT * describe(weights.device).units, blocks))
    is_float = weights.is_floating_point()
    least, least_low = high.new_empty(parts, n), high.new_zeros(parts if is_float else 1, n)
    parent = active.new_empty(parts, n)
    cached_launcher(_relax_kernel, **relax_constants(weights.dtype), num_warps=4)(
        (blocks, parts, 1),
        least,
        least_low,
        parent,
        active,
        labels,
        high,
        low,
        allowance,
        weights,
        count,
        n,
        *weights.stride(),
    )
    first, part = least.min(dim=0)
    if is_float:
        part = least_low.masked_fill_(least != first, math.inf).argmin(dim=0)
        low = least_low.gather(0, part[None])[0]
    return first, low, parent.gather(0, part[None])[0]


def relax_constants(dtype: torch.dtype) -> dict[str, float | int | bool]:
    """Return the constants of the kernel for weights of a dtype."""
    is_float = dtype.is_floating_point
    infinity = math.inf if is_float else torch.iinfo(torch.int64).max
    return {
        "NO_EDGE": no_edge(dtype),
        "INFINITY": infinity,
        "INTEGER": not is_float,
        "BLOCK": _BLOCK,
    }
