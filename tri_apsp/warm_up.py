"""Compiling and loading what solves need before the first of them, as servers do."""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, SupportsIndex

import torch

from tri_apsp import planning
from tri_apsp.arguments import as_integer, check_flags
from tri_apsp.dense.run import solve
from tri_apsp.device import resolve
from tri_apsp.elimination.prepared import ordered
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import EdgeList, sparse_graph
from tri_apsp.graphs.generators import erdos_renyi, grid_of
from tri_apsp.memory import check_memory
from tri_apsp.messages import shown
from tri_apsp.plan import Options
from tri_apsp.request import Request
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.betweenness import betweenness
from tri_apsp.sparse.hops import UNREACHABLE, hops
from tri_apsp.sparse.measures import accessibility, closeness, diameter, eccentricities
from tri_apsp.sparse.pairs import paired_distances, paired_paths
from tri_apsp.sparse.reachability import reachable

# Triton compiles in part without the interpreter's lock.
_THREADS = 4
# Vertices of the sparse graphs: a grid of as many has an order of elimination and long paths.
_GRID = 400


def warmup(
    dtypes: torch.dtype | Iterable[torch.dtype] = torch.float32,
    sizes: int | Iterable[int | tuple[int, int]] = 256,
    *,
    device: str | torch.device = "auto",
    predecessors: bool = False,
    prepared: bool = False,
) -> None:
    """Compile and load what `shortest_paths` needs, and with `prepared` what sparse graphs need, so
    that its first call takes as long as later ones.

    Each graph is solved as it is and with a negative weight, since other kernels may solve it then;
    batches also with `sizes`. Calls with check=False, and gradients, compile kernels of their own
    at their first call.

    Args:
        dtypes: one or several of the weights: float32, float64, int16, int32, int64.
        sizes: one or several: the vertices n of later weights (n, n), or (batch, n) for weights
            (batch, n, n). Kernels for other sizes are mostly the same, above all if 16 divides both
            or neither.
        device: "auto", which is a GPU if there is one, "cpu", "cuda" or "cuda:1".
        predecessors: also those of `shortest_paths(..., predecessors=True)`.
        prepared: also what `prepare` needs, and then rows, tables, pairs, nearest sources, measures
            and `hops` of sparse graphs with and without an order of elimination; int32 for int16.

    Raises:
        InputError: another dtype, size or device.
        TooLargeError: a solve does not fit the memory of the device.

    Cost:
        Compiling takes seconds for each dtype and sign on a GPU, unless an earlier process of this
        user has done so; then two solves per size, three for a batch. With `prepared`, Numba
        compiles for one to two minutes per dtype.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> tri_apsp.warmup([torch.float32, torch.int32], [100, (8, 32)], device="cpu")
    """
    check_flags(predecessors=predecessors, prepared=prepared)
    given_dtypes = [dtypes] if isinstance(dtypes, torch.dtype) else _list(dtypes, "dtypes")
    for dtype in given_dtypes:
        no_edge(dtype)  # refuses others
    is_one = isinstance(sizes, SupportsIndex) and not getattr(sizes, "ndim", 0)
    shapes = [_shape(size) for size in ([sizes] if is_one else _list(sizes, "sizes"))]
    found = resolve(device)
    solves: list[Callable[[], None]] = [
        partial(_solve, shape, dtype, found, predecessors)
        for dtype in given_dtypes
        for shape in shapes
    ]
    if prepared:
        sparse = {torch.int32 if dtype == torch.int16 else dtype for dtype in given_dtypes}
        solves += [partial(_solve_sparse, dtype, found, predecessors) for dtype in sparse]
    if found.type == "cpu":  # Numba compiles one kernel at a time
        for solve_this in solves:
            solve_this()
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        # An error or an interrupt leaves out what has not begun.
        list(threads.map(lambda solve_this: solve_this(), solves))


def _solve(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, predecessors: bool
) -> None:
    check_memory(shape[-1], math.prod(shape[:-2]), dtype, device, matrices=2)
    weights = torch.full(shape, 2, dtype=dtype, device=device)
    solve_this = partial(solve, weights, options=Options(predecessors=predecessors))
    solve_this()
    if len(shape) == 3:
        solve_this(sizes=torch.full(shape[:1], shape[-1], device=device))
    if shape[-1] > 1 and shape[0]:
        weights[..., 0, -1] = -1
        solve_this()


def _solve_sparse(dtype: torch.dtype, device: torch.device, predecessors: bool) -> None:
    """Call what solves a graph with an order of elimination and long paths, one without an order,
    with short paths and a vertex without edges, and one of many edges, which is solved as a dense
    one.
    """
    _solve((_GRID, _GRID), dtype, device, predecessors)
    grid, network = grid_of(_GRID), erdos_renyi(_GRID, 4 / _GRID)
    few, many = range(0, 8), range(_GRID // 2)
    rows: list[dict[str, Any]] = [
        {"sources": 0},
        {"sources": many},
        {"sources": few, "targets": few},
        {"sources": few, "limit": 4},
        {"sources": few, "nearest": True},
        *({"sources": many, "method": method} for method in ("dijkstra", "many_sources")),
    ]
    for edges in (grid, EdgeList(_GRID + 1, network.sources, network.targets, network.weights)):
        graph = ordered(sparse_graph(edges, dtype=dtype, device=device), "auto")
        weights = graph.by_source.weights.clone()
        weights[0] = -1 if graph.tree is not None else 1
        for given in (graph, graph.with_weights(weights)):
            for options in rows:
                for found in {False, predecessors}:
                    request = Request.of(given, predecessors=found, **options)
                    planning.run(request, planning.plan_of(request))
            paired_distances(given, many, many)
            paired_paths(given, many, many)
        for kind in UNREACHABLE:
            hops(graph, dtype=kind)
        for weighted in (False, True):
            eccentricities(graph, weighted=weighted)
            closeness(graph, weighted=weighted)
            diameter(graph, weighted=weighted)
            betweenness(graph, weighted=weighted)
        for to_vertex in (False, True):
            accessibility(graph, [1, 4], to_vertex=to_vertex)
        reachable(graph, torch.arange(graph.n))


def _list(values: Any, name: str) -> list[Any]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise InputTypeError(
            f"`{name}` must be one value or a list of them, but is {shown(values)}; give a list."
        )
    return list(values)


def _shape(size: object) -> tuple[int, ...]:
    counts = [as_integer(n, "sizes") for n in (size if isinstance(size, tuple) else (size,))]
    if len(counts) not in (1, 2):
        raise InputError(
            f"`sizes` must hold integers n or pairs (batch, n), but one is {size}; give such sizes."
        )
    return (*counts, counts[-1])
