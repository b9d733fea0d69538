"""The transitive closures that `bench` measures: random directed graphs of two edges per vertex, checked by search."""

from __future__ import annotations

import torch

from tri_apsp import tuned
from tri_apsp.api import reachability
from tri_apsp.bench.cases import Case
from tri_apsp.configs import Config

__all__ = ["check", "edges_of", "solve"]

# At two edges per vertex, about 0.6 of the pairs are reachable, over paths of a few log n edges.
_EDGES_PER_VERTEX = 2
# The rows of a closure that are checked: to check all would take longer than the measurement.
_ROWS = 64


def edges_of(case: Case, device: torch.device) -> torch.Tensor:
    """Return graphs of the size of `case`, of bool, (n, n) or (batch, n, n); its weights do not matter."""
    generator = torch.Generator().manual_seed(case.n)
    shape = (case.n, case.n) if case.batch == 1 else (case.batch, case.n, case.n)
    edges = torch.zeros(shape, dtype=torch.bool)
    targets = torch.randint(case.n, (*shape[:-1], _EDGES_PER_VERTEX), generator=generator)
    return edges.scatter_(-1, targets, True).to(device)


def solve(edges: torch.Tensor, config: Config) -> torch.Tensor:
    """Return the closure on the engine that `config` names."""
    with tuned.using(config):
        return reachability(edges)


def check(closure: torch.Tensor, edges: torch.Tensor) -> None:
    """Check some rows of `closure`, spread over all, by breadth-first search from their vertices at the same time."""
    n = edges.shape[-1]
    sources = torch.linspace(0, n - 1, min(n, _ROWS), device=edges.device).long()
    step = edges.float()
    known = torch.nn.functional.one_hot(sources, n).bool().expand(*edges.shape[:-2], len(sources), n)
    while True:
        found = known | (known.float() @ step > 0)
        if torch.equal(found, known):
            break
        known = found
    assert torch.equal(closure[..., sources, :], known), f"reachability is wrong for {edges.shape}"
