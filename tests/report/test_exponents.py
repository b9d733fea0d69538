"""The study of products by exponents: its graphs, and what its page shows."""

from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("matplotlib")

from report.fake import ENVIRONMENT, FakeMeasurer, target
from tri_apsp.tune.measure.outcome import Outcome
from tri_apsp.tune.space.task import Task

import tri_apsp
from tri_apsp.errors import EngineError
from tri_apsp.report import exponents
from tri_apsp.report.exponents import STUDY
from tri_apsp.report.grids import Point
from tri_apsp.report.measuring import measure
from tri_apsp.report.page import write_study
from tri_apsp.report.rows import StudyRows
from tri_apsp.semirings import no_edge

CPU = torch.device("cpu")


class Measurer(FakeMeasurer):
    """Products by exponents are 8 times as fast, solves twice, but for grids; a quarter of their
    tiles is uncertain.
    """

    def _outcome(self, task: Task, point: Point) -> Outcome:
        graph, call = str(point.values["graph"]), point.values["call"]
        factor = {
            "ordinary": 1,
            "by exponents": 8 if not graph else 1 if "grid" in graph else 2,
        }.get(str(call), 16)
        self.cost = lambda task, point: task.n / factor
        tried = call == "by exponents" and graph and "grid" not in graph
        return dataclasses.replace(
            super()._outcome(task, point), metrics={"uncertain": 0.25} if tried else {}
        )


def page_of(ns: list[int], folder) -> str:
    pytest.importorskip("triton")
    grids = STUDY.grids(target("nvidia"), ns, ["int16"])
    rows = StudyRows(folder / "exponents.csv", STUDY.parameters, ENVIRONMENT, STUDY.metrics)
    results = measure(grids, rows, CPU, 600, lambda device: Measurer())
    return " ".join(
        write_study(STUDY, target("nvidia"), results, folder, "exponents", ["again"])
        .read_text(encoding="utf-8")
        .split()
    )


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("tri_apsp.report.measuring.check_grid_memory", lambda *args: None)
    page = page_of([16384, 4096], tmp_path)
    assert (
        "for n = 16384 in int16, 8.0 times as fast as an ordinary one and at 50% of torch's bfloat16 product of"
        in page
    )
    assert (
        "solves of n = 16384 in int16 are 1.00 (grid, weights 1) to 2.00 (3% of the edges, weights 1)"
        in page
    )
    assert "| small world, weights 1 to 16 | 16.4 s | 8.19 s | 2.00 | 25% | |" in page
    assert "| grid, weights 1 | 16.4 s | 16.4 s | 1.00 | | 1.02 s |" in page
    assert "`hops` is faster for all of these graphs whose weights are all 1." in page
    assert "int16, n = 4096" not in page
    assert "| | kleene | floyd_warshall | squaring |" in page
    assert "| grid, weights 1 to 4 | 16.4 s | 1.02 s | 1.02 s |" in page
    assert "| ordinary | 0.0 | 0.3 |" in page
    assert "| reachability | 0.3 | 4.3 |" in page


def test_a_page_of_products_alone(tmp_path):
    page = page_of([4096], tmp_path)
    assert "## Solves" not in page
    assert "now, a product by exponents runs at " in page


def test_other_engines_are_refused():
    with pytest.raises(EngineError, match="exponents must be measured with the engine nvidia"):
        STUDY.grids(target("cpu"), [], [])


@pytest.mark.parametrize(
    ("graph", "least", "most"),
    [
        ("3% of the edges, weights 1 to 4", 3000, 5000),
        ("16 edges per vertex, weights 1", 5500, 7000),
        ("small world, weights 1 to 16", 6000, 6500),
        ("power law, weights 1 to 4", 4500, 6400),
        ("grid, weights 1 to 16", 1520, 1520),
    ],
)
def test_the_graphs(graph, least, most):
    task = Task("nvidia", "solve", "int16", "nonnegative", 400)
    weights = exponents._Solves().weights(task, Point({"call": "ordinary", "graph": graph}), CPU)
    edges = weights[(weights < no_edge(torch.int16)) & ~torch.eye(400, dtype=torch.bool)]
    assert least <= edges.numel() <= most
    assert int(edges.min()) == 1
    assert int(edges.max()) == (int(graph.split()[-1]))
    assert (weights.diagonal() == 0).all()


def test_hops_are_the_distances_of_unweighted_graphs():
    solves, point = (
        exponents._Solves(),
        Point({"call": "hops", "graph": "16 edges per vertex, weights 1"}),
    )
    weights = solves.weights(Task("cpu", "solve", "int16", "nonnegative", 60), point, CPU)
    weights[:, 5] = no_edge(torch.int16)  # no path leads there
    weights[5, 5] = 0
    found, _ = solves.call(Task("cpu", "solve", "int16", "nonnegative", 60), point, weights)()
    assert torch.equal(found, tri_apsp.shortest_paths(weights).distances)
