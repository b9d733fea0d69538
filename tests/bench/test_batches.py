"""Batches of small graphs: the loop of torch operations, and what a wrong result does."""

from __future__ import annotations

import cases
import pytest
import torch

import tri_apsp
from tri_apsp.bench import batches
from tri_apsp.bench.cases import Case
from tri_apsp.configs import Config

CPU = torch.device("cpu")


def measured(case: Case) -> batches.BatchRow:
    (row,) = batches.measure_batches([case], CPU, config=Config(), repeat=3)
    return row


@pytest.mark.parametrize("dtype", [torch.float64, torch.int16], ids=str)
@pytest.mark.parametrize("make", [cases.random_graph, cases.negative_graph])
def test_the_loop_of_torch_operations(dtype, make):
    weights = torch.stack([cases.tensor(make(9, seed=seed), dtype) for seed in range(20)])
    assert torch.equal(batches.solve_by_torch(weights), tri_apsp.shortest_paths(weights).distances)


@pytest.mark.parametrize("value", [float("nan"), -float("inf"), -1000])
def test_the_loop_checks_as_shortest_paths_does(value):
    weights = torch.rand(5, 6, 6)
    weights[3, 1, 2] = value
    with pytest.raises(ValueError, match="without a negative cycle"):
        batches.solve_by_torch(weights)


@pytest.mark.parametrize(
    "case",
    [Case(8, torch.float32, 300), Case(5, torch.int16, 7, "any"), Case(1, torch.int64, 1)],
    ids=str,
)
def test_a_row(case):
    row = measured(case)
    assert (row.n, row.batch, row.sign, row.engine) == (case.n, case.batch, case.sign, "cpu")
    assert (
        min(
            row.p50_seconds,
            row.sizes_seconds,
            row.copy_seconds,
            row.torch_seconds,
            row.scipy_seconds,
        )
        > 0
    )
    assert len(batches.line(row)) == len(batches.TITLES)


def test_a_wrong_result_is_not_timed(monkeypatch):
    def wrong(weights, **options):
        result = tri_apsp.shortest_paths(weights, **options)
        result.distances[-1, 0, -1] += 1
        return result

    monkeypatch.setattr(batches, "shortest_paths", wrong)
    with pytest.raises(
        AssertionError, match="shortest_paths is wrong for float32 nonnegative, n = 8, 300 graphs"
    ):
        measured(Case(8, torch.float32, 300))
