"""Calls that several devices share give what one device gives; devices are threads here."""

from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph

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
