"""Orders of elimination with little fill-in, by nested dissection."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from tri_apsp.engines.cpu_tasks import Array, run_apart, thread_count

# Parts of at most this many vertices are one task, which takes some milliseconds.
_TASK_VERTICES = 4096
# The first bisection is the better of this many, whatever the number of threads, so that the order
# does not depend on it.
_FIRST_BISECTIONS = 2

_Part = tuple[Array, Array, Array, int]
"""A part of the graph: offsets, neighbours, vertices, where they end in the order."""

_Cut = tuple[Array, Array]
"""The side of each vertex, 2 for the separator; the sizes of these three."""


def nested_dissection(offsets: Array, neighbours: Array, most_fill: float) -> Array | None:
    """Return an order of elimination, (n,) of int32, of a symmetric graph; None if the graph has no
    small separators.

    The order is the same for any number of threads.

    Args:
        offsets: (n + 1,) of int64.
        neighbours: of int32, of each vertex ascending, without loops.
        most_fill: the most edges per vertex that the filled graph may have. Their number is usually
            underestimated: edges between the vertices of one separator count, but those to other
            separators do not.

    Cost: about n log(n) steps for graphs with small separators; 40 ms for the roads of Luxembourg
    (114 599 vertices) on two cores.

    Sources: George, Nested Dissection of a Regular Finite Element Mesh, 1973; for shortest paths:
    Dibbelt, Strasser, Wagner, Customizable Contraction Hierarchies, 2016.
    """
    limit = int(most_fill * (len(offsets) - 1))
    if len(neighbours) // 2 > limit:
        return None
    order: Array | None = run_apart(_ordered, offsets, neighbours, limit, thread_count())
    return order


def _ordered(
    offsets: Array, neighbours: Array, limit: int, threads: int, stop: Array
) -> Array | None:
    with ThreadPoolExecutor(threads, thread_name_prefix="tri_apsp") as pool:
        try:
            return _order(pool, offsets, neighbours, limit, stop)
        finally:  # too much fill-in must end the tasks soon, as an interrupt does
            stop[0] = True
            pool.shutdown(cancel_futures=True)


def _order(
    pool: ThreadPoolExecutor, offsets: Array, neighbours: Array, limit: int, stop: Array
) -> Array | None:
    """Return the order; None if the filled graph has more edges than the limit."""
    from tri_apsp.kernels.cpu import dissection as kernels

    order = np.empty(len(offsets) - 1, np.int32)
    done, fill, (rest_offsets, rest_neighbours, vertices) = kernels.reduce(
        offsets, neighbours, order, stop
    )
    n = len(vertices)
    of_rest, numbers = np.empty(n, np.int32), np.arange(n, dtype=np.int32)
    rest = rest_offsets, rest_neighbours
    waiting: list[_Part] = [(*rest, numbers, n)] if n > 0 else []
    # The first bisection, on two threads: the better of two.
    if n > _TASK_VERTICES:
        arguments = [(*rest, limit, seed, stop) for seed in range(_FIRST_BISECTIONS)]
        cut = min(pool.map(kernels.bisect, *zip(*arguments, strict=True)), key=_separator)
        edges, waiting = _split(waiting[0], cut, of_rest)
        fill += edges
    running: set[Future[Any]] = set()
    while (waiting or running) and fill <= limit and not stop[0]:
        for part in waiting:
            if len(part[2]) > _TASK_VERTICES:
                running.add(pool.submit(_halve, part, of_rest, limit, stop))
            else:
                running.add(pool.submit(_dissect, rest, part, of_rest, limit, stop))
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        waiting = []
        for task in finished:
            edges, parts = task.result()
            fill += edges
            waiting += parts
    if fill > limit:
        return None
    order[done : done + n] = vertices[of_rest]
    return order


def _separator(cut: _Cut) -> tuple[int, int]:
    """Return the size of a separator and the difference of the halves, see kernels.bisect()."""
    one, two, separator = cut[1][:3].tolist()
    return separator, abs(one - two)


def _split(part: _Part, cut: _Cut, order: Array) -> tuple[int, list[_Part]]:
    """Write the separator of a part to the order; return a lower bound on the edges of the filled
    graph in it, and the halves.
    """
    from tri_apsp.kernels.cpu import dissection as kernels

    offsets, neighbours, vertices, end = part
    one, two = kernels.split(offsets, neighbours, vertices, cut[0], end, order)
    size = _separator(cut)[0]
    return size * (size - 1) // 2, [one, two]


def _halve(part: _Part, order: Array, limit: int, stop: Array) -> tuple[int, list[_Part]]:
    """Bisect and split a part."""
    from tri_apsp.kernels.cpu import dissection as kernels

    offsets, neighbours, _, end = part
    return _split(part, kernels.bisect(offsets, neighbours, limit, end, stop), order)


def _dissect(*arguments: Any) -> tuple[int, list[_Part]]:
    """Order the vertices of a part; return the edges of the filled graph as _halve() does."""
    from tri_apsp.kernels.cpu import dissection as kernels

    return kernels.dissect(*arguments), []
