"""The kernels of sparse methods: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py starts that).
"""

import os
from typing import ClassVar

import cases
import numpy as np
import pytest
import torch

import tri_apsp

pytest.importorskip("triton", reason="the engine needs Triton")

from tri_apsp.graphs import generate
from tri_apsp.graphs.sparse import SPARSE_DTYPES, sparse_graph
from tri_apsp.sparse import triton as module
from tri_apsp.sparse import triton_hops as hops_module
from tri_apsp.sparse.cpu import CpuSparseEngine
from tri_apsp.sparse.hops import UNREACHABLE, hop_totals, hops
from tri_apsp.sparse.plan import ROW_METHODS
from tri_apsp.sparse.share import WHOLE, Share
from tri_apsp.sparse.triton import TritonSparseEngine

# Dijkstra's algorithm is for a CPU, and elimination is no method of this engine.
METHODS = [method for method in ROW_METHODS if method not in ("dijkstra", "elimination")]

INF = float("inf")


class EngineContract:
    device: ClassVar[str]
    n: ClassVar[int]
    dtypes: ClassVar[tuple[torch.dtype, ...]] = SPARSE_DTYPES

    def graphs(self, n: int | None = None) -> dict[str, np.ndarray]:
        n = n or self.n
        return {
            "random": cases.random_graph(n),
            "zero and one": cases.random_graph(n, low=0, high=1),
            "sparse": cases.random_graph(n, degree=1),
            "chain": cases.chain(n),
            "star": cases.star(n),
            "no edge": np.full((3, 3), INF),
            "grid": cases.grid(n),
        }

    @pytest.mark.parametrize("method", METHODS)
    def test_distances_are_those_of_the_cpu(self, method: str) -> None:
        for name, weights in self.graphs().items():
            for dtype in self.dtypes:
                graph = sparse_graph(cases.tensor(weights, dtype))
                engine = TritonSparseEngine(graph.to(torch.device(self.device)))
                n = graph.n
                # From vertex 3, a wrong carry of a block's first segment shows in the grid.
                sources = torch.tensor([0, n - 1, n // 2, 1, min(3, n - 1), 0])
                for limit in (tri_apsp.no_edge(dtype) - 1, 9):
                    expected = CpuSparseEngine(graph).distances("dijkstra", sources, limit)
                    found = engine.distances(method, sources, limit)
                    assert torch.equal(found.cpu(), expected), (name, dtype, limit)

    def test_predecessors_are_those_of_the_cpu(self) -> None:
        for name, weights in self.graphs().items():
            for dtype in self.dtypes:
                graph = sparse_graph(cases.tensor(weights, dtype))
                sources = torch.tensor([0, graph.n - 1, graph.n // 2])
                cpu = CpuSparseEngine(graph)
                distances = cpu.distances("dijkstra", sources, tri_apsp.no_edge(dtype) - 1)
                engine = TritonSparseEngine(graph.to(torch.device(self.device)))
                found = engine.predecessors(sources, distances.to(self.device))
                assert torch.equal(found.cpu(), cpu.predecessors(sources, distances)), (name, dtype)

    @pytest.mark.parametrize("most_words", [1, pytest.param(64, marks=pytest.mark.slow)])
    def test_hops_and_their_totals_are_those_of_the_cpu(
        self, monkeypatch: pytest.MonkeyPatch, most_words: int
    ) -> None:
        monkeypatch.setattr(hops_module, "_MOST_WORDS", most_words)
        if self.device == "cpu":  # long lists, and several chunks of them
            monkeypatch.setattr(hops_module, "_CHUNK", 50)
        for name in (
            ("random", "sparse", "chain", "star", "no edge")
            if self.device == "cuda"
            else ("random",)
        ):
            weights = EngineContract.graphs(self, max(self.n, 34))[
                name
            ]  # more sources than bits of a word
            cpu = sparse_graph(cases.tensor(weights, torch.float32))
            lists, n = cpu.to(torch.device(self.device)).by_destination, cpu.n
            starts = torch.arange(min(n, 50))
            for dtype, unreachable in UNREACHABLE.items():
                found = torch.empty(len(starts), n, dtype=dtype, device=self.device)
                too_long = hops_module.hops_on_gpu(lists, starts, found, unreachable)
                assert too_long == (dtype == torch.uint8 and name == "chain" and n > 255)
                if not too_long:
                    assert torch.equal(found.cpu(), hops(cpu, starts, dtype=dtype)), (name, dtype)
            for share in (WHOLE, Share(1, 3)):
                totals = hops_module.totals_on_gpu(lists, share.of(n))
                for one, other in zip(totals, hop_totals(cpu, share), strict=True):
                    assert torch.equal(one.cpu().double(), other), name


@pytest.mark.gpu
class TestOnGpu(EngineContract):
    device, n = "cuda", 700

    @pytest.mark.parametrize(
        ("kind", "method"), [("grid", "elimination"), ("erdos_renyi", "many_sources")]
    )
    def test_all_rows_by_elimination_where_paths_are_long(self, kind: str, method: str) -> None:
        options = {"p": 4e-4} if kind == "erdos_renyi" else {}
        cpu = sparse_graph(generate(kind, 9000, seed=1, **options), dtype=torch.float32)
        expected, found = (
            tri_apsp.shortest_paths(graph, sources=range(2500), method="johnson")
            for graph in (cpu, cpu.to(torch.device("cuda")))
        )
        assert found.method == method
        assert torch.equal(found.distances.cpu(), expected.distances)

    def test_memory_of_many_rows(self) -> None:
        """Beside the result, only workspaces that do not grow with the rows."""
        n = 20_000
        graph = sparse_graph(
            generate("erdos_renyi", n, p=2e-4, seed=1),
            dtype=torch.int32,
            device=torch.device("cuda"),
        )
        _ = graph.by_destination
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        tri_apsp.shortest_paths(graph, method="many_sources", predecessors=True)
        peak = torch.cuda.max_memory_allocated() - before
        assert peak <= (4 + 4) * n**2 + (
            3 << 28
        )  # a slab of distances, or a part of the predecessors

    @pytest.mark.parametrize(
        "method", sorted({*METHODS} - {"frontier"})
    )  # which takes rows one by one
    def test_more_rows_than_programs_along_an_axis(self, method: str) -> None:
        weights = cases.tensor(cases.chain(4), torch.int32)
        expected = tri_apsp.shortest_paths(weights, sources=0, method="johnson", predecessors=True)
        found = tri_apsp.shortest_paths(
            weights.cuda(), sources=[0] * 70_000, method=method, predecessors=True
        )
        for rows, row in (
            (found.distances, expected.distances),
            (found.predecessors, expected.predecessors),
        ):
            assert torch.equal(rows.cpu(), row.expand(70_000, 4))


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="runs in a process of its own, with TRITON_INTERPRET=1",
)
class TestInterpreted(EngineContract):
    device, n, dtypes = "cpu", 8, (torch.float32,)

    def graphs(self, n: int | None = None) -> dict[str, np.ndarray]:
        return {
            name: graph
            for name, graph in super().graphs(n).items()
            if name in ("zero and one", "star", "no edge", "grid")
        }

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Vertices of many edges, several programs, segments over several blocks, and several slabs
        and chunks.
        """
        for name, value in {
            "_SHORT": 4,
            "_TILES": ((4, 2), (1, 8)),
            "_SEGMENTS": 8,
            "_CARRIES": 4,
            "_QUEUED": 4,
            "_EXPANDED": 8,
            "_CHUNK": 4,
            "_SLAB_BYTES": 1,
            "_MOST_ROUNDS": 8,
            "_GRID_ROWS": 2,
            "_VALUES_PER_BLOCK": 20,
        }.items():
            monkeypatch.setattr(module, name, value)
        module._launcher.cache_clear()
