"""Zones and turns, against Dijkstra's algorithm on arcs, written plainly."""

import heapq
import itertools
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch

import tri_apsp
from tri_apsp.elimination.restricted import RestrictedGraph
from tri_apsp.errors import InputError, InputTypeError, NegativeCycleError
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph

Turns = dict[tuple[int, int, int], float]


def random_graph(seed: int, n: int = 14, edges: int = 40) -> SparseGraph:
    """With ties, one-way edges, edges both ways and vertices without edges."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n - 1, (2, edges))
    ends = np.concatenate((ends, ends[::-1, : edges // 3]), 1)
    weights = rng.integers(1, 5, ends.shape[1])
    indices, values = torch.from_numpy(ends), torch.from_numpy(weights)
    return sparse_graph(torch.sparse_coo_tensor(indices, values, (n, n)))


def random_turns(graph: SparseGraph, seed: int) -> Turns:
    """Costs of some turns, of which some are forbidden."""
    rng, edges = np.random.default_rng(seed), edges_of(graph)
    pairs = [(u, v, x) for (u, v), (w, x) in itertools.product(edges, edges) if v == w]
    chosen = rng.permutation(len(pairs))[: len(pairs) // 2]
    return {pairs[i]: float(rng.choice([1, 2, 5, math.inf])) for i in chosen}


def edges_of(graph: SparseGraph) -> dict[tuple[int, int], float]:
    ends = graph.by_source.owners().tolist(), graph.by_source.vertices.tolist()
    return dict(zip(zip(*ends, strict=True), graph.by_source.weights.tolist(), strict=True))


def walks(
    graph: SparseGraph, through: list[bool], turns: Turns, source: int, *, u_turns: bool = True
) -> tuple[dict[int, float], dict[int, list[dict[tuple[int, int], int]]]]:
    """The distance of each vertex from a source, and the edges of each shortest walk there."""
    edges, best = edges_of(graph), {}
    found: dict[tuple[int, int], list[list[tuple[int, int]]]] = defaultdict(list)
    queue = [(weight, 0, [edge]) for edge, weight in edges.items() if edge[0] == source]
    tie = itertools.count(1)
    heapq.heapify(queue)
    while queue:
        distance, _, walk = heapq.heappop(queue)
        u, v = walk[-1]
        if best.setdefault((u, v), distance) < distance:
            continue
        found[u, v].append(walk)
        if not through[v]:
            continue
        for (w, x), weight in edges.items():
            cost = turns.get((u, v, x), 0 if u_turns or x != u else math.inf)
            if w == v and cost < math.inf:
                heapq.heappush(queue, (distance + weight + cost, next(tie), [*walk, (v, x)]))
    distances = {source: 0.0}
    paths = defaultdict(list)
    for (_, v), distance in best.items():
        distances[v] = min(distance, distances.get(v, math.inf))
    for (u, v), each in found.items():
        if v != source and best[u, v] == distances[v]:
            paths[v] += each
    return distances, paths


def restrictions(graph: SparseGraph, seed: int) -> list[tuple[RestrictedGraph, dict]]:
    through = (np.random.default_rng(seed).random(graph.n) < 0.6).tolist()
    turns, free = random_turns(graph, seed), [True] * graph.n
    rows = [(*turn, cost) for turn, cost in turns.items()]
    return [
        (tri_apsp.prepare(graph, through=through), {"through": through, "turns": {}}),
        (tri_apsp.prepare(graph, turns=rows), {"through": free, "turns": turns}),
        (
            tri_apsp.prepare(graph, turns=np.array(rows), u_turns=False),
            {"through": free, "turns": turns, "u_turns": False},
        ),
        (
            tri_apsp.prepare(graph, u_turns=False, order="none"),
            {"through": free, "turns": {}, "u_turns": False},
        ),
        (
            tri_apsp.prepare(graph, through=through, turns=rows, u_turns=False),
            {"through": through, "turns": turns, "u_turns": False},
        ),
    ]


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, *(pytest.param(x, marks=pytest.mark.slow) for x in (torch.int32, torch.float64))],
    ids=str,
)
@pytest.mark.parametrize("seed", range(4))
def test_distances_and_paths(seed: int, dtype: torch.dtype) -> None:
    graph = sparse_graph(random_graph(seed), dtype=dtype)
    none = tri_apsp.no_edge(dtype)
    for restricted, rules in restrictions(graph, seed):
        assert (restricted.n, restricted.edges, restricted.dtype) == (graph.n, graph.edges, dtype)
        every = [walks(graph, **rules, source=s) for s in range(graph.n)]
        expected = torch.tensor(
            [[d.get(t, none) for t in range(graph.n)] for d, _ in every], dtype=dtype
        )
        assert torch.equal(tri_apsp.shortest_paths(restricted).distances, expected)
        chosen, ends = [3, 0, 3], [7, 3, 12, 7]
        some = tri_apsp.shortest_paths(restricted, sources=chosen, targets=ends)
        assert torch.equal(some.distances, expected[chosen][:, ends])
        assert (some.sources.tolist(), some.targets.tolist()) == (chosen, ends)
        pairs = np.stack(np.meshgrid(range(graph.n), range(graph.n))).reshape(2, -1)
        found = tri_apsp.paired_distances(restricted, *pairs)
        assert torch.equal(found, expected[tuple(torch.from_numpy(pairs))])
        near = tri_apsp.nearest(restricted, [2, 5])
        assert torch.equal(near.distances[0], expected[[2, 5]].amin(0))
        for v, source in enumerate(near.nearest.tolist()):
            assert expected[:, v][source] == near.distances[0, v] if source >= 0 else True
        limits = [2.0, 6.0]
        values = np.arange(1.0, graph.n + 1)
        within = [(expected <= limit).double() for limit in limits]
        reached = tri_apsp.accessibility(restricted, limits, values)
        assert torch.equal(reached, torch.stack([x @ torch.from_numpy(values) for x in within]))
        to = tri_apsp.accessibility(restricted, limits, values, to_vertex=True)
        assert torch.equal(to, torch.stack([torch.from_numpy(values) @ x for x in within]))
        paths = tri_apsp.paired_paths(restricted, *pairs)
        numbers = list(edges_of(graph))
        for i, (s, t) in enumerate(pairs.T.tolist()):
            own = paths.edges[paths.edge_offsets[i] : paths.edge_offsets[i + 1]].tolist()
            if s == t:
                assert paths[i].tolist() == [s]
            else:
                every_walk = every[s][1].get(t, [])
                walk = [numbers[e] for e in own]
                assert walk in every_walk if every_walk else not len(paths[i])
                assert paths[i].tolist() == ([s] + [v for _, v in walk] if walk else [])


@pytest.mark.parametrize("seed", range(3))
def test_flows(seed: int) -> None:
    graph = random_graph(seed)
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 4, (graph.n, graph.n)).astype(float)
    for restricted, rules in restrictions(graph, seed):
        loads, through = dict.fromkeys(edges_of(graph), 0.0), np.zeros(graph.n)
        unserved = np.zeros(graph.n)
        for s in range(graph.n):
            _, paths = walks(graph, **rules, source=s)
            for t in range(graph.n):
                if s == t:
                    continue
                unserved[s] += 0 if paths.get(t) else demand[s, t]
                for walk in paths.get(t, []):
                    for edge in walk:
                        loads[edge] += demand[s, t] / len(paths[t])
                    for _, v in walk[:-1]:
                        through[v] += demand[s, t] / len(paths[t])
        found = tri_apsp.edge_flows(restricted, range(graph.n), range(graph.n), demand)
        np.testing.assert_allclose(found.loads, [*loads.values()], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.through, through, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.unserved, unserved, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_other_weights(seed: int) -> None:
    """Also with a closed edge, and on another device."""
    graph = random_graph(seed)
    weights = torch.randint(1, 9, (graph.edges,))
    weights[seed] = tri_apsp.no_edge(torch.int64)
    other = tri_apsp.prepare(graph).with_weights(weights)
    for restricted, rules in restrictions(graph, seed):
        heavy = restricted.with_weights(weights).to(torch.device("cpu"))
        found = tri_apsp.shortest_paths(heavy, sources=[0, 4]).distances.tolist()
        open_turns = {
            turn: cost
            for turn, cost in rules["turns"].items()
            if turn[:2] in edges_of(other) and turn[1:] in edges_of(other)
        }
        for row, source in zip(found, (0, 4), strict=True):
            distances, _ = walks(other, **rules | {"turns": open_turns}, source=source)
            assert row == [distances.get(t, tri_apsp.no_edge(torch.int64)) for t in range(graph.n)]
        if restricted.restriction == "turns":
            check_walks(heavy, other, rules | {"turns": open_turns}, sources=[0, 4])


@pytest.mark.parametrize("which", [0, 1])
def test_rows_shared_by_devices(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(2)
    closed = graph.by_source.weights.clone()
    closed[3] = tri_apsp.no_edge(torch.int64)
    zones = restrictions(graph, 2)[which][0].with_weights(closed)
    expected = tri_apsp.shortest_paths(zones, sources=[5, 1, 9], predecessors=True)
    twice = (torch.device("cpu"),) * 2  # which are threads here
    monkeypatch.setattr("tri_apsp.request.resolve_all", lambda _: twice)
    for out in (None, torch.empty_like(expected.distances)):
        options = {"sources": [5, 1, 9], "predecessors": True, "device": "all", "out": out}
        found = tri_apsp.shortest_paths(zones, **options)
        parts = found.blocks or [found]
        assert found.sources.tolist() == [5, 1, 9]
        assert torch.equal(torch.cat([x.distances for x in parts]), expected.distances)
        assert torch.equal(torch.cat([x.predecessors for x in parts]), expected.predecessors)
        assert [v for x in parts for v in x.sources.tolist()] == [5, 1, 9]
        assert found.path(9, 3) == expected.path(9, 3)
        assert (found.blocks != ()) == (out is None)


def test_predecessors_of_zones() -> None:
    graph = random_graph(1)
    restricted = restrictions(graph, 1)[0][0]
    result = tri_apsp.shortest_paths(restricted, sources=[4, 1], predecessors=True)
    assert result.predecessors.shape == (2, graph.n)
    edges = edges_of(graph)
    for i, s in enumerate((4, 1)):
        for t in range(graph.n):
            path = result.path(s, t)
            if result.distances[i, t] == tri_apsp.no_edge(torch.int64):
                assert path == []
            else:
                weight = sum(edges[pair] for pair in itertools.pairwise(path))
                assert weight == result.distances[i, t]


def test_a_zone_as_near_to_another_source() -> None:
    """Its paths begin there, and those of the other source do not pass it."""
    weights = torch.full((3, 3), math.inf)
    weights[0, 1], weights[1, 2] = 0, 1
    graph = tri_apsp.prepare(weights, through=[True, False, True])
    result = tri_apsp.nearest(graph, [0, 1], predecessors=True)
    assert result.nearest.tolist() == [0, 1, 1]
    assert [result.path(v, w) for v, w in ((1, 1), (1, 2))] == [[1], [1, 2]]
    negative = graph.with_weights(torch.tensor([-1.0, 1]))
    assert tri_apsp.nearest(negative, [0, 1]).nearest.tolist() == [0, 0, 1]
    rule = "must not lead on from a zone that is nearer to another source, but those of 1 do"
    with pytest.raises(InputError, match=rule):
        tri_apsp.nearest(negative, [0, 1], predecessors=True)


def cost_of(walk: list[int], graph: SparseGraph, turns: Turns, *, u_turns: bool = True) -> float:
    """The weights of the edges of a walk and the costs of its turns."""
    edges = edges_of(graph)
    own = sum(edges[edge] for edge in itertools.pairwise(walk))
    for u, v, x in zip(walk, walk[1:], walk[2:], strict=False):
        own += turns.get((u, v, x), 0 if u_turns or u != x else math.inf)
    return own


def check_walks(restricted: RestrictedGraph, graph: SparseGraph, rules: dict, **options) -> None:
    """Check the distances, and that there is a walk of each; of any solve with turns."""
    rules = {name: rule for name, rule in rules.items() if name != "through"}
    result = tri_apsp.shortest_paths(restricted, predecessors=True, **options)
    expected = tri_apsp.shortest_paths(restricted, **options)
    assert torch.equal(result.distances, expected.distances)
    ends, missing = list(edges_of(graph)), tri_apsp.no_edge(graph.dtype)
    sources = options.get("sources", range(graph.n))
    targets = options.get("targets", range(graph.n))
    assert result.predecessors.dtype == torch.int32
    assert result.predecessors.shape == (len(sources), graph.n + graph.edges)
    for row, s in zip(result.distances.tolist(), sources, strict=True):
        found = result.paths([s] * len(row), targets)
        for i, (distance, t) in enumerate(zip(row, targets, strict=True)):
            walk = found[i].tolist()
            assert s != sources[0] or result.path(s, t) == walk
            if distance == missing:
                assert walk == []
            else:
                assert (walk[0], walk[-1]) == (s, t)
                assert cost_of(walk, graph, **rules) == distance
            edges = found.edges[found.edge_offsets[i] : found.edge_offsets[i + 1]]
            assert [ends[edge] for edge in edges.tolist()] == list(itertools.pairwise(walk))


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, *(pytest.param(x, marks=pytest.mark.slow) for x in (torch.int32, torch.float64))],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_walks(seed: int, dtype: torch.dtype) -> None:
    """Also to some targets, within a limit, from the nearest, and along edges without weight."""
    graph = sparse_graph(random_graph(seed), dtype=dtype)
    free = graph.by_source.weights.clone()
    free[::2] = 0
    flat = tri_apsp.prepare(graph).with_weights(free)
    for restricted, rules in restrictions(graph, seed)[1:]:
        check_walks(restricted, graph, rules)
        check_walks(restricted, graph, rules, method="floyd_warshall")
        check_walks(restricted, graph, rules, sources=[4, 1, 4], targets=[3, 4, 3])
        check_walks(restricted, graph, rules, sources=[4, 1], limit=6.0)
        check_walks(restricted.with_weights(free), flat, rules)
        near = tri_apsp.nearest(restricted, [2, 5], predecessors=True)
        own = {name: rule for name, rule in rules.items() if name != "through"}
        for v, source in enumerate(near.nearest.tolist()):
            if source >= 0:
                walk = near.path(source, v)
                assert (walk[0], walk[-1]) == (source, v)
                assert cost_of(walk, graph, **own) == near.distances[0, v]


def test_a_walk_that_passes_a_vertex_twice(tmp_path: Path) -> None:
    """Whose edges were not given by source."""
    table = pandas.DataFrame({"u": [4, 3, 1, 1, 0], "v": [1, 4, 3, 2, 1], "minutes": 1})
    network = tri_apsp.from_pandas(table, source="u", target="v", weight="minutes")
    graph = tri_apsp.prepare(network, turns=[[0, 1, 2, math.inf], [4, 1, 2, 3]])
    result = tri_apsp.shortest_paths(graph, sources=[0], predecessors=True)
    assert result.predecessors.tolist() == [[-1, 5, 6, 7, 8, -1, 9, 5, 7, 8]]
    assert result.path(0, 2) == [0, 1, 3, 4, 1, 2]
    found = result.paths([0, 0, 0], [0, 2, 1])
    assert [found[i].tolist() for i in range(3)] == [[0], [0, 1, 3, 4, 1, 2], [0, 1]]
    assert (found.edges.tolist(), found.rows.tolist()) == ([0, 2, 3, 4, 1, 0], [4, 2, 1, 0, 3, 4])
    assert found.edge_offsets.tolist() == [0, 0, 5, 6]
    every = tri_apsp.shortest_paths(graph, predecessors=True, out=tmp_path / "d.npy")
    assert every.sources is None
    assert every.path(3, 2) == [3, 4, 1, 2]
    assert np.array_equal(np.load(tmp_path / "d.npy"), every.distances)
    with pytest.raises(InputError, match="next hops must not depend on the vertex before"):
        every.next_hops()
    with pytest.raises(InputError, match=r"`target` must lie in \[0, 5\), but is 5"):
        every.path(0, 5)


def test_what_is_refused() -> None:
    graph = sparse_graph(random_graph(0), dtype=torch.int32)
    zones, turns = (x[0] for x in restrictions(graph, 0)[:2])
    for call in (tri_apsp.closeness, tri_apsp.betweenness, tri_apsp.hops, tri_apsp.prepare):
        with pytest.raises(InputError, match="`graph` must have no zones for this function"):
            call(zones)
    with pytest.raises(InputError, match="`directed=False` does not go with a graph with zones"):
        tri_apsp.shortest_paths(zones, directed=False)
    u, v = next(iter(edges_of(graph)))
    x = next(b for a, b in edges_of(graph) if a == v)
    cases = [
        ({"through": [True]}, InputError, "`through` must be"),
        ({"through": [True], "u_turns": False}, InputError, "`through` must be"),
        ({"turns": [[0, 1, 2]]}, InputTypeError, "rows of four numbers"),
        ({"turns": [[u, v, x, 10**400]]}, InputTypeError, "rows of four numbers"),
        ({"turns": [[13, 0, 1, 1]]}, InputError, "the graph lacks one of those from 13 to 0"),
        ({"turns": [[u, v, 99, 1]]}, InputError, r"in \[0, 14\), not labels, but one is 99"),
        ({"turns": [[u, v, x, 1.5]]}, InputError, "must fit int32, but one is 1.5"),
        ({"turns": [[u, v, x, 5e9]]}, InputError, r"must fit int32, but one is 5e\+09"),
        ({"turns": [[math.inf, v, x, 1]]}, InputError, r"not labels, but one is inf"),
        ({"turns": [[u, v, x, math.nan]]}, InputError, "but one is nan"),
        ({"turns": [[u, v, x, 1], [u, v, x, 2]]}, InputError, "each turn once"),
        ({"turns": [], "order": range(14)}, InputError, "`order` must name no vertices"),
    ]
    for options, kind, message in cases:
        with pytest.raises(kind, match=message):
            tri_apsp.prepare(graph, **options)
    largest = torch.tensor([[0, 2**62 - 2], [2**62 - 2, 0]])
    with pytest.raises(InputError, match=r"the cost of a turn, .* must fit int64, but one is 1;"):
        tri_apsp.prepare(largest, turns=[[0, 1, 0, 1]])
    floats = sparse_graph(graph, dtype=torch.float64)
    halves = tri_apsp.prepare(floats, turns=[[u, v, x, 0.5]])
    with pytest.raises(InputError, match=r"must fit int32, but one is 0\.5"):
        halves.with_weights(torch.ones(graph.edges, dtype=torch.int32))
    with pytest.raises(InputError, match="cannot be reversed"):
        turns.reversed()
    with pytest.raises(AttributeError, match="a graph with zones has no 'save'"):
        zones.save("z.npz")


def test_negative_cycles_have_the_vertices_of_the_graph() -> None:
    weights = torch.tensor([[0, 1, 5], [-3, 0, 1], [5, 5, 0]])
    for options in ({"turns": [[0, 1, 0, -1]]}, {"through": [True, True, False]}):
        graph = tri_apsp.prepare(weights, **options)
        for call in (
            lambda x: tri_apsp.shortest_paths(x),
            lambda x: tri_apsp.paired_distances(x, [0], [2]),
            lambda x: tri_apsp.paired_paths(x, [0], [2]),
            lambda x: tri_apsp.accessibility(x, 3),
        ):
            with pytest.raises(NegativeCycleError) as found:
                call(graph)
            assert set(found.value.vertices) <= {0, 1}
            assert found.value.labels == graph.labels
        marked = tri_apsp.shortest_paths(graph, negative_cycles="mark", predecessors=True)
        assert set(marked.negative_cycle.vertices) <= {0, 1}
        assert marked.path(0, 2) == []


def test_forms_of_a_graph() -> None:
    """Undirected, reversed, without vertices, and with a negative edge between sources."""
    one_way = torch.tensor([[0, 3, 9], [99, 0, 1], [99, 99, 0]])
    one_way[one_way == 99] = tri_apsp.no_edge(torch.int64)
    both = tri_apsp.prepare(one_way, directed=False, through=[True] * 3)
    twice = both.with_weights(sparse_graph(2 * one_way.clamp(max=20)))
    plain = tri_apsp.prepare(one_way, directed=False)
    expected = tri_apsp.shortest_paths(plain.with_weights(2 * plain.by_source.weights)).distances
    assert torch.equal(tri_apsp.shortest_paths(twice).distances, expected)
    zones = tri_apsp.prepare(one_way, through=[True, False, True])
    there = tri_apsp.shortest_paths(zones).distances
    assert torch.equal(tri_apsp.shortest_paths(zones.reversed()).distances, there.T)
    empty = tri_apsp.prepare(torch.empty(0, 0), through=torch.empty(0, dtype=torch.bool))
    assert tri_apsp.shortest_paths(empty).distances.shape == (0, 0)
    negative = torch.tensor([[0, -1, 9], [9, 0, 1], [9, 9, 0]])
    for graph in (negative, tri_apsp.prepare(negative, through=[True] * 3)):
        found = tri_apsp.nearest(graph, [0, 1], predecessors=True)
        assert (found.nearest.tolist(), found.predecessors.tolist()) == ([0, 0, 0], [[-1, 0, 1]])


@pytest.mark.gpu
def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.elimination.gpu._SWEEP_SECONDS", math.inf)
    network = sparse_graph(tri_apsp.graphs.generate("roads", 1500, seed=3), dtype=torch.int64)
    ends = torch.arange(0, network.n, 7)
    for options in ({"through": (torch.arange(network.n) % 5 > 0).tolist()}, {"u_turns": False}):
        graph = tri_apsp.prepare(network, **options)
        on_gpu = graph.to(torch.device("cuda"))
        for call in (
            lambda x: tri_apsp.shortest_paths(x).distances,
            lambda x: tri_apsp.shortest_paths(x, sources=ends, targets=ends).distances,
            lambda x: tri_apsp.paired_distances(x, ends[:-1], ends[1:]),
            lambda x: tri_apsp.nearest(x, ends).distances,
            lambda x: tri_apsp.accessibility(x, [100.0, 900.0]),
        ):
            assert torch.equal(call(on_gpu).cpu(), call(graph))
        one, other = (tri_apsp.edge_flows(x, ends, ends, 1.0) for x in (on_gpu, graph))
        for found, expected in zip(one, other, strict=True):
            torch.testing.assert_close(found, expected, rtol=2e-6, atol=1e-6)
        chosen = ends[:-1], ends[1:]
        expected = tri_apsp.paired_distances(graph, *chosen)
        reached = expected < tri_apsp.no_edge(torch.int64)
        rows = tri_apsp.shortest_paths(on_gpu, sources=ends, predecessors=True)
        for paths in (tri_apsp.paired_paths(on_gpu, *chosen), rows.paths(*chosen)):
            weights = on_gpu.by_source.weights[paths.edges].cpu().double()
            sums = torch.segment_reduce(weights, "sum", lengths=paths.edge_offsets.diff().cpu())
            assert torch.equal(sums[reached].int(), expected[reached])
