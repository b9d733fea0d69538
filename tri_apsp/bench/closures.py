"""The transitive closures that `bench` measures: random directed graphs of two edges per vertex,
checked by search.
"""

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from tri_apsp import tuned
from tri_apsp.api import reachability
from tri_apsp.bench.cases import Case
from tri_apsp.configs import Config
from tri_apsp.transitive_closure import matrices_of_closure

# At two edges per vertex, about 0.6 of the pairs are reachable, over paths of a few log n edges.
_EDGES_PER_VERTEX = 2
_ROWS = 64  # of a closure that are checked: to check all would take longer than the measurement


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
    """Return how many matrices of bool (n, n) the edges and `solve` take together per graph, at
    their peak.
    """
    return 1 + matrices_of_closure(n)


def solve(edges: torch.Tensor, config: Config) -> torch.Tensor:
    """Return the closure on the engine that `config` names."""
    with tuned.using(config):
        return reachability(edges)


def check(closure: torch.Tensor, case: Case) -> None:
    """Check some rows of the closure of edges_of(case), spread over all graphs, by SciPy's search.

    Raises:
        AssertionError: a row is wrong.
    """
    n, vertices = case.n, case.batch * case.n  # of all graphs as one
    heads = (_heads(case) + n * torch.arange(case.batch)[:, None, None]).flatten().numpy()
    offsets = np.arange(0, len(heads) + 1, _EDGES_PER_VERTEX)
    graph = csr_array((np.ones(len(heads)), heads, offsets), (vertices, vertices))
    rows = closure.view(vertices, n)
    for source in np.linspace(0, vertices - 1, min(vertices, _ROWS)).astype(int).tolist():
        reached = breadth_first_order(graph, source, return_predecessors=False)
        expected = torch.zeros(n, dtype=torch.bool)
        expected[reached % n] = True
        assert torch.equal(rows[source].cpu(), expected), (
            f"reachability is wrong for {tuple(closure.shape)}"
        )
