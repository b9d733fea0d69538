from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import cases
import pytest
import torch
from engines.contract import EngineContract

import tri_apsp


class TestCpuEngine(EngineContract):
    name, device = "cpu", "cpu"


def test_a_diagonal_block_may_be_deeper_than_a_slice_of_the_product() -> None:
    weights = cases.random_graph(150)
    config = tri_apsp.Config(block_size=70, product=tri_apsp.CpuTiles(100, 64, 16))
    for method in ("floyd_warshall", "kleene"):
        result = tri_apsp.shortest_paths(cases.tensor(weights, torch.float32), method=method, config=config)
        cases.assert_distances(result.distances, weights)


@pytest.mark.parametrize("threads", [1, 3])
def test_torch_threads_are_obeyed_and_change_no_bit(threads: int) -> None:
    weights = torch.rand(300, 300, generator=torch.Generator().manual_seed(1))
    expected = tri_apsp.shortest_paths(weights).distances
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(tri_apsp.shortest_paths(weights).distances, expected)
    finally:
        torch.set_num_threads(before)


def test_several_threads_may_solve_at_once() -> None:
    graphs = [cases.random_graph(200, seed=seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda graph: tri_apsp.shortest_paths(cases.tensor(graph, torch.float32)), graphs))
    for graph, result in zip(graphs, results, strict=True):
        cases.assert_distances(result.distances, graph)


class _Graphs(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, seed: int) -> torch.Tensor:
        return tri_apsp.shortest_paths(cases.tensor(cases.random_graph(250, degree=250, seed=seed), torch.float32)).distances


def test_the_workers_of_a_data_loader_solve_too() -> None:
    expected = [_Graphs()[seed] for seed in range(4)]  # the parent has used the engine before it forks
    loader = torch.utils.data.DataLoader(_Graphs(), batch_size=None, num_workers=2, timeout=60)
    for distances, same in zip(loader, expected, strict=True):
        assert torch.equal(distances, same)
