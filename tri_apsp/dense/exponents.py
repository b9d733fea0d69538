"""Whether a solve or a product is computed by exponents: the rules, and the cheap statistics that
they read.

Tensor cores add powers of two, and the exponent of a sum is a minimum: kernels.shared.exponents has
the arithmetic and its proof, engines.exponents the engine.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import torch

from tri_apsp.configs import EXPONENT_DTYPES, exponents_of
from tri_apsp.dense.plan import DensePlan
from tri_apsp.device import describe
from tri_apsp.engines import Engine
from tri_apsp.gpu.edge_count import queue_edge_count
from tri_apsp.memory import fits_memory
from tri_apsp.methods import METHODS
from tri_apsp.semirings import no_edge
from tri_apsp.value_range import ValueRange, value_range

# Smaller products gain nothing: in int16, one of 1024 by exponents takes 35 us on an H100, a direct
# one 37 us on an H200.
_LEAST = 2048
# With fewer than _MANY_LIGHT edges of weight 1 per vertex, or fewer than _MANY_EDGES of any weight,
# few tiles of products of 2048 are certain: on an H100, grids of 8192 vertices in random order, of
# weights 1 to 4, take 3.4% longer if products from 2048 on are tried than if only those from 4096
# on are.
_LEAST_IF_FEW, _MANY_LIGHT, _MANY_EDGES = 4096, 1.5, 10
# Below, solves gain nothing: on an H100, one of 4096 vertices takes 3.2 ms in both ways, and one of
# 8192 6.0 instead of 19.3 ms, or up to 9 ms if the host is slow to launch.
_FEWEST_VERTICES = 8192
# Edges per vertex below which no product is tried: such graphs have long paths, whatever their
# weights. On an H100, 8192 vertices with 2 edges per vertex of weight 1 would take 20.8 instead of
# 19.6 ms.
_FEWEST_EDGES = 2.5
# Edges of weight 1 per vertex below which no product is tried: with 0.5, hardly any tile is
# certain, and 8192 vertices with 16 edges per vertex take 2% longer.
_FEWEST_LIGHT = 0.95
# Rows, columns and k of the least product of two given matrices that is tried: on an H200 in int16
# a direct one of 2048 of each takes 0.3 ms, to which counting edges would add 0.05 ms per matrix.
_LEAST_ALONE = 4096
# The numbers for slices of 128, the default. A result is certain up to WINDOW above the sum of the
# least values of A and B, which are clamped to ZERO - 1: results far above are never certain.
_NUMBERS = exponents_of(128)
# A product of two given matrices is tried where more than this many sums per result are within the
# window; then one in 10^7 results has none, if the values are independent.
_FEWEST_SUMS = 16
# Rows of each matrix in which edges are counted: the mean of 16 edges per vertex with a power law
# is then known to 3%.
_ROWS = 2048
# Bytes for each value that is encoded.
_BYTES = 2

# 0: no product is computed by exponents; more: the threshold of every solve; None: the values
# decide.
_GIVEN: ContextVar[int | None] = ContextVar("threshold of products by exponents", default=None)


@contextmanager
def with_exponents_threshold(threshold: int) -> Iterator[None]:
    """Within it, the solves of this thread have this threshold (see solve_threshold), whatever
    their weights; 0: none computes a product by exponents, nor does min_plus.
    """
    token = _GIVEN.set(threshold)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def direct_products() -> AbstractContextManager[None]:
    """Within it, solves and `min_plus` of this thread compute no product by exponents: for
    comparisons with direct products.

    The distances are the same. Otherwise the values decide which products are computed by
    exponents: see `Result.exponents`.

    Returns:
        A context manager.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> with tri_apsp.direct_products():
        ...     result = tri_apsp.shortest_paths(torch.tensor([[0, 4], [1, 0]]))
        >>> result.exponents
        False
    """
    return with_exponents_threshold(0)


def are_supported(engine: str, like: torch.Tensor) -> bool:
    """Return whether an engine has products by exponents of matrices like `like`."""
    return engine == "nvidia" and like.dtype in EXPONENT_DTYPES and describe(like.device).has_wgmma


def by_exponents(engine: Engine, threshold: int | None) -> Engine:
    """Return an engine for the same solve whose products of at least a threshold run by exponents.

    It is `engine` itself without a threshold, or if it has no such products.
    """
    if threshold is None or engine.name != "nvidia":
        return engine
    from tri_apsp.engines.exponents import ByExponents  # needs Triton
    from tri_apsp.engines.nvidia import NvidiaEngine

    assert isinstance(engine, NvidiaEngine)
    return ByExponents(engine, threshold)


def may_multiply_by_exponents(plan: DensePlan, n: int, like: torch.Tensor) -> bool:
    """Return whether the values of weights decide if products are computed by exponents, for n
    vertices.

    Args:
        plan: of method, engine and configuration.
        n: vertices.
        like: a tensor of the dtype and on the device of the weights.
    """
    # Systems of tri_apsp.papers keep their own products.
    return plan.method in METHODS and do_values_decide(plan.engine, n, like)


def do_values_decide(engine: str, n: int, like: torch.Tensor) -> bool:
    """As may_multiply_by_exponents, for the name of an engine."""
    decide = n >= _FEWEST_VERTICES and _GIVEN.get() is None
    return decide and are_supported(engine, like)


def queue_edges_per_vertex(plan: DensePlan, weights: torch.Tensor) -> Callable[[], float] | None:
    """Queue a count of the edges of graphs, by which solve_threshold decides.

    Args:
        plan: of method, engine and configuration.
        weights: (batch, n, n), of any values; the diagonal does not count as edges.

    Returns:
        A function that blocks until the edges are counted, and returns how many there are per
        vertex; 0 if one in the rows that are read is no integer. Fractions in other rows cost time
        alone, since direct products compute what depends on them. To be called exactly once. None:
        no product is tried, whatever the count.

    Cost: reads at most 2048 rows of each graph; nothing below 8192 vertices.
    """
    batch, n, _ = weights.shape
    if not batch or not may_multiply_by_exponents(plan, n, weights):
        return None
    size = (2 * _BYTES + plan.implementation.workspace * weights.itemsize) * batch * n * n
    if not fits_memory(size, weights.device):
        return None
    return _queue_edges_per_row(weights, loops=False)


def solve_threshold(edges_per_vertex: float | None, highest: float | int | None) -> int | None:
    """Return l if a solve should compute products (m, k) by (k, n) with m n k >= l^3 by exponents;
    None: no product.

    A result is certain if it is at most 23 above the sum of the least values of its row and column;
    direct products compute the tiles that have others. Let each vertex have d edges, with weights
    spread evenly from 1 to h:

    * About d / h edges per vertex weigh 1, and d s / (h n) among s of the n vertices. Distances are
      then at most about 3 ln(s) h n / (d s) (for complete graphs: Janson, One, two and three times
      log n / n for paths in a complete graph with random weights), which is 23 for s = h n / d =
      2048.
    * No product is tried if d is below _FEWEST_EDGES, or d / h below _FEWEST_LIGHT. l is 4096 if
      d or d / h is small (_MANY_EDGES, _MANY_LIGHT), else 2048. If few tiles of a sample are
      certain, the product is a direct one.

    Other graphs may be misjudged, which costs time alone: one heavy edge keeps all products direct,
    and on an H100 meshes whose vertices are in random order take up to 5% longer for 8192 vertices,
    and 1.4% for 16384.

    Args:
        edges_per_vertex: of weights of which none is negative, see queue_edges_per_vertex. None: no
            product.
        highest: the greatest of the weights, and of the diagonal; None without an edge.
    """
    given = _GIVEN.get()
    if given is not None:
        return given or None
    if edges_per_vertex is None or highest is None:
        return None
    light = edges_per_vertex / max(highest, 1)  # edges of weight 1 per vertex
    if edges_per_vertex < _FEWEST_EDGES or light < _FEWEST_LIGHT:
        return None
    return _LEAST if light >= _MANY_LIGHT and edges_per_vertex >= _MANY_EDGES else _LEAST_IF_FEW


def product_threshold(
    engine: str, a: torch.Tensor, b: torch.Tensor, ranges: Sequence[ValueRange]
) -> int | None:
    """Return l as solve_threshold does, if the product of two given matrices should be tried by
    exponents; else None.

    A result is certain if it is at most 23 above the sum of the least values. Let s be the share of
    all sums that are that low, if the values are spread evenly between the least and the greatest;
    if shares p and q of the values of A and B are edges, a result has k p q s such sums on average.
    Other values may be misjudged. On an H200 in int16, that costs at most this share of the time:

        k       if a sample of the results shows it     if it does not
        4096    2%                                      10%
        8192    0.5%                                    3%

    Args:
        engine: the name of an engine.
        a, b: (batch, m, k) and (batch, k, n).
        ranges: the value ranges below no_edge of a, b and all else that the result is computed
            from.

    Cost: reads at most 2048 rows of each matrix, for which the host blocks; nothing below 4096
    rows, columns or k, nor where the ranges decide.
    """
    (batch, m, depth), n = a.shape, b.shape[2]
    if min(m, n, depth) < _LEAST_ALONE or _GIVEN.get() is not None or not are_supported(engine, a):
        return None
    of_a, of_b = ranges[:2]
    if (
        of_a.highest_below is None
        or of_b.highest_below is None
        or min(each.lowest for each in ranges) < 0
        or max(of_a.lowest, of_b.lowest) >= _NUMBERS.ZERO
    ):
        return None
    span_a, span_b = of_a.highest_below - of_a.lowest, of_b.highest_below - of_b.lowest
    is_exact, sums = span_a + span_b <= _NUMBERS.WINDOW, depth * _share_of_low_sums(span_a, span_b)
    if not is_exact and sums <= _FEWEST_SUMS:
        return None
    if not fits_memory(batch * (_BYTES * depth * (m + n) + m * n * a.itemsize), a.device):
        return None
    if not is_exact or a.is_floating_point():
        for x, edges in [(x, _queue_edges_per_row(x, loops=True)) for x in (a, b)]:
            sums *= edges() / x.shape[2]
    return _LEAST if sums > (0 if is_exact else _FEWEST_SUMS) else None


def _share_of_low_sums(span_a: float, span_b: float) -> float:
    """Return the share of all x + y with x = 0, ..., span_a and y = 0, ..., span_b that are within
    the window.
    """
    window = _NUMBERS.WINDOW
    low = sum(min(window - x, span_b) + 1 for x in range(int(min(window, span_a)) + 1))
    return low / ((span_a + 1) * (span_b + 1))


def with_exponents(plan: DensePlan, weights: torch.Tensor) -> DensePlan:
    """Return a plan that states whether products are computed by exponents, for weights of which
    none is negative.
    """
    pending = queue_edges_per_vertex(plan, weights)
    if pending is None:
        return plan
    highest = value_range(weights, no_edge(weights.dtype)).highest_below
    return plan.by_exponents(solve_threshold(pending(), highest))


def _queue_edges_per_row(matrices: torch.Tensor, *, loops: bool) -> Callable[[], float]:
    """As queue_edge_count, for edges per row in at most _ROWS rows of each matrix."""
    batch, rows, _ = matrices.shape
    step = -(-rows // _ROWS) | 1  # odd: not all rows that are read lie on the border of a grid
    count = queue_edge_count(matrices, step, loops=loops)
    return lambda: count() / (batch * -(-rows // step))
