"""Flows: demand that travels along shortest paths, split evenly among equal ones."""

import math
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import Vertices, as_vector, check_flags, check_tensor, sources_of
from tri_apsp.device import Devices
from tri_apsp.elimination.base import Sweeps
from tri_apsp.elimination.flows import TOO_MANY_PATHS, Flows
from tri_apsp.elimination.prepared import PreparedGraph
from tri_apsp.elimination.restricted import RestrictedGraph, given_graph
from tri_apsp.engines.cpu_tasks import CpuTask, run_sums
from tri_apsp.errors import DistanceRangeError, InputError, InputTypeError
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, sparse_graph
from tri_apsp.messages import shown
from tri_apsp.progress import progress_bar
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.choice import choose, hop_sweeps
from tri_apsp.sparse.hops import hops
from tri_apsp.sparse.plan import plan_sparse
from tri_apsp.sparse.run import SparseSolver
from tri_apsp.sparse.settle import settle
from tri_apsp.sparse.share import WHOLE, Share, on_devices

# Distances, and values of demand, that are held at a time.
_VALUES_PER_BLOCK = 1 << 24
# Pairs of a block by elimination, which takes a GPU some seconds.
_PAIRS_PER_BLOCK = 1 << 36
# With a bar, the least sources of a block by elimination, and the most blocks.
_LEAST_OF_BAR, _BLOCKS_OF_BAR = 1 << 11, 20
# Sources of a task by rows.
_PART = 16


class EdgeFlows(NamedTuple):
    """What travels along shortest paths, which `edge_flows` returns.

    Attributes:
        loads: (edges,) of float64, the load of each edge, in the order of `by_source`.
        through: (n,) of float64, what passes through each vertex, without what starts or ends
            there.
        unserved: (sources,) of float64, the demand from each source that has no path.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> path = torch.tensor([[0, 3, 9], [3, 0, 1], [9, 1, 0]])
        >>> tri_apsp.edge_flows(path, [0], [2], 5.0).through
        tensor([0., 5., 0.], dtype=torch.float64)
    """

    loads: torch.Tensor
    through: torch.Tensor
    unserved: torch.Tensor


def edge_flows(
    graph: GraphLike,
    sources: Vertices,
    targets: Vertices,
    demand: Any,
    *,
    device: Devices | None = None,
    progress: bool = False,
) -> EdgeFlows:
    """Return the load of each edge if demand travels along shortest paths, split evenly over equal
    ones: an all-or-nothing assignment.

    Args:
        graph: as for `shortest_paths`, without a batch; distances are sums of weights, which must
            be positive.
        sources: vertices from which demand comes; one may occur more than once.
        targets: vertices to which it goes; one may occur more than once.
        demand: what travels from each source to each target, not negative: (sources, targets), as a
            tensor, an array, a list, or a sparse one of SciPy or torch, of which rows without
            entries take no time; (targets,), the same from each source; or one number for each
            pair. Labels, as of a DataFrame, are not read. What travels from a vertex to itself uses
            no edge.
        device: where to solve, as for `shortest_paths`; several devices share the sources. None:
            where the graph is.
        progress: show a bar on stderr, that of the first device.

    Returns:
        The loads, in the unit of the demand, on the CPU, the flow through each vertex, and the
        demand without a path.

    Raises:
        InputError: as `shortest_paths`; a weight that is not positive; demand of another shape,
            negative or not finite, or whose sum exceeds float64.
        DistanceRangeError: as `shortest_paths`; the number of shortest paths exceeds float64.
        TooLargeError: the sums of the flows, on a CPU those of each thread, do not fit the memory.

    Ties:
        Paths are equal where their sums are exactly. Sums of integers below 2^52 are exact, of
        floats that are multiples of one power of two, and of decimals of up to 9 digits after the
        point, such as 0.1, below 2^52 of the last digit. Other weights are rounded to multiples of
        2^-52 of an upper bound of all sums: each vertex's heaviest edge, added up; paths that are
        equal by a hair may then differ. If that would move a weight by more than 1e-6 of itself,
        weights stay as they are, and sums of paths are rounded.

    Cost:
        By elimination, where a graph has an order or one pays: two sweeps for each source, 4 times
        `closeness`, and a pass over the triangles of the filled graph. Otherwise the rows of
        distances, in blocks of 17 million values, and three passes over the edges per source. Where
        float32 holds all distances and numbers of paths, it is used: the relative error is then
        about 1e-6. Loads are added up in float64.

    Source:
        Brandes, A Faster Algorithm for Betweenness Centrality, 2001; the order: Dibbelt, Strasser,
        Wagner, Customizable Contraction Hierarchies, 2016.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> graph = torch.tensor([[0, 1, 1, inf], [inf, 0, inf, 1], [inf, inf, 0, 1], [inf] * 4])
        >>> graph = tri_apsp.prepare(graph)
        >>> flows = tri_apsp.edge_flows(graph, [0, 3], [3, 1], [[6, 2], [0, 5]])
        >>> flows.loads, flows.unserved  # edges 0-1, 0-2, 1-3 and 2-3
        (tensor([5., 3., 3., 3.], dtype=torch.float64), tensor([0., 5.], dtype=torch.float64))
    """
    asked = as_values(demand)
    return on_devices(
        graph,
        device,
        lambda given, share: shared_edge_flows(
            given, sources, targets, asked, share, progress=progress
        ),
        lambda one, other: EdgeFlows(*map(torch.add, one, other)),
        take=given_graph,
    )


def shared_edge_flows(
    graph: GraphLike,
    sources: Vertices,
    targets: Vertices,
    demand: Any,
    share: Share,
    *,
    progress: bool = False,
) -> EdgeFlows:
    """Return what a share of the sources adds to the flows, which are the sum over all shares."""
    check_flags(progress=progress)
    whole = given_graph(graph)
    starts = sources_of(sources, whole.n, least=0)
    ends = sources_of(targets, whole.n, "targets", least=0)
    values = as_values(demand)
    if not isinstance(values, torch.Tensor) and values.shape == (len(starts), len(ends)):
        has_demand = torch.from_numpy(np.diff(values.indptr) > 0)
        if not bool(has_demand.all()):
            unserved = torch.zeros(len(starts), dtype=torch.float64)
            some, rows = starts[has_demand], values[has_demand.numpy()]
            found = shared_edge_flows(whole, some, ends, rows, share, progress=progress)
            unserved[has_demand] = found.unserved
            return found._replace(unserved=unserved)
    if not isinstance(whole, RestrictedGraph):
        check_positive(whole)
        return _flows_of(whole, starts, ends, demand, share, progress=progress)
    inner = whole.inner
    check_positive(inner, whole)
    found = _flows_of(inner, whole.starts[starts], ends, demand, share, progress=progress)
    loads, through = whole.loads(found.loads, found.through)
    return EdgeFlows(loads, through, found.unserved)


def _flows_of(
    graph: SparseGraph,
    starts: torch.Tensor,
    ends: torch.Tensor,
    demand: Any,
    share: Share,
    *,
    progress: bool,
) -> EdgeFlows:
    asked = _demand(demand, len(starts), ends, graph, share)
    with progress_bar(progress and not share.rank) as report:
        return flows(graph, starts, asked, weighted=True, share=share, report=report)


def check_positive(graph: SparseGraph, restricted: RestrictedGraph | None = None) -> None:
    """Refuse weights that are not positive, for betweenness and flows.

    Args:
        restricted: of which `graph` is the larger graph, whose ends of paths weigh nothing.
    """
    lists, ends = graph.by_source, slice(None) if restricted is None else restricted.travels
    weights = lists.weights.cpu()[ends]
    lightest = weights.min().item() if len(weights) else 1
    if lightest > 0:
        return
    place = int(weights.argmin())
    edge = [int(x.cpu()[ends][place]) for x in (lists.owners(), lists.vertices)]
    if restricted is not None:
        edge = [int(restricted.owners[v]) for v in edge]
    names = (restricted or graph).labels
    remedy = "give positive weights" if lightest < 0 else "add a small weight"
    raise InputError(
        "weights must be positive for betweenness and flows, since there may be infinitely many "
        f"paths otherwise, but that from {names[edge[0]]} to {names[edge[1]]} is {lightest}; "
        f"{remedy}."
    )


class Demand(NamedTuple):
    """What travels from sources to vertices. Vertices that share a row get the same.

    Attributes:
        block: from some of the sources to what travels from each to a vertex of each row, (rows,
            sources) of float64; (rows, 1) if it is the same from each.
        rows: (n,) of int32, the row of each vertex.
        per_source: how many values a block has for each of its sources.
    """

    block: Callable[[slice], torch.Tensor]
    rows: torch.Tensor
    per_source: int

    @classmethod
    def same(cls, values: torch.Tensor, rows: torch.Tensor) -> "Demand":
        """Return the demand of values (rows,) from each source."""
        return cls(lambda _: values[:, None], rows, 1)


def _demand(
    demand: Any, sources: int, ends: torch.Tensor, graph: SparseGraph, share: Share
) -> Demand:
    """Return a checked demand from some sources to `ends`, on the device of the graph."""
    values, n, device = as_values(demand), graph.n, graph.device
    if isinstance(values, torch.Tensor) and values.ndim == 0:
        values = values.expand(len(ends))
    shape = (sources, len(ends))
    if tuple(values.shape) not in (shape, shape[1:]):
        raise InputError(
            f"`demand` must have shape {shape}, one number for each source and target, or "
            f"{shape[1:]}, but has shape {tuple(values.shape)}; give it so."
        )
    is_sparse = not isinstance(values, torch.Tensor)
    # Of several devices, each takes only its share there, in `block`.
    values = values if is_sparse or share.size > 1 else values.to(device)
    numbers = torch.from_numpy(values.data) if is_sparse else values
    if numbers.numel():
        least, most = (x.item() for x in numbers.aminmax())  # both are NaN if a number is
        if not 0 <= least <= most < math.inf:
            wrong = most if least >= 0 else least
            raise InputError(
                f"`demand` must be finite and not negative, but one is {wrong}; replace it."
            )
    if not math.isfinite(float(numbers.sum()) * (1 if len(values.shape) == 2 else sources)):
        raise InputError(
            "the sum of `demand` must fit float64, but exceeds it; give a larger unit."
        )
    if len(values.shape) == 1:
        by_vertex = torch.zeros(n, dtype=torch.float64).index_add_(0, ends, values.cpu())
        different, rows = torch.unique(by_vertex, return_inverse=True)
        return Demand.same(different, rows.to(torch.int32))
    targets, place = torch.unique(ends, return_inverse=True)
    rows = torch.zeros(n, dtype=torch.int32)
    rows[targets] = torch.arange(1, len(targets) + 1, dtype=torch.int32)
    place = place.to(device) + 1

    def block(part: slice) -> torch.Tensor:
        given = torch.from_numpy(values[part].toarray()) if is_sparse else values[part]
        of_targets = given.new_zeros(len(given), len(targets) + 1).to(device)
        return of_targets.index_add_(1, place, given.to(device)).T  # by columns: half the time

    return Demand(block, rows, len(targets) + 1)


def as_values(demand: Any) -> Any:
    """Return demand as a dense tensor of float64, or as a csr_array of SciPy."""
    if hasattr(demand, "tocsr") and demand.ndim == 1:
        demand = demand.toarray()
    is_sparse = isinstance(demand, torch.Tensor) and demand.layout != torch.strided
    if is_sparse and demand.ndim != 2:
        demand = demand.to_dense()
    elif is_sparse:
        from scipy.sparse import coo_array

        dtype = torch.complex128 if demand.is_complex() else torch.float64  # which NumPy has
        entries = demand.detach().to("cpu", dtype).to_sparse(layout=torch.sparse_coo).coalesce()
        places = tuple(entries.indices().numpy())
        demand = coo_array((entries.values().numpy(), places), tuple(demand.shape))
    if not isinstance(demand, torch.Tensor) and hasattr(demand, "tocsr"):
        if demand.dtype.kind in "biuf":
            return demand.tocsr().astype(np.float64)
    else:
        try:
            given = as_vector(demand, "demand")
            is_list = isinstance(given, (list, tuple, Real))
            given = torch.as_tensor(given, dtype=torch.float64) if is_list else given
            given = check_tensor(given, "demand")
            if not given.is_complex():
                return given.detach().to(torch.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            if isinstance(error, InputError) and not isinstance(error, TypeError):
                raise
    raise InputTypeError(
        "`demand` must be numbers, one for each source and target, but "
        f"{shown(demand)} is not; give a tensor (sources, targets)."
    )


def flows(
    graph: SparseGraph,
    starts: torch.Tensor,
    demand: Demand,
    *,
    weighted: bool,
    share: Share = WHOLE,
    report: Callable[[float], None] | None = None,
) -> EdgeFlows:
    """Return the flows of demand from a share of the starts, whose weights are positive but for
    edges on no cycle; those of all shares add up.

    Args:
        starts: 1-D of int64 on the CPU.
        weighted: whether distances are sums of weights; else they are numbers of edges.
        report: receives the fraction done from time to time.
    """
    engines.choose(graph.device)  # which raises if no kernel can run
    n, own = graph.n, share.of(len(starts))
    through, unserved = (torch.zeros(size, dtype=torch.float64) for size in (n, len(starts)))
    if not len(starts):
        return EdgeFlows(torch.zeros(graph.edges, dtype=torch.float64), through, unserved)
    graph, sweeps, distances_from = (_weighted if weighted else _unweighted)(graph, starts)
    graph = graph.to(torch.device("cpu"))
    if sweeps is None:
        step = _VALUES_PER_BLOCK // max(n, demand.per_source)
        loads = torch.zeros(graph.edges, dtype=torch.float64)
        places = graph.by_source.vertices.argsort(stable=True).argsort()
    else:
        step = min(_PAIRS_PER_BLOCK // n, _VALUES_PER_BLOCK // demand.per_source)
        if report is not None or share.size > 1:  # others end before their next block
            step = min(step, max(_LEAST_OF_BAR, len(own) // _BLOCKS_OF_BAR))
        sweeps, tree = sweeps.for_flows(len(own)), sweeps.elimination.tree
        loads = torch.zeros(2 * tree.edges, dtype=torch.float64)
        known = graph.weight_indices if isinstance(graph, PreparedGraph) else None
        places = torch.from_numpy(tree.weight_indices_of(graph) if known is None else known)
    for part in share.parts(len(starts), max(1, step)):
        block, asked = starts[part], demand.block(part)
        if sweeps is None:
            found = _by_rows(graph, block, distances_from(block), asked, demand.rows)
        else:
            found = sweeps.flows(block, asked, demand.rows)
        through += found.through
        loads += found.loads.flatten()
        unserved[part] = found.unserved
        if report is not None:
            report((part.stop - own.start) / len(own))
    return EdgeFlows(loads[places], through, unserved)


DistancesFrom = Callable[[torch.Tensor], torch.Tensor]
"""From sources to the distances from each to all vertices, (sources, n) on the CPU."""


def _unweighted(
    graph: SparseGraph, starts: torch.Tensor
) -> tuple[SparseGraph, Sweeps | None, DistancesFrom]:
    """Return the graph with weights of 1, its sweeps if they take less time, and its distances."""
    ones = torch.ones(graph.edges, dtype=torch.int32, device=graph.device)
    single = SparseGraph(graph.n, graph.by_source).with_weights(ones)
    rows = partial(hops, single, dtype=torch.int32)
    return single, hop_sweeps(graph, len(starts)), lambda block: rows(block).cpu()


def _weighted(
    graph: SparseGraph, starts: torch.Tensor
) -> tuple[SparseGraph, Sweeps | None, DistancesFrom]:
    """Return the graph with weights whose ties are exact where they can be, its sweeps if they take
    less time, and its distances.
    """
    exact, choice = graph.on_grid, "auto"
    if exact is None:
        # By equal sums: elimination adds up the floats of a path in another order.
        exact = sparse_graph(graph, dtype=torch.float64)
        choice = choose(SparseGraph(graph.n, exact.by_source), len(starts), starts)[0]
    plan = plan_sparse(exact, reason="rows in blocks", choice=choice, sources=starts)
    solver = SparseSolver(settle(exact, plan))
    return exact, solver.direct_sweeps, lambda block: solver.solve(block).distances.cpu()


def _by_rows(
    graph: SparseGraph,
    starts: torch.Tensor,
    distances: torch.Tensor,
    demand: torch.Tensor,
    demand_rows: torch.Tensor,
) -> Flows:
    """Return the flows from some sources, over the edges in the order of `by_destination`."""
    from tri_apsp.kernels.cpu.betweenness import (  # with Numba: half a second
        CYCLIC,
        TOO_MANY,
        add_flows,
    )

    n, lists = graph.n, (graph.by_source.arrays(), graph.by_destination.arrays())
    given, asked = distances.numpy(), demand.cpu().T.contiguous().numpy()
    no_path = given.dtype.type(no_edge(distances.dtype))
    lost, faults = np.zeros(len(starts)), np.zeros((len(starts), 1), np.int64)
    tasks = list[CpuTask]()
    for first in range(0, len(starts), _PART):
        part = slice(first, first + _PART)
        own = asked[part] if len(asked) > 1 else asked
        of_part = starts.numpy()[part], given[part], no_path, own, demand_rows.numpy()
        tasks.append((*lists, *of_part, lost[part], faults[first]))
    work = 16 * len(starts) * (graph.edges + n)
    found = run_sums(add_flows, tasks, (n, graph.edges), work)
    if TOO_MANY in faults:
        raise DistanceRangeError(TOO_MANY_PATHS)
    if CYCLIC in faults:
        raise InputError(
            "weights must be large enough for sums of float64 to hold them, but some are lost in a "
            "distance, so that there are infinitely many shortest paths; give integers."
        )
    return Flows(*map(torch.from_numpy, (*found, lost)))
