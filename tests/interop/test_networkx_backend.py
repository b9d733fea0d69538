"""The NetworkX backend: its functions against those of NetworkX, what it leaves to NetworkX, and
how NetworkX finds it.
"""

import inspect
import itertools
import pickle
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import tri_apsp
from tri_apsp.errors import TooLargeError
from tri_apsp.interop.networkx_info import FUNCTIONS

nx = pytest.importorskip("networkx")
backend = pytest.importorskip("tri_apsp.interop.networkx_backend")

INSTALLED = "tri_apsp" in nx.utils.backends.backends
needs_entry_points = pytest.mark.skipif(
    not INSTALLED, reason="the entry points of this clone are not installed"
)
KINDS = ("integers", "real", "negative", "missing")
DIJKSTRA = {
    name
    for name in FUNCTIONS
    if "floyd" not in name and "bellman" not in name and name != "johnson"
}
PATHS = {name for name in FUNCTIONS if name.endswith("_path")} | {"johnson"}


@pytest.fixture(autouse=True)
def no_warning_of_the_cache() -> Iterator[None]:
    with nx.config(warnings_to_ignore={"cache"}):
        yield


def make(kind: str, cls: Any, n: int, edges: int) -> Any:
    """A random graph of string nodes; often disconnected, with loops and, in a multigraph, parallel
    edges.

    Negative weights are those of potentials, so that no cycle of a directed graph is negative.
    """
    rng = random.Random(f"{kind}{n}{edges}")
    graph = cls()
    graph.add_nodes_from(f"v{place}" for place in range(n))
    potential = [
        rng.randrange(20) if kind == "negative" and graph.is_directed() else 0 for _ in range(n)
    ]
    for _ in range(edges if n else 0):
        source, target = rng.randrange(n), rng.randrange(n)
        weight = rng.randrange(9) + potential[source] - potential[target]
        attributes = (
            {}
            if kind == "missing" and rng.random() < 0.5
            else {"weight": weight / 8 if kind == "real" else weight}
        )
        graph.add_edge(f"v{source}", f"v{target}", **attributes)
    return graph


def ours(name: str, graph: Any, **arguments: Any) -> Any:
    """Call a function of the backend: through NetworkX where the entry points are installed."""
    if INSTALLED:
        return getattr(nx, name)(graph, **arguments, backend="tri_apsp")
    if backend.can_run(name, (graph,), arguments) is not True:
        raise NotImplementedError
    return getattr(backend, name)(graph, **arguments)


def outcome(call: Any) -> Any:
    """Return what a call returns, as a list if it yields; or the type and the text of its error."""
    try:
        result = call()
        return list(result) if inspect.isgenerator(result) else result
    except NotImplementedError:
        return NotImplementedError
    except Exception as error:
        return type(error), str(error)


def theirs(name: str, graph: Any, **arguments: Any) -> Any:
    return getattr(nx, name)(graph, **arguments)


def variants(name: str) -> Iterator[dict[str, Any]]:
    """Yield arguments to call a function with."""
    parameters = inspect.signature(getattr(backend, name)).parameters
    yield {}
    for weight in {"weight", "distance"} & {*parameters}:
        yield from ({weight: "weight"}, {weight: None})
    if "cutoff" in parameters:
        yield from ({"cutoff": cutoff} for cutoff in (0, 2, 2.5, -1))
    if "method" in parameters:
        methods = (
            "unweighted",
            "dijkstra",
            "bellman-ford",
            "floyd-warshall",
            "floyd-warshall-numpy",
        )
        yield from ({"weight": "weight", "method": method} for method in methods)
    if "wf_improved" in parameters:
        yield {"wf_improved": False}


def assert_alike(found: Any, expected: Any, weights: Any = None, mixed: bool = False) -> None:
    """Assert that two results agree: types, keys, and values, floats within rounding. With weights,
    lists are paths.

    A float may stand for an integer if it is 0, or in a graph that has float weights as well, which
    `floyd_warshall` counts for missing ones: NetworkX has the type of the edges that it added up.
    """
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    elif isinstance(expected, float | int):
        assert type(found) is type(expected) or found == 0 or (mixed and type(found) is float)
        assert found == pytest.approx(expected, rel=1e-12)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_alike(found[key], expected[key], weights, mixed)
    elif (
        isinstance(expected, list | tuple)
        and weights is not None
        and expected
        and all(isinstance(x, str) for x in expected)
    ):
        assert (found[0], found[-1]) == (expected[0], expected[-1])
        lengths = [
            sum(weights[edge] for edge in itertools.pairwise(path)) for path in (found, expected)
        ]
        assert lengths[0] == pytest.approx(lengths[1])
    elif isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, weights, mixed)
    else:
        assert found == expected


def weights_of(graph: Any, attribute: str | None) -> dict[tuple[str, str], float]:
    """Return the weight of each edge in each of its directions, of parallel ones the least."""
    weights: dict[tuple[str, str], float] = {}
    for source, target, weight in graph.edges(data=attribute, default=1):
        for pair in (
            ((source, target),) if graph.is_directed() else ((source, target), (target, source))
        ):
            weights[pair] = min(weight, weights.get(pair, weight))
    return weights


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        *((cls, "real") for cls in (nx.Graph, nx.MultiDiGraph)),
        *(pytest.param(cls, "real", marks=pytest.mark.slow) for cls in (nx.DiGraph, nx.MultiGraph)),
        *((nx.MultiDiGraph, kind) for kind in KINDS if kind != "real"),
    ],
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_networkx(name, kind, cls):
    if not INSTALLED and name == "global_efficiency" and cls().is_directed():
        pytest.skip("NetworkX refuses directed graphs before it calls a backend")
    for n, edges in ((0, 0), (1, 2), (2, 1), (12, 15), (12, 80)):
        graph = make(kind, cls, n, edges)
        for arguments in variants(name):
            found = outcome(partial(ours, name, graph, **arguments))
            expected = outcome(partial(theirs, name, graph, **arguments))
            if found is NotImplementedError:
                weights = weights_of(graph, arguments.get("weight"))
                assert (
                    (kind == "negative" and name in DIJKSTRA)
                    or (name == "center" and graph.size() == n - 1)
                    or ("betweenness" in name and min(weights.values()) <= 0)
                )
            elif name == "floyd_warshall_predecessor_and_distance":
                assert_alike(found[1], expected[1], mixed=kind == "missing")
                assert {node: {*row} for node, row in found[0].items()} == {
                    node: {*row} for node, row in expected[0].items()
                }
                weights = weights_of(graph, arguments.get("weight", "weight"))
                for source, row in found[0].items():
                    for target in row:
                        path = nx.reconstruct_path(source, target, found[0])
                        total = sum(weights[edge] for edge in itertools.pairwise(path))
                        assert total == pytest.approx(expected[1][source][target])
            elif name in PATHS or name == "all_pairs_dijkstra":
                weight = None if "shortest" in name else arguments.get("weight", "weight")
                assert_alike(found, expected, weights_of(graph, weight))
            else:
                assert_alike(found, expected, mixed=kind == "missing" and "floyd" in name)


def test_the_functions_and_their_signatures_are_those_of_networkx():
    assert {*FUNCTIONS} <= {*backend.__all__}
    for name in FUNCTIONS:
        here, there = (
            inspect.signature(f).parameters
            for f in (getattr(backend, name), getattr(nx, name).orig_func)
        )
        assert [*here] == [*there]
        assert [p.default for p in here.values()] == [p.default for p in there.values()]


@pytest.mark.parametrize(
    "name", ["johnson", "all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length"]
)
@pytest.mark.parametrize(
    "graph", [nx.Graph(), nx.DiGraph(), nx.MultiDiGraph()], ids=lambda graph: type(graph).__name__
)
def test_a_negative_cycle_is_unbounded(name, graph):
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, -3), (2, 0, 1)])
    with pytest.raises(nx.NetworkXUnbounded, match="Negative cycle detected"):
        dict(ours(name, graph))


def test_distances_from_nodes_in_order_of_distance():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("s", "far", 9), ("s", "near", 1), ("near", "between", 3)])
    lengths = dict(ours("all_pairs_dijkstra_path_length", graph))
    assert [*lengths["s"].items()] == [("s", 0), ("near", 1), ("between", 4), ("far", 9)]


def test_nodelist_orders_the_matrix():
    graph = make("integers", nx.DiGraph, 6, 12)
    order = sorted(graph, reverse=True)
    np.testing.assert_array_equal(
        ours("floyd_warshall_numpy", graph, nodelist=order),
        theirs("floyd_warshall_numpy", graph, nodelist=order),
    )
    for nodelist in (order[1:], [*order[1:], order[1]], [*order[1:], "none"]):
        found, expected = (
            outcome(partial(f, "floyd_warshall_numpy", graph, nodelist=nodelist))
            for f in (ours, theirs)
        )
        assert found == expected
        assert found[0] is nx.NetworkXError


def test_integers_are_exact_up_to_2_to_the_53():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, {(0, 1): 2**50 + 1, (1, 2): 2**51 + 3}, "weight")
    assert dict(ours("all_pairs_dijkstra_path_length", graph)) == dict(
        theirs("all_pairs_dijkstra_path_length", graph)
    )
    graph[0][1]["weight"] = 2**53 // 3 + 9
    graph.__networkx_cache__.clear()
    with pytest.raises(NotImplementedError):
        ours("all_pairs_dijkstra_path_length", graph)


@pytest.mark.parametrize(
    "weight",
    [True, None, "3", float("inf"), float("nan"), 2j, 10**400, 1e308, np.float32(1)],
    ids=repr,
)
def test_other_weights_are_left_to_networkx(weight):
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, weight, "weight")
    with pytest.raises(NotImplementedError):
        ours("floyd_warshall", graph)


def test_numbers_of_numpy_give_numbers_of_python():
    for scalar, plain in ((np.int64, int), (np.float64, float)):
        graph = nx.path_graph(3)
        nx.set_edge_attributes(graph, scalar(2), "weight")
        ((_, lengths), *_) = ours("all_pairs_dijkstra_path_length", graph)
        assert [type(length) for length in lengths.values()] == [int, plain, plain]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("floyd_warshall", {"weight": lambda *_: 1}),
        ("johnson", {"weight": 3}),
        ("all_pairs_dijkstra", {"cutoff": "2"}),
        ("all_pairs_shortest_path", {"cutoff": float("nan")}),
        ("average_shortest_path_length", {"method": "other"}),
        ("diameter", {"usebounds": True}),
        ("radius", {"e": {0: 1}}),
        ("eccentricity", {"v": 0}),
        ("eccentricity", {"sp": {}}),
        ("closeness_centrality", {"u": 0}),
        ("betweenness_centrality", {"k": 2}),
        ("edge_betweenness_centrality", {"k": 2}),
        ("harmonic_centrality", {"nbunch": [0]}),
        ("harmonic_centrality", {"sources": [0]}),
        ("center", {}),  # of a tree
    ],
)
def test_other_arguments_are_left_to_networkx(name, arguments):
    assert isinstance(backend.can_run(name, (nx.path_graph(4),), arguments), str)


def test_a_disconnected_graph_with_a_negative_cycle_is_disconnected_as_in_networkx():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, -2), (1, 0, 1), (2, 3, 1)])
    with pytest.raises(nx.NetworkXError, match="Graph is not strongly connected"):
        ours("average_shortest_path_length", graph, weight="weight", method="bellman-ford")


def test_sums_of_a_large_graph_take_no_matrix(monkeypatch):
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 100 << 20)
    graph = nx.path_graph(6000)
    found = ours("closeness_centrality", graph)
    assert found[0] == pytest.approx(2 / 6000)
    assert ours("diameter", graph) == 5999
    with pytest.raises((NotImplementedError, TooLargeError)):
        ours("floyd_warshall_numpy", graph)


def test_a_graph_that_does_not_fit_the_memory_is_left_to_networkx(monkeypatch):
    from tri_apsp.interop import networkx_solution

    def refuse(*_: object, **__: object) -> None:
        raise TooLargeError("a problem must fit the memory")

    monkeypatch.setattr(networkx_solution, "check_memory", refuse)
    with pytest.raises(NotImplementedError):
        ours("floyd_warshall", nx.cycle_graph(5))


def test_an_attribute_that_no_edge_has():
    graph = nx.path_graph(4)
    with pytest.warns(UserWarning, match="no edge has the attribute 'lenght'"):
        assert ours("diameter", graph, weight="lenght") == 3
    with pytest.warns(UserWarning, match="no edge has the attribute 'lenght'"):
        tri_apsp.from_networkx(graph, weight="lenght")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours("floyd_warshall", nx.path_graph(3))
        tri_apsp.from_networkx(graph)
        graph[0][1]["length"] = 5
        assert ours("diameter", graph, weight="length") == 7


def test_results_can_be_pickled_and_have_a_default_as_in_networkx():
    found = pickle.loads(pickle.dumps(ours("floyd_warshall", nx.path_graph(3))))
    assert found == theirs("floyd_warshall", nx.path_graph(3))
    assert found[0]["no node"] == float("inf")


def test_a_converted_graph_keeps_its_original():
    graph = make("integers", nx.MultiDiGraph, 5, 9)
    converted = backend.convert_from_nx(graph, edge_attrs={"weight": 1})
    assert backend.convert_to_nx(converted) is graph
    assert (len(converted), converted.nodes) == (5, [*graph])
    assert (converted.is_directed(), converted.is_multigraph()) == (True, True)
    assert backend.floyd_warshall(converted) == theirs("floyd_warshall", graph)


@needs_entry_points
def test_by_priority_it_runs_what_it_should(monkeypatch):
    ran = []
    monkeypatch.setattr(backend, "diameter", lambda *_, **__: ran.append(1) or 3)
    with nx.config(backend_priority=["tri_apsp"]):
        assert nx.diameter(nx.cycle_graph(4)) == 2  # too small
        assert ran == []
        assert nx.diameter(nx.cycle_graph(1000)) == 3
    assert ran == [1]


@needs_entry_points
def test_by_priority_networkx_runs_what_is_left_to_it():
    graph = nx.complete_graph(100)
    nx.set_edge_attributes(graph, float("inf"), "weight")
    with nx.config(backend_priority=["tri_apsp"]):
        assert nx.floyd_warshall(graph)[0][1] == float("inf")
        assert nx.eccentricity(graph, v=0) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "from_n"),
    [
        ("floyd_warshall", {}, 30),
        ("floyd_warshall_numpy", {}, 200),
        ("all_pairs_dijkstra_path_length", {}, 100),
        ("all_pairs_bellman_ford_path", {}, 100),
        ("all_pairs_shortest_path_length", {}, 300),
        ("diameter", {}, 150),
        ("diameter", {"weight": "weight"}, 100),
        ("average_shortest_path_length", {"method": "floyd-warshall"}, 30),
    ],
)
def test_the_rule_leaves_small_graphs_to_networkx(name, arguments, from_n):
    small, large = (
        backend.should_run(name, (nx.gnm_random_graph(n, 6 * n, directed=True),), arguments)
        for n in (from_n // 4, from_n)
    )
    assert isinstance(small, str)
    assert large is True


@pytest.mark.parametrize(
    ("name", "edges"), [("all_pairs_shortest_path", 6000), ("diameter", 200_000)]
)
def test_the_rule_leaves_a_breadth_first_search_to_networkx(name, edges):
    """Of all paths, or of many edges."""
    graph = nx.gnm_random_graph(1000, edges, directed=True)
    assert isinstance(backend.should_run(name, (graph,), {}), str)


IMPORTS = """
import sys, tri_apsp
assert "networkx" not in sys.modules
import networkx
from tri_apsp.interop.networkx_info import backend_info
backend_info()
assert not {"torch", "numba", "tri_apsp.interop.networkx_backend"} & {*sys.modules}
import tri_apsp.interop.networkx_backend as backend
assert backend.can_run("diameter", (networkx.path_graph(3),), {}) is True
assert backend.should_run("diameter", (networkx.path_graph(3),), {}) is not True
assert not {"torch", "numba"} & {*sys.modules}
"""


def test_networkx_loads_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_maximum_of_large_integers_is_exact() -> None:
    """A sum of them might not be."""
    graph = nx.path_graph(2000)
    nx.set_edge_attributes(graph, 10**10, "weight")
    found = nx.eccentricity(graph, weight="weight", backend="tri_apsp")
    assert found == {node: max(node, 1999 - node) * 10**10 for node in graph}
    with pytest.raises(NotImplementedError), pytest.warns(match="a sum of integer distances might"):
        nx.wiener_index(graph, weight="weight", backend="tri_apsp")
