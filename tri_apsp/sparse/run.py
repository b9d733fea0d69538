"""A sparse plan carried out: potentials where weights are negative, then a row method."""

import dataclasses
from collections.abc import Callable

import torch

from tri_apsp.device import synchronize
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.memory import memory_for
from tri_apsp.messages import counted
from tri_apsp.result import Result
from tri_apsp.semirings import minus_infinity, no_edge
from tri_apsp.sparse.plan import SparsePlan
from tri_apsp.sparse.solve import SparseSolver

# Sources that are solved at a time, of all.
_ROWS = 1024


def run(
    graph: SparseGraph, plan: SparsePlan, *, progress: Callable[[float], None] | None = None
) -> Result:
    """Return the rows of the distances that a plan names, and their predecessors if wanted.

    Distances of integers are exact. Weights of floats are added up along a path from its source on,
    but by "elimination" in another order. Where some are negative, each distance is a sum of
    weights that were rounded once with potentials, minus the potentials, in float64, rounded once
    more.

    Raises:
        As shortest_paths.

    Cost: with E edges and r rounds, at most the largest number of edges of a shortest path: E r
    operations per source; "frontier" and "many_sources" mostly far fewer; "dijkstra" E log n;
    "elimination" one per edge and its fill-in, about 4 E for roads. Graphs with negative weights
    take a search by Bellman-Ford first.

    Source: Johnson, Efficient Algorithms for Shortest Paths in Sparse Networks, 1977; Malison,
    Optimizing Shortest Path Algorithms for Parallel Architectures, chapter 6.
    """
    if plan.min_only:
        return _from_nearest(graph, plan)
    return _all_rows(graph, plan, progress) if plan.sources is None else _some_rows(graph, plan)


def _some_rows(graph: SparseGraph, plan: SparsePlan) -> Result:
    assert plan.sources is not None
    solver = SparseSolver(graph, plan.choice, plan.options.negative_cycles)
    wanted = plan.options.predecessors
    solved = solver.solve(plan.sources, limit=plan.limit, predecessors=wanted)
    ran = dataclasses.replace(plan, method=solved.method, engine=solved.engine)
    cycle = solved.negative_cycle
    return Result(solved.distances, ran, solved.predecessors, cycle, plan.sources)


def _from_nearest(graph: SparseGraph, plan: SparsePlan) -> Result:
    """Solve from a further vertex with an edge of weight 0 to each source.

    Its paths are a tree, in which each vertex is below one source also where several are equally
    near.
    """
    assert plan.sources is not None
    n, vertices = graph.n, torch.unique(plan.sources)
    further = dataclasses.replace(plan, sources=torch.tensor([n]), min_only=False)
    result = _some_rows(graph.with_source(vertices), further)
    distances, pred = result.distances[:, :n].contiguous(), result.predecessors
    nearest = None
    if pred is not None:
        pred = pred[:, :n].contiguous()
        pred.masked_fill_(pred == n, -1)
        nearest = _nearest(pred[0], distances[0])
    return dataclasses.replace(
        result, distances=distances, predecessors=pred, sources=vertices, nearest=nearest
    )


def _all_rows(
    graph: SparseGraph, plan: SparsePlan, progress: Callable[[float], None] | None
) -> Result:
    n, wanted = graph.n, plan.options.predecessors
    what = f"all distances of {counted(n, 'vertex', 'vertices')}"
    with memory_for(what, plan.memory, graph.device, "solve blocks of rows with distance_blocks"):
        distances = torch.empty(n, n, dtype=graph.dtype, device=graph.device)
        pred = torch.empty(n, n, dtype=torch.int32, device=graph.device) if wanted else None
    solver = SparseSolver(graph, plan.choice, plan.options.negative_cycles)
    ran, cycle = plan, None
    for rows, block in solver.blocks(_ROWS, predecessors=wanted):
        distances[rows] = block.distances
        if pred is not None:
            assert block.predecessors is not None
            pred[rows] = block.predecessors
        cycle = cycle or block.negative_cycle
        ran = dataclasses.replace(plan, method=block.method, engine=block.engine)
        if progress is not None:
            synchronize(graph.device)
            progress(rows.stop / n)
    return Result(distances, ran, pred, cycle)


def _nearest(predecessors: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """Return the source to which the predecessors (n,) of each vertex lead, by doubling; -1 without
    a path.
    """
    vertices = torch.arange(len(predecessors), device=predecessors.device)
    before = torch.where(predecessors < 0, vertices, predecessors.long())
    while bool((before != (further := before[before])).any()):
        before = further
    none = (distances == no_edge(distances.dtype)) | (distances == minus_infinity(distances.dtype))
    return before.masked_fill_(none, -1)
