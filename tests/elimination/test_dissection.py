"""Nested dissection: valid orders of any graph, little fill-in, and no order where there is none
with little.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tri_apsp.elimination import dissection
from tri_apsp.elimination.dissection import nested_dissection

Array = np.ndarray[Any, Any]
Graph = tuple[Array, Array]


def symmetric(n: int, ends: Any) -> Graph:
    """Return offsets and neighbours of the graph with these edges (2, edges), without loops."""
    one, two = np.asarray(ends, np.int64).reshape(2, -1)
    keys = np.unique(np.concatenate([one * n + two, two * n + one]))
    rows, neighbours = keys // max(n, 1), keys % max(n, 1)
    rows, neighbours = rows[rows != neighbours], neighbours[rows != neighbours]
    offsets = np.concatenate([[0], np.bincount(rows, minlength=n).cumsum()])
    return offsets.astype(np.int64), neighbours.astype(np.int32)


def grid(*shape: int) -> Graph:
    """Return a grid in any number of dimensions."""
    v = np.arange(np.prod(shape)).reshape(shape)
    ones = [np.moveaxis(v, axis, 0)[1:].ravel() for axis in range(len(shape))]
    others = [np.moveaxis(v, axis, 0)[:-1].ravel() for axis in range(len(shape))]
    return symmetric(v.size, [np.concatenate(ones), np.concatenate(others)])


def path(n: int) -> Graph:
    return symmetric(n, [np.arange(n - 1), np.arange(1, n)])


def random_graph(n: int, edges: int) -> Graph:
    return symmetric(n, np.random.default_rng(0).integers(0, n, (2, edges)))


def hubs(n: int, count: int) -> Graph:
    """Return a graph in which all vertices are adjacent to each of a few."""
    return symmetric(n, [np.repeat(np.arange(n), count), np.tile(np.arange(count), n)])


def cliques(count: int, size: int) -> Graph:
    one, two = np.triu_indices(size, 1)
    first = size * np.arange(count)[:, None]
    return symmetric(count * size, [(first + one).ravel(), (first + two).ravel()])


def random_tree(n: int) -> Graph:
    parents = np.random.default_rng(1).random(n - 1) * np.arange(1, n)
    return symmetric(n, [np.arange(1, n), parents.astype(np.int64)])


def fill_and_height(graph: Graph, order: Array) -> tuple[int, int]:
    """Return the edges of the filled graph, and the vertices on the longest path of the elimination
    tree, by elimination in sets.
    """
    offsets, neighbours = graph
    later = [set(part.tolist()) for part in np.split(neighbours, offsets[1:-1])]
    rank = np.argsort(order)
    height, fill = np.ones(len(order), np.int64), 0
    for v in order.tolist():
        fill += len(later[v])
        for u in later[v]:
            later[u] |= later[v]
            later[u] -= {u, v}
        if later[v]:
            parent = min(later[v], key=rank.__getitem__)
            height[parent] = max(height[parent], height[v] + 1)
    return fill, int(height.max(initial=0))


def check_order(graph: Graph, order: Array | None) -> Array:
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(len(graph[0]) - 1))
    return order


@pytest.mark.parametrize(
    ("graph", "most_fill", "most_height"),
    [
        (symmetric(0, [[], []]), 0, 0),
        (symmetric(1, [[], []]), 0, 1),
        (symmetric(1000, [[], []]), 0, 1),
        (path(1000), 2, 30),
        (symmetric(1000, [np.arange(1000), np.roll(np.arange(1000), 1)]), 2, 30),
        (hubs(3000, 1), 1, 2),
        (hubs(3000, 4), 4, 5),
        (cliques(1, 200), 100, 200),
        (cliques(400, 6), 2.5, 6),
        (random_tree(2000), 1.5, 50),
        (grid(2, 2000), 4, 250),
        (grid(12, 12, 12), 80, 500),
        (random_graph(600, 2400), 150, 400),
    ],
    ids=[
        "empty", "vertex", "isolated", "path", "cycle", "star", "hubs", "clique", "cliques", "tree",
        "ladder", "cube", "random",
    ],
)  # fmt: skip
def test_orders_of_odd_graphs(graph: Graph, most_fill: float, most_height: int) -> None:
    order = check_order(graph, nested_dissection(*graph, 1e6))
    fill, height = fill_and_height(graph, order)
    assert fill <= most_fill * len(order)
    assert height <= most_height


@given(
    st.integers(1, 400).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4 * n),
        )
    )
)
@settings(max_examples=50, deadline=None)
def test_any_graph_has_an_order(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = drawn
    graph = symmetric(n, np.array(edges, np.int64).reshape(-1, 2).T)
    check_order(graph, nested_dissection(*graph, 1e6))


def test_little_fill_in_on_a_grid() -> None:
    """METIS 5 gives 14.6 edges per vertex and a tree of height 160."""
    graph = grid(60, 60)
    fill, height = fill_and_height(graph, check_order(graph, nested_dissection(*graph, 40)))
    assert fill <= 1.15 * 14.6 * 3600
    assert height <= 1.15 * 160


def test_a_long_path_gives_a_flat_tree() -> None:
    graph = path(200_000)
    order = check_order(graph, nested_dissection(*graph, 3))
    assert fill_and_height(graph, order)[1] <= 60


@pytest.mark.parametrize("edges", [2, 4, 8])
def test_graphs_without_small_separators_are_refused(edges: int) -> None:
    assert nested_dissection(*random_graph(20_000, 20_000 * edges), 40) is None


def test_limit_of_fill_in() -> None:
    graph = grid(100, 100)
    assert nested_dissection(*graph, 40) is not None
    assert nested_dissection(*graph, 4) is None


@pytest.mark.parametrize("graph", [grid(120, 120), cliques(2000, 5)], ids=["grid", "cliques"])
def test_order_does_not_depend_on_threads(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_threads(count: int) -> Array | None:
        threads: Callable[[], int] = lambda: count  # noqa: E731
        monkeypatch.setattr(dissection, "thread_count", threads)
        return nested_dissection(*graph, 40)

    order = check_order(graph, with_threads(1))
    for threads in (2, 2, 5):
        np.testing.assert_array_equal(order, with_threads(threads))


def test_does_not_change_the_graph() -> None:
    graph = grid(30, 30)
    copies = graph[0].copy(), graph[1].copy()
    nested_dissection(*graph, 40)
    np.testing.assert_array_equal(graph[0], copies[0])
    np.testing.assert_array_equal(graph[1], copies[1])
