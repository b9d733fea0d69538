"""Which sparse method "auto" takes: readable rules, with the measurements behind them."""

import torch

from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import no_edge

# Times in ms, on two cores of an AMD EPYC: one source by dijkstra, frontier, output_parallel; 64 by
# many_sources, dijkstra.
#     random, n = 100000, 8 edges each          28  18   19     409  773
#     random, n = 10000, 50 edges each         2.7  3.6  4.7     66   98
#     grid of 300 x 300                         12   25   19     262  381
#     power law, n = 100000, 2 million edges    31   32   32     414  906
#     roads of Rome, n = 3353, 8870 edges      0.3  0.5  0.4       3   20
# 16 sources take 131, 158 and 219 ms by many_sources, and 213, 103 and 227 ms by dijkstra (random,
# grid, power law). On an H200: one source by output_parallel, input_parallel, frontier; 16 by
# many_sources.
#     random, n = 100000, 8 edges each         0.7  1.1  1.0     3.0
#     random, n = 1000000, 8 edges each        3.4  5.0  3.8      26
#     grid of 300 x 300                        8.3   15   11      38
#     power law, n = 100000, 2 million edges   0.9  1.5  3.6     2.0
#     roads of Rome                            2.0  3.5  2.5     1.7
# 1024 sources by many_sources: 23 (random, n = 100000), 240, 22 and 2.5 ms.
# 64 sources of a grid of 316 x 316 in float64 take 4.3 s by many_sources and 1.4 s by dijkstra: its
# rows no longer fit the cache of a CPU, and graphs with few edges at each vertex mostly take many
# rounds.
_ROADS_DEGREE, _CACHE = 5, 32 << 20
_LEAST_SOURCES = {"cpu": 32, "cuda": 8}
# For fewer edges, Dijkstra's algorithm on one core of a CPU ends before the rounds of a kernel on a
# GPU.
_LEAST_GPU_EDGES = 100_000


# All rows by elimination and many_sources, s: on the CPU, roads of Rome 0.07 and 0.40, a grid of
# 100 x 100 0.7 and 3.8, of 300 x 300 40 and 370; on an H200, copied to the CPU, a grid of 100 x 100
# 0.49 and 0.59, of 200 x 200 2.3 and 3.6, of 316 x 316 14 and 40. Finding out that a graph does not
# stay sparse takes 2.6 us per edge; so only graphs of few edges are tried, and only for many rows.
# On a GPU, elimination is faster only where many_sources needs many rounds.
_MOST_DEGREE, _LEAST_SHARE, _LEAST_HOPS = 8, 4, 100


def may_stay_sparse(graph: SparseGraph, rows: int) -> bool:
    """Return whether the graph has so few edges that eliminating its vertices may be worth while
    for `rows` rows.
    """
    return 0 < graph.edges <= _MOST_DEGREE * graph.n and _LEAST_SHARE * rows >= graph.n


def has_long_paths(graph: SparseGraph) -> bool:
    """Return whether the breadth-first search from the vertex with the most edges has at least
    _LEAST_HOPS levels.

    The graph is on a GPU.
    """
    from tri_apsp.sparse.triton_hops import hops_on_gpu  # which needs Triton

    row = torch.empty(1, graph.n, dtype=torch.int16, device=graph.device)
    unreachable = int(no_edge(row.dtype))
    too_long = hops_on_gpu(
        graph.by_destination, graph.by_source.degrees.argmax()[None].cpu(), row, unreachable
    )
    return too_long or bool((row[row < unreachable] >= _LEAST_HOPS).any())


def choose(graph: SparseGraph, rows: int) -> str:
    """Return the method for `rows` rows of distances in a graph.

    Many sources share each read of an edge. For one, Dijkstra's algorithm settles each vertex once,
    and depends least on the kind of graph; of the rounds on a GPU, those of output_parallel are the
    shortest.
    """
    device = graph.device.type
    slab = 64 * graph.n * graph.dtype.itemsize
    if device == "cpu" and graph.edges <= _ROADS_DEGREE * graph.n and slab > _CACHE:
        return "dijkstra"
    if rows >= _LEAST_SOURCES[device]:
        return "many_sources"
    return "dijkstra" if device == "cpu" or graph.edges < _LEAST_GPU_EDGES else "output_parallel"


# All rows, ms on two cores of an AMD EPYC: dense; sparse with 0.2%, 0.5%, 1%, 2% of the edges; a
# grid.
#     n = 1024     15     9.0   11   15   22     21
#     n = 2048     70      37   53   84  116     98
#     n = 4096    447     215  344  490  766    519
# On an H200: dense; sparse with 1%, 3%, 10% of the edges.
#     n = 4096    5.3     6.6  8.5   13
#     n = 8192     35      22   54   91
# For each row, one edge takes as long as _OPERATIONS_PER_EDGE operations of a dense solve. On an
# H200 it takes as long as 60 at the density at which both are equally fast; the rest is a margin:
# where they are close, dense. Below _LEAST_VERTICES, all rows gain a few ms at most.
_OPERATIONS_PER_EDGE = {"cpu": 125, "cuda": 150}
_LEAST_VERTICES = {"cpu": 2048, "cuda": 8192}
# Fewer rows are taken to cost as much as these: on a GPU they need as many rounds, and on a CPU
# edge lists may have to be made of dense weights. Complete graphs of n = 1000, 2000 and 4000, ms on
# these two cores: a dense solve 44, 123 and 844; the lists 101, 447 and 1337; then one row 2, 9 and
# 36, and 16 rows 41, 80 and 380.
_LEAST_ROWS = {"cpu": 1, "cuda": 8}
_LEAST_ROWS_WITHOUT_LISTS = {"cpu": 32, "cuda": 8}


def most_edges(n: int, rows: int, device: torch.device, *, has_lists: bool) -> float:
    """Return the number of edges up to which `rows` rows of a sparse graph of n vertices take
    less time than a dense solve.

    Args:
        has_lists: whether the graph was given by its edges, not by dense weights.
    """
    if n < _LEAST_VERTICES[device.type] and 4 * rows > n:
        return 0
    least = (_LEAST_ROWS if has_lists else _LEAST_ROWS_WITHOUT_LISTS)[device.type]
    return n**3 / (_OPERATIONS_PER_EDGE[device.type] * max(rows, least))


def reason_for_sparse(
    n: int, edges: int | None, rows: int, device: torch.device, *, has_lists: bool
) -> str | None:
    """Return why `rows` of a graph are expected to take less time than a dense solve, or None.

    `edges` is None if there are more than most_edges().
    """
    most = most_edges(n, rows, device, has_lists=has_lists)
    if edges is None or edges > most or not most:
        return None
    most = min(most, n * n)
    return f"{edges} edges; up to {most:.0f}, sparse rows take less time than a dense solve"
