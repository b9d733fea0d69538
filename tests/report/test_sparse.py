"""The study of sparse graphs: its calls return what they should, wrong results are seen, and its
page shows them.
"""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch
from tri_apsp.tune.measure.outcome import Kind
from tri_apsp.tune.measure.problems import WrongResultError

from tri_apsp.device import describe
from tri_apsp.report import sparse, sparse_calls
from tri_apsp.report.grids import Point
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.sparse_calls import (
    DENSE,
    GRAPHS,
    HOPS,
    MANY,
    SPARSE,
    call_of,
    few_edges,
    graph_of,
)
from tri_apsp.report.study import Target

CPU = torch.device("cpu")
TARGET = Target(CPU, "cpu", describe(CPU))
N = 2048


@functools.cache
def graph(name: str):
    return graph_of(GRAPHS.get(name, few_edges(0.01)), N, CPU)


def grids(n: int, engine: str = "cpu"):
    target = dataclasses.replace(TARGET, engine=engine)
    return sparse.STUDY.grids(target, [n], ["float32"])


CASES = [
    (point.values["graph"], point.values["call"])
    for engine in ("cpu", "nvidia")
    for n in (2048, 100_000)
    for grid in grids(n, engine)
    for point in grid.points
]


@pytest.mark.parametrize(("name", "call"), dict.fromkeys(CASES))
def test_each_call_is_right(name: str, call: str) -> None:
    timed = call_of(call, graph(name))
    timed.check(timed.run())
    if timed.sample is not None:
        timed.sample()
        assert timed.times > 0


@pytest.mark.parametrize(
    "call", [DENSE, SPARSE, HOPS, "closeness", f"{MANY} sources, many_sources"]
)
def test_a_wrong_result_is_not_timed(call: str) -> None:
    name = next(iter(GRAPHS))
    timed = call_of(call, graph(name))
    found = timed.run()
    rows = found if isinstance(found, torch.Tensor) else found.distances
    rows.view(-1)[0] = 7
    with pytest.raises(WrongResultError):
        timed.check(found)


def test_what_takes_too_long_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    measurer = sparse.STUDY.measurer(CPU)
    grid = grids(100_000)[0]
    point = Point({"call": "256 sources, SciPy", "graph": next(iter(GRAPHS))})
    monkeypatch.setattr(sparse, "graph_of", lambda draw, n, device: graph(next(iter(GRAPHS))))
    monkeypatch.setattr(sparse_calls, "_check_rows", pytest.fail)
    assert measurer.screen(grid.task, point, 1e-9) is None
    outcome = measurer.screen(
        grid.task,
        dataclasses.replace(point, values=point.values | {"call": "one source, SciPy"}),
        60,
    )
    assert outcome.kind is Kind.correct
    measurer.close()


def results(times):
    found = []
    for n, by_graph in times.items():
        for grid in grids(n):
            known = [
                Measured(
                    point,
                    {
                        "outcome": "correct",
                        "p50_ms": str(by_graph[grid.name][point.values["call"]]),
                    },
                )
                for point in grid.points
                if point.values["call"] in by_graph.get(grid.name, {})
            ]
            found.append(GridResult(grid, known))
    return found


def test_the_page() -> None:
    random = next(iter(GRAPHS))
    times = {
        2048: {
            "1% of the edges": {DENSE: 80, SPARSE: 40},
            "30% of the edges": {DENSE: 80, SPARSE: 800},
        },
        100_000: {
            random: {
                "one source, dijkstra": 30,
                "one source, frontier": 20,
                "one source, SciPy": 50,
                "256 sources, many_sources": 1000,
                "256 sources, SciPy": 12_000,
            }
        },
    }
    page = sparse.STUDY.page(TARGET, results(times), "sparse")
    assert (
        "on a random graph of 100000 vertices with 8 edges to each, one source takes 20 ms by frontier, 2.5 times as fast as "
        "SciPy's Dijkstra, and 256 sources 1 s, 12 times as fast" in page.lead
    )
    assert list(page.plots) == ["sparse"]
    assert "| one source, frontier | 20 ms |" in "\n".join(page.results)
    assert "| all rows, johnson | 40 ms | 800 ms |" in "\n".join(page.details)
    assert not sparse.STUDY.page(TARGET, results({2048: times[2048]}), "sparse").lead
