"""Several paths between two vertices: the shortest simple paths in order, and all shortest ones."""

import heapq
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp.arguments import as_index, check_flags
from tri_apsp.cycles.search import allowance_of
from tri_apsp.cycles.sparse import SparseComponents, reweight
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import NegativeCycleError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.semirings import no_edge
from tri_apsp.value_checks import raise_out_of_range


class SimplePath(NamedTuple):
    """A path in which no vertex occurs twice, as `shortest_simple_paths` yields it.

    Attributes:
        weight: the sum of its edges; of floats rounded once.
        vertices: from the source to the target, both included.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> next(tri_apsp.shortest_simple_paths(weights, 0, 2))
        SimplePath(weight=4, vertices=[0, 1, 2])
    """

    weight: float | int
    vertices: list[int]


def shortest_simple_paths(
    graph: GraphLike, source: int, target: int, *, weighted: bool = True
) -> Iterator[SimplePath]:
    """Yield the simple paths from `source` to `target`, the lightest first: the k shortest loopless
    paths are the first k.

    Args:
        graph: as for `shortest_paths`, without a batch.
        source: a vertex.
        target: a vertex.
        weighted: whether paths are compared by weight; else by their number of edges, which is then
            their weight.

    Returns:
        An iterator, which finds each path when it is asked for it. It is empty if there is no path.
        Paths of equal weight come in any order; so do those of floats whose weights differ by
        rounding in float64.

    Raises:
        InputError: a graph or a vertex that breaks a rule of `shortest_paths`.
        NegativeCycleError: the graph has a negative cycle, wherever it is.
        DistanceRangeError: the weight of a path may not fit int64 or float64.

    Cost:
        All distances to the target; then, for each path, a search on the CPU from each of its
        vertices, which settles few vertices more than those of the path it finds.

    Source:
        Yen, Finding the K Shortest Loopless Paths in a Network, 1971; Lawler, A Procedure for
        Computing the K Best Solutions, 1972.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> for weight, vertices in tri_apsp.shortest_simple_paths(weights, 0, 2):
        ...     print(weight, vertices)
        4 [0, 1, 2]
        9 [0, 2]
    """
    given, solved = _prepare(graph, weighted=weighted)
    ends = as_index(source, "source", given.n), as_index(target, "target", given.n)
    return _shortest_simple_paths(given, solved, *ends)


def all_shortest_paths(
    graph: GraphLike, source: int, target: int, *, weighted: bool = True
) -> Iterator[list[int]]:
    """Yield the vertices of each shortest path from `source` to `target`.

    Args:
        graph: as for `shortest_paths`, without a batch.
        source: a vertex.
        target: a vertex.
        weighted: whether paths are compared by weight; else by their number of edges.

    Returns:
        An iterator. It is empty if there is no path, and yields [source] if the source is the
        target. Of floats, those paths whose weights, added up from the source on in float64, are
        equal; with negative weights, their sums with potentials. Paths that pass through a cycle of
        weight 0 are left out.

    Raises:
        InputError: a graph or a vertex that breaks a rule of `shortest_paths`.
        NegativeCycleError: the graph has a negative cycle, wherever it is.
        DistanceRangeError: the weight of a path may not fit int64 or float64.

    Cost:
        A row of distances, and a step for each vertex of each path; there may be exponentially
        many. A graph with edges of weight 0 may take more steps.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 4], [9, 0, 1], [2, 9, 0]])
        >>> sorted(tri_apsp.all_shortest_paths(weights, 0, 2))
        [[0, 1, 2], [0, 2]]
    """
    given, solved = _prepare(graph, weighted=weighted)
    ends = as_index(source, "source", given.n), as_index(target, "target", given.n)
    return _all_shortest_paths(solved, *ends)


def _prepare(graph: GraphLike, *, weighted: bool) -> tuple[SparseGraph, SparseGraph]:
    """Return a graph on the CPU, and the one to solve: in int64 or float64, without negative
    weights, with the same order of the paths between two vertices.
    """
    check_flags(weighted=weighted)
    given = sparse_graph(graph).to(torch.device("cpu"))
    if not weighted:
        given = given.with_weights(torch.ones(given.edges, dtype=torch.int64))
    solved = given
    if given.lowest < 0:
        allowance = allowance_of(given.by_source.weights, given.n)
        if (found := reweight(given, allowance)) is None:
            components = SparseComponents(given, allowance)
            components.remove_from(given)
            cycle = components.cycles[0]
            raise NegativeCycleError(
                cycle.vertices, labels=given.labels, weight=cycle.weight, mark=""
            )
        solved = found.graph
    wide = torch.float64 if given.dtype.is_floating_point else torch.int64
    solved = sparse_graph(solved, dtype=wide)
    largest = torch.finfo(wide).max if wide.is_floating_point else no_edge(wide)
    if solved.farthest >= largest:
        raise_out_of_range(wide, "a path may weigh too much")
    return given, solved


def _distances(graph: SparseGraph, source: int) -> Array:
    from tri_apsp.sparse.cpu import CpuSparseEngine  # which imports Numba

    engine = CpuSparseEngine(graph)
    largest = no_edge(graph.dtype) - 1
    row: Array = engine.distances("dijkstra", torch.tensor([source]), largest).numpy()[0]
    return row


def _shortest_simple_paths(
    given: SparseGraph, graph: SparseGraph, source: int, target: int
) -> Iterator[SimplePath]:
    from tri_apsp.kernels.cpu.simple_paths import shortest_detour

    n, lists = graph.n, graph.by_source.arrays()
    dtype, no_path = lists[2].dtype, lists[2].dtype.type(no_edge(graph.dtype))
    to_target = _distances(SparseGraph(n, graph.by_destination), target)
    places = [np.full(n, -1, np.int32) for _ in range(4)]
    workspace = np.full(n, no_path), np.empty(n, dtype), *places
    closed, number = np.zeros(n, np.bool_), itertools.count()
    # The found paths, from the source on: what comes after a vertex, and after that.
    found: dict[int, Any] = {}
    # Weight, a number for ties, vertices, and at which of them the path leaves its parent.
    candidates = list[tuple[Any, int, list[int], int]]()

    def add(root: list[int], weight: Any, banned: list[int]) -> None:
        """Add the lightest path that begins with `root` and goes on to none of `banned`."""
        closed[root[:-1]] = True
        others = np.array(banned, np.int64)
        tail, rest = shortest_detour(
            *lists, to_target, no_path, closed, others, root[-1], target, workspace
        )
        closed[root[:-1]] = False
        if len(tail):
            path = root[:-1] + tail.tolist()
            heapq.heappush(candidates, (weight + rest, next(number), path, len(root) - 1))

    if to_target[source] < no_path:
        add([source], dtype.type(0), [])
    while candidates:
        _, _, path, first = heapq.heappop(candidates)
        edges = given.by_source.weights_along(path)
        yield SimplePath(math.fsum(edges) if given.dtype.is_floating_point else sum(edges), path)
        sums = np.concatenate([[dtype.type(0)], np.cumsum(graph.by_source.weights_along(path))])
        after = found
        for index, (vertex, following) in enumerate(itertools.pairwise(path)):
            after = after.setdefault(vertex, {})
            after.setdefault(following, {})
            if index >= first:
                add(path[: index + 1], sums[index], list(after))


def _all_shortest_paths(graph: SparseGraph, source: int, target: int) -> Iterator[list[int]]:
    d, (offsets, sources, weights) = _distances(graph, source), graph.by_destination.arrays()

    def before(vertex: int) -> Iterator[int]:
        """Yield the vertices before one on shortest paths."""
        part = slice(offsets[vertex], offsets[vertex + 1])
        tight = d[sources[part]] + weights[part] == d[vertex]
        yield from sources[part][tight].tolist() if vertex != source else ()

    if d[target] >= no_edge(graph.dtype):
        return
    path, stack, on_path = [target], [before(target)], {target}
    while path:
        if path[-1] == source:
            yield path[::-1]
        vertex = next((u for u in stack[-1] if u not in on_path), None)
        if vertex is None:
            on_path.remove(path.pop())
            stack.pop()
        else:
            path.append(vertex)
            stack.append(before(vertex))
            on_path.add(vertex)
