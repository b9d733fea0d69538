"""Which sparse method "auto" takes: readable rules, with the measurements behind them."""

import torch

from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.semirings import no_edge

# Times in ms, on two cores of an AMD EPYC that others use too, so within a factor of 1.5: 8, 32 and
# 128 sources by dijkstra and many_sources; the same by elimination; and the levels of a
# breadth-first search.
#     random, n = 10000, 4 edges each        27  14     61    28    211   36          -        9
#     random, n = 10000, 50 edges each       29  71     81    98    314  191          -        3
#     random, n = 100000, 2 edges each      140 180    690   307   2285  599          -       25
#     power law, n = 20000, 4 edges each     43  15    103    32    364   62          -        6
#     small world, n = 20000, 6 edges each   36  46     96    64    365  133          -       20
#     star, n = 100000                      161  11    514    20   2105   84   -   119  200     2
#     grid of 57 x 57                         5   9     24    36     43   50  44    47   74   111
#     cube of 40 x 40 x 40                  150 464    443   566   1600 1208          -      115
#     Delaunay, n = 65536                   110 932    463  1596   1673    -  -   7000    -  >130
#     grid with diagonals, 200 x 200         66 925    257  1479    939    -  -   9600    -   199
#     roads of Rome, n = 3353                 7  17     21    37     48   47  26    23   23   >27
#     part of Luxembourg, n = 10000          12  47     46   128    132  227  18    20   28  >130
#     part of Luxembourg, n = 49000          57 946    188  1036    715    - 160   112  136  >130
#     Luxembourg, n = 114599                138 3464   504     -   1729    - 316   352  374  >130
#     tree, n = 50000                        46 383    169   444    650 1657  94   126  129  >130
#     chain, n = 100000, in its order         7   7     29    18    147  102 109   123  171  >130
# So many_sources suits short paths, of many sources also less short ones, and graphs whose slab of
# 64 rows fits the cache of a core. Elimination pays from a number of sources on that grows with the
# square root of n (a grid of 100 x 100: from 300 on), and with the edges at each vertex.
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
_CACHE = 1 << 19
# For more edges at each vertex, many_sources needs twice as many sources.
_FEW_EDGES = 8
# From these numbers of levels on, paths are long for fewer sources than _MANY, and for more.
_LONG, _MANY, _LONG_FOR_MANY = 27, 128, 130
# The least sources for elimination on a CPU: up to so many edges at each vertex, this times the
# square root of n.
_LEAST_ELIMINATED, _LEAST_ROOTS = 20, ((1.5, 3), (2.4, 0), (3.2, 1), (6.5, 3), (8, 6.5))
# On a GPU: this share of n, and levels.
_LEAST_SHARE, _LONG_ON_GPU = 1 / 4, 100
# For fewer edges, Dijkstra's algorithm on one core of a CPU ends before the rounds of a kernel on a
# GPU.
_LEAST_GPU_EDGES = 100_000


def choose(graph: SparseGraph, rows: int) -> tuple[str, bool]:
    """Return the method for `rows` rows of distances in a graph, and whether elimination takes less
    time if the graph stays sparse, on a GPU also if it has long paths.

    Many sources share each read of an edge. For one, Dijkstra's algorithm settles each vertex once,
    and depends least on the kind of graph; of the rounds on a GPU, those of output_parallel are the
    shortest.
    """
    n, edges = graph.n, graph.edges
    may_stay_sparse = 0 < edges <= _LEAST_ROOTS[-1][0] * n
    if graph.device.type != "cpu":
        one = "dijkstra" if edges < _LEAST_GPU_EDGES else "output_parallel"
        method = one if rows < _LEAST_SOURCES else "many_sources"
        return method, may_stay_sparse and rows >= _LEAST_SHARE * n
    if rows < (_LEAST_SOURCES if edges <= _FEW_EDGES * n else 2 * _LEAST_SOURCES):
        return "dijkstra", False
    levels, slab = _levels(graph), 64 * n * graph.dtype.itemsize
    is_long = levels >= (_LONG if rows < _MANY else _LONG_FOR_MANY)
    method = "dijkstra" if is_long and slab > _CACHE else "many_sources"
    if not may_stay_sparse or levels < _LONG:
        return method, False
    roots = next(roots for degree, roots in _LEAST_ROOTS if edges <= degree * n)
    return method, rows >= max(_LEAST_ELIMINATED, roots * n**0.5)


def _levels(graph: SparseGraph) -> int:
    """Return the levels of a breadth-first search from the vertex with the most edges, along edges
    in both directions, up to _LONG_FOR_MANY.

    The graph is on a CPU.
    """
    from tri_apsp.kernels.cpu.sparse import count_levels  # with Numba: half a second

    if not graph.n:
        return 0
    lists = *graph.by_source.arrays()[:2], *graph.by_destination.arrays()[:2]
    return int(count_levels(*lists, graph.by_source.degrees.argmax().item(), _LONG_FOR_MANY))


def has_long_paths(graph: SparseGraph) -> bool:
    """Return whether the breadth-first search from the vertex with the most edges has at least
    _LONG_ON_GPU levels.

    The graph is on a GPU.
    """
    from tri_apsp.sparse.triton_hops import hops_on_gpu  # which needs Triton

    row = torch.empty(1, graph.n, dtype=torch.int16, device=graph.device)
    unreachable = int(no_edge(row.dtype))
    too_long = hops_on_gpu(
        graph.by_destination, graph.by_source.degrees.argmax()[None].cpu(), row, unreachable
    )
    return too_long or bool((row[row < unreachable] >= _LONG_ON_GPU).any())


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
