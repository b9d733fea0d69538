"""SparseSolver: what it checks before it chooses a method, and that all blocks are solved by the
same one.
"""

from __future__ import annotations

import cases
import pytest
import torch

from tri_apsp import device, engines
from tri_apsp.errors import DistanceRangeError, EngineError, NegativeCycleError, TooLargeError
from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import sparse_graph
from tri_apsp.sparse import solve as module
from tri_apsp.sparse.cpu import CpuSparseEngine
from tri_apsp.sparse.hops import totals
from tri_apsp.sparse.solve import SparseSolver


def test_all_blocks_are_solved_by_one_method() -> None:
    solver = SparseSolver(
        sparse_graph(cases.tensor(cases.random_graph(50, degree=12), torch.float32)), "auto"
    )
    blocks = list(solver.blocks(40))
    assert [(rows.start, rows.stop, solved.method) for rows, solved in blocks] == [
        (0, 40, "many_sources"),
        (40, 50, "many_sources"),
    ]


def test_rows_are_checked_before_a_method_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice may take seconds."""

    def choose(*_: object) -> str:
        raise AssertionError("chosen first")

    monkeypatch.setattr(SparseSolver, "_method_for", choose)
    monkeypatch.setattr(device, "free_memory", lambda _: 10**6)
    large = SparseSolver(sparse_graph(generate("chain", 1000)), "auto")
    with pytest.raises(TooLargeError):
        large.solve(torch.arange(1000))
    with pytest.raises(TooLargeError):
        large.method_of_blocks(1000)
    cyclic = SparseSolver(sparse_graph(torch.tensor([[0.0, -2.0], [1.0, 0.0]])), "auto")
    with pytest.raises(NegativeCycleError):
        cyclic.solve(torch.tensor([0]))
    with pytest.raises(NegativeCycleError):
        cyclic.method_of_blocks(1)


@pytest.mark.gpu
def test_a_gpu_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_triton", lambda: False)
    graph = sparse_graph(torch.zeros(10, 10).cuda())
    for solve in (lambda: SparseSolver(graph, "auto"), lambda: totals(graph)):
        with pytest.raises(EngineError, match="needs Triton, but it is not installed"):
            solve()


def test_an_allocation_that_fails_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: object, **__: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(CpuSparseEngine, "distances", out_of_memory)
    solver = SparseSolver(sparse_graph(torch.zeros(10, 10)), "dijkstra")
    for solve in (lambda: solver.solve(torch.arange(5)), lambda: next(solver.blocks(5))):
        with pytest.raises(
            TooLargeError, match=r"although enough seemed free \(CUDA out of memory\); free what"
        ):
            solve()


def test_potentials_are_subtracted_in_the_memory_of_the_distances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve, addresses = SparseSolver._solve_nonnegative, list[int]()

    def watched(*args: object) -> tuple[torch.Tensor, torch.Tensor | None]:
        found = solve(*args)
        addresses.append(found[0].data_ptr())
        return found

    monkeypatch.setattr(SparseSolver, "_solve_nonnegative", watched)
    graph = sparse_graph(cases.tensor(cases.negative_graph(60), torch.float32))
    assert graph.lowest < 0
    found = SparseSolver(graph, "dijkstra").solve(torch.arange(60))
    assert addresses == [found.distances.data_ptr()]


@pytest.mark.parametrize("row", [0, 9])
def test_the_range_is_checked_in_parts(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_A_TIME", 30)
    weights = torch.full((10, 10), 2**30 - 1, dtype=torch.int32)
    weights[row, 1], weights[1, 2], weights[3, 4] = 2**29, 2**29, 5
    solver = SparseSolver(sparse_graph(weights), "dijkstra")
    assert solver.solve(torch.tensor([3, 4, 3, 4])).distances.max() == 2**30 - 1
    with pytest.raises(DistanceRangeError):
        solver.solve(torch.arange(10))
