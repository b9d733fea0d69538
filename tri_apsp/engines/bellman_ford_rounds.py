"""Bellman-Ford in rounds, from all vertices whose potential changed in the last one."""

from collections.abc import Callable

import numpy as np
import torch

from tri_apsp.engines.cpu_tasks import Array

# Rounds between two checks for a cycle, which the CPU makes.
_ROUNDS = 4

Relax = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]
]
"""Returns, for some vertices (ascending) and the potentials of all in two parts (n,), the least
potential of each vertex over edges from those, in two parts, and from which of them, int64.
"""


def search_in_rounds(
    relax: Relax,
    potentials: torch.Tensor,
    labels: Array,
    lowest: float,
    margin: float,
    parents: Array,
    on_cycle: Array,
) -> torch.Tensor:
    """Search for negative cycles; arguments and result as those of kernels.cpu.bellman_ford.

    Args:
        relax: follows the edges.
        potentials: zeros (2, n) of float64 or int64, on the device of `relax`.
        margin: the share of a potential by which one must fall.
    """
    from tri_apsp.kernels.cpu.bellman_ford import find_cycles  # with Numba: half a second

    (high, low), device = potentials, potentials.device
    device_parents = torch.full((len(labels),), -1, dtype=torch.int64, device=device)
    device_labels = torch.from_numpy(labels).to(device)
    searched = device_labels >= 0
    changed, rounds = searched, 0
    while len(active := changed.nonzero().flatten()):
        least, least_low, parent = relax(active, high, low)
        if high.is_floating_point():
            falls = (least - high) + (least_low - low) < -margin * high.abs()
        else:
            falls = least.clamp_(min=int(lowest)) < high
        changed = searched & falls
        high, low = torch.where(changed, least, high), torch.where(changed, least_low, low)
        device_parents = torch.where(changed, parent, device_parents)
        rounds += 1
        if rounds % _ROUNDS == 0:
            parents[:] = device_parents.cpu().numpy()
            find_cycles(parents, labels, on_cycle)
            finished = np.flatnonzero(on_cycle >= 0)
            if len(finished):
                done = torch.isin(device_labels, torch.from_numpy(finished).to(device))
                searched = (device_labels >= 0) & ~done
                changed = changed & searched
    # Clamped or infinite potentials stop changing on a negative cycle too.
    parents[:] = device_parents.cpu().numpy()
    find_cycles(parents, labels, on_cycle)
    found: torch.Tensor = high.cpu()
    return found
