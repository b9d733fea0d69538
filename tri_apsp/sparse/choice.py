"""Which sparse method "auto" takes: readable rules, with the measurements behind them."""

import math

import numpy as np
import torch

from tri_apsp.elimination.base import Sweeps
from tri_apsp.elimination.prepared import LEAST_LEVELS, PreparedGraph, ordered, search_levels
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import no_edge

# Times in ms, on two cores of an AMD EPYC that others use too, so within a factor of 1.3, of 8, 32
# and 128 sources by dijkstra and many_sources, and by elimination; and the levels of a
# breadth-first search from the vertex with the most edges, in both directions.
#                                         8 d   m   32 d    m  128 d    m  8 e 32 e 128 e levels
#     random, n = 10000, 4 edges each       10   9     19   12     72   24                       7
#     random, n = 10000, 50 edges each      12  62     43   84    169  182                       4
#     random, n = 100000, 2 edges each      27  89    157  183    667  546                      14
#     random, n = 100000, 1.2 edges each     7  90     16  120     80  348   252  236  247      22
#     random, n = 100000, 8 edges each     122 196    426  428   1789 1403                       6
#     random, n = 5000, 200 edges each      13  98     46  119    213  237                       3
#     power law, n = 20000, 4 edges each    20  13     42   21    168   42                       7
#     power law, n = 50000, 16 edges each   53 130    209  166    906  629                       5
#     small world, n = 20000, 6 edges each  12  37     42   53    174  105                      19
#     star, n = 100000                      52   7    207   11    880   51   105  107  136       2
#     grid of 57 x 57                        2   8      8   22     16   29    42   42   44     111
#     grid of 150 x 150, shuffled           22 180     42  282    164  672  1300 1298 1327     183
#     cube of 40 x 40 x 40                  42 281    158  418    626  937                     115
#     the same, shuffled                    43 363    163  664    680 2910                     102
#     Delaunay, n = 65536                   42 548    155  992    712                          102
#     grid with diagonals, 200 x 200        24 667     83  875    337                          199
#     cube with diagonals, 30 x 30 x 30     26 220    110  289    415  572                      29
#     roads of Rome, n = 3353                3  11      9   25     21   41    16   16   18      50
#     part of Luxembourg, n = 49000         25 919     92 1215    266        124   92  103     382
#     Luxembourg, n = 114599                45 2482   224         823        186  191  270     952
#     tree, n = 50000                       21 359     81  411    353 1225    89   83  101     505
#     chain, n = 100000, in its order        5   5     16   10     60   51   102  103  129  100000
#     grid of 200 x 200, only forwards       8   3     16    7     59   16    48   52   59     399
#     random, only forwards, n = 100000      1   6      2   12     14   74   181  162  206      10
# So many_sources suits many sources and short paths; the more edges at each vertex, the more
# sources it needs. A graph in topological order it solves in one round. Where sources reach few
# vertices, Dijkstra's algorithm ends early.
#
# On an H200: one source by output_parallel, input_parallel, frontier; 16 by many_sources.
#     random, n = 100000, 8 edges each         0.7  1.1  1.0     3.0
#     random, n = 1000000, 8 edges each        3.4  5.0  3.8      26
#     grid of 300 x 300                        8.3   15   11      38
#     power law, n = 100000, 2 million edges   0.9  1.5  3.6     2.0
#     roads of Rome                            2.0  3.5  2.5     1.7
# 1024 sources by many_sources: 23 (random, n = 100000), 240, 22 and 2.5 ms. All rows by elimination
# and many_sources, s, copied to the CPU: a grid of 100 x 100 0.49 and 0.59, of 200 x 200 2.3 and
# 3.6, of 316 x 316 14 and 40. Finding out that a graph does not stay sparse takes 2.6 us per edge.
_LEAST_SOURCES = 8
# The least sources per edge at a vertex for many_sources.
_SOURCES_PER_DEGREE = 2
# The shares of the vertices that sources reach, from which on many_sources takes less time: in any
# graph, and in one whose edges all lead to later vertices. Shares up to _MOST_REACHED are counted,
# of about _SAMPLES sources.
_LEAST_REACHED, _LEAST_REACHED_IN_ORDER, _MOST_REACHED, _SAMPLES = 0.15, 0.05, 0.25, 32
# (sources, levels): below this number of sources, paths are long from this number of levels on.
_LONG = ((16, 9), (64, 17), (float("inf"), 23))
# Elimination: LEAST_LEVELS, and the square of the narrowest of those in the middle, as a
# multiple of n, up to which a graph is taken to stay sparse. Roads have less than 1, a grid 0.5, a
# triangulation of 65 536 points 8, a cube of 30 x 30 x 30 has 13.
_WIDEST = 10
# An order of elimination takes as long as Dijkstra's algorithm from so many sources, on these two
# cores: for chains in one direction; for roads, of which larger ones need fewer, this over the
# square root of n; for grids and meshes. More edges at each vertex are not tried.
_CHAIN_DEGREE, _ROAD_DEGREE, _MOST_DEGREE = 1.5, 2.45, 12
_CHAIN_SOURCES, _ROAD_SOURCES, _MESH_SOURCES = 600, 4000, 128
# The share of the vertices within a limit below which Dijkstra's algorithm takes less time than a
# sweep with a known order: in Luxembourg, 1800 vertices take 0.2 ms.
_NEAR = 1 / 64
# For numbers of edges, a search takes many sources together, so elimination pays for more of them;
# on a CPU also for more vertices. All rows by search and by elimination, ms on two cores: roads of
# 2000 vertices 80 and 96, of 4000 380 and 280; a grid of 4000 207 and 256, of 8000 760 and 708.
_HOP_SHARE, _LEAST_HOP_VERTICES = 2, 4000
# On an H200 with 16 cores: for roads, and of meshes this share of n.
_ROAD_SOURCES_ON_GPU, _MESH_SHARE_ON_GPU = 192, 1 / 8
# For fewer edges, Dijkstra's algorithm on one core of a CPU ends before the rounds of a kernel on a
# GPU.
_LEAST_GPU_EDGES = 100_000


def choose(
    graph: SparseGraph,
    rows: int,
    sources: torch.Tensor | None = None,
    limit: float | None = None,
) -> tuple[str, bool]:
    """Return the method for `rows` rows of distances in a graph, and whether elimination takes less
    time if the graph stays sparse, on a GPU also if it has long paths.

    Many sources share each read of an edge. For one, Dijkstra's algorithm settles each vertex once,
    and depends least on the kind of graph; of the rounds on a GPU, those of output_parallel are the
    shortest.

    Args:
        sources: (rows,) of int64 on the CPU; None: all vertices.
        limit: the farthest distance of interest; None: any.
    """
    n, edges = graph.n, graph.edges
    if isinstance(graph, PreparedGraph) and graph.sweeps is not None:
        if limit is not None and graph.device.type == "cpu" and _stays_near(graph, sources, limit):
            return "dijkstra", False
        return "elimination", False
    if graph.device.type != "cpu":
        method = one_row_method(graph) if rows < _LEAST_SOURCES else "many_sources"
        return method, rows >= _least_eliminated_on_gpu(graph) and _has_small_separators(graph)
    if not edges:
        return "many_sources", False
    if rows < max(_LEAST_SOURCES, _SOURCES_PER_DEGREE * edges / n):
        return "dijkstra", False
    reached, in_order = _share_reached(graph, sources, limit), _is_in_order(graph)
    if reached < (_LEAST_REACHED_IN_ORDER if in_order else _LEAST_REACHED):
        return "dijkstra", False
    if in_order:
        return "many_sources", False
    levels = len(search_levels(graph, LEAST_LEVELS)) - 1
    is_long = levels >= next(long for most, long in _LONG if rows < most)
    method = "dijkstra" if is_long else "many_sources"
    pays = levels >= LEAST_LEVELS and rows >= _least_eliminated(graph)
    return method, pays and _has_small_separators(graph)


def one_row_method(graph: SparseGraph) -> str:
    """Return the method for one row, if not by elimination."""
    on_cpu = graph.device.type == "cpu" or graph.edges < _LEAST_GPU_EDGES
    return "dijkstra" if on_cpu else "output_parallel"


def _least_eliminated(graph: SparseGraph) -> float:
    """Return the least rows for which an order of elimination pays on a CPU."""
    degree = graph.edges / max(1, graph.n)
    if not 0 < degree <= _MOST_DEGREE:
        return float("inf")
    if _CHAIN_DEGREE < degree <= _ROAD_DEGREE:
        return max(_LEAST_SOURCES, _ROAD_SOURCES / float(graph.n**0.5))
    return _MESH_SOURCES if degree > _ROAD_DEGREE else _CHAIN_SOURCES


def _least_eliminated_on_gpu(graph: SparseGraph) -> float:
    """Return the least rows for which an order of elimination pays on a GPU."""
    degree = graph.edges / max(1, graph.n)
    if not 0 < degree <= _MOST_DEGREE:
        return float("inf")
    return _ROAD_SOURCES_ON_GPU if degree <= _ROAD_DEGREE else _MESH_SHARE_ON_GPU * graph.n


def _share_reached(graph: SparseGraph, sources: torch.Tensor | None, limit: float | None) -> float:
    """Return the share of the vertices that is within the limit of some of the sources, on average
    and counted up to _MOST_REACHED.
    """
    from tri_apsp.kernels.cpu.sparse import search  # with Numba: half a second

    n, rows = graph.n, graph.n if sources is None else len(sources)
    if limit is not None and graph.lowest >= 0:
        return _reached_within(graph, sources, limit, math.ceil(_MOST_REACHED * n)) / n
    lists, most = graph.by_source.arrays()[:2], int(_MOST_REACHED * n)
    sample = range(0, rows, max(rows // _SAMPLES, _LEAST_SOURCES // 2))
    reached = 0
    for place in sample:
        start = place if sources is None else sources[place].item()
        reached += min(most, search(*lists, *lists, start, n, most)[-1])
    return reached / (len(sample) * n)


def _stays_near(graph: SparseGraph, sources: torch.Tensor | None, limit: float) -> bool:
    """Return whether one of the sources reaches less than _NEAR of the vertices within the limit,
    so that Dijkstra's algorithm ends before a sweep does.
    """
    if graph.lowest < 0 or not graph.n:
        return False
    most = max(1, int(_NEAR * graph.n))
    return _reached_within(graph, sources, limit, most) < most


def _reached_within(
    graph: SparseGraph, sources: torch.Tensor | None, limit: float, most: int
) -> int:
    """Return the number of vertices within the limit of the source in the middle, up to `most`. No
    weight is negative.
    """
    from tri_apsp.kernels.cpu.sparse import dijkstra

    n, lists = graph.n, graph.by_source.arrays()
    start = n // 2 if sources is None else int(sources[len(sources) // 2])
    row = np.empty((1, n), lists[2].dtype)
    missing, farthest = row.dtype.type(no_edge(graph.dtype)), row.dtype.type(limit)
    # A search ends when it has settled as many.
    dijkstra(*lists, np.ones(n, np.bool_), most, np.array([start]), missing, farthest, row)
    return min(most, int((row < missing).sum()))


def _is_in_order(graph: SparseGraph) -> bool:
    """Return whether every edge leads to a later vertex, so that there are no cycles."""
    from tri_apsp.kernels.cpu.sparse import is_in_order

    return bool(is_in_order(*graph.by_source.arrays()[:2]))


def hop_sweeps(graph: SparseGraph, rows: int) -> Sweeps | None:
    """Return the sweeps of a graph whose weights are 1 where they take less time than a
    breadth-first search from `rows` sources; else None.

    Numbers of edges, of 256 sources on two cores: Luxembourg 4700 ms by search and 160 with an
    order; a grid of 316 x 316 3200 and 170; a triangulation of 65 536 points 470 and 72.
    """
    if isinstance(graph, PreparedGraph) and graph.tree is not None:
        return graph.unweighted.sweeps if graph.has_long_hops else None
    on_cpu = graph.device.type == "cpu"
    if on_cpu and graph.n < _LEAST_HOP_VERTICES:
        return None
    least = _least_eliminated(graph) if on_cpu else _least_eliminated_on_gpu(graph)
    if rows < _HOP_SHARE * least or not _has_small_separators(graph):
        return None
    return ordered(graph, "auto").unweighted.sweeps


def _has_small_separators(graph: SparseGraph) -> bool:
    """Return whether the graph is likely to stay sparse while its vertices are eliminated: a
    breadth-first search in both directions has many levels, of which one in the middle is narrow.
    """
    before = search_levels(graph)
    if len(before) <= LEAST_LEVELS:
        return False
    # Of the levels with a quarter of the vertices on each side.
    quarter, found = before[-1] / 4, before[-1]
    in_middle = (before[:-1] >= quarter) & (found - before[1:] >= quarter)
    width = min(np.diff(before)[in_middle].tolist(), default=0)
    return width**2 <= _WIDEST * graph.n


# All rows, ms on two cores of an AMD EPYC: dense; random graphs of 2, 4, 8 and 30 edges each; a
# grid; a power law of 4 edges each; a chain.
#     n = 300     3.6    1.7  2.4  3.9  8.6   3.0  1.9  0.9
#     n = 600      18    8.5   12   18   36   8.5  9.2  2.0
#     n = 1000     45     16   21   33   71    26   24  3.3
#     n = 1500    113     29   52   81  209    58   54  9.6
# Dense; sparse with 0.2%, 0.5%, 1%, 2% of the edges; a grid.
#     n = 2048     70      37   53   84  116     98
#     n = 4096    447     215  344  490  766    519
# On an H200: dense; sparse with 1%, 3%, 10% of the edges.
#     n = 4096    5.3     6.6  8.5   13
#     n = 8192     35      22   54   91
# For each row, one edge takes as long as _OPERATIONS_PER_EDGE operations of a dense solve. On an
# H200 it takes as long as 60 at the density at which both are equally fast; the rest is a margin:
# where they are close, dense. Below _LEAST_VERTICES, all rows gain a few ms at most.
_OPERATIONS_PER_EDGE = {"cpu": 100, "cuda": 150}
_LEAST_VERTICES = {"cpu": 256, "cuda": 8192}
_LEAST_VERTICES_WITHOUT_LISTS = {"cpu": 2048, "cuda": 8192}
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
    vertices = _LEAST_VERTICES if has_lists else _LEAST_VERTICES_WITHOUT_LISTS
    kind = "cpu" if device.type == "cpu" else "cuda"
    if n < vertices[kind] and 4 * rows > n:
        return 0
    least = (_LEAST_ROWS if has_lists else _LEAST_ROWS_WITHOUT_LISTS)[kind]
    return n**3 / (_OPERATIONS_PER_EDGE[kind] * max(rows, least))


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
