"""The public functions: documentation, and one call each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import torch

from tri_apsp import calls, planning, updates
from tri_apsp.arguments import Vertices, as_integer, check_flags
from tri_apsp.closures import closure
from tri_apsp.configs import Config
from tri_apsp.dense import packed_graphs
from tri_apsp.dense.exponents import direct_products
from tri_apsp.dense.product import product
from tri_apsp.dense_reachability import reachability_of
from tri_apsp.deprecated import old_options
from tri_apsp.device import DeviceName, Devices, resolve
from tri_apsp.dispatch import needs_operation
from tri_apsp.elimination.prepared import PreparedGraph, ordered
from tri_apsp.elimination.restricted import RestrictedGraph, restricted
from tri_apsp.errors import InputError
from tri_apsp.graphs import EdgeList
from tri_apsp.graphs.sparse import GraphLike, SparseGraph, is_sparse, sparse_graph
from tri_apsp.plan import Checkpoint, NegativeCycles, Options, Plan
from tri_apsp.request import BlockRows, MethodChoice, Place, Request
from tri_apsp.result import NegativeCycle, Result
from tri_apsp.semirings import SemiringName, semiring_of
from tri_apsp.sparse import blocks
from tri_apsp.sparse.betweenness import betweenness, edge_betweenness
from tri_apsp.sparse.blocks import RowBlock
from tri_apsp.sparse.flows import EdgeFlows, edge_flows
from tri_apsp.sparse.hops import hops
from tri_apsp.sparse.measures import (
    accessibility,
    closeness,
    diameter,
    eccentricities,
    mean_distance,
)
from tri_apsp.sparse.pairs import paired_distances, paired_paths
from tri_apsp.sparse.plan import RowMethod
from tri_apsp.sparse.reachability import rows_of_reachability
from tri_apsp.sparse.simple_paths import SimplePath, all_shortest_paths, shortest_simple_paths
from tri_apsp.sparse.skims import Skims, skims
from tri_apsp.updates import Criticality, Updated
from tri_apsp.warm_up import warmup

__all__ = [
    "Checkpoint",
    "Criticality",
    "EdgeFlows",
    "NegativeCycle",
    "Plan",
    "PreparedGraph",
    "RestrictedGraph",
    "Result",
    "RowBlock",
    "SimplePath",
    "Skims",
    "SparseGraph",
    "Updated",
    "accessibility",
    "all_shortest_paths",
    "betweenness",
    "closeness",
    "critical_paths",
    "criticality",
    "diameter",
    "direct_products",
    "distance_blocks",
    "eccentricities",
    "edge_betweenness",
    "edge_flows",
    "hops",
    "mean_distance",
    "min_plus",
    "minimax_paths",
    "most_reliable_paths",
    "nearest",
    "pack",
    "paired_distances",
    "paired_paths",
    "prepare",
    "reachability",
    "select",
    "semiring_product",
    "shortest_paths",
    "shortest_simple_paths",
    "skims",
    "unpack",
    "update",
    "warmup",
    "widest_paths",
]


@old_options(planning.select, "min_only", "overwrite", own="read_values")
def select(
    graph: GraphLike | BlockRows,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    sizes: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    method: MethodChoice = "auto",
    config: Config | None = None,
    limit: float | None = None,
    dtype: torch.dtype | None = None,
    out: Place | Sequence[torch.Tensor] | None = None,
    check: bool = True,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    weight_error: float = 0.0,
    device: Devices | None = None,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    read_values: bool = False,
) -> Plan:
    """Return the plan of `shortest_paths(graph)` without running it: method, engine, configuration,
    reason and memory.

    The rules are in tri_apsp.methods.auto for dense methods, and in tri_apsp.sparse.choice for
    methods of sparse graphs and for the choice between both. Whether a graph stays sparse under
    "elimination" is only known when it runs: `Result.plan` has the method that ran.

    The options `sources`, `targets`, `directed`, `sizes`, `offsets`, `method`, `config`, `limit`,
    `dtype`, `out`, `check`, `predecessors`, `negative_cycles`, `weight_error`, `device`, `memory`
    and `checkpoint` are those of `shortest_paths`. The plan of blocks of rows also says how they
    are solved; its `expected` is the predicted time and its bottleneck, by rates that are measured
    here.

    Args:
        graph: as for `shortest_paths`.
        read_values: read dense weights too: count their edges, and look for a negative one.
            Otherwise dense weights are taken to have many edges and no negative weight, so that the
            plan may differ from the one that runs. From 8192 vertices on, on a GPU of compute
            capability 9.x, the values also decide `Plan.exponents`.

    Returns:
        What `shortest_paths` runs with these options. `Plan.run` runs it again, for other weights.

    Raises:
        ApspError: the errors of `shortest_paths`, except those about values of dense weights, which
            are not checked.

    Cost:
        With `read_values`, a pass over dense weights, and a dense copy of a sparse graph where
        exponents are decided; without it, none for dense weights.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> plan = tri_apsp.select(weights)
        >>> plan.method, plan.engine, plan.memory
        ('floyd_warshall', 'cpu', 72)
        >>> tri_apsp.select(weights, method="johnson").method
        'dijkstra'
    """
    request = Request.of(
        graph,
        sources=sources,
        targets=targets,
        directed=directed,
        sizes=sizes,
        offsets=offsets,
        method=method,
        config=config,
        limit=limit,
        dtype=dtype,
        out=out,
        check=check,
        predecessors=predecessors,
        negative_cycles=negative_cycles,
        weight_error=weight_error,
        device=device,
        memory=memory,
        checkpoint=checkpoint,
    )
    return calls.select(request, read_values=read_values, directed=directed)


@overload
def prepare(
    graph: GraphLike,
    *,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    order: str | Sequence[int] | torch.Tensor = "auto",
) -> PreparedGraph: ...


@overload
def prepare(
    graph: GraphLike,
    *,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    order: str | Sequence[int] | torch.Tensor = "auto",
    through: Vertices | None = None,
    turns: Any = None,
    u_turns: bool = True,
) -> RestrictedGraph: ...


def prepare(
    graph: GraphLike,
    *,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    order: str | Sequence[int] | torch.Tensor = "auto",
    through: Vertices | None = None,
    turns: Any = None,
    u_turns: bool = True,
) -> PreparedGraph | RestrictedGraph:
    """Convert a graph once for many calls of `shortest_paths` and the other functions of sparse
    graphs, and order its vertices for elimination where it has small separators, as road networks,
    grids and meshes have. Rows, tables, pairs and measures then take a small part of the time, also
    with other weights: see `PreparedGraph.with_weights`.

    Args:
        graph: as for `shortest_paths`, without a batch.
        directed: False: each edge counts in both directions.
        dtype: float32, float64, int32 or int64, to convert the weights to; None: that of the graph,
            float32 for bool.
        device: where the edges go, "auto", "cpu", "cuda" or "cuda:N"; None: that of a tensor, else
            the CPU.
        order: "auto": find an order of elimination, unless the graph has no small separators;
            "none"; or all vertices, in the order in which they are eliminated.
        through: (n,) of bool: False for zones, at which paths may begin and end, but which they do
            not pass; two zones that an edge joins still reach each other. None: paths pass through
            all vertices, but of a .tntp file only through those from its <FIRST THRU NODE> on.
        turns: rows of (from, via, to, cost): what a path adds that takes the edge from `from` to
            `via` and then that to `to`; inf forbids it. Others cost nothing. An array, a tensor, a
            list or a DataFrame, (rows, 4), whose vertices count by position. A path may then pass a
            vertex twice, and predecessors are edges: see `Result`. None: no turns.
        u_turns: False: a path must not turn back at once, unless `turns` has a row for it.

    Returns:
        The graph; `n`, `edges`, `dtype` and `device` describe it, and printed it says what it is
        good for. It keeps one edge for each pair of vertices, the lightest, and loops only if they
        are negative. With `through` or `turns` a RestrictedGraph, which `shortest_paths`,
        `nearest`, `paired_distances`, `paired_paths`, `skims`, `accessibility` and `edge_flows`
        take.

    Raises:
        InputError: a graph that breaks a rule of `shortest_paths`; an order that does not name
            each vertex once; a mask of another shape; a turn that the graph lacks.
        DistanceRangeError: a weight that `dtype` cannot hold.
        TooLargeError: the edges, while they are sorted, do not fit the memory.

    Cost:
        A sort of the edges, unless they are sorted; of an order about n log n steps.

    Source:
        Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016.

    Examples:
        >>> import scipy.sparse
        >>> import tri_apsp
        >>> edges = scipy.sparse.coo_array(([3, 1, 2], ([0, 1, 1], [1, 2, 0])), shape=(3, 3))
        >>> graph = tri_apsp.prepare(edges)
        >>> graph.n, graph.edges, graph.dtype
        (3, 3, torch.int64)
        >>> tri_apsp.shortest_paths(graph, sources=0).distances
        tensor([[0, 3, 4]])
    """
    check_flags(directed=directed)
    if isinstance(graph, EdgeList) and graph.through is not None:
        through = graph.through if through is None else through
        graph = replace(graph, through=None)
    found = sparse_graph(graph, dtype=dtype, device=None if device is None else resolve(device))
    if through is not None or turns is not None or u_turns is not True:
        if not isinstance(found, PreparedGraph):
            found = ordered(found if directed else found.both_ways(), "none", directed=directed)
        elif not directed:
            found = found.both_ways()
        return restricted(found, through, turns, order, u_turns=u_turns)
    is_auto = isinstance(order, str) and order == "auto"
    if isinstance(found, PreparedGraph) and found.tree is not None and is_auto:
        return found if directed or not found.directed else found.both_ways()
    return ordered(found if directed else found.both_ways(), order, directed=directed)


def nearest(
    graph: GraphLike,
    sources: Vertices,
    *,
    k: int | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    method: Literal["auto", "johnson"] | RowMethod = "auto",
    limit: float | None = None,
    dtype: torch.dtype | None = None,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    weight_error: float = 0.0,
    device: DeviceName | None = None,
) -> Result:
    """Compute the distance of each vertex from the nearest of some sources, and which source that
    is: `D[0, j] = min over sources i of W*[i, j]`; or from the k nearest.

    Args:
        graph: as for `shortest_paths`, without a batch.
        sources: vertices, such as facilities; of equal ones, one counts.
        k: how many sources to find for each vertex, at least 1; None: one, as a row.
        targets: as for `shortest_paths`.
        directed: as for `shortest_paths`.
        method: "auto", "johnson" or a method of sparse graphs; with `k` "auto", "johnson",
            "dijkstra" or "elimination"; see `shortest_paths`.
        limit: as for `shortest_paths`.
        dtype: as for `shortest_paths`.
        predecessors: as for `shortest_paths`, without `k`.
        negative_cycles: as for `shortest_paths`.
        weight_error: as for `shortest_paths`.
        device: as for `shortest_paths`, one.

    Returns:
        One row: `distances` (1, n), or (1, targets); `Result.nearest` (n,) is the source of each
        vertex, -1 without a path. With `k` k rows, `distances` (k, n) ascending in each column, and
        `Result.nearest` (k, n); where fewer sources have a path, the rest is `no_edge` and -1. For
        the distances to the nearest sources, give `prepare(graph).reversed()`, whose edges lead the
        other way.

    Raises:
        ApspError: the errors of `shortest_paths`; `predecessors`, or another method, with `k`.

    Cost:
        That of a row by a method of sparse graphs, however many sources there are. With `k` up to
        k^2 steps for each edge, or for each filled edge. A row for each source, if k^2 is more than
        16 times their number, or if weights are negative and the graph does not stay sparse while
        its vertices are eliminated.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> result = tri_apsp.nearest(weights, [0, 1])
        >>> result.distances.tolist(), result.nearest.tolist()
        ([[0, 0, 1]], [0, 1, 1])
        >>> tri_apsp.nearest(weights, [0, 1], k=2).nearest.tolist()
        [[0, 1, 1], [1, 0, 0]]
    """
    if k is not None:
        k = as_integer(k, "k", 1)
        if predecessors or method not in ("auto", "johnson", "dijkstra", "elimination"):
            option = "predecessors=True" if predecessors else f"method={method!r}"
            remedy = "call paired_paths" if predecessors else 'give "auto"'
            raise InputError(f"`{option}` does not go with `k`, but is given; {remedy}.")
    request = Request.of(
        graph,
        sources=sources,
        targets=targets,
        directed=directed,
        method=method,
        limit=limit,
        nearest=k or 1,
        dtype=dtype,
        predecessors=predecessors,
        negative_cycles=negative_cycles,
        weight_error=weight_error,
        device=device,
    )
    found = planning.run(request, planning.plan_of(request))
    if k is None:
        assert found.nearest is not None
        found = replace(found, nearest=found.nearest[0])
    return found


def update(
    result: Result,
    graph: GraphLike,
    edges: Any = (),
    weights: Any = (),
    *,
    closed: Vertices | None = None,
    vertices: int | None = None,
    directed: bool | None = None,
    in_place: bool = False,
) -> Updated:
    """Bring the distances of all pairs up to date after some edges got other weights, instead of
    solving again; predecessors too, if the result has them.

    Args:
        result: of `shortest_paths(graph)`, with the distances (n, n) of one graph or (batch, n, n),
            or of an earlier update.
        graph: that was solved, dense or sparse, with the weights before the change, in the dtype of
            the distances.
        edges: (edges, 2), pairs of vertices, each pair once; a pair without an edge gets one. Of a
            batch also (batch, edges, 2): other edges of each graph.
        weights: (edges,), the new weights, of either sign; inf, or `no_edge` of integers, closes an
            edge. Of a batch also (batch, edges).
        closed: vertices all of whose edges close; they stay in the graph.
        vertices: how many vertices the changed graph has, at least n: new ones follow the last, and
            have the edges that `edges` gives them. None: n.
        directed: False: both directions of each edge get the weight. None: as the result was
            solved.
        in_place: write to the distances and predecessors of `result`, and to dense weights, which
            must be symmetric after directed=False; else they are copied. Sparse graphs are not
            changed, so that the next update needs the returned one.

    Returns:
        An `Updated`: `result`, as `shortest_paths` would return it for the changed graph, but for
        other predecessors where several paths are as short; and `graph`, with the new weights, for
        the next update: dense weights as a tensor, others as a SparseGraph; a PreparedGraph keeps
        its order, unless an edge has no place in it, or `vertices` are new. `result.plan.reason`
        says what changed, or why the graph was solved anew.

    Raises:
        NegativeCycleError: the change makes a negative cycle; nothing is changed then.
        DistanceRangeError: a distance does not fit the dtype; nothing is changed then, nor by an
            InputError. After others, and interrupts, what was to change in place is undefined.
        InputError: a result of chosen sources or with a negative cycle; a graph of another size or
            dtype; edges or weights that break a rule; `in_place` with `vertices`. Weights other
            than those that were solved are not noticed.
        TooLargeError: the copies do not fit the memory.

    Cost:
        Of weights that rise, a few steps for each pair all of whose shortest paths use such an
        edge, and each edge to its last vertex; a solve, where these pairs are more than 1/64 of
        all, 1/512 if the graph has an order, or of dense weights 1/2048 on a CPU and 1/8192 on a
        GPU. Of weights that fall, a pass over the distances for each 32 edges, or for all edges at
        one vertex; on a CPU, of a sparse graph, a few steps for each pair that changes; a solve,
        where the edges are many. Without `in_place`, a copy of the matrices and of dense weights.
        If dense weights rise, up to two more copies of these.

    Source:
        Ramalingam, Reps, An Incremental Algorithm for a Generalization of the Shortest-Path
        Problem, 1996.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
        >>> result = tri_apsp.shortest_paths(graph)
        >>> result, graph = tri_apsp.update(result, graph, [(1, 2)], [5])
        >>> result.distances[0].tolist(), result.plan.reason
        ([0, 3, 8], '1 edge raised, 0 lowered')
    """
    return updates.update(
        result,
        graph,
        edges,
        weights,
        closed=() if closed is None else closed,
        vertices=vertices,
        directed=directed,
        in_place=in_place,
    )


def criticality(
    result: Result, graph: GraphLike, edges: Any, *, directed: bool | None = None
) -> Criticality:
    """Return for each of many edges what closing it alone would change: by how much the distances
    of all pairs would grow together, and how many pairs would have no path any more.

    Args:
        result: of `shortest_paths(graph)`, with the distances (n, n) of one graph, or of `update`;
            unchanged.
        graph: that was solved, (n, n) dense or sparse.
        edges: (edges, 2), pairs of vertices, each pair once; all must be edges of the graph.
        directed: False: each edge closes in both directions. None: as the result was solved.

    Returns:
        A `Criticality` of tensors (edges,) on the CPU.

    Raises:
        InputError: a result of chosen sources, of a batch or with a negative cycle; a graph of
            another size or dtype; an edge that the graph does not have.

    Cost:
        For each edge, a few steps for each pair of vertices with a shortest path over it, and two
        reads for each vertex. On a GPU a copy of the distances, and 12 to 16 bytes for each of n^2
        / 64 pairs; on a CPU a copy of the lists of edges.

    Source:
        Ramalingam, Reps, An Incremental Algorithm for a Generalization of the Shortest-Path
        Problem, 1996.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]]))
        >>> result = tri_apsp.shortest_paths(graph)
        >>> tri_apsp.criticality(result, graph, [(1, 2), (0, 2)]).increase.tolist()
        [28.0, 0.0]
    """
    return updates.criticality(result, graph, edges, directed=directed)


@old_options(calls.solve, "min_only", "no_path", "overwrite", own="progress")
def shortest_paths(
    graph: GraphLike | BlockRows,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    sizes: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    method: MethodChoice = "auto",
    config: Config | None = None,
    limit: float | None = None,
    dtype: torch.dtype | None = None,
    out: Place | Sequence[torch.Tensor] | None = None,
    check: bool = True,
    predecessors: bool = False,
    negative_cycles: NegativeCycles = "raise",
    weight_error: float = 0.0,
    device: Devices | None = None,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    progress: bool = False,
) -> Result:
    """Compute the distances `D = W*`: D[i, j] is the weight of the lightest path from i to j.

    The page "Solving" of the reference has each option in detail.

    Args:
        graph: one of

            - dense weights (n, n) or (batch, n, n) of float32, float64, int16, int32 or int64:
              inf, or `no_edge(dtype)` for integers, means no edge, and the diagonal counts as 0
              unless it is negative; or of bool, where True is an edge of weight 1. A NumPy array
              counts as the tensor of its memory;
            - a sparse graph of float32, float64, int32 or int64: a sparse tensor of torch, a sparse
              array of SciPy, or what `prepare` returns;
            - the path of a `.npy` file of dense weights, or blocks of rows on several devices.
        sources: the vertices whose rows are wanted, as a list, a tensor, an array or a column of
            pandas, which counts by position. None: all.
        targets: the vertices whose columns are wanted, with `sources`. None: all.
        directed: False: each edge counts in both directions, the lighter of (i, j) and (j, i).
        sizes: of the graphs of a padded batch, (batch,) of int32 or int64: graph i is the leading
            sizes[i] x sizes[i] block of graph[i]. None: n.
        offsets: of packed graphs, (batch + 1,) of int32 or int64; `graph` is then (total,); see
            `pack`.
        method: "auto"; a dense method: "floyd_warshall", "kleene", "squaring" or
            "rank_one_updates"; a method of sparse graphs: "output_parallel", "input_parallel",
            "frontier", "many_sources", "dijkstra" or "elimination"; or "johnson", the best of
            these. `select` shows what "auto" takes, and why.
        config: engine, tiles and cutoffs to use instead of the tuned or default ones.
        limit: the farthest distance of interest, at least 0, with `sources`; a vertex beyond it
            counts as unreachable.
        dtype: to convert the weights to. None: that of the graph.
        out: a tensor, or a file of distances, for the result; `graph` itself: solve in its memory,
            which holds undefined values after an error. None: a new tensor.
        check: check for invalid values, negative cycles and distances out of range. False: do not
            block until a GPU is done; results for invalid input are undefined.
        predecessors: also find the vertex before the last on a shortest path of each pair.
        negative_cycles: "raise" an error if a source leads to a negative cycle; or "mark" the pairs
            with a walk through one: their distance is minus infinity (`-no_edge(dtype)` for
            integers), and all others are exact.
        weight_error: the largest absolute error of a weight of floats, in its unit: a cycle of k
            edges counts as negative only if it weighs less than rounding and k such errors explain.
        device: where to solve: "auto", "cpu", "cuda", "cuda:1", a list of GPUs, or "all" of them.
            None: where the graph is. The distances are there too, unless `out` is elsewhere.
        memory: the bytes that the solve may take on a device, also as text such as "6GiB"; rows
            that need more are streamed. None: what is free.
        checkpoint: a folder, or a `Checkpoint`, for the state of the solve, from which the same
            call goes on after a kill.
        progress: show a bar on stderr.

    Returns:
        The distances, in the unit of the weights, and the plan that ran. `distances` are `out` if
        that is a tensor. Several devices without `out` keep theirs: see `Result.blocks`.

    Raises:
        InputError: invalid weights, or options that exclude each other. The weights are unchanged,
            also if they are `out`.
        InputTypeError: an argument of another type; also a TypeError.
        NegativeCycleError: a cycle of negative weight; carries its vertices and its weight.
        DistanceRangeError: a distance that is asked for does not fit the dtype.
        TooLargeError: the result does not fit the memory of the device.
        EngineError: the engine that `config` names cannot run here.

    Gradients:
        `distances` are differentiable with respect to dense float weights.

    Cost:
        Dense methods: n^3 min-plus operations for each graph, n^3 / 4 more at most for
        predecessors, and a workspace of at most 5% of the matrix ("squaring": n^3 log2 n, and a
        matrix). Methods of sparse graphs, for each source, with E edges: "dijkstra" E log n,
        "elimination" one operation per edge and its fill-in, others at most E times the edges of
        the longest path.

    Source:
        Katz and Kider, All-Pairs Shortest-Paths for Large Graphs on the GPU, 2008; others are
        on the page "Solving" of the reference.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> inf = float("inf")
        >>> weights = torch.tensor([[0, 3, inf], [inf, 0, -1], [2, inf, 0]])
        >>> result = tri_apsp.shortest_paths(weights, predecessors=True)
        >>> result.distances
        tensor([[ 0.,  3.,  2.],
                [ 1.,  0., -1.],
                [ 2.,  5.,  0.]])
        >>> result.path(1, 0)
        [1, 2, 0]
    """
    is_whole = sources is None and targets is None and limit is None and offsets is None
    is_here = device is None and memory is None and checkpoint is None and dtype is None
    if is_whole and is_here and directed is True and progress is False:
        options = Options(False, check, predecessors, negative_cycles, weight_error)
        result = calls.solve_by_known_plan(graph, sizes, out, method, config, options)
        if result is not None:
            return result
    request = Request.of(
        graph,
        sources=sources,
        targets=targets,
        directed=directed,
        sizes=sizes,
        offsets=offsets,
        method=method,
        config=config,
        limit=limit,
        dtype=dtype,
        out=out,
        check=check,
        predecessors=predecessors,
        negative_cycles=negative_cycles,
        weight_error=weight_error,
        device=device,
        memory=memory,
        checkpoint=checkpoint,
    )
    return calls.solve(request, progress=progress)


@overload
def distance_blocks(
    graph: GraphLike,
    *,
    rows_per_block: int | None = None,
    out: None = None,
    method: Literal["auto"] | RowMethod = "auto",
    negative_cycles: NegativeCycles = "raise",
    dtype: torch.dtype | None = None,
    progress: bool = False,
) -> Iterator[RowBlock]: ...


@overload
def distance_blocks(
    graph: GraphLike,
    *,
    rows_per_block: int | None = None,
    out: str | os.PathLike[str],
    method: Literal["auto"] | RowMethod = "auto",
    negative_cycles: NegativeCycles = "raise",
    dtype: torch.dtype | None = None,
    progress: bool = False,
) -> Path: ...


def distance_blocks(
    graph: GraphLike,
    *,
    rows_per_block: int | None = None,
    out: str | os.PathLike[str] | None = None,
    method: Literal["auto"] | RowMethod = "auto",
    negative_cycles: NegativeCycles = "raise",
    dtype: torch.dtype | None = None,
    progress: bool = False,
) -> Iterator[RowBlock] | Path:
    """Solve all distances of a graph in blocks of rows, which need not fit the memory together:
    yield them, or write them to a file.

    A block is solved when the iterator is asked for it, while those before it are copied from the
    GPU. With `out`, the call returns when the file has all rows.

    Args:
        graph: as for `shortest_paths`, without a batch.
        rows_per_block: rows of a block; None: as many as hold about 33 million distances. In a file
            with rows, those of its blocks count instead.
        out: a `.npy` file, or a `.zarr` folder, whose row s has the distances from vertex s. The
            file NAME.rows beside it holds which blocks are written, and of which graph: the same
            call after an interruption goes on, and after the last row returns at once, with a
            warning. Rows that are not yet written are zeros; in a `.zarr` folder NaN, or the
            smallest number of an integer dtype. None: blocks are yielded.
        method: "auto", or a method of sparse graphs other than "johnson".
        negative_cycles: as for `shortest_paths`.
        dtype: as for `shortest_paths`.
        progress: show a bar on stderr.

    Returns:
        Without `out`, an iterator of RowBlock: `first`, the vertex of the first row, and
        `distances`, (rows, n) on the CPU. With it, its path.

    Raises:
        InputError: as `shortest_paths`; `out` is another file or cannot be written.
        NegativeCycleError: there is a negative cycle.
        DistanceRangeError: as `shortest_paths`, with the block of the first distance that does not
            fit.

    Cost:
        That of all rows by a method of sparse graphs; memory for three blocks, and those that the
        caller keeps. Elimination on a GPU solves several blocks together, in up to 3/8 of the free
        memory.

    Examples:
        >>> import tri_apsp
        >>> graph = tri_apsp.prepare(tri_apsp.graphs.grid_of(100))
        >>> for first, distances in tri_apsp.distance_blocks(graph, rows_per_block=40):
        ...     print(first, tuple(distances.shape))
        0 (40, 100)
        40 (40, 100)
        80 (20, 100)
        >>> print(tri_apsp.distance_blocks(graph, out="distances.npy"))
        distances.npy
    """
    found = blocks.distance_blocks(
        sparse_graph(graph, dtype=dtype),
        rows_per_block=rows_per_block,
        out=out,
        method=method,
        negative_cycles=negative_cycles,
        progress=progress,
    )
    if out is None:
        return found
    for _ in found:
        pass
    return Path(out)


def min_plus(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None, *, check: bool = True
) -> torch.Tensor:
    """Return the min-plus product C: C[i, j] is the minimum over k of a[i, k] + b[k, j], and of
    c[i, j] if `c` is given.

    Args:
        a: (m, k) or (batch, m, k), with any strides; dtypes, devices and `no_edge` as for
            `shortest_paths`.
        b: (k, n) or (batch, k, n), of the same dtype and device.
        c: (m, n) or (batch, m, n) to take the minimum with; unchanged. None: all `no_edge`.
        check: check for invalid values and sums out of range. False: do not block until a GPU is
            done; results for invalid operands are undefined.

    Returns:
        A new contiguous tensor (m, n) or (batch, m, n); `no_edge` where every sum involves
        `no_edge`.

    Raises:
        InputError: shapes, dtypes or devices that do not fit; NaN or minus infinity.
        DistanceRangeError: a sum that a result depends on does not fit the dtype. Integers must be
            less than `no_edge(dtype)`, or less than `no_edge(dtype)` + v if the least value v of a
            and b is negative, so that none is confused with a sum of v and `no_edge`; floats must
            be more than -finfo(dtype).max / 4.
        TooLargeError: the result does not fit the memory of the device.

    Gradients:
        The gradient of an element flows to `c` if the element equals it, else to both weights of
        the first sum that it equals. It has the same bits in every run.

    Cost:
        m n k min-plus operations; for integers whose sums come near `no_edge`, up to twice that.
        Large operands on a GPU are copied to aligned rows if 16 does not divide k or n and memory
        suffices, because such a product is faster. From m, n and k of 4096 on, a GPU of compute
        capability 9.x multiplies non-negative integers of a small range by exponents, if 2 k (m +
        n) bytes of workspace for each product are free; the result is the same.

    Source:
        Buluç, Gilbert, Budak, Gaussian Elimination Based Algorithms on the GPU, section 2.1;
        Malison, Graph Algorithms on Graphical Processing Units, section 5.2.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> a = torch.tensor([[0, 4], [7, 1]])
        >>> b = torch.tensor([[5, 2], [0, 3]])
        >>> tri_apsp.min_plus(a, b)
        tensor([[4, 2],
                [1, 4]])
    """
    return semiring_product(a, b, c, semiring="min_plus", check=check)


@overload
def semiring_product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    semiring: SemiringName,
    return_arguments: Literal[False] = False,
    check: bool = True,
) -> torch.Tensor: ...
@overload
def semiring_product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    semiring: SemiringName,
    return_arguments: Literal[True],
    check: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]: ...
def semiring_product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    semiring: SemiringName,
    return_arguments: bool = False,
    check: bool = True,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return the product C of two matrices over a semiring: C[i, j] is the sum over k of a[i, k] *
    b[k, j], and of c[i, j] if `c` is given, with another addition and multiplication.

    | semiring | sum | product | zero | operands |
    |---|---|---|---|---|
    | "min_plus" | the least | a + b | `no_edge` | as `min_plus` |
    | "max_plus" | the greatest | a + b | `-no_edge` | as `min_plus`, negated |
    | "max_min" | the greatest | the lesser | -inf, the least integer | all but NaN |
    | "min_max" | the least | the greater | inf, the largest integer | all but NaN |
    | "max_times" | the greatest | a b | 0 | finite floats, not negative |
    | "log" | log(exp(x) + exp(y)) | a + b | -inf | floats less than inf |

    Args:
        a: (m, k) or (batch, m, k), with any strides, of float32, float64, int16, int32 or int64, on
            the CPU or a GPU.
        b: (k, n) or (batch, k, n), of the same dtype and device.
        c: (m, n) or (batch, m, n) to add; unchanged. None: all zero of the semiring.
        semiring: one of the table.
        return_arguments: also return which k gave each value; not of "log".
        check: check for invalid values and results out of range. False: do not block until a GPU is
            done; results for invalid operands are undefined.

    Returns:
        A new contiguous tensor (m, n) or (batch, m, n), zero of the semiring where there is no
        other term. With `return_arguments` also one of int64 of that shape: the smallest k of those
        that gave the value; -1 where it is zero of the semiring, and where `c` is equal.

    Raises:
        InputError: shapes, dtypes, devices or values that do not fit.
        DistanceRangeError: a result does not fit the dtype; of sums as for `min_plus`.
        TooLargeError: the result does not fit the memory of the device.

    Gradients:
        The gradient of an element flows to `c` if the element equals it, else to the term of the
        smallest k that it equals: of sums to both values, of products to each times the other, of
        the lesser or the greater to the value that it is, to that of `a` if both are. It has the
        same bits in every run. Of "log" each term has its share of the sum, and the gradient can be
        differentiated again.

    Cost:
        m n k operations of a sum and a product, and a pass over each matrix. See `min_plus`. With
        `return_arguments` 1.2 to 1.4 times that on an NVIDIA GPU; on a CPU a second pass, which
        takes 3 times as long as the product for floats, and up to 12 times for int16. Of "log" a
        matrix product in float64, whose error is a few ulps of the sum, and the sum over k again
        for each result 660 below the maxima of its row of `a` and column of `b`.

    Source:
        Mohri, Semiring Frameworks and Algorithms for Shortest-Distance Problems, 2002.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> a = torch.tensor([[3, 4], [7, 1]])
        >>> b = torch.tensor([[5, 2], [6, 3]])
        >>> tri_apsp.semiring_product(a, b, semiring="max_min")
        tensor([[4, 3],
                [5, 2]])
        >>> tri_apsp.semiring_product(a, b, semiring="max_plus", return_arguments=True)
        (tensor([[10,  7],
                [12,  9]]), tensor([[1, 1],
                [0, 0]]))
    """
    check_flags(return_arguments=return_arguments, check=check)
    over = semiring_of(semiring)
    if needs_operation(a, b, c):
        from tri_apsp import ops

        found = ops.semiring_product(a, b, c, over.name, arguments=return_arguments, check=check)
        return found if return_arguments else found[0]
    result, chosen = product(a, b, c, over, arguments=return_arguments, check=check)
    return result if chosen is None else (result, chosen)


def widest_paths(
    graph: GraphLike,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    predecessors: bool = False,
    device: torch.device | str | None = None,
) -> Result:
    """Compute the widest paths: `D[i, j] = max over paths from i to j of min over their edges of
    w`.

    Args:
        graph: dense weights (n, n) or (batch, n, n), or a sparse graph, in memory and of a dtype
            that `shortest_paths` takes: the widths of the edges, such as capacities or clearances,
            of either sign. No edge is `no_edge(dtype)` (inf) as in all functions; in dense weights
            also -inf, or the least integer. Of parallel edges the widest counts; a `SparseGraph`
            has already dropped all but the least. Loops do not count.
        sources: as for `shortest_paths`.
        targets: as for `shortest_paths`.
        directed: as for `shortest_paths`; False: each edge counts in both directions.
        dtype: as for `shortest_paths`.
        predecessors: as for `shortest_paths`; ties are broken arbitrarily.
        device: as for `shortest_paths`, one.

    Returns:
        A `Result` with `distances` (n, n), (batch, n, n), (sources, n) or (sources, targets), of
        the dtype of the graph and in its unit. A vertex has the width inf, or the largest integer,
        to itself; a pair without a path -inf, or the least integer.

    Raises:
        ApspError: the errors of `shortest_paths`.
        InputError: weights that require a gradient; a call under torch.compile or torch.func.

    Cost:
        - Symmetric weights, but not of batches: a minimum spanning tree, in at most log2 n + 1
          passes over dense weights, or O(m log n) steps on the CPU; then writing the result.
        - Others: n^3 operations and 3 matrices of memory, or from few sources, and along few edges,
          a search by Dijkstra's algorithm on the CPU for each source.
        - `predecessors` are found on the CPU: in the tree; else by one such search for each source,
          in dense weights along the edges (u, v) with w = D[u, v].

    Source:
        Pollack, The Maximum Capacity Through a Network, 1960; Hu, The Maximum Capacity Route
        Problem, 1961, for spanning trees.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> widths = torch.tensor([[torch.inf, 4, 1], [torch.inf, torch.inf, 3], [2, 1, torch.inf]])
        >>> result = tri_apsp.widest_paths(widths, predecessors=True)
        >>> result.distances.tolist(), result.path(0, 2)
        ([[inf, 4.0, 3.0], [2.0, inf, 3.0], [2.0, 2.0, inf]], [0, 1, 2])
    """
    return closure(
        graph,
        "max_min",
        sources=sources,
        targets=targets,
        directed=directed,
        dtype=dtype,
        predecessors=predecessors,
        device=device,
    )


def minimax_paths(
    graph: GraphLike,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    predecessors: bool = False,
    device: torch.device | str | None = None,
) -> Result:
    """Compute the minimax paths: `D[i, j] = min over paths from i to j of max over their edges of
    w`. In an undirected graph that is the height at which single-linkage clustering joins i and j.

    Args:
        graph: as for `widest_paths`, with weights of either sign, such as heights, risks or
            distances of neighbours. No edge is `no_edge(dtype)` (inf); in dense weights also the
            largest integer. Of parallel edges the least counts, and loops do not.
        sources: as for `shortest_paths`.
        targets: as for `shortest_paths`.
        directed: as for `widest_paths`.
        dtype: as for `shortest_paths`.
        predecessors: as for `widest_paths`.
        device: as for `widest_paths`.

    Returns:
        As `widest_paths`. A vertex has the distance -inf, or the least integer, to itself, since
        the path has no edge; `result.distances.fill_diagonal_(0)` if 0 is wanted. A pair without a
        path has inf, or the largest integer.

    Raises:
        ApspError: the errors of `shortest_paths`.
        InputError: weights that require a gradient; a call under torch.compile or torch.func.

    Cost:
        That of `widest_paths`.

    Source:
        Hu, The Maximum Capacity Route Problem, 1961; Gower, Ross, Minimum Spanning Trees and Single
        Linkage Cluster Analysis, 1969.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> heights = torch.tensor([[0, 5, 9], [5, 0, 7], [9, 7, 0]])
        >>> tri_apsp.minimax_paths(heights).distances.fill_diagonal_(0)
        tensor([[0, 5, 7],
                [5, 0, 7],
                [7, 7, 0]])
    """
    return closure(
        graph,
        "min_max",
        sources=sources,
        targets=targets,
        directed=directed,
        dtype=dtype,
        predecessors=predecessors,
        device=device,
    )


def critical_paths(
    graph: GraphLike,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    dtype: torch.dtype | None = None,
    predecessors: bool = False,
    weight_error: float = 0.0,
    device: torch.device | str | None = None,
) -> Result:
    """Compute the longest paths: `D[i, j] = max over paths from i to j of the sum of w`, such as
    the least time between the starts of tasks i and j in a schedule.

    Args:
        graph: as for `widest_paths`, with weights of either sign but no cycle of positive weight:
            an acyclic graph has none. No edge is `no_edge(dtype)` (inf); in dense weights also
            `-no_edge(dtype)`. Of parallel edges the greatest counts; a `SparseGraph` has already
            dropped all but the least, and loops of positive weight. The magnitude of positive
            integers must be less than `no_edge(dtype)` / 4.
        sources: as for `shortest_paths`.
        targets: as for `shortest_paths`.
        dtype: as for `shortest_paths`.
        predecessors: as for `shortest_paths`.
        weight_error: as for `shortest_paths`.
        device: as for `widest_paths`.

    Returns:
        As `widest_paths`. A vertex has the distance 0 to itself; a pair without a path
        `-no_edge(dtype)` (-inf).

    Raises:
        NegativeCycleError: a cycle of positive weight, which it names.
        ApspError: the errors of `shortest_paths`; a call under torch.compile or torch.func.

    Gradients:
        Of dense weights as those of `shortest_paths`.

    Cost:
        That of `shortest_paths` with negative weights.

    Source:
        Kelley, Walker, Critical-Path Planning and Scheduling, 1959.

    Examples:
        >>> import scipy.sparse
        >>> import tri_apsp
        >>> tasks = scipy.sparse.coo_array(([3, 2, 4, 6], ([0, 0, 1, 2], [1, 2, 3, 3])), (4, 4))
        >>> result = tri_apsp.critical_paths(tasks, sources=0, predecessors=True)
        >>> result.distances, result.path(0, 3)
        (tensor([[0, 3, 2, 8]]), [0, 2, 3])
    """
    return closure(
        graph,
        "max_plus",
        sources=sources,
        targets=targets,
        dtype=dtype,
        predecessors=predecessors,
        weight_error=weight_error,
        device=device,
    )


def most_reliable_paths(
    graph: GraphLike,
    *,
    sources: Vertices | None = None,
    targets: Vertices | None = None,
    directed: bool = True,
    dtype: torch.dtype | None = None,
    predecessors: bool = False,
    device: torch.device | str | None = None,
) -> Result:
    """Compute the most reliable paths: `D[i, j] = max over paths from i to j of the product of w`,
    such as the probability that all edges of a path work.

    Args:
        graph: as for `widest_paths`, of float32 or float64, with weights that are not negative,
            such as probabilities; above 1 they are gains, and no cycle may have a product above 1.
            No edge is 0, or inf. Of parallel edges the greatest counts; a `SparseGraph` has already
            dropped all but the least.
        sources: as for `shortest_paths`.
        targets: as for `shortest_paths`.
        directed: as for `widest_paths`.
        dtype: as for `shortest_paths`.
        predecessors: as for `widest_paths`.
        device: as for `widest_paths`.

    Returns:
        As `widest_paths`. A vertex has 1 to itself; a pair without a path has 0, as has one whose
        product is less than any number of the dtype.

    Raises:
        NegativeCycleError: a cycle whose product is above 1 by more than the rounding of its
            weights explains; it is named.
        DistanceRangeError: a product is larger than the dtype holds.
        InputError: weights of integers or below 0.
        ApspError: the errors of `shortest_paths`; a call under torch.compile or torch.func.

    Gradients:
        Of dense weights as those of `shortest_paths`; 0 of no edge.

    Cost:
        That of `shortest_paths` in float64, and the memory of about 4 matrices of float64:
        logarithms are added. The relative error of the product of k weights is about (k + the sum
        of |log w|) 2^-53; float32 adds 2^-24.

    Source:
        Mohri, Semiring Frameworks and Algorithms for Shortest-Distance Problems, 2002.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> works = torch.tensor([[1, 0.5, 0.125], [0, 1, 0.5], [0, 0, 1]])
        >>> result = tri_apsp.most_reliable_paths(works, predecessors=True)
        >>> result.distances.tolist(), result.path(0, 2)
        ([[1.0, 0.5, 0.25], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]], [0, 1, 2])
    """
    return closure(
        graph,
        "max_times",
        sources=sources,
        targets=targets,
        directed=directed,
        dtype=dtype,
        predecessors=predecessors,
        device=device,
    )


def reachability(adjacency: GraphLike, *, sources: Vertices | None = None) -> torch.Tensor:
    """Compute the reflexive transitive closure: R[i, j] is True if a path of any number of edges
    leads from i to j.

    Args:
        adjacency: a dense adjacency or a sparse graph; unchanged.

            - Dense: (n, n) or (batch, n, n), on the CPU or a CUDA device, with any strides.
              adjacency[i, j] states whether there is an edge from i to j: in bool, True is an edge;
              in uint8, int8, int16, int32 and int64, any value but 0. The diagonal is ignored, but
              must hold valid values. Of weights, give `weights != tri_apsp.no_edge(dtype)`.
            - Sparse graph, as `shortest_paths` takes it: stored entries are edges, except inf, and
              `no_edge(dtype)` in integers.
        sources: the vertices whose rows are wanted, as for `shortest_paths`, of one graph. None:
            all.

    Returns:
        A new contiguous tensor of bool on the device of `adjacency`, (n, n), (batch, n, n) or
        (len(sources), n). Each vertex reaches itself.

    Raises:
        InputError: adjacencies that are not square dense tensors of these dtypes, or sparse graphs;
            integers whose largest value is `no_edge(dtype)`, as in weights; sources out of range,
            or of a batch.
        TooLargeError: the result, and a bit for each of its elements, do not fit the memory of the
            device.
        EngineError: the device is a GPU, but Triton is not installed.

    Cost:
        Of a sparse graph, or of chosen sources: a breadth-first search for each 64 of them.

        Of dense adjacencies: n^3 Boolean operations per graph, 32 or 64 in one instruction; as
        workspace n^2 bits, with n rounded up to a multiple of 128. On compute capability 9.x, from
        n = 5505 on, large products run on tensor cores, which count paths; the workspace for that,
        n^2 / 2 bytes, is free again before the result is allocated. The call blocks until a GPU has
        read the values of int16, int32 and int64; else it does not.

    Source:
        Warshall, A Theorem on Boolean Matrices, 1962; the recursion: Buluç, Gilbert, Budak,
        Gaussian Elimination Based Algorithms on the GPU, section 2.2.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> adjacency = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
        >>> tri_apsp.reachability(adjacency)
        tensor([[ True,  True,  True],
                [False,  True,  True],
                [False, False,  True]])
    """
    if is_sparse(adjacency) or sources is not None:
        return rows_of_reachability(adjacency, sources)
    if isinstance(adjacency, torch.Tensor) and needs_operation(adjacency):
        from tri_apsp import ops

        return ops.reachability(adjacency)
    return reachability_of(adjacency)


def pack(matrices: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the graphs of a padded batch one after another, without padding.

    Args:
        matrices: (batch, n, n) of any dtype, such as weights, distances or predecessors; graph g is
            matrices[g, :s, :s] with s = sizes[g].
        sizes: (batch,) of int64 or int32, each in [0, n].

    Returns:
        Two tensors:

        - `values`, (total,): the sizes[g]^2 values of each graph in row order; differentiable by
          `matrices`.
        - `offsets`, (batch + 1,) of int64, on the device of `matrices`: graph g begins at
          offsets[g].

    Raises:
        InputError: other shapes, dtypes or sizes.
        TooLargeError: the values do not fit the memory of the device.
        EngineError: the device is a GPU, but Triton is not installed.

    Cost:
        A copy; the host blocks until it has the sizes.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> matrices = torch.tensor([[[0, 7], [9, 9]], [[0, 4], [5, 0]]])
        >>> values, offsets = tri_apsp.pack(matrices, torch.tensor([1, 2]))
        >>> values.tolist(), offsets.tolist()
        ([0, 0, 4, 5, 0], [0, 1, 5])
    """
    if needs_operation(matrices):
        from tri_apsp import ops

        return ops.pack(matrices, sizes)
    return packed_graphs.pack(matrices, sizes)


def unpack(
    values: torch.Tensor, offsets: torch.Tensor, *, fill: float | int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the graphs of a packed tensor as a padded batch, and their sizes: the inverse of
    `pack`.

    Args:
        values: (total,) of any dtype.
        offsets: (batch + 1,) of int64 or int32, as `shortest_paths` takes them.
        fill: the value of padding; None: `no_edge(dtype)`. For predecessors, give -1.

    Returns:
        Two tensors:

        - `matrices`, (batch, n, n), n being the vertices of the largest graph; differentiable by
          `values`.
        - `sizes`, (batch,) of int64, on the device of the values.

    Raises:
        InputError: as `shortest_paths` for `offsets`; a `fill` that the dtype cannot hold, or none
            for a dtype without `no_edge`.
        TooLargeError: the matrices do not fit the memory of the device.
        EngineError: the device is a GPU, but Triton is not installed.

    Cost:
        A copy; the host blocks until it has the offsets.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> values, offsets = torch.tensor([0, 0, 4, 5, 0]), torch.tensor([0, 1, 5])
        >>> matrices, sizes = tri_apsp.unpack(values, offsets, fill=-1)
        >>> matrices.tolist(), sizes.tolist()
        ([[[0, -1], [-1, -1]], [[0, 4], [5, 0]]], [1, 2])
    """
    if needs_operation(values):
        from tri_apsp import ops

        return ops.unpack(values, offsets, fill)
    return packed_graphs.unpack(values, offsets, fill=fill)
