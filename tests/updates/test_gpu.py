"""Updates on a GPU, whose kernels run in Triton's interpreter too."""

from typing import Any

import cases
import numpy as np
import pytest
import torch
from updates.changing import KINDS, changed, check, graph_of
from updates.test_criticality import check as check_criticality
from updates.test_criticality import edges_of

import tri_apsp
from tri_apsp import NegativeCycleError, update
from tri_apsp.updates import closing, raises

INF = cases.INF
GRAPHS = [each for each in KINDS if each[0] == "dense"] + [("sparse", torch.float32)]


class UpdatesContract:
    """Raises, cuts and criticality; subclasses set `device`."""

    device: str

    def check_changes(self, weights: cases.Matrix, kind: str, dtype: torch.dtype) -> None:
        """Rises alone, then with cuts, with predecessors and without, and all that closes again."""
        random = np.random.default_rng(len(weights))
        weights = changed(weights, [], [])
        for predecessors in (True, False):
            graph, now = graph_of(weights, kind, dtype, self.device), weights
            updated = tri_apsp.shortest_paths(graph, predecessors=predecessors), graph
            for step in range(2):
                edges = edges_of(now, directed=True)
                chosen = [edges[i] for i in random.permutation(len(edges))[:3]]
                by = [[2, INF, 5], [INF, 0, 3]][step][: len(chosen)]
                new = [now[edge] + more for edge, more in zip(chosen, by, strict=True)]
                if step == 1 and len(now) > 2 and now[1, 2] == INF:
                    chosen, new = [*chosen, (1, 2)], [*new, 40]
                now = changed(now, chosen, new)
                updated = update(*updated, chosen, new)
                check(*updated, now)

    @pytest.mark.parametrize(("kind", "dtype"), GRAPHS, ids=str)
    @pytest.mark.parametrize("name", ["zero weights", "negative"])
    def test_changes(self, name: str, kind: str, dtype: torch.dtype) -> None:
        self.check_changes(cases.CASES[name](6), kind, dtype)

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_zero_cycles_do_not_keep_each_other_alive(self, kind: str) -> None:
        weights = np.full((3, 3), INF)
        weights[0, 1], weights[1, 2], weights[2, 1] = 5, 0, 0
        graph = graph_of(weights, kind, torch.float32, self.device)
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        check(*update(result, graph, [(0, 1)], [INF]), changed(weights, [(0, 1)], [INF]))

    def test_many_raises_at_one_vertex(self) -> None:
        """More than 32 edges that one step looks at."""
        weights = changed(cases.random_graph(18, degree=2), [], [])
        edges = [(0, v) for v in range(1, 18)] + [(v, 0) for v in range(1, 18)]
        weights = changed(weights, edges, [9] * len(edges))
        graph = graph_of(weights, "dense", torch.int16, self.device)
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        raised = changed(weights, edges, [30] * len(edges))
        check(*update(result, graph, edges, [30] * len(edges)), raised)

    def test_too_many_pairs_are_solved_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(raises.GpuRepair, "_few_edges", 48)
        weights = changed(cases.chain(12), [], [])
        graph = graph_of(weights, "dense", torch.float32, self.device)
        result, before = tri_apsp.shortest_paths(graph), graph.clone()
        found = update(result, graph, [(5, 6)], [9])
        assert found.result.plan.reason.endswith("solved anew: many pairs are affected")
        check(*found, changed(weights, [(5, 6)], [9]))
        cases.assert_distances(result.distances, weights)
        assert torch.equal(graph, before)

    @pytest.mark.parametrize(("kind", "dtype"), GRAPHS, ids=str)
    @pytest.mark.parametrize("directed", [True, False])
    def test_criticality(self, kind: str, dtype: torch.dtype, directed: bool) -> None:
        weights = cases.CASES["negative"](7)
        edges = edges_of(weights, directed=directed)[::3]
        graph = graph_of(weights, kind, dtype, self.device)
        check_criticality(weights, graph, edges, directed=directed)

    def test_criticality_with_zero_cycles(self) -> None:
        weights = cases.CASES["zero weights"](7)
        graph = graph_of(weights, "sparse", torch.int32, self.device)
        check_criticality(weights, graph, edges_of(weights, directed=True)[::2])


@cases.interpreted
class TestInterpreted(UpdatesContract):
    device = "cpu"

    @pytest.fixture(autouse=True)
    def _on_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several small blocks; what a launch of few sweeps leaves, further ones find."""

        def on_copy(d: torch.Tensor, *given: Any) -> raises.Repair:
            return raises.GpuRepair(d.clone(), *given)  # as criticality does on a GPU

        monkeypatch.setattr(raises, "repair_of", raises.GpuRepair)
        monkeypatch.setattr(closing, "repair_of", on_copy)
        small = {"_BLOCK": 16, "_PROGRAMS": 1, "_LANES": 16, "_SWEEPS": 2, "_LAUNCHES": 2}
        for name, value in small.items():
            monkeypatch.setattr(raises, name, value)


@pytest.mark.gpu
class TestOnGpu(UpdatesContract):
    device = "cuda"

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_larger_graphs(self, kind: str) -> None:
        self.check_changes(cases.random_graph(300, degree=4, high=100), kind, torch.float32)

    def test_a_negative_cycle_changes_nothing(self) -> None:
        graph = graph_of(cases.chain(300), "dense", torch.float32, "cuda")
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        before = [x.clone() for x in (result.distances, result.predecessors, graph)]
        with pytest.raises(NegativeCycleError):
            update(result, graph, [(2, 0), (298, 299)], [-4, 9], in_place=True)
        assert all(map(torch.equal, before, (result.distances, result.predecessors, graph)))

    def test_many_cuts_at_one_vertex(self) -> None:
        weights = changed(cases.random_graph(300, degree=4, high=100), [], [])
        edges = [(7, v) for v in range(50, 90)] + [(v, 7) for v in range(90, 120)]
        graph = graph_of(weights, "dense", torch.float32, "cuda")
        result = tri_apsp.shortest_paths(graph, predecessors=True)
        found = update(result, graph, edges, [3] * len(edges))
        assert found.result.plan.method == "update"
        check(*found, changed(weights, edges, [3] * len(edges)))
