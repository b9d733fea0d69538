"""Compiling and loading what solves need before the first of them, as servers do."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import RLock
from typing import Any, SupportsIndex, TypeAlias

import torch

from tri_apsp import planning
from tri_apsp.arguments import as_integer, check_flags
from tri_apsp.dense.run import solve
from tri_apsp.device import resolve
from tri_apsp.elimination.prepared import PreparedGraph, ordered
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
from tri_apsp.sparse.plan import ROW_METHODS
from tri_apsp.sparse.reachability import reachable

Step: TypeAlias = Callable[[], Any]
"""A call that compiles or loads kernels."""

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
        compiles for a minute per dtype.

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
    needed = steps(given_dtypes, shapes, found, predecessors=predecessors, prepared=prepared)
    for _ in run(needed, found):
        pass


def steps(
    dtypes: Sequence[torch.dtype],
    shapes: Sequence[tuple[int, ...]],
    device: torch.device,
    *,
    predecessors: bool,
    prepared: bool,
) -> list[Step]:
    """Return calls that need every kernel which later calls need; see `warmup`."""
    found: list[Step] = [
        partial(_solve, shape, dtype, device, predecessors) for dtype in dtypes for shape in shapes
    ]
    if not prepared:
        return found
    grid, network = grid_of(_GRID), erdos_renyi(_GRID, 4 / _GRID)
    isolated = EdgeList(_GRID + 1, network.sources, network.targets, network.weights)
    for dtype in {torch.int32 if dtype == torch.int16 else dtype for dtype in dtypes}:
        found.append(partial(_solve, (_GRID, _GRID), dtype, device, predecessors))
        of_edges = _engine_steps if device.type == "meta" else _sparse_steps
        for edges in (grid, isolated):
            found += of_edges(edges, dtype, device, predecessors)
    return found


def run(needed: Sequence[Step], device: torch.device) -> Iterator[None]:
    """Run steps, and yield after each of them."""
    if device.type == "meta":
        from tri_apsp.gpu.ahead import compile_without_values  # which needs Triton

        needed = [partial(compile_without_values, step) for step in needed]
    if device.type != "cuda":  # Numba compiles one kernel at a time
        for step in needed:
            yield step()
        return
    with ThreadPoolExecutor(_THREADS) as threads:
        # An error or an interrupt leaves out what has not begun.
        yield from threads.map(lambda step: step(), needed)


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
    if predecessors and shape[-1] > 1 and shape[0]:  # a cycle of weight 0 needs another search
        weights[..., 0, -1] = weights[..., -1, 0] = 0
        solve_this()


def _sparse_steps(
    edges: EdgeList, dtype: torch.dtype, device: torch.device, predecessors: bool
) -> Iterator[Step]:
    """Yield what solves a graph with an order of elimination and long paths, or one without an
    order, with short paths and a vertex without edges.
    """

    @cache
    def graph() -> PreparedGraph:
        return ordered(sparse_graph(edges, dtype=dtype), "auto").to(device)

    @cache
    def other_graph() -> PreparedGraph:
        weights = graph().by_source.weights.clone()
        weights[0] = -1 if graph().tree is not None else 1
        found: PreparedGraph = graph().with_weights(weights)
        return found

    def solve_rows(given: PreparedGraph, **options: Any) -> None:
        request = Request.of(given, **options)
        planning.run(request, planning.plan_of(request))

    few, many = range(0, 8), range(_GRID // 2)
    rows: list[dict[str, Any]] = [
        {"sources": 0},
        {"sources": many},
        {"sources": few, "targets": few},
        {"sources": few, "limit": 4},
        {"sources": few, "nearest": 1},
        *({"sources": many, "method": method} for method in ("dijkstra", "many_sources")),
    ]

    making = RLock()  # of a graph that several threads need

    def of(given: Step, function: Callable[..., Any], *arguments: Any, **options: Any) -> Step:
        def step() -> None:
            with making:
                prepared = given()
            function(prepared, *arguments, **options)

        return step

    for given in (graph, other_graph):
        for options, found in itertools.product(rows, {False, predecessors}):
            yield of(given, solve_rows, predecessors=found, **options)
        yield of(given, paired_distances, many, many)
        yield of(given, paired_paths, many, many)
    for kind in UNREACHABLE:
        yield of(graph, hops, dtype=kind)
    for flag in (False, True):
        for measure in (eccentricities, closeness, diameter, betweenness):
            yield of(graph, measure, weighted=flag)
        yield of(graph, accessibility, [1, 4], to_vertex=flag)
    yield of(graph, lambda given: reachable(given, torch.arange(given.n)))


def _engine_steps(
    edges: EdgeList, dtype: torch.dtype, device: torch.device, predecessors: bool
) -> Iterator[Step]:
    """As _sparse_steps, for a GPU that is not here: what its engines launch for rows, tables,
    pairs and measures. Their tensors are on the CPU, since the graph must have values.
    """
    from tri_apsp.elimination.gpu import GpuSweeps
    from tri_apsp.sparse.triton import TritonSparseEngine  # needs Triton

    graph = ordered(sparse_graph(edges, dtype=dtype), "auto")
    few, many = torch.arange(8), torch.arange(_GRID // 2)
    engine = TritonSparseEngine(graph.in_sums_dtype())
    endless = no_edge(engine.graph.dtype)
    for method in ROW_METHODS:
        if method not in ("dijkstra", "elimination"):
            yield partial(engine.distances, method, many, endless)
    if predecessors:
        zeros = torch.zeros(len(many), graph.n, dtype=engine.graph.dtype)
        yield partial(engine.predecessors, many, zeros)
    for given in (graph, graph.unweighted):
        if given.sweeps is None:
            continue
        cpu = torch.device("cpu")
        sweeps = GpuSweeps(given.sweeps.elimination, cpu, in_shared_memory=True)
        for rows in (few[:1], few, many):
            if len(rows) > 1:  # one row is swept on the CPU
                yield partial(sweeps.rows, rows, endless)
            if predecessors:
                yield partial(sweeps.rows_with_predecessors, rows, endless, given.in_sums_dtype())
        yield partial(sweeps.table_to(few), few, endless)
        yield partial(sweeps.pairs, many, many, endless)
        amounts = torch.ones(graph.n, dtype=torch.float64)
        for from_source in (False, True):
            yield partial(sweeps.totals, from_source=from_source)
            yield partial(sweeps.within, few[1:3], amounts, from_source=from_source)


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
