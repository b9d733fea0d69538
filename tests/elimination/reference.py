"""Small directed graphs for elimination, and their distances by the ten-line reference."""

import numpy as np
import torch
from hypothesis import strategies as st

from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.semirings import no_edge


def distances_of(graph: SparseGraph) -> torch.Tensor:
    """All distances of a graph without a negative cycle, by Floyd-Warshall on Python's numbers."""
    missing = no_edge(graph.dtype)
    d = [[missing] * graph.n for _ in range(graph.n)]
    for v in range(graph.n):
        d[v][v] = 0
    lists = graph.by_source
    for u, v, w in zip(
        lists.owners().tolist(), lists.vertices.tolist(), lists.weights.tolist(), strict=True
    ):
        d[u][v] = min(d[u][v], w)
    for k in range(graph.n):
        for i in range(graph.n):
            for j in range(graph.n):
                if d[i][k] < missing and d[k][j] < missing:
                    d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return torch.tensor(d, dtype=graph.dtype).reshape(graph.n, graph.n)


@st.composite
def graphs(draw: st.DrawFn, *, most: int = 14, negative: bool = False) -> SparseGraph:
    """Directed graphs of small integer weights, with ties, zeros and parts without a path. Negative
    weights come from potentials, so that no cycle is negative.
    """
    n = draw(st.integers(0, most))
    seed, degree = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.5, 1.5, 3]))
    random = np.random.default_rng(seed)
    edges = int(degree * n)
    sources, targets = random.integers(0, max(1, n), (2, edges))
    if draw(st.booleans()):  # mostly in both directions
        sources, targets = np.append(sources, targets), np.append(targets, sources)
    weights = random.integers(0, draw(st.sampled_from([1, 3, 50])) + 1, len(sources))
    if negative:
        potentials = random.integers(-20, 21, max(1, n))
        weights = weights + potentials[sources] - potentials[targets]
    kept = sources != targets
    dtype = draw(st.sampled_from((torch.float32, torch.int64)))
    matrix = torch.sparse_coo_tensor(
        np.stack((sources, targets))[:, kept],
        torch.from_numpy(weights[kept]).to(dtype),
        (n, n),
        check_invariants=False,
    )
    return sparse_graph(matrix)


def road_grid(side: int, *, seed: int = 0, directed: bool = False) -> SparseGraph:
    """A grid with weights 1 to 100; `directed`: each direction has its own, and some are closed."""
    random = np.random.default_rng(seed)
    place = np.arange(side * side).reshape(side, side)
    along, across = (place[:, :-1], place[:, 1:]), (place[:-1], place[1:])
    pairs = np.hstack([np.stack(streets).reshape(2, -1) for streets in (along, across)])
    ends = np.concatenate([pairs, pairs[::-1]], axis=1)
    weights = np.tile(random.integers(1, 101, pairs.shape[1]), 2)
    if directed:
        weights = random.integers(1, 101, ends.shape[1])
        kept = random.random(ends.shape[1]) < 0.9
        ends, weights = ends[:, kept], weights[kept]
    matrix = torch.sparse_coo_tensor(
        torch.from_numpy(ends),
        torch.from_numpy(weights),
        (side * side, side * side),
        check_invariants=False,
    )
    return sparse_graph(matrix)
