"""The graphs and the calls of the study of sparse graphs, each call with a check of its result."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from tri_apsp.api import all_pairs, closeness, hops, shortest_paths, single_source
from tri_apsp.bench.solves import solve
from tri_apsp.graphs import erdos_renyi, grid_of
from tri_apsp.sparse.all_pairs import Block
from tri_apsp.sparse.choice import JOHNSON
from tri_apsp.sparse.graph import SparseGraph, canonical, sparse_graph
from tri_apsp.tune.measure.problems import WrongResultError

__all__ = [
    "ALL_ROUNDS",
    "CLOSENESS",
    "DENSE",
    "FILE",
    "GRAPHS",
    "HOPS",
    "MANY",
    "RAW_FILE",
    "SHARES",
    "SPARSE",
    "STREAM",
    "SparseCall",
    "call_of",
    "graph_of",
]

MANY = 256
"""Sources of the calls of many sources."""

# Calls; others are "one source, METHOD", "MANY sources, METHOD" and "STREAM, METHOD".
DENSE, SPARSE, STREAM = "all rows, dense", f"all rows, {JOHNSON}", "all rows to the CPU"
FILE, RAW_FILE = "all rows to a file", "as many bytes to a file"
ALL_ROUNDS = "one source, output_parallel in n - 1 rounds"
HOPS, CLOSENESS = "all hops", "closeness"

_PIECE = 1024  # rows that are written at once


@dataclass(frozen=True)
class SparseCall:
    """A call to time.

    Attributes:
        run: computes the given number of rows.
        rows: the number of rows of the whole call; 1 if no part of it can be run.
        check: raises WrongResultError for a wrong result of the whole call.
    """

    run: Callable[[int], Any]
    rows: int
    check: Callable[[Any], None]

    def whole(self) -> Any:
        """Run the whole call."""
        return self.run(self.rows)


def _weights(rng: np.random.Generator, count: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(1, 1001, count).astype(np.float32))


def _random(degree: int) -> Callable[[int], SparseGraph]:
    """Return a function that draws a graph with `degree` edges to each vertex, from random ones."""

    def draw(n: int) -> SparseGraph:
        rng = np.random.default_rng(n)
        sources, targets = rng.integers(0, n, degree * n), np.repeat(np.arange(n), degree)
        return canonical(
            n, torch.from_numpy(sources), torch.from_numpy(targets), _weights(rng, degree * n)
        )

    return draw


def _power_law(n: int) -> SparseGraph:
    """Return a graph with 20 n edges, whose ends are drawn with a chance that falls as a power of a
    vertex's rank.
    """
    rng = np.random.default_rng(n)
    chance = (np.arange(n) + 10.0) ** -0.8
    ends = rng.permutation(n)[rng.choice(n, (2, 20 * n), p=chance / chance.sum())]
    return canonical(n, torch.from_numpy(ends[0]), torch.from_numpy(ends[1]), _weights(rng, 20 * n))


def _roads(n: int) -> SparseGraph:
    """Return a square grid with edges in both directions, weights 1 to 1000."""
    edges = grid_of(n, seed=n)
    ends = torch.from_numpy(edges.sources), torch.from_numpy(edges.targets)
    return canonical(n, *ends, _weights(np.random.default_rng(n), edges.edges))


GRAPHS: dict[str, Callable[[int], SparseGraph]] = {
    "random, 8 edges to each vertex": _random(8),
    "random, 20 edges to each vertex": _random(20),
    "power law, 20 edges for each vertex": _power_law,
    "grid, like roads": _roads,
}


def _few_edges(share: float) -> Callable[[int], SparseGraph]:
    """Return a function that draws a graph with a share of all edges, weights 1 to 16."""
    return lambda n: sparse_graph(erdos_renyi(n, share, seed=n), dtype=torch.float32)


SHARES = {f"{share:.0%} of the edges": _few_edges(share) for share in (0.01, 0.03, 0.1, 0.3)}


def graph_of(name: str, n: int, device: torch.device) -> SparseGraph:
    """Return a graph on a device, with both lists of its edges."""
    graph = (GRAPHS | SHARES)[name](n).to(device)
    _ = graph.by_destination
    return graph


def call_of(name: str, graph: SparseGraph) -> SparseCall:
    """Return the call that a row of the study names."""
    kind, _, method = name.partition(", ")
    check, unchecked = partial(_check_rows, graph), lambda found: None
    if name == DENSE:
        weights = graph.dense()
        return SparseCall(lambda rows: solve(weights), 1, check)
    if name == SPARSE:
        return SparseCall(lambda rows: shortest_paths(graph, method=JOHNSON), 1, check)
    if kind == STREAM:
        return SparseCall(partial(_stream, graph, method), graph.n, check)
    if name == FILE:
        return SparseCall(partial(_write, graph), graph.n, check)
    if name == RAW_FILE:
        return SparseCall(partial(_write_raw, graph), graph.n, unchecked)
    if name == HOPS:
        run = partial(_hops, graph)
        return SparseCall(run, graph.n, partial(_check_hops, graph))
    if name == CLOSENESS:
        return SparseCall(lambda rows: closeness(graph), 1, partial(_check_closeness, graph))
    if name == ALL_ROUNDS:
        every = partial(single_source, graph, 0, method="output_parallel", early_stop=False)
        return SparseCall(lambda rows: every(), 1, check)
    sources = MANY if kind == f"{MANY} sources" else 1
    if method == "SciPy":
        matrix = _matrix(graph)
        return SparseCall(lambda rows: dijkstra(matrix, indices=range(rows)), sources, unchecked)
    return SparseCall(
        lambda rows: single_source(graph, range(rows), method=method),  # type: ignore[arg-type]
        sources,
        check,
    )


def _hops(graph: SparseGraph, rows: int) -> torch.Tensor:
    return hops(graph, None if rows == graph.n else range(rows), dtype=torch.uint8)


def _matrix(graph: SparseGraph, *, unweighted: bool = False) -> csr_array:
    offsets, vertices, weights = graph.by_source.arrays()
    data = np.ones(graph.edges) if unweighted else weights.astype(np.float64)
    return csr_array((data, vertices, offsets), (graph.n, graph.n))


def _check_rows(graph: SparseGraph, found: Any) -> None:
    _compare(found.distances[0], dijkstra(_matrix(graph), indices=0))


def _check_hops(graph: SparseGraph, found: torch.Tensor) -> None:
    expected = dijkstra(_matrix(graph, unweighted=True), indices=0, unweighted=True)
    _compare(found[0], np.where(np.isinf(expected), 255, expected))


def _check_closeness(graph: SparseGraph, found: torch.Tensor) -> None:
    distances = dijkstra(_matrix(graph, unweighted=True).T.tocsr(), indices=0, unweighted=True)
    finite = distances[np.isfinite(distances)]
    others = len(finite) - 1
    _compare(
        found[:1], np.array([others / finite.sum() * others / (graph.n - 1) if others else 0.0])
    )


def _compare(found: torch.Tensor, expected: np.ndarray) -> None:
    """Raise WrongResultError unless both are equal; integers are exact in both."""
    if not np.allclose(found.cpu().double().numpy(), expected, rtol=1e-12):
        raise WrongResultError("a row differs from that of SciPy's Dijkstra")


def _stream(graph: SparseGraph, method: str, rows: int, sink: Path | None = None) -> Block:
    """Take the blocks of at least this number of rows, and return the first.

    The last of all blocks is followed by the end of the iterator, at which a file is complete.
    """
    blocks = all_pairs(graph, method=method, sink=sink)  # type: ignore[arg-type]
    first = next(blocks)
    for block in blocks:
        if rows < graph.n and block.first + len(block.distances) >= rows:
            break
    return first


def _write(graph: SparseGraph, rows: int) -> Block:
    with TemporaryDirectory() as folder:
        return _stream(graph, "auto", rows, Path(folder, "distances.npy"))


def _write_raw(graph: SparseGraph, rows: int) -> None:
    """Write as many bytes as these rows have, and wait until they are on the disk."""
    piece = np.zeros((_PIECE, graph.n), np.float32)
    with TemporaryFile() as file:
        for _ in range(0, rows, _PIECE):
            file.write(piece.data)
        os.fsync(file.fileno())
