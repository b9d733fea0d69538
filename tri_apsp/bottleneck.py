"""Paths whose greatest weight is least: where edges count in both directions, by a minimum spanning
tree; of all vertices, by the methods of dense weights with the greater of two values in place of
the sum; from few vertices, by Dijkstra's algorithm with the same change.

Weights are encoded, see closures: less is better, and no_edge is no edge. In the result `none`,
more than any weight, is a pair without a path, and `least`, less than any, a vertex and itself.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import as_batch
from tri_apsp.dense.plan import plan_dense
from tri_apsp.device import current
from tri_apsp.engines import MatrixSpec
from tri_apsp.engines.cpu_tasks import Array, CpuTask, run_tasks, thread_count
from tri_apsp.gpu.launcher import cached_launcher, compiling_side_by_side
from tri_apsp.graphs.sparse import SparseGraph, canonical, components_of
from tri_apsp.memory import check_memory, fits_memory, memory_for, require_memory
from tri_apsp.methods import Observer
from tri_apsp.plan import Plan
from tri_apsp.planning import count_edges
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import DTYPES_BY_NAME, SEMIRINGS, no_edge

# Rows of a task on the CPU, and weights that are read at once.
_ROWS_PER_TASK, _WEIGHTS_PER_BLOCK = 16, 1 << 26
# Kernels read rows of multiples of this faster.
_ALIGNED = 16
# The cost of Dijkstra's algorithm for each edge and each vertex, in operations of a dense solve: on
# the same threads of a CPU; on a GPU, times the threads of its host. Seconds for all rows, by edges
# at each vertex, and of a dense solve:
#     two cores, n = 4096                  2: 1.3   8: 2.9   64: 3.2   512: 20   dense: 2.1
#     an H200 with 16 cores, n = 16384              8: 3.7   64: 7.4             dense: 0.42
_STEPS, _STEPS_ON_GPU = (64, 512), (40_000, 2_000_000)

TREE_CONSTANTS = {"ROWS": 64, "BLOCK": 2048, "num_warps": 8}
"""The constants of the kernel that writes all rows of a tree."""

Rows = tuple[torch.Tensor, torch.Tensor | None]
"""Encoded values (rows, n), and predecessors if they are wanted."""


def solve(request: Request) -> Result:
    """Return the best values of paths of encoded weights, and their predecessors."""
    graph = request.graph
    if graph is None and not request.is_batch:
        weights = request.as_batch().weights[0]
        trees = nearest_edges(weights) if _is_symmetric(weights) else None
    else:
        trees = graph if graph is not None and _is_symmetric_graph(graph) else None
    remedy = "give fewer graphs at a time" if request.is_batch else "give fewer `sources`"
    with memory_for("the result", _size_of_result(request), request.device, remedy):
        if trees is not None:
            result = _by_trees(request, trees)
        elif request.is_batch or _prefers_dense(request):
            result = _by_blocks(request)
        else:
            plan = _plan(request, "dijkstra", "cpu", "for chosen rows or few edges")
            result = _placed(request, plan, _by_dijkstra(request, request.by_edges))
    targets, distances = request.targets, result.distances
    return dataclasses.replace(
        result,
        distances=distances if targets is None else distances[:, targets.to(distances.device)],
        sources=request.sources,
        targets=targets,
        labels=request.labels,
        edge_lists=None if graph is None else graph.by_source,
    )


def reverse(values: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return values in the reverse order; of integers without overflow."""
    if values.is_floating_point():
        return torch.neg(values, out=out).add_(0)  # -0.0 becomes 0.0
    return torch.bitwise_not(values, out=out)


def _ends(dtype: torch.dtype) -> tuple[float | int, float | int]:
    """Return `least` and `none`."""
    return SEMIRINGS["max_min"].zero(dtype), SEMIRINGS["min_max"].zero(dtype)


def _row_parts(rows: int, width: int) -> list[slice]:
    """Return the rows of a matrix whose weights are read at once."""
    step = max(1, _WEIGHTS_PER_BLOCK // max(1, width))
    return [slice(first, min(first + step, rows)) for first in range(0, rows, step)]


def _is_symmetric(weights: torch.Tensor) -> bool:
    parts = _row_parts(*weights.shape)
    return all(torch.equal(weights[part], weights[:, part].mT) for part in parts)


def _is_symmetric_graph(graph: SparseGraph) -> bool:
    there, back = graph.by_source, graph.by_destination
    return all(
        torch.equal(getattr(there, name), getattr(back, name))
        for name in ("offsets", "vertices", "weights")
    )


def _prefers_dense(request: Request) -> bool:
    """Return whether a dense solve, which has all rows, takes less time than Dijkstra's algorithm
    for those that are wanted.
    """
    n, dtype, device = request.n, request.dtype, request.device
    if not fits_memory(2 * n * n * dtype.itemsize, device):
        return False
    per_edge, per_vertex = _STEPS
    if device.type != "cpu":
        per_edge, per_vertex = (steps // thread_count() for steps in _STEPS_ON_GPU)
    most = (n**3 / max(1, request.rows) - per_vertex * n) / per_edge
    edges = count_edges(request.as_batch(), most) if request.graph is None else request.graph.edges
    return edges is None or edges > most


def _size_of_result(request: Request) -> int:
    """Return the bytes of the values to all vertices, and of the predecessors if wanted."""
    itemsize = request.dtype.itemsize + torch.int32.itemsize * request.options.predecessors
    return math.prod(request.shape[:-1]) * request.n * itemsize


def _plan(request: Request, method: str, engine: str, reason: str) -> Plan:
    return Plan(
        way="sparse",
        method=method,
        engine=engine,
        config=None,
        reason=reason,
        memory=_size_of_result(request),
    )


def _placed(request: Request, plan: Plan, rows: Rows) -> Result:
    found, predecessors = rows
    if predecessors is not None:
        predecessors = predecessors.to(request.device)
    return Result(found.to(request.device), plan, predecessors)


# --- By spanning trees


class SpanningTrees(NamedTuple):
    """Minimum spanning trees of the components of a graph, see kernels.cpu.bottleneck.prim."""

    order: Array
    heights: Array
    parents: Array

    @property
    def places(self) -> Array:
        """The place of each vertex in the order."""
        return self.order.argsort().astype(np.int32)


def spanning_trees(graph: SparseGraph, dtype: torch.dtype) -> SpanningTrees:
    """Return those of a graph with edges in both directions, with heights in a dtype that holds its
    weights.
    """
    from tri_apsp.kernels.cpu.bottleneck import prim  # which imports Numba

    lists = graph.by_source.arrays()
    order, parents = np.empty((2, graph.n), np.int32)
    heights = np.empty(graph.n, lists[2].dtype)
    prim(*lists, heights.dtype.type(_ends(graph.dtype)[1]), order, heights, parents)
    return SpanningTrees(order, _in_dtype(torch.from_numpy(heights), dtype).numpy(), parents)


def _in_dtype(found: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return values in the dtype of the weights, of which int16 are solved in int32."""
    return found if found.dtype == dtype else found.clamp(*_ends(dtype)).to(dtype)


def nearest_edges(weights: torch.Tensor) -> SparseGraph:
    """Return edges of a symmetric matrix (n, n), in both directions, that contain minimum spanning
    trees: those by which Borůvka's algorithm joins each component to the nearest other one.

    Cost: at most log2 n + 1 passes over the matrix.
    """
    n, device, none = len(weights), weights.device, no_edge(weights.dtype)
    component = vertices = torch.arange(n, device=device)
    ends, values = [vertices.new_empty(2, 0)], [weights.new_empty(0)]
    while n:
        rows = (
            weights[part].masked_fill(component[part, None] == component, none).min(1)
            for part in _row_parts(n, n)
        )
        least, nearest = (torch.cat(x) for x in zip(*rows, strict=True))
        # The first of the rows with the least weight of each component: of several edges from one,
        # the second may be heavier than others between the components that it joins.
        first = _least_of_each(component, least)
        first = _least_of_each(component, vertices.masked_fill(least != first, n))
        chosen = (least < none) & (vertices == first)
        if not bool(chosen.any()):
            break
        ends.append(torch.stack((vertices[chosen], nearest[chosen])))
        values.append(least[chosen])
        tails, heads = component[ends[-1]].cpu()
        joins = canonical(n, tails, heads, torch.ones(len(tails)))
        component = torch.from_numpy(components_of(joins, "weak")).to(device)[component]
    (tails, heads), found = torch.cat(ends, 1).cpu(), _wide(torch.cat(values))
    return canonical(n, torch.cat((tails, heads)), torch.cat((heads, tails)), found.repeat(2))


def _least_of_each(component: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return for each vertex the least value (n,) of its component."""
    least = values.clone().scatter_reduce_(0, component, values, "amin", include_self=False)
    return least[component]


def _wide(values: torch.Tensor) -> torch.Tensor:
    """Return weights of dense ones on the CPU, in a dtype of sparse graphs."""
    return (values.int() if values.dtype == torch.int16 else values).cpu()


def _by_trees(request: Request, graph: SparseGraph) -> Result:
    trees = spanning_trees(graph.to(torch.device("cpu")), request.dtype)
    on_cpu = request.device.type == "cpu" or request.sources is not None
    on_cpu |= request.options.predecessors
    plan = _plan(request, "spanning_tree", "cpu" if on_cpu else "portable", "an undirected graph")
    if not on_cpu:
        return Result(all_tree_rows(trees, request.device), plan)
    arrays = trees.order, trees.places, trees.heights, trees.parents
    return _placed(request, plan, _rows(request, "tree_rows", *arrays, edges=0))


def all_tree_rows(trees: SpanningTrees, device: torch.device) -> torch.Tensor:
    """Return the values (n, n) of spanning trees on a GPU.

    Cost: little more than writing them.
    """
    from tri_apsp.kernels.shared.spanning_tree import _tree_kernel  # which needs Triton

    order, place, heights = (
        torch.from_numpy(x).to(device) for x in (trees.order, trees.places, trees.heights)
    )
    n, rows, least = len(order), TREE_CONSTANTS["ROWS"], _ends(heights.dtype)[0]
    out = heights.new_empty(n, n)
    if not n:
        return out
    # The last block is filled up by the last vertex.
    filled = torch.nn.functional.pad(heights, (0, -n % rows), value=least).view(-1, rows)
    blocks, local = len(filled), torch.arange(rows, device=device)
    # inner[block, p, q] is the greatest height after p up to q.
    inner = filled[:, None].masked_fill(local[:, None] >= local, least).cummax(2).values
    before, after = inner[:, 0].contiguous(), inner[:, :, -1].contiguous()
    # between[b, c] is the greatest height after block b up to the first place of block c.
    firsts, number = filled[:, 0], torch.arange(blocks, device=device)
    whole = torch.maximum(firsts, before[:, -1])
    between = whole.masked_fill(number[:, None] >= number, least).cummax(1).values
    between = torch.maximum(between.roll(1, 1), firsts)
    between.masked_fill_(number[:, None] >= number, least)
    between = torch.maximum(between, between.mT)
    launch = cached_launcher(_tree_kernel, **TREE_CONSTANTS)
    grid = blocks, -(-n // TREE_CONSTANTS["BLOCK"]), 1
    with current(device):
        launch(grid, out, order, place, before, after, between, n, blocks)
    vertices = order[torch.arange(blocks * rows, device=device).clamp_(max=n - 1)].long()
    vertices = vertices.view(-1, rows)
    out[vertices[:, :, None], vertices[:, None, :]] = torch.maximum(inner, inner.mT)
    return out


# --- By blocks of dense weights


def _by_blocks(request: Request) -> Result:
    """Solve all rows, by integers in the order of the weights."""
    values, n = request.as_batch().weights, request.n
    least, none = _ends(values.dtype)
    # The weights are the copy that was encoded.
    values.masked_fill_(values == no_edge(values.dtype), none)
    values.diagonal(dim1=1, dim2=2).fill_(least)
    ranks = SEMIRINGS["min_max"]
    kind = ranks.encode(values[:0]).dtype
    kind = torch.int32 if kind == torch.int16 else kind  # whose closures take sums alone
    m = n + -n % _ALIGNED
    check_memory(n, len(values), values.dtype, values.device, matrices=2)
    keys = torch.full((len(values), m, m), torch.iinfo(kind).max, dtype=kind, device=values.device)
    parts = _row_parts(n, n * len(values))
    for part in parts:
        keys[:, part, :n] = ranks.encode(values[:, part])
    plan = dataclasses.replace(plan_dense(as_batch(keys)), way="dense", nonnegative=False)
    spec = MatrixSpec(m, kind, keys.device, False, operation="max")
    engine = engines.make(spec, plan.config)
    with current(request.device):
        if keys.is_cuda:
            with compiling_side_by_side():
                plan.implementation.solve(torch.empty_like(keys, device="meta"), engine, Observer())
        plan.implementation.solve(keys, engine, Observer())
    found, predecessors = torch.empty_like(values), None
    for part in parts:
        found[:, part] = _in_dtype(ranks.decode(keys[:, part, :n], values.dtype), values.dtype)
    del keys
    if request.options.predecessors:
        pairs = zip(values, found, strict=True)
        predecessors = torch.stack([_tight_predecessors(request, *pair) for pair in pairs])
    if not request.is_batch:
        found = found[0] if request.sources is None else found[0, request.sources.to(found.device)]
        predecessors = None if predecessors is None else predecessors[0]
    return _placed(request, plan, (found, predecessors))


def _tight_predecessors(
    request: Request, weights: torch.Tensor, found: torch.Tensor
) -> torch.Tensor:
    """Return the predecessors of the paths of the best values (n, n). Edges whose weight is the
    best value suffice: a path of better edges takes the place of any other.
    """
    n, (_, none) = len(weights), _ends(weights.dtype)
    tails, heads = ((weights == found) & (weights != none)).nonzero().unbind(1)
    graph = canonical(n, tails.cpu(), heads.cpu(), _wide(weights[tails, heads]))
    predecessors = _by_dijkstra(request, graph)[1]
    assert predecessors is not None
    return predecessors


# --- By rows


def _by_dijkstra(request: Request, graph: SparseGraph) -> Rows:
    lists = graph.to(torch.device("cpu")).by_source.arrays()
    return _rows(request, "bottleneck", *lists, edges=graph.edges)


def _rows(request: Request, kernel: str, *arrays: Array, edges: int) -> Rows:
    """Return the rows of the sources by a kernel of kernels.cpu.bottleneck; the third of the arrays
    are weights.
    """
    from tri_apsp.kernels.cpu import bottleneck as kernels  # which imports Numba

    n, own, wanted = request.n, arrays[2].dtype, request.options.predecessors
    starts = np.arange(n) if request.sources is None else request.sources.numpy()
    ends = [own.type(end) for end in _ends(DTYPES_BY_NAME[own.name])]
    size = len(starts) * n * (own.itemsize + 4 * wanted)
    require_memory("the rows on the host", size, torch.device("cpu"), "give fewer `sources`")
    d = np.empty((len(starts), n), own)
    predecessors = np.empty(d.shape if wanted else (0, 0), np.int32)
    parts = [slice(i, i + _ROWS_PER_TASK) for i in range(0, len(d), _ROWS_PER_TASK)]
    tasks: list[CpuTask] = [
        (*arrays, starts[part], *ends, d[part], predecessors[part]) for part in parts
    ]
    run_tasks(getattr(kernels, kernel), tasks, 4 * len(d) * (edges + n), thread_count())
    found = _in_dtype(torch.from_numpy(d), request.dtype)
    return found, torch.from_numpy(predecessors) if wanted else None
