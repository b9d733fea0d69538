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

_Part = list[int]
"""A part of the graph: its begin and end in the order, and a seed."""


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
    done, fill, (*rest, vertices) = kernels.reduce(offsets, neighbours, order, stop)
    n = len(vertices)

    def dissect(places: tuple[Array, ...], part: _Part) -> tuple[int, list[_Part]]:
        """Order the vertices of a part; of a large one halve it alone, and return the halves.
        Returns also a lower bound on the edges of the filled graph in it.
        """
        size = part[1] - part[0]
        waiting = np.empty((size + 2, 3), np.int64)
        waiting[0] = part
        once, local = size > _TASK_VERTICES, np.full(n, -1, np.int32)
        edges, count = kernels.dissect(*rest, places, waiting, once, local, limit, stop)
        return edges, waiting[:count].tolist()

    def begin(seed: int) -> tuple[tuple[Array, ...], int, list[_Part]]:
        offsets, neighbours = rest
        rows = offsets[:-1].copy(), offsets[1:].copy(), neighbours.copy()
        places = np.arange(n, dtype=np.int32), *rows
        return places, *dissect(places, [0, n, seed])

    # The first bisection, on two threads: the better of two.
    seeds = range(_FIRST_BISECTIONS) if n > _TASK_VERTICES else [n]
    places, edges, waiting = min(pool.map(begin, seeds), key=lambda found: _cost(found[2]))
    fill += edges
    running: set[Future[Any]] = set()
    while (waiting or running) and fill <= limit and not stop[0]:
        running |= {pool.submit(dissect, places, part) for part in waiting}
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        waiting = []
        for task in finished:
            edges, parts = task.result()
            fill += edges
            waiting += parts
    if fill > limit:
        return None
    order[done : done + n] = vertices[places[0]]
    return order


def _cost(halves: list[_Part]) -> tuple[int, int]:
    """Return a number that grows with the separator of halves, and the larger half."""
    sizes = [end - begin for begin, end, _ in halves]
    return -sum(sizes), max(sizes, default=0)
