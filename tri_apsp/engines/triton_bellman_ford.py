"""Bellman-Ford on a GPU, in rounds from all vertices whose potential changed in the last one."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
import triton

from tri_apsp.device import current, describe
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.gpu.value_range import ValueRangeReader
from tri_apsp.kernels.cpu.bellman_ford import find_cycles
from tri_apsp.kernels.shared.bellman_ford import _relax_kernel
from tri_apsp.semirings import no_edge

__all__ = ["largest_on_gpu", "relax_constants", "search_in_rounds"]

# Columns of a program, and programs of a launch on each multiprocessor.
_BLOCK, _PROGRAMS_PER_UNIT = 1024, 8
# Rounds between two checks for a cycle, which the CPU makes.
_ROUNDS = 4


def largest_on_gpu(weights: torch.Tensor) -> float:
    """Return the largest magnitude of weights (n, n), n > 0, that are not no_edge; blocks."""
    with current(weights.device):
        reader = ValueRangeReader(weights)
        reader.queue(weights[None], no_edge(weights.dtype))
        (found,) = reader.read()
    return max(-found.lowest, found.highest_below or 0, 0)


def search_in_rounds(
    weights: torch.Tensor,
    labels: Array,
    lowest: float,
    margins: tuple[float, float, float],
    parents: Array,
    on_cycle: Array,
) -> torch.Tensor:
    """Search weights (n, n) on a GPU for negative cycles; arguments and result as those of kernels.cpu.bellman_ford."""
    is_float = weights.is_floating_point()
    _, absolute, relative = margins
    with current(weights.device):
        potentials = weights.new_zeros(len(weights), dtype=torch.float64 if is_float else torch.int64)
        sources = weights.new_full((len(weights),), -1, dtype=torch.int64)
        added = torch.tensor(margins[:1], dtype=torch.float64, device=weights.device)
        components = torch.from_numpy(labels).to(weights.device)
        changed, searched, rounds = components >= 0, components >= 0, 0
        while len(rows := changed.nonzero().flatten()):
            least, source = _relax(weights, rows, components, potentials, added)
            least = least.clamp_(min=lowest)
            bound = potentials - (absolute + relative * potentials.abs()) if is_float else potentials
            changed = searched & (least < bound)
            potentials, sources = torch.where(changed, least, potentials), torch.where(changed, source, sources)
            rounds += 1
            if rounds % _ROUNDS == 0:
                parents[:] = sources.cpu().numpy()
                find_cycles(parents, labels, on_cycle)
                if (on_cycle >= 0).any():
                    finished = torch.from_numpy(np.flatnonzero(on_cycle >= 0)).to(weights.device)
                    searched = (components >= 0) & ~torch.isin(components, finished)
                    changed &= searched
        return potentials.cpu()


def _relax(
    weights: torch.Tensor, rows: torch.Tensor, labels: torch.Tensor, potentials: torch.Tensor, added: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least potential of each vertex over edges from `rows`, (n,), and from which of them."""
    n, count, blocks = len(weights), len(rows), triton.cdiv(len(weights), _BLOCK)
    parts = min(count, triton.cdiv(_PROGRAMS_PER_UNIT * describe(weights.device).units, blocks))
    best, source = potentials.new_empty(parts, n), rows.new_empty(parts, n)
    _launcher(weights.dtype)(
        (blocks, parts, 1), best, source, rows, labels, potentials, added, weights, count, n, *weights.stride()
    )
    least, part = best.min(dim=0)
    return least, source.gather(0, part[None])[0]


@cache
def _launcher(dtype: torch.dtype) -> Launcher:
    return Launcher(_relax_kernel, relax_constants(dtype) | {"num_warps": 4})


def relax_constants(dtype: torch.dtype) -> dict[str, float | int | bool]:
    """Return the constants of the kernel for weights of a dtype."""
    is_float = dtype.is_floating_point
    infinity = math.inf if is_float else torch.iinfo(torch.int64).max
    return {"NO_EDGE": no_edge(dtype), "INFINITY": infinity, "INTEGER": not is_float, "BLOCK": _BLOCK}
