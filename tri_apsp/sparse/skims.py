"""Skims: beside the distances of a table, the sums of other costs along its shortest paths."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.arguments import Numbers, Vertices, farthest_of, finite_numbers, sources_of
from tri_apsp.elimination.prepared import PreparedGraph, ordered
from tri_apsp.elimination.restricted import RestrictedGraph, given_graph
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph
from tri_apsp.memory import memory_for
from tri_apsp.semirings import largest_distance, no_edge
from tri_apsp.sparse.choice import choose
from tri_apsp.value_checks import raise_unfit

_CPU = torch.device("cpu")
# Bits of a sum in a key, the least exponent of float64, and below what it holds all integers.
_BITS, _LEAST_EXPONENT, _EXACT = 60, -1074, 2.0**53
# Tasks per thread.
_PARTS = 4


class Skims(NamedTuple):
    """A table of distances, and what its paths cost besides, which `skims` returns.

    Attributes:
        distances: (sources, targets) of the dtype of the weights, int32 for int16; `no_edge` of
            that dtype without a path.
        costs: (costs, sources, targets) of float64, or (sources, targets) for one cost that was
            given as (edges,); inf without a path.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> path = tri_apsp.prepare(torch.tensor([[0, 3, 9], [3, 0, 1], [9, 1, 0]]))
        >>> tri_apsp.skims(path, path.by_source.weights**2, [0], [2]).costs
        tensor([[10.]], dtype=torch.float64)
    """

    distances: torch.Tensor
    costs: torch.Tensor


def skims(
    graph: GraphLike,
    costs: Numbers | Sequence[Numbers],
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    *,
    limit: float | None = None,
) -> Skims:
    """Return the distance from each source to each target, and the sums of other costs of the edges
    along the same shortest path.

    Args:
        graph: as for `shortest_paths`, without a batch; distances are sums of weights, which must
            not be negative.
        costs: (edges,), or several as (costs, edges) or a list, of numbers in the order of
            `by_source`. One may be negative where the weight is positive.
        sources: vertices; None: all.
        targets: vertices; None: all.
        limit: the farthest distance of interest, as for `shortest_paths`.

    Returns:
        Distances and costs, on the device of the graph.

    Raises:
        InputError: as `shortest_paths`; a negative weight; costs of another shape, not finite, or
            negative on an edge of weight 0.
        DistanceRangeError: a distance does not fit the dtype; sums of integer weights may reach
            2^53, or those of floats or costs infinity.
        TooLargeError: the result does not fit the memory.

    Ties:
        Of several shortest paths, one with the least first cost counts; of several of these, one
        with the least second cost, and so on. So that no order of additions matters, weights and
        costs are rounded to multiples of a quantum, each to its own: 2^-60 of an upper bound of all
        sums, the largest magnitude among the edges from each vertex, added up. Sums are then exact,
        and rounded once to their dtype. Integers stay as they are; the sum of k other numbers is
        right to k / 2 quanta.

    Cost:
        On the CPU, also for a graph on a GPU. With an order of elimination, where a graph has one
        or one pays: an operation for each triangle of the filled graph, and for each source one for
        each filled edge at the sources, the targets and their ancestors. Otherwise Dijkstra's
        algorithm from each source. If there are fewer targets than sources, from each target.

    Source:
        Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016; sweeps to targets
        alone: Delling, Goldberg, Werneck, Faster Batched Shortest Paths in Road Networks, 2011.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> graph = torch.tensor([[0, 1, 1, inf], [inf, 0, inf, 1], [inf, inf, 0, 1], [inf] * 4])
        >>> toll = [5, 2, 0, 4]  # on the edges 0-1, 0-2, 1-3 and 2-3
        >>> tri_apsp.skims(graph, [toll, [1, 1, 1, 1]], sources=0, targets=[1, 3])
        Skims(distances=tensor([[1., 2.]]), costs=tensor([[[5., 5.]],
        <BLANKLINE>
                [[1., 2.]]], dtype=torch.float64))
    """
    whole = given_graph(graph)
    starts, ends = (
        torch.arange(whole.n) if vertices is None else sources_of(vertices, whole.n, name)
        for vertices, name in ((sources, "sources"), (targets, "targets"))
    )
    of_edges = finite_numbers(costs, "costs", whole.edges, "edge", "edges", several=True)
    if isinstance(whole, RestrictedGraph):
        of_edges, starts = whole.costs(of_edges), whole.starts[starts]
    given = whole.inner if isinstance(whole, RestrictedGraph) else whole
    farthest, dtype, on_cpu = farthest_of(limit, given.dtype), given.dtype, given.to(_CPU)
    keys, units = _keys(on_cpu, of_edges if of_edges.ndim == 2 else of_edges[None], whole)
    size = 16 * len(units) * len(starts) * len(ends)  # also of a copy
    what = f"{len(starts)} x {len(ends)} skims"
    with memory_for(what, size, _CPU, "give fewer sources or targets"):
        found = _least(on_cpu, keys, units, starts, ends, farthest)
    no_path = found[0].isinf()
    if not given.sums_fit:
        raise_unfit(~no_path & (found[0] > largest_distance(dtype)), dtype)
    distances = found[0].to(dtype).masked_fill_(no_path, no_edge(dtype))
    of_costs = found[1] if of_edges.ndim == 1 else found[1:]
    return Skims(distances.to(given.device), of_costs.to(given.device))


def _keys(
    graph: SparseGraph, costs: torch.Tensor, whole: SparseGraph | RestrictedGraph
) -> tuple[Array, Array]:
    """Return the keys of edges, (edges, 1 + costs) of int64, and the units of their numbers, powers
    of two; `whole` is the graph as it was given, whose vertices errors name.
    """

    def ends(edge: int) -> str:
        lists = graph.by_source
        place = torch.stack((lists.owners()[edge], lists.vertices[edge].long()))
        owned = whole.owners[place] if isinstance(whole, RestrictedGraph) else place
        return " to ".join(str(whole.labels[v]) for v in owned.tolist())

    if graph.lowest < 0:
        raise InputError(
            "weights, also with the cost of a turn, must not be negative for skims, but that from "
            f"{ends(int(graph.by_source.weights.argmin()))} is {graph.lowest}; leave out such "
            "edges."
        )
    numbers = torch.cat((graph.by_source.weights.to(torch.float64)[None], costs))
    most = np.array([graph.farthest_of(row) for row in numbers])
    if not (np.isfinite(most).all() and (graph.dtype.is_floating_point or most[0] < _EXACT)):
        raise DistanceRangeError(
            "sums of weights and costs along a path must fit float64, those of integer weights "
            f"exactly, but may reach {most.max():.4g}; give larger units."
        )
    exponents = np.maximum(np.frexp(most)[1] - _BITS, _LEAST_EXPONENT)
    keys = np.rint(np.ldexp(numbers.numpy(), -exponents[:, None])).astype(np.int64)
    wrong = (keys[0] == 0) & (keys[1:] < 0).any(axis=0)
    if wrong.any():
        raise InputError(
            "`costs` must not be negative where the weight is 0, since a path may pass there any "
            f"number of times, but one is from {ends(int(wrong.argmax()))}; add a small weight."
        )
    return keys.T.copy(), np.ldexp(1.0, exponents)


def _least(
    graph: SparseGraph,
    keys: Array,
    units: Array,
    starts: torch.Tensor,
    ends: torch.Tensor,
    limit: float | None,
) -> torch.Tensor:
    """Return the least keys of paths, (numbers, starts, ends) of float64; inf without a path."""
    from tri_apsp.kernels.cpu import skims as kernels  # with Numba: half a second

    # Lanes are the fewer of both: ways back from the ends have the same keys.
    is_turned = len(ends) < len(starts)
    if is_turned:
        starts, ends = ends, starts
    eliminated = _eliminated(graph, starts, limit)
    if eliminated is not None:
        kernel, lanes = kernels.sweep, kernels.LANES
        lists, begins, finishes = _swept(eliminated, keys, starts, ends, is_turned=is_turned)
    else:
        kernel, lanes, begins, finishes = kernels.dijkstra, 1, starts.numpy(), ends.numpy()
        numbered = SparseGraph.with_weights(graph, torch.arange(graph.edges))
        edges = numbered.by_destination if is_turned else numbered.by_source
        *lists, numbers = edges.arrays()
        lists.append(keys[numbers])
    most = kernels.MISSING - 1
    if limit is not None:
        most = int(min(most, limit / float(units[0])))
    found = np.empty((len(units), len(begins), len(finishes)))
    # Starts near each other share a task, whose first steps are the same.
    order, threads = np.argsort(begins, kind="stable"), thread_count()
    step = lanes * max(1, len(order) // (_PARTS * threads * lanes))
    parts = [order[first : first + step] for first in range(0, len(order), step)]
    tasks: list[CpuTask] = [
        (*lists, begins[part], part, finishes, most, units, found) for part in parts
    ]
    run_tasks(kernel, tasks, len(begins) * len(units) * graph.edges, threads)
    return torch.from_numpy(np.ascontiguousarray(found.swapaxes(1, 2)) if is_turned else found)


def _eliminated(
    graph: SparseGraph, starts: torch.Tensor, limit: float | None
) -> PreparedGraph | None:
    """Return the graph with an order of elimination; None if Dijkstra's algorithm takes less time
    from the starts than sweeps.
    """
    method, may_eliminate = choose(graph, len(starts), starts, limit)
    if method != "elimination" and not may_eliminate:
        return None
    if not isinstance(graph, PreparedGraph) or graph.tree is None:
        graph = ordered(graph, "auto")
    # A filled graph has at least edges^2 / (2 n) triangles, each of which may lower two keys. That
    # takes as long as Dijkstra's algorithm takes for two edges, of roads and of grids.
    pays = graph.tree is not None and graph.tree.edges**2 <= len(starts) * graph.n * graph.edges
    return graph if pays else None


def _swept(
    graph: PreparedGraph,
    keys: Array,
    starts: torch.Tensor,
    ends: torch.Tensor,
    *,
    is_turned: bool,
) -> tuple[list[Array], Array, Array]:
    """Return the lists of `sweep`, and the places of the starts and of the ends."""
    from tri_apsp.kernels.cpu import skims as kernels
    from tri_apsp.kernels.cpu.sweeps import touched_positions

    tree = graph.tree
    assert tree is not None
    of_edges = np.zeros((2, tree.edges, keys.shape[1]), np.int64)
    of_edges[..., 0] = kernels.MISSING
    of_edges.reshape(-1, keys.shape[1])[graph.weight_indices] = keys
    kernels.customize(tree.offsets, tree.ancestors, *tree.descents, *of_edges)
    asked = tree.positions[torch.cat((starts, ends)).numpy()]
    kept = np.sort(touched_positions(tree.parents, asked, np.zeros(tree.n, np.bool_)))
    place = np.empty(tree.n, np.int64)
    place[kept] = np.arange(len(kept))
    climb, descend = of_edges[:: -1 if is_turned else 1]
    lists = [kept, tree.offsets, place[tree.ancestors], climb, descend]
    return lists, place[asked[: len(starts)]], place[asked[len(starts) :]]
