"""Flows of GPUs against those of the CPU: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py starts that).
"""

import os
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from elimination.test_sweeps_gpu import expected_rows, graph_of, grid, tree

from tri_apsp.elimination import gpu as module
from tri_apsp.elimination.cpu import CpuSweeps
from tri_apsp.elimination.flows import FLOW_LANES
from tri_apsp.elimination.gpu import GpuSweeps
from tri_apsp.elimination.tree import elimination_tree
from tri_apsp.elimination.weights import Elimination, customize
from tri_apsp.errors import TooLargeError
from tri_apsp.graphs.sparse import SparseGraph


def both_ways(*edges: tuple[int, int, int]) -> np.ndarray:
    given = np.array(edges).reshape(-1, 3).T
    return np.concatenate([given, given[[1, 0, 2]]], 1)


def eliminated(graph: SparseGraph) -> Elimination:
    order = np.random.default_rng(0).permutation(graph.n)
    if graph.n > 100:  # from both ends to the middle
        order = np.argsort(-np.abs(np.arange(graph.n) - graph.n // 2), kind="stable")
    found = elimination_tree(graph, order, 1 << 24)
    elimination = customize(found, graph, found.weight_indices_of(graph))
    assert elimination is not None
    return elimination


def assert_same(found: Any, expected: Any, name: str) -> None:
    for field in ("through", "loads"):
        x, y = getattr(found, field).numpy(), getattr(expected, field).numpy()
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=0, err_msg=f"{field} of {name}")


class FlowsContract:
    device: ClassVar[str]
    side: ClassVar[int]
    in_shared_memory: ClassVar[bool | None] = None

    def graphs(self) -> dict[str, SparseGraph]:
        n, side = self.side**2, self.side
        tied, one_way = grid(side, 1), grid(side, 2, symmetric=False)
        tied[2], one_way[2] = tied[2] % 2 + 1, one_way[2] % 3 + 1
        star = both_ways(*((0, v, 1 + v % 2) for v in range(1, n)))
        path = both_ways(*((v, v + 1, 1) for v in range(n - 1)))
        kinds = {"ties": tied, "one-way": one_way, "star": star, "path": path}
        found = {name: graph_of(n, edges, torch.float32) for name, edges in kinds.items()}
        none = np.zeros((3, 0), np.int64)
        found["parts"] = graph_of(33, tree(33, 3), torch.float32)
        return found | {"one": graph_of(1, none, torch.float32)}

    def sweeps(self, elimination: Elimination) -> GpuSweeps:
        device = torch.device(self.device)
        return GpuSweeps(elimination, device, in_shared_memory=self.in_shared_memory)

    def test_few_sources_run_on_the_cpu(self) -> None:
        sweeps = self.sweeps(eliminated(self.graphs()["ties"]))
        assert isinstance(sweeps.for_flows(1), CpuSweeps)
        assert sweeps.for_flows(1 << 20) is sweeps

    def test_of_all_sources(self) -> None:
        for name, graph in self.graphs().items():
            elimination, sources = eliminated(graph), torch.arange(graph.n)
            ones = torch.ones(1, 1).double(), torch.zeros(graph.n).int()
            found = self.sweeps(elimination).flows(sources, *ones)
            assert_same(found, CpuSweeps(elimination).flows(sources, *ones), name)
            missed = np.isinf(expected_rows(graph)).sum(1)
            np.testing.assert_array_equal(found.unserved, missed, err_msg=name)

    def test_demand_by_rows(self) -> None:
        """Of some sources, one of them twice, to the vertices of each row."""
        for name, graph in self.graphs().items():
            elimination, rng = eliminated(graph), np.random.default_rng(5)
            sources = torch.from_numpy(rng.integers(0, graph.n, 1 + 2 * graph.n // 3))
            asked = torch.from_numpy(rng.random((3, len(sources))) * [[1], [0], [1e6]])
            rows = torch.from_numpy(rng.integers(0, 3, graph.n).astype(np.int32))
            found = self.sweeps(elimination).flows(sources, asked, rows)
            assert_same(found, CpuSweeps(elimination).flows(sources, asked, rows), name)
            reached = np.isfinite(expected_rows(graph))[sources.numpy()]
            missed = np.where(reached, 0, asked.numpy().T[:, rows.numpy()]).sum(1)
            np.testing.assert_allclose(found.unserved, missed, rtol=1e-6)

    def test_demand_that_is_the_same_from_each_source(self) -> None:
        graph = self.graphs()["one-way"]
        elimination, sources = eliminated(graph), torch.arange(graph.n - 1, -1, -1)
        column, rows = torch.arange(3.0)[:, None].double(), torch.arange(graph.n).int() % 3
        found = self.sweeps(elimination).flows(sources, column, rows)
        expected = CpuSweeps(elimination).flows(sources, column.expand(-1, graph.n), rows)
        assert_same(found, expected, "one-way")

    def test_flows_that_do_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sweeps = self.sweeps(eliminated(self.graphs()["parts"]))
        monkeypatch.setattr("tri_apsp.memory.is_small", lambda *_: False)
        monkeypatch.setattr("tri_apsp.memory.free_memory", lambda _: 1000)
        message = "flows over .* filled edges must fit .* 1000 bytes free; use a device with more"
        with pytest.raises(TooLargeError, match=message):
            sweeps.flows(torch.arange(33), torch.ones(1, 1).double(), torch.zeros(33).int())


class Wide(FlowsContract):
    def test_lanes_of_float64(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also in blocks of one program."""
        monkeypatch.setattr("tri_apsp.elimination.base.FLOW_LANES", FLOW_LANES[1:])
        monkeypatch.setattr(module, "_LABEL_BYTES", 1)
        graph = self.graphs()["one-way"]
        elimination, sources = eliminated(graph), torch.arange(graph.n)
        ones = torch.ones(1, 1).double(), torch.zeros(graph.n).int()
        found = self.sweeps(elimination).flows(sources, *ones)
        assert_same(found, CpuSweeps(elimination).flows(sources, *ones), "one-way")

    def test_many_paths(self) -> None:
        """A chain of diamonds: 2^130 paths exceed float32, 2^1030 float64."""
        for diamonds in (130, 1030):
            edges = [
                (3 * i + a, 3 * i + b, 1)
                for i in range(diamonds)
                for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))
            ]
            n = 3 * diamonds + 1
            graph = graph_of(n, both_ways(*edges), torch.float32)
            order = np.concatenate([[v for v in range(n) if v % 3], np.arange(0, n, 3)])
            found = elimination_tree(graph, order, 1 << 24)
            elimination = customize(found, graph, found.weight_indices_of(graph))
            assert elimination is not None
            given = torch.tensor([0, n - 1]), torch.ones(1, 1).double(), torch.zeros(n).int()
            flows = self.sweeps(elimination).flows(*given)
            assert_same(flows, CpuSweeps(elimination).flows(*given), str(diamonds))


@pytest.mark.gpu
class TestOnGpu(Wide):
    device, side = "cuda", 17


@pytest.mark.gpu
class TestInDeviceMemory(Wide):
    device, side, in_shared_memory = "cuda", 17, False


interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="test_interpreter.py starts the interpreter"
)


@interpreted
class TestInterpreted(FlowsContract):
    device, side = "cpu", 4


@interpreted
class TestInterpretedOnThreads(FlowsContract):
    """The walk in Gluon, by threads of Python."""

    device, side, in_shared_memory = "cpu", 4, True

    @pytest.fixture(autouse=True)
    def _on_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from kernels.warp_stand_in import launch

        from tri_apsp.kernels.nvidia.flows import _walk_kernel

        launcher = module.cached_launcher

        def replaced(kernel: Any, **constants: Any) -> Any:
            if kernel is not _walk_kernel:
                return launcher(kernel, **constants)
            return lambda *arguments: launch(*arguments, **constants)

        monkeypatch.setattr(module, "cached_launcher", replaced)
        monkeypatch.setattr(GpuSweeps, "_walks_in_shared_memory", lambda *_: True)
