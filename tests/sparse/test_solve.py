"""SparseSolver: what it checks before it chooses a method, and that all blocks are solved by the same one."""

from __future__ import annotations

import cases
import pytest
import torch

from tri_apsp import device
from tri_apsp.errors import NegativeCycleError, TooLargeError
from tri_apsp.graphs import generate
from tri_apsp.sparse.graph import sparse_graph
from tri_apsp.sparse.solve import SparseSolver


def test_all_blocks_are_solved_by_one_method() -> None:
    solver = SparseSolver(sparse_graph(cases.tensor(cases.random_graph(50, degree=12), torch.float32)), "auto")
    blocks = list(solver.blocks(40))
    assert [(rows.start, rows.stop, solved.method) for rows, solved in blocks] == [
        (0, 40, "many_sources"), (40, 50, "many_sources"),
    ]  # fmt: skip


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
