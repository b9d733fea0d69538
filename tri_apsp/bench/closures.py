"""The transitive closures that `bench` measures: random directed graphs of two edges per vertex,
checked by search.
"""

import torch

from tri_apsp import tuned
from tri_apsp.api import reachability
from tri_apsp.bench.cases import Case
from tri_apsp.configs import Config
from tri_apsp.transitive_closure import matrices_of_closure

# At two edges per vertex, about 0.6 of the pairs are reachable, over paths of a few log n edges.
_EDGES_PER_VERTEX = 2
# The columns of a closure that are checked: to check all would take longer than the measurement.
_COLUMNS = 64
# Bytes per element of those columns that the check takes at its peak.
_CHECK_BYTES = 5


def edges_of(case: Case, device: torch.device) -> torch.Tensor:
    """Return graphs of the size of `case`, of bool, (n, n) or (batch, n, n); its weights do not
    matter.
    """
    edges = torch.zeros((case.batch, case.n, case.n), dtype=torch.bool)
    edges.scatter_(-1, _heads(case), True)
    return (edges if case.batch > 1 else edges[0]).to(device)


def _heads(case: Case) -> torch.Tensor:
    """Return the vertices that the edges of each vertex lead to, (batch, n, _EDGES_PER_VERTEX)."""
    generator = torch.Generator().manual_seed(case.n)
    return torch.randint(case.n, (case.batch, case.n, _EDGES_PER_VERTEX), generator=generator)


def matrices_of(n: int) -> float:
    """Return how many matrices of bool (n, n) the edges, `solve` and `check` take together per
    graph, at their peak.
    """
    return 1 + matrices_of_closure(n) + _CHECK_BYTES * min(n, _COLUMNS) / n


def solve(edges: torch.Tensor, config: Config) -> torch.Tensor:
    """Return the closure on the engine that `config` names."""
    with tuned.using(config):
        return reachability(edges)


def check(closure: torch.Tensor, case: Case) -> None:
    """Check some columns of the closure of edges_of(case), spread over all, by search from their
    vertices against the edges.

    Raises:
        AssertionError: a column is wrong.
    """
    n, batch, device = case.n, case.batch, closure.device
    targets = torch.linspace(0, n - 1, min(n, _COLUMNS), device=device).long()
    heads = (
        _heads(case).to(device) + n * torch.arange(batch, device=device)[:, None, None]
    )  # of all graphs as one
    known = (
        torch.nn.functional.one_hot(targets, n).T.bool().repeat(batch, 1)
    )  # [batch n, targets]: a path leads from i to j
    while True:
        found = known.clone()
        for k in range(_EDGES_PER_VERTEX):
            found |= known[heads[..., k].flatten()]
        if torch.equal(found, known):
            break
        known = found
    checked = closure.view(batch, n, n)[..., targets]
    assert torch.equal(checked, known.view(checked.shape)), (
        f"reachability is wrong for {tuple(closure.shape)}"
    )
