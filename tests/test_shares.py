"""Calls that several devices share give what one device gives; devices are threads here."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SparseGraph, sparse_graph
from tri_apsp.sparse import betweenness, flows
from tri_apsp.sparse.share import Share, on_devices

DEVICES = ["cpu"] * 3
ROADS = sparse_graph(generate("roads", 400, seed=1))
DENSE = cases.tensor(cases.random_graph(40), torch.float32)
NEGATIVE = cases.tensor(cases.negative_graph(40), torch.int32)
BATCH = torch.stack([DENSE, DENSE.mT, DENSE + 1, DENSE * 2])
VALUES, OFFSETS = tri_apsp.pack(BATCH, torch.tensor([7, 40, 0, 23]))

CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sparse": (ROADS, {}),
    "prepared": (tri_apsp.prepare(ROADS), {}),
    "sources": (ROADS, {"sources": [5, 1, 5, 399, 0]}),
    "targets": (ROADS, {"sources": [5, 1, 8], "targets": [3, 2], "limit": 900}),
    "a source": (ROADS, {"sources": 7}),
    "a dense matrix": (DENSE, {"sources": [5, 1, 8], "targets": [3, 2]}),
    "int16": (DENSE.to(torch.int16), {"sources": [5, 1, 8, 9], "targets": [4, 4, 5]}),
    "negative": (NEGATIVE, {"sources": range(40), "method": "johnson"}),
    "batch": (BATCH, {}),
    "sizes": (BATCH, {"sizes": torch.tensor([7, 40, 0, 23])}),
    "packed": (VALUES, {"offsets": OFFSETS}),
    "no graphs": (BATCH[:0], {}),
    "no vertices": (torch.empty(0, 0).to_sparse(), {}),
}


@pytest.mark.parametrize("predecessors", [False, True])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_as_one_device(name: str, predecessors: bool) -> None:
    graph, options = CALLS[name]
    options = options | {"predecessors": predecessors}
    expected = tri_apsp.shortest_paths(graph, **options)
    result = tri_apsp.shortest_paths(graph, device=DEVICES, **options)
    assert result.plan.way == "shared"
    found = torch.cat([block.distances for block in result.blocks])
    assert torch.equal(found, expected.distances)
    if predecessors:
        found = torch.cat([block.predecessors for block in result.blocks])
        assert torch.equal(found, expected.predecessors)
    out = torch.empty_like(expected.distances)
    result = tri_apsp.shortest_paths(graph, device=DEVICES, out=out, **options)
    assert result.distances is out
    assert torch.equal(out, expected.distances)
    if predecessors:
        assert torch.equal(result.predecessors, expected.predecessors)
    sources = [None if x.sources is None else x.sources.tolist() for x in (result, expected)]
    assert sources[0] == sources[1]
    plan = tri_apsp.select(graph, device=DEVICES, **options)
    assert (plan.way, len(plan.parts)) == ("shared", len(result.plan.parts))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_on_one_gpu_named_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which no caller may do."""
    twice = (torch.device("cuda", 0),) * 2
    monkeypatch.setattr("tri_apsp.request.resolve_all", lambda devices: twice)
    graph, options = CALLS[name]
    expected = tri_apsp.shortest_paths(graph, **options).distances
    result = tri_apsp.shortest_paths(graph, device="all", predecessors=True, **options)
    found = [block.distances for block in result.blocks]
    assert all(part.is_cuda for part in found)
    assert torch.equal(torch.cat([part.cpu() for part in found]), expected)
    out = torch.empty_like(expected)
    tri_apsp.shortest_paths(graph, device="all", out=out, **options)
    assert torch.equal(out, expected)


@pytest.mark.two_gpus
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_on_two_gpus(name: str) -> None:
    graph, options = CALLS[name]
    expected = tri_apsp.shortest_paths(graph, **options).distances
    result = tri_apsp.shortest_paths(graph, device="all", predecessors=True, **options)
    found = [block.distances for block in result.blocks]
    assert [str(part.device) for part in found] == ["cuda:0", "cuda:1"][: len(found)]
    assert torch.equal(torch.cat([part.cpu() for part in found]), expected)
    out = torch.empty_like(expected)
    tri_apsp.shortest_paths(graph, device="all", out=out, **options)
    assert torch.equal(out, expected)


def test_rows_keep_what_they_are() -> None:
    graph = sparse_graph(generate("roads", 400, seed=1))
    result = tri_apsp.shortest_paths(graph, sources=[9, 4, 7, 2], predecessors=True, device=DEVICES)
    assert [block.sources.tolist() for block in result.blocks] == [[9], [4], [7, 2]]
    expected = tri_apsp.shortest_paths(graph, sources=[7], predecessors=True)
    assert result.path(7, 30) == expected.path(7, 30)
    assert "3 devices for the rows" in result.plan.reason


def test_in_place_and_to_a_file(tmp_path: Path) -> None:
    expected, given = tri_apsp.shortest_paths(BATCH).distances, BATCH.clone()
    assert tri_apsp.shortest_paths(given, out=given, device=DEVICES).distances is given
    assert torch.equal(given, expected)
    tri_apsp.shortest_paths(BATCH, out=tmp_path / "d.npy", device=DEVICES)
    assert np.array_equal(np.load(tmp_path / "d.npy"), expected.numpy())


@pytest.mark.parametrize("options", [{}, {"offsets": torch.arange(5) * 1600}])
def test_errors_name_the_graph_as_the_caller_numbers_it(options: dict[str, Any]) -> None:
    batch = BATCH.clone()
    batch[3, 1, 1] = -1
    graph = batch.flatten() if options else batch
    with pytest.raises(tri_apsp.NegativeCycleError) as error:
        tri_apsp.shortest_paths(graph, device=DEVICES, **options)
    assert (error.value.batch, error.value.graphs) == (3, (3,))
    marked = tri_apsp.shortest_paths(graph, device=DEVICES, negative_cycles="mark", **options)
    assert marked.negative_cycle.graph == 3
    graph.view(-1)[-1] = torch.nan
    with pytest.raises(tri_apsp.InputError, match="of the graphs from 2 on, counted from there:"):
        tri_apsp.shortest_paths(graph, device=DEVICES, **options)


def test_a_matrix_in_blocks_of_rows_takes_what_one_device_takes() -> None:
    for graph, options in (
        (DENSE, {"dtype": torch.float64}),
        (DENSE, {"directed": False}),
        (DENSE < 40, {"directed": False}),
        (DENSE, {"check": False}),
    ):
        expected = tri_apsp.shortest_paths(graph, **options)
        result = tri_apsp.shortest_paths(graph, device=DEVICES, **options)
        assert result.plan.way == "block rows"
        found = torch.cat([block.distances for block in result.blocks])
        assert torch.equal(found, expected.distances)


def test_all_graphs_with_a_negative_cycle_are_named() -> None:
    batch = BATCH.clone()
    batch[0, 1, 1] = batch[3, 1, 1] = -1
    with pytest.raises(tri_apsp.NegativeCycleError) as error:
        tri_apsp.shortest_paths(batch, device=DEVICES)
    assert (error.value.batch, error.value.graphs) == (0, (0, 3))


@pytest.mark.parametrize(
    "offsets", [OFFSETS[:-1], OFFSETS.tolist(), torch.tensor([0]), torch.tensor([[0, 49]])]
)
def test_offsets_are_checked_before_they_are_shared(offsets: Any) -> None:
    with pytest.raises(tri_apsp.InputError, match="`offsets` must"):
        tri_apsp.shortest_paths(VALUES, offsets=offsets, device=DEVICES)


def test_in_place_where_only_some_devices_have_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights lie on the second device; a share that is there is solved in place."""
    there = (torch.device("cpu", 1),)
    monkeypatch.setattr("tri_apsp.request._home_of", lambda graph: there)
    monkeypatch.setattr("tri_apsp.request.resolve_all", lambda names: (torch.device("cpu"), *there))
    given = BATCH.clone()
    with pytest.raises(tri_apsp.InputError, match="`predecessors` needs weights that stay"):
        tri_apsp.shortest_paths(given, out=given, predecessors=True, device=DEVICES)


def test_weights_of_bool_are_not_solved_in_place() -> None:
    edges = DENSE < 40
    with pytest.raises(tri_apsp.InputError, match="`out` must not be weights of bool"):
        tri_apsp.shortest_paths(edges, out=edges, device=DEVICES)


def test_one_row_needs_one_device() -> None:
    result = tri_apsp.nearest(ROADS, [3, 9], device=DEVICES)
    assert torch.equal(result.distances, tri_apsp.nearest(ROADS, [3, 9]).distances)


def test_a_gradient_needs_one_device() -> None:
    with pytest.raises(tri_apsp.InputError, match="`device` must not be given with weights that"):
        tri_apsp.shortest_paths(BATCH.clone().requires_grad_(), device=DEVICES)


TRIPS = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
MEASURES: dict[str, Callable[..., Any]] = {
    "eccentricities": tri_apsp.eccentricities,
    "diameter": tri_apsp.diameter,
    "closeness": tri_apsp.closeness,
    "weighted closeness": lambda graph, **_: tri_apsp.closeness(graph, weighted=True, **_),
    "mean_distance": lambda graph, **_: tri_apsp.mean_distance(graph, weighted=True, **_),
    "accessibility": lambda graph, **_: tri_apsp.accessibility(graph, [300, 900], **_),
    "betweenness": lambda graph, **_: tri_apsp.betweenness(graph, endpoints=True, **_),
    "edge_betweenness": lambda graph, **_: tri_apsp.edge_betweenness(graph, weighted=True, **_),
    "fewer sources than devices": lambda graph, **_: tri_apsp.betweenness(
        graph, weighted=True, sources=[7, 3], **_
    ),
    "edge_flows": lambda graph, **_: torch.cat(
        tri_apsp.edge_flows(graph, [3, 9, 3], [7, 50, 0, 3], TRIPS, **_)
    ),
}
FLOWS = "betweenness", "edge_betweenness", "fewer sources than devices", "edge_flows"


def assert_as_on_one_device(name: str, given: SparseGraph, device: Any) -> None:
    measure, tolerance = MEASURES[name], 0.0
    if name in FLOWS:  # whose sums may be rounded elsewhere
        tolerance = 1e-12 if device is DEVICES else 2e-6
    for graph in (given, tri_apsp.prepare(given), tri_apsp.prepare(given, order="none")):
        found = measure(graph, device=device)
        torch.testing.assert_close(
            found, measure(graph), rtol=tolerance, atol=tolerance, equal_nan=True
        )
        if isinstance(found, torch.Tensor):
            assert found.device.type == "cpu"


@pytest.mark.parametrize("name", MEASURES)
def test_measures_as_on_one_device(name: str) -> None:
    assert_as_on_one_device(name, ROADS, DEVICES)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MEASURES)
def test_measures_on_one_gpu_named_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = (torch.device("cuda", 0),) * 2
    for module in ("share", "measures"):
        monkeypatch.setattr(f"tri_apsp.sparse.{module}.resolve_all", lambda devices: twice)
    assert_as_on_one_device(name, ROADS, "all")


@pytest.mark.two_gpus
@pytest.mark.parametrize("name", MEASURES)
def test_measures_on_two_gpus(name: str) -> None:
    assert_as_on_one_device(name, ROADS, "all")
    assert_as_on_one_device(name, ROADS.to(torch.device("cuda", 1)), "cuda:0,cuda:1")


@pytest.mark.gpu
def test_a_graph_that_is_on_the_device_is_not_copied() -> None:
    """So that it keeps what was computed of it."""
    graph = tri_apsp.prepare(ROADS, device="cuda:0")
    with torch.cuda.device(0):
        assert graph.to(torch.device("cuda")) is graph


def test_devices_share_the_sources() -> None:
    """Each has the graph with its order."""
    graph = tri_apsp.prepare(ROADS)
    found = on_devices(
        graph, DEVICES, lambda own, share: [(own.tree, share.of(400))], lambda one, two: one + two
    )
    assert found == [(graph.tree, part) for part in (range(133), range(133, 266), range(266, 400))]


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("device", ["gpu", [], "cuda:9999", ["cpu", "all"], "cpu,cuda:9999"])
def test_wrong_devices(name: str, device: Any) -> None:
    graph = torch.full((60, 60), torch.inf)  # whose diameter is known to be infinite
    with pytest.raises(tri_apsp.InputError) as expected:
        tri_apsp.shortest_paths(graph, device=device)
    with pytest.raises(tri_apsp.InputError) as error:
        MEASURES[name](graph, device=device)
    assert str(error.value) == str(expected.value)


def test_the_error_of_a_share() -> None:
    """Is raised alone, also where the other shares have none."""
    n = 2200  # between the ends of 1100 diamonds there are 2^1100 paths
    ends = torch.arange(0, n - 2, 2)
    edges = torch.full((n, n), torch.inf)
    for offset in (2, 3):
        edges[ends, ends + offset] = edges[ends + 1, ends + offset] = 1
    graph = tri_apsp.prepare(edges, order="none")
    with pytest.raises(tri_apsp.DistanceRangeError, match="the number of shortest paths"):
        tri_apsp.betweenness(graph, sources=[2100, 2150, 0], device=DEVICES)
    with pytest.raises(tri_apsp.NegativeCycleError, match="there is one of weight -1"):
        tri_apsp.closeness(torch.tensor([[0, 1], [-2, 0]]), weighted=True, device=DEVICES)


@pytest.mark.parametrize("failing", [0, 2])
def test_other_shares_end_after_an_error(failing: int) -> None:
    solved = list[slice]()

    def solve(graph: SparseGraph, share: Share) -> None:
        if share.rank == failing:
            raise KeyboardInterrupt
        for part in share.parts(9000, 1):
            solved.append(part)
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        on_devices(ROADS, DEVICES, solve, lambda one, two: one)
    assert len(solved) < 3000


def test_the_first_device_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, bar = list[bool](), flows.progress_bar

    def noted(wanted: bool) -> Any:
        shown.append(wanted)
        return bar(wanted)

    for module in (betweenness, flows):
        monkeypatch.setattr(module, "progress_bar", noted)
    tri_apsp.betweenness(ROADS, progress=True, device=DEVICES)
    tri_apsp.edge_flows(ROADS, [1, 2], [3], 1.0, progress=True, device=DEVICES)
    assert sorted(shown) == [False] * 4 + [True] * 2
