"""The search for negative cycles: with a queue on the CPU, and in rounds by kernels.

Rounds run on a GPU or in Triton's interpreter (tests/kernels/test_interpreter.py starts that).
"""

import os
from typing import Any

import cases
import pytest
import torch

import tri_apsp
from tri_apsp import no_edge
from tri_apsp.cycles.search import DenseCycleSearch
from tri_apsp.errors import NegativeCycleError

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
searches = pytest.mark.parametrize(
    ("device", "in_rounds"),
    [
        pytest.param("cpu", False, id="queue"),
        pytest.param("cpu", True, marks=interpreted, id="interpreted"),
        pytest.param("cuda", True, marks=pytest.mark.gpu, id="gpu"),
    ],
)

N = 60


def graph(seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Random weights, some negative, and a random component per vertex; -1 for a few."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randint(-3, 40, (N, N), generator=generator).to(dtype)
    missing = torch.rand(N, N, generator=generator) > 4 * (1 + seed % 4) / N
    labels = torch.randint(-1, 1 + seed % 7, (N,), generator=generator)
    return weights.masked_fill(missing, no_edge(dtype)), labels


@searches
@cases.every_dtype
def test_a_cycle_of_each_negative_component(
    device: str, in_rounds: bool, dtype: torch.dtype
) -> None:
    negative = 0
    seeds = range(30) if device == "cuda" or not in_rounds else (0, 6, 11)
    for seed in seeds:
        weights, labels = graph(seed, dtype)
        search = DenseCycleSearch(weights.to(device), in_rounds)
        cycles = search.run(labels)
        found = set[int]()
        for cycle in cycles:
            vertices = list(cycle.vertices)
            assert len(set(vertices)) == len(vertices)
            (label,) = set(labels[vertices].tolist())
            assert label >= 0
            assert cycle.weight == weights[vertices, vertices[1:] + vertices[:1]].sum() < 0
            assert label not in found
            found.add(label)
        negative += len(found)
        for label in set(labels.tolist()) - found - {-1}:
            part = (labels == label).nonzero().flatten()
            edges = weights[part][:, part]
            if dtype.is_floating_point:
                alone = DenseCycleSearch(edges.to(device), in_rounds)
                assert not alone.run()
                potentials = alone.potentials()
                reduced = edges.double() + potentials[:, None] - potentials
                assert (reduced[edges < no_edge(dtype)] >= 0).all()  # so no cycle is negative
            else:
                tri_apsp.shortest_paths(edges.contiguous())
    assert negative == (21 if len(seeds) == 30 else 5)


@searches
def test_the_longest_cycle_and_large_integers(device: str, in_rounds: bool) -> None:
    weights, cycle = cases.negative_cycle(90, 90)
    big = torch.full((3, 3), no_edge(torch.int64))
    big[0, 1], big[1, 0] = 1 << 55, -(1 << 55) - 1
    beyond = torch.full((3, 3), float("inf"), dtype=torch.float64)
    beyond[0, 1] = beyond[1, 0] = -1e308  # whose potentials no float holds
    for matrix, members, weight in (
        (cases.tensor(weights, torch.float32), set(cycle), -1),
        (big, {0, 1}, -1),
        (beyond, {0, 1}, -float("inf")),
    ):
        (found,) = DenseCycleSearch(matrix.to(device), in_rounds).run()
        assert set(found.vertices) == members
        assert found.weight in (weight, -2e308)


@pytest.mark.gpu
def test_large_graphs_stay_on_their_gpu() -> None:
    weights, cycle = cases.negative_cycle(1100, 40)
    (found,) = DenseCycleSearch(cases.tensor(weights, torch.float32, "cuda")).run()
    assert set(found.vertices) == set(cycle)


@pytest.mark.parametrize("call", [tri_apsp.shortest_paths, tri_apsp.nearest])
def test_a_cycle_that_reaches_the_lowest_value(call: Any) -> None:
    """One that the source does not reach; from another it is found."""
    weights = torch.full((4, 4), no_edge(torch.int64))
    weights[3, 2], weights[2, 0], weights[2, 3] = -(2**61), 2**60, 0
    found = call(weights, sources=[0], method="johnson")
    assert found.distances.tolist() == [[0, *[no_edge(torch.int64)] * 3]]
    with pytest.raises(NegativeCycleError) as error:
        call(weights, sources=[3], method="johnson")
    assert sorted(error.value.vertices) == [2, 3]


@pytest.mark.parametrize("with_cycle", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_acyclic_graph(seed: int, with_cycle: bool) -> None:
    """Also with vertices behind a cycle, which have no place in a topological order."""
    generator, n = torch.Generator().manual_seed(seed), 60
    weights = torch.randint(-9, 9, (n, n), generator=generator)
    missing = torch.rand(n, n, generator=generator) < 0.9
    weights = weights.masked_fill(missing, no_edge(torch.int64)).triu(1)
    weights += torch.full((n, n), no_edge(torch.int64)).tril()
    if with_cycle:
        weights[20, 10] = 600
        weights[10, 20] = 1
    place = torch.randperm(n, generator=generator)
    weights = weights[place][:, place]
    found = tri_apsp.shortest_paths(weights, method="dijkstra").distances
    assert torch.equal(found, tri_apsp.shortest_paths(weights, method="floyd_warshall").distances)
