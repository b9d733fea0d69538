"""Random graphs by seed: the same seed gives the same graph, as long as NumPy does not change its
generator.

Weights are integers, uniform in 1..16 as in Catinello, Parallel Floyd-Warshall, section 1.2; those
of `roads` follow the lengths of the roads.
"""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import as_integer
from tri_apsp.errors import InputError
from tri_apsp.graphs.graph import MAX_VERTICES, DenseGraph, EdgeList, Graph
from tri_apsp.graphs.road_network import road_network
from tri_apsp.memory import check_memory, require_memory
from tri_apsp.messages import counted

_LIGHTEST, _HEAVIEST = 1, 16
_MEAN = 6  # the weight of a road of mean length

# Most bytes that a generator has allocated per vertex and per edge at one time: the arrays of an
# EdgeList, and temporary ones.
_VERTEX_BYTES, _EDGE_BYTES = 16, 48
_ROADS_BYTES = 80  # per vertex, of which a quarter are triangulated

GraphKind: TypeAlias = Literal["erdos_renyi", "complete", "sparse_rows", "grid", "roads", "chain"]


def generate(kind: GraphKind, n: int, *, p: float | None = None, seed: int = 0) -> Graph:
    """Return a graph of `n` vertices from the function of a kind.

    Args:
        kind: a key of `GENERATORS`: "erdos_renyi", "complete", "sparse_rows", "grid", "roads" or
            "chain".
        n: vertices.
        p: probability of an edge, in [0, 1]; required for kind "erdos_renyi", and not allowed for
            others.
        seed: not negative.

    Returns:
        A `DenseGraph` for "complete", else an `EdgeList`. Weights are integers from 1 to 16.

    Raises:
        InputError: another kind, an n outside 0..2^62, a negative seed, or a p that is missing,
            out of range or not allowed.
        TooLargeError: before anything is allocated, if the graph does not fit the memory.

    Cost:
        That of the function of the kind.

    Examples:
        >>> import torch
        >>> from tri_apsp import shortest_paths
        >>> from tri_apsp.graphs import generate
        >>> graph = generate("erdos_renyi", 1000, p=0.01, seed=1)
        >>> weights = graph.to_weights(torch.int32)
        >>> shortest_paths(weights, sources=[0]).distances.shape
        torch.Size([1, 1000])
    """
    if kind not in GENERATORS:
        raise InputError(
            f"`kind` must be one of {', '.join(GENERATORS)}, but is {kind!r}; choose one of these."
        )
    if (p is None) == (kind == "erdos_renyi"):
        raise InputError(
            "`p`, the probability of an edge, must be given for kind erdos_renyi and for no other, "
            f"but is {p} for kind {kind}; {'pass it' if p is None else 'leave it out'}."
        )
    function, _ = GENERATORS[kind]
    return function(n, seed=seed) if p is None else function(n, p, seed)


def erdos_renyi(n: int, p: float, seed: int = 0) -> EdgeList:
    """Return a graph in which each ordered pair i != j is an edge with probability `p`,
    independently.

    Args:
        n: vertices.
        p: probability, in [0, 1].
        seed: not negative.

    Returns:
        About p n (n - 1) edges of weights 1 to 16.

    Raises:
        InputError: a negative n or seed, or a p outside [0, 1].
        TooLargeError: the graph does not fit the memory.

    Cost:
        O(n + edges) for small p, O(n^2) at most; memory O(n + edges).

    Source:
        Catinello, Parallel Floyd-Warshall, section 1.2, where p is a percentage.

    Examples:
        >>> from tri_apsp.graphs import erdos_renyi
        >>> graph = erdos_renyi(100, 1.0)
        >>> graph.n, graph.edges, int(graph.weights.min()), int(graph.weights.max())
        (100, 9900, 1, 16)
    """
    rng = _generator(n, seed)
    if not 0 <= p <= 1:
        raise InputError(
            f"`p` must be a probability in [0, 1], but is {p}; divide a percentage by 100."
        )
    _check_edges(n, p * n * (n - 1))
    # The number of edges of a row is binomial; for a given number, all sets of that many targets
    # are equally likely.
    return _rows(n, rng.binomial(max(0, n - 1), p, size=n), rng)


def sparse_rows(n: int, seed: int = 0) -> EdgeList:
    """Return a graph with exactly n // 4 edges from each vertex, to different vertices other than
    itself.

    Args:
        n: vertices.
        seed: not negative.

    Returns:
        n (n // 4) edges of weights 1 to 16.

    Raises:
        InputError: a negative n or seed.
        TooLargeError: the graph does not fit the memory.

    Cost:
        O(n^2); memory O(edges).

    Source:
        The second kind of random matrix in Malison's tests, with the weights of this module.

    Examples:
        >>> from tri_apsp.graphs import sparse_rows
        >>> sparse_rows(100).edges
        2500
    """
    rng = _generator(n, seed)
    _check_edges(n, n * (n // 4))
    return _rows(n, np.full(n, n // 4, np.int64), rng)


def _rows(n: int, degrees: npt.NDArray[np.int64], rng: np.random.Generator) -> EdgeList:
    """Draw `degrees[i]` different targets j != i for each row i, ascending, then all weights."""
    targets = np.empty(int(degrees.sum()), np.int64)
    end = 0
    for row, degree in enumerate(degrees.tolist()):
        chosen = (
            np.sort(rng.choice(n - 1, size=degree, replace=False, shuffle=False))
            if degree
            else targets[:0]
        )
        start, end = end, end + degree
        targets[start:end] = chosen + (chosen >= row)  # skips the row itself
    return EdgeList(n, np.repeat(np.arange(n), degrees), targets, _weights(rng, len(targets)))


def complete(n: int, seed: int = 0) -> DenseGraph:
    """Return a graph with an edge between every two vertices in each direction, as float32 weights.

    Args:
        n: vertices.
        seed: not negative.

    Returns:
        n (n - 1) edges of weights 1 to 16; the diagonal is 0.

    Raises:
        InputError: a negative n or seed.
        TooLargeError: the matrix does not fit the memory.

    Cost:
        O(n^2); memory of the matrix.

    Examples:
        >>> from tri_apsp.graphs import complete
        >>> graph = complete(100)
        >>> graph.weights.shape, graph.edges
        (torch.Size([100, 100]), 9900)
    """
    rng = _generator(n, seed)
    check_memory(n, 1, torch.float32, torch.device("cpu"))
    weights = torch.empty((n, n), dtype=torch.float32)
    for row in weights:
        row.copy_(torch.from_numpy(rng.integers(_LIGHTEST, _HEAVIEST + 1, size=n, dtype=np.int16)))
    weights.fill_diagonal_(0)
    return DenseGraph(weights)


def grid_of(n: int, seed: int = 0) -> EdgeList:
    """Return a grid of `n` vertices in ceil(sqrt(n)) columns, whose last row may be shorter.

    Vertex (r, c), number r * columns + c, has an edge to each of its up to 4 neighbours.

    Args:
        n: vertices.
        seed: not negative.

    Returns:
        Fewer than 4 n edges of weights 1 to 16; the two directions of a pair have weights of their
        own.

    Raises:
        InputError: a negative n or seed.
        TooLargeError: the graph does not fit the memory.

    Cost:
        O(n).

    Examples:
        >>> from tri_apsp.graphs import grid_of
        >>> graph = grid_of(6)  # 2 rows of 3 vertices
        >>> sorted(zip(graph.sources.tolist(), graph.targets.tolist()))[:5]
        [(0, 1), (0, 3), (1, 0), (1, 2), (1, 4)]
    """
    rng = _generator(n, seed)
    _check_edges(n, 4 * n)
    columns, vertices = math.isqrt(n - 1) + 1 if n else 1, np.arange(n)
    left, upper = vertices[:-1][vertices[1:] % columns != 0], vertices[:-columns]
    sources, targets = np.concatenate([left, upper]), np.concatenate([left + 1, upper + columns])
    return EdgeList(
        n,
        np.concatenate([sources, targets]),
        np.concatenate([targets, sources]),
        _weights(rng, 2 * len(sources)),
    )


def roads(n: int, seed: int = 0) -> EdgeList:
    """Return a connected planar graph like a road network, with towns, dead ends, and mostly
    vertices of two neighbours.

    Elimination adds as many edges as in OpenStreetMap's roads of a small country.

    Args:
        n: vertices.
        seed: not negative.

    Returns:
        About 2.1 n edges, each in both directions, of weights 1 to 16 by length: 6 for a mean one,
        16 also for longer ones.

    Raises:
        InputError: a negative n or seed.
        TooLargeError: the graph does not fit the memory.

    Cost:
        O(n log n); a few seconds for a million vertices.

    Examples:
        >>> from tri_apsp.graphs import roads
        >>> graph = roads(1000)
        >>> graph.n, graph.edges, int(graph.weights.min()), int(graph.weights.max())
        (1000, 2108, 1, 16)
    """
    rng = _generator(n, seed)
    _check_edges(n, 2.11 * n, _ROADS_BYTES)
    ends, lengths = road_network(n, rng)
    units = np.ceil(lengths * (_MEAN / lengths.mean() if len(lengths) else 1))
    weights = np.clip(units, _LIGHTEST, _HEAVIEST).astype(np.int64)
    return EdgeList(n, ends[:, 0], ends[:, 1], weights).both_ways()


def chain(n: int, seed: int = 0) -> EdgeList:
    """Return the path 0 -> 1 -> ... -> n - 1, whose longest shortest path has n - 1 edges, the most
    that are possible.

    Args:
        n: vertices.
        seed: not negative.

    Returns:
        n - 1 edges of weights 1 to 16.

    Raises:
        InputError: a negative n or seed.
        TooLargeError: the graph does not fit the memory.

    Cost:
        O(n).

    Examples:
        >>> from tri_apsp.graphs import chain
        >>> chain(4).sources.tolist(), chain(4).targets.tolist()
        ([0, 1, 2], [1, 2, 3])
    """
    rng = _generator(n, seed)
    _check_edges(n, n)
    vertices = np.arange(n)
    return EdgeList(n, vertices[:-1], vertices[1:], _weights(rng, max(0, n - 1)))


def _generator(n: int, seed: int) -> np.random.Generator:
    as_integer(n, "n")
    as_integer(seed, "seed")
    if n > MAX_VERTICES:
        raise InputError(
            "`n` must be at most 2**62, the largest number of vertices, but is greater; pass "
            "fewer vertices."
        )
    return np.random.default_rng(seed)


def _check_edges(n: int, edges: float, vertex_bytes: int = _VERTEX_BYTES) -> None:
    """Refuse a graph of about `edges` edges that does not fit the free memory.

    Raises:
        TooLargeError: with the bytes needed and the bytes free.
    """
    vertices = counted(n, "vertex", "vertices")
    what = f"a graph of {vertices} and about {edges:.3g} edges, while it is generated,"
    require_memory(
        what,
        vertex_bytes * n + _EDGE_BYTES * edges,
        torch.device("cpu"),
        "generate fewer vertices",
    )


def _weights(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    return rng.integers(_LIGHTEST, _HEAVIEST + 1, size=count)


GENERATORS: dict[GraphKind, tuple[Callable[..., Graph], str]] = {
    "erdos_renyi": (
        erdos_renyi,
        "each ordered pair of vertices is an edge with probability --p: about p n (n - 1) edges",
    ),
    "complete": (complete, "each ordered pair of vertices is an edge: n (n - 1) edges"),
    "sparse_rows": (
        sparse_rows,
        "from each vertex n // 4 edges to others, drawn at random: n (n // 4) edges",
    ),
    "grid": (
        grid_of,
        "a square grid of ceil(sqrt(n)) columns, neighbours joined in both directions: about 4 n "
        "edges",
    ),
    "roads": (
        roads,
        "a planar graph like the roads of a country, both directions of each: about 2.1 n edges",
    ),
    "chain": (
        chain,
        "the path 0 -> 1 -> ... -> n - 1, of the largest possible diameter: n - 1 edges",
    ),
}
"""The function of each kind that `generate` takes, and what the kind is, in a line for --help."""
