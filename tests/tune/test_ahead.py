"""What a sweep tells the bench before it asks, so that compilers have work while others are measured."""

from __future__ import annotations

import dataclasses

import pytest
from tune.synthetic import FASTEST, PRODUCT, SOLVE, SyntheticBench
from tune.synthetic import run_sweep as run

pytestmark = pytest.mark.usefixtures("home", "memory")


def test_finalists_of_a_search() -> None:
    bench = SyntheticBench()
    run(bench, trials=40)
    ((_, entrants, _),) = bench.finals
    assert bench.finalists[0] == (PRODUCT, [bench.screened[0][1]])
    task, last = bench.finalists[-1]
    assert (task, set(last)) == (PRODUCT, set(entrants))
    assert len(bench.finalists) < 40


def test_finalists_among_the_products_of_a_solve() -> None:
    bench = SyntheticBench(in_solves=dataclasses.replace(FASTEST, block_n=512))
    run(bench, PRODUCT, SOLVE)
    asked = [entrants for task, entrants, _ in bench.finals if task == SOLVE][-1]
    assert set(bench.finalists[-1][1]) >= set(asked)


def test_how_the_next_task_begins() -> None:
    larger = dataclasses.replace(PRODUCT, n=2048)
    bench = SyntheticBench()
    run(bench, PRODUCT, larger, SOLVE, trials=40)
    (task, configs), after = bench.later
    assert task == larger
    tried = [config for its, config in bench.screened if its == larger]
    # In place of the last of them, the winner of the first task was tried, which nobody knew yet.
    assert set(configs[:-1]) <= set(tried[: len(configs)])
    assert after == (SOLVE, [])  # it will have the tiles that the products find


def test_nothing_of_a_study_that_may_know_them_already() -> None:
    bench = SyntheticBench()
    run(bench, PRODUCT, dataclasses.replace(PRODUCT, n=2048), trials=20, resume=True)
    assert [configs for _, configs in bench.later] == [[]]
