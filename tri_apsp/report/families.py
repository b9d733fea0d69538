"""Families of graphs by their edges: random, small worlds, power laws and grids."""

from collections.abc import Callable

import torch

from tri_apsp.graphs import grid_of


def _uniform(share: float = 0, degree: int = 0) -> Callable[[int, torch.Generator], torch.Tensor]:
    """Return a function that draws a share of all edges, or `degree` per vertex, on average."""
    return lambda n, random: (
        torch.rand(n, n, generator=random, device=random.device) < (share or degree / n)
    )


def _small_world(n: int, random: torch.Generator) -> torch.Tensor:
    """Join each vertex with the next 8; one of ten of these edges leads anywhere instead (Watts and
    Strogatz).
    """
    edges, start = (
        torch.zeros(n, n, dtype=torch.bool, device=random.device),
        torch.arange(n, device=random.device),
    )
    for step in range(1, 9):
        elsewhere = torch.rand(n, generator=random, device=random.device) < 0.1
        anywhere = torch.randint(0, n, (n,), generator=random, device=random.device)
        edges[start, torch.where(elsewhere, anywhere, (start + step) % n)] = True
    return edges | edges.mT


def _power_law(n: int, random: torch.Generator) -> torch.Tensor:
    """Draw both ends of 8 n edges with probabilities that fall with the square root of the rank
    (Chung and Lu).
    """
    likely = torch.arange(1, n + 1, device=random.device) ** -0.5
    names = torch.randperm(n, generator=random, device=random.device)
    edges = torch.zeros(n, n, dtype=torch.bool, device=random.device)
    edges[
        tuple(
            names[torch.multinomial(likely, 8 * n, replacement=True, generator=random)]
            for _ in range(2)
        )
    ] = True
    return edges | edges.mT


def _grid(n: int, random: torch.Generator) -> torch.Tensor:
    """Join neighbours in a grid."""
    graph, edges = grid_of(n), torch.zeros(n, n, dtype=torch.bool, device=random.device)
    edges[
        torch.from_numpy(graph.sources).to(random.device),
        torch.from_numpy(graph.targets).to(random.device),
    ] = True
    return edges


def _shuffled_grid(n: int, random: torch.Generator) -> torch.Tensor:
    """Number the vertices of a grid in random order."""
    order = torch.randperm(n, generator=random, device=random.device)
    return _grid(n, random)[order][:, order]


FAMILIES: dict[str, tuple[Callable[[int, torch.Generator], torch.Tensor], tuple[int, ...]]] = {
    "3% of the edges": (_uniform(0.03), (1, 4, 16)),
    "10% of the edges": (_uniform(0.1), (1, 4, 16)),
    "50% of the edges": (_uniform(0.5), (1, 4, 16)),
    "16 edges per vertex": (_uniform(degree=16), (1, 4, 16)),
    "64 edges per vertex": (_uniform(degree=64), (1,)),
    "small world": (_small_world, (1, 4, 16)),
    "power law": (_power_law, (1, 4, 16)),
    "grid": (_grid, (1, 4, 16)),
    "shuffled grid": (_shuffled_grid, (1, 4)),
}
"""Functions that draw edges, bool (n, n), and the greatest weights that are measured with them."""
