"""Graphs in which rounding, ties or cycles of weight 0 make predecessors hard to find."""

from collections.abc import Callable

import cases
import torch

RTOL = {torch.float32: 2e-5, torch.float64: 1e-13}


def random(n: int, seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(1000 * seed + n)


def metric(n: int) -> torch.Tensor:
    points = torch.rand(n, 2, generator=random(n), dtype=torch.float64)
    return torch.cdist(points, points)


def narrow(n: int) -> torch.Tensor:
    """About half of all edges are shortest paths, and as many pairs need a search."""
    weights = torch.rand(n, n, generator=random(n), dtype=torch.float64) + 1
    return weights.masked_fill(torch.rand(n, n, generator=random(n, 1)) > 0.5, cases.INF)


def spread(n: int) -> torch.Tensor:
    """Weights of 1e-6 vanish beside those of 1e6."""
    return torch.where(torch.rand(n, n, generator=random(n)) < 0.5, 1e-6, 1e6).double()


def powers(n: int) -> torch.Tensor:
    return 10 ** (12 * torch.rand(n, n, generator=random(n), dtype=torch.float64) - 6)


def shifted(n: int) -> torch.Tensor:
    """Potentials shift weights of which many are 0: cycles weigh 0, up to rounding."""
    potential = 100 * torch.rand(n, generator=random(n), dtype=torch.float64)
    weights = torch.randint(0, 3, (n, n), generator=random(n, 1)) * torch.rand(
        n, n, generator=random(n, 2), dtype=torch.float64
    )
    return weights + 0.01 + potential[:, None] - potential[None, :]


def thirds(n: int) -> torch.Tensor:
    missing = torch.rand(n, n, generator=random(n)) > 0.1
    return torch.full((n, n), 1 / 3, dtype=torch.float64).masked_fill(missing, cases.INF)


def road(n: int) -> torch.Tensor:
    """A long road of weight 0 in both directions, with a few other edges: as many rounds as
    vertices, for the fewest edges.
    """
    weights = torch.rand(n, n, generator=random(n), dtype=torch.float64)
    weights.masked_fill_(torch.rand(n, n, generator=random(n, 1)) > 0.05, cases.INF)
    order = torch.randperm(n, generator=random(n, 2))
    weights[order[:-1], order[1:]] = weights[order[1:], order[:-1]] = 0
    return weights


HARD: dict[str, Callable[[int], torch.Tensor]] = {
    "metric": metric,
    "narrow": narrow,
    "spread": spread,
    "powers": powers,
    "shifted": shifted,
    "thirds": thirds,
    "road": road,
    "all equal": lambda n: torch.full((n, n), 3.0, dtype=torch.float64),
    "all zero": lambda n: torch.zeros(n, n, dtype=torch.float64),
}
