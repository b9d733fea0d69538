"""Sweeps of GPUs against Dijkstra's algorithm: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py starts that).
"""

import dataclasses
import os
from typing import ClassVar

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, johnson

from tri_apsp.configs import default_config
from tri_apsp.elimination import gpu as module
from tri_apsp.elimination.gpu import GpuSweeps
from tri_apsp.elimination.schedule import AHEAD, CHUNK
from tri_apsp.elimination.tree import elimination_tree
from tri_apsp.elimination.weights import customize
from tri_apsp.graphs.sparse import SPARSE_DTYPES, SparseGraph, sparse_graph
from tri_apsp.semirings import no_edge

INF = float("inf")


def grid(side: int, seed: int, *, symmetric: bool = True) -> np.ndarray:
    """Edges (sources, targets, weights) of a grid, some missing, with weights from 1 to 1000."""
    rng = np.random.default_rng(seed)
    v = np.arange(side * side).reshape(side, side)
    ends = np.concatenate(
        [[v[:, :-1].ravel(), v[:, 1:].ravel()], [v[:-1].ravel(), v[1:].ravel()]], 1
    )
    ends = ends[:, rng.random(ends.shape[1]) < 0.9]
    there = rng.integers(1, 1001, ends.shape[1])
    back = there if symmetric else rng.integers(1, 1001, ends.shape[1])
    return np.concatenate([[*ends, there], [*ends[::-1], back]], 1)


def tree(n: int, seed: int) -> np.ndarray:
    """Edges of a random tree, two of whose subtrees may be cut off."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    parent = (rng.random(n - 1) * child).astype(np.int64)
    kept = rng.random(n - 1) < 0.95
    weights = rng.integers(1, 1001, n - 1)
    edges = np.stack((child, parent, weights))[:, kept]
    return np.concatenate([edges, edges[[1, 0, 2]]], 1)


def graph_of(n: int, edges: np.ndarray, dtype: torch.dtype) -> SparseGraph:
    sources, targets, weights = edges
    numbers = np.float64 if dtype.is_floating_point else np.int64
    given = csr_array((weights.astype(numbers), (sources, targets)), shape=(n, n))
    return sparse_graph(given, dtype=dtype)


def expected_rows(graph: SparseGraph) -> np.ndarray:
    offsets, vertices, weights = graph.by_source.arrays()
    given = csr_array((weights.astype(float), vertices, offsets), shape=(graph.n, graph.n))
    return dijkstra(given)


def finite(d: torch.Tensor) -> np.ndarray:
    """Distances as float64, inf without a path."""
    missing = no_edge(d.dtype)
    return d.double().masked_fill(d >= missing, INF).cpu().numpy()


class SweepsContract:
    device: ClassVar[str]
    side: ClassVar[int]
    in_shared_memory: ClassVar[bool | None] = None
    table_tile: ClassVar[dict[str, int]] = module._TABLE_TILE
    dtypes: ClassVar[tuple[torch.dtype, ...]] = SPARSE_DTYPES

    def graphs(self, dtype: torch.dtype) -> dict[str, SparseGraph]:
        none = np.zeros((3, 0), np.int64)
        return {
            "grid": graph_of(self.side**2, grid(self.side, 1), dtype),
            "directed": graph_of(self.side**2, grid(self.side, 2, symmetric=False), dtype),
            "tree": graph_of(33, tree(33, 3), dtype),
            "one": graph_of(1, none, dtype),
            "two": graph_of(2, none, dtype),
        }

    def sweeps(self, graph: SparseGraph) -> GpuSweeps:
        order = np.random.default_rng(0).permutation(graph.n)
        if graph.n > 500:  # rows of a grid from both sides to the middle: fewer filled edges
            order = np.argsort(-np.abs(np.arange(graph.n) - graph.n // 2), kind="stable")
        found = elimination_tree(graph, order, 1 << 24)
        elimination = customize(found, graph, found.weight_indices_of(graph))
        assert elimination is not None
        return GpuSweeps(
            elimination, torch.device(self.device), in_shared_memory=self.in_shared_memory
        )

    @pytest.mark.parametrize("dtype", SPARSE_DTYPES)
    def test_distances_are_those_of_dijkstra(self, dtype: torch.dtype) -> None:
        if dtype not in self.dtypes:
            pytest.skip("in the tests of a GPU")
        for name, graph in self.graphs(dtype).items():
            sweeps, expected, n = self.sweeps(graph), expected_rows(graph), graph.n
            out = torch.full((n, n), -7, dtype=dtype, device=self.device)
            sweeps.all_rows(out)
            np.testing.assert_array_equal(finite(out), expected, err_msg=name)
            sources = torch.tensor([n - 1, 0, n // 2, 0])
            rows = finite(sweeps.rows(sources, INF))
            np.testing.assert_array_equal(rows, expected[sources.numpy()], err_msg=name)
            near = finite(sweeps.rows(sources[:1], 700))
            nearer = np.where(expected[n - 1] <= 700, expected[n - 1], INF)
            np.testing.assert_array_equal(near[0], nearer, err_msg=name)
            targets = torch.arange(n).flip(0)
            table = finite(sweeps.table_to(targets)(sources, INF))
            np.testing.assert_array_equal(
                table, expected[np.ix_(sources.numpy(), targets.numpy())], err_msg=name
            )
            ends = torch.arange(n), torch.arange(n).roll(n // 2)
            found = finite(sweeps.pairs(*ends, limit=float("inf")))
            np.testing.assert_array_equal(
                found, expected[ends[0].numpy(), ends[1].numpy()], err_msg=name
            )

    def test_negative_weights(self) -> None:
        """Of integers a sum with no_edge may be below it, and is still no path."""
        for dtype in self.dtypes:
            n, edges = self.side**2, grid(self.side, 7, symmetric=False)
            potentials = np.random.default_rng(8).integers(0, 400, n)
            edges[2] += potentials[edges[0]] - potentials[edges[1]]
            edges = edges[:, (edges[0] % self.side > 0) & (edges[1] % self.side > 0)]
            graph = graph_of(n, edges, dtype)
            offsets, vertices, weights = graph.by_source.arrays()
            expected = johnson(csr_array((weights.astype(float), vertices, offsets), shape=(n, n)))
            out = torch.full((n, n), -7, dtype=dtype, device=self.device)
            sweeps = self.sweeps(graph)
            sweeps.all_rows(out)
            np.testing.assert_array_equal(finite(out), expected)
            sources = torch.arange(n)
            np.testing.assert_array_equal(finite(sweeps.rows(sources, INF)), expected)
            np.testing.assert_array_equal(finite(sweeps.table_to(sources)(sources, INF)), expected)

    def test_tables_of_many_tiles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those beside the diagonal and on it, of ends that repeat, within a limit."""
        monkeypatch.setattr(module, "_TABLE_TILE", self.table_tile)
        random = np.random.default_rng(9)
        for dtype in self.dtypes:
            for name, graph in self.graphs(dtype).items():
                sweeps, expected, n = self.sweeps(graph), expected_rows(graph), graph.n
                s, t = (torch.from_numpy(random.integers(0, n, k)) for k in (n // 2 + 1, n + 3))
                near = expected[np.ix_(s.numpy(), t.numpy())]
                near[near > 900] = INF
                table = sweeps.table_to(t)
                np.testing.assert_array_equal(finite(table(s, 900)), near, err_msg=name)
                assert table(s[:0], 900).shape == (0, n + 3)

    @pytest.mark.parametrize("from_source", [False, True])
    def test_totals_and_amounts(self, from_source: bool) -> None:
        for dtype in self.dtypes:
            for name, graph in self.graphs(dtype).items():
                sweeps, expected = self.sweeps(graph), expected_rows(graph)
                by_lane = expected if from_source else expected.T
                reaches = np.isfinite(by_lane)
                total, reached, farthest = sweeps.totals(from_source=from_source)
                sums = np.where(reaches, by_lane, 0)
                np.testing.assert_array_equal(total, sums.sum(1), err_msg=name)
                np.testing.assert_array_equal(reached, reaches.sum(1), err_msg=name)
                np.testing.assert_array_equal(farthest, sums.max(1), err_msg=name)
                amounts = torch.from_numpy(np.random.default_rng(4).integers(0, 99, graph.n))
                limits = torch.tensor([0, 600], dtype=dtype)
                one, other = (
                    sweeps.within(limits, amounts.double(), from_source=from_source, part=part)
                    for part in (range(graph.n // 3), range(graph.n // 3, graph.n))
                )
                for limit, each in zip(limits.tolist(), one + other, strict=True):
                    np.testing.assert_array_equal(each, (by_lane <= limit) @ amounts.numpy())

    def test_predecessors_have_the_least_sum(self) -> None:
        for dtype in self.dtypes:
            for name, graph in self.graphs(dtype).items():
                sweeps, n = self.sweeps(graph), graph.n
                sources = torch.tensor([n - 1, 0, n // 2])
                d, pred, again = sweeps.rows_with_predecessors(sources, INF, graph)
                assert len(again) == 0
                expected = expected_rows(graph)
                np.testing.assert_array_equal(finite(d), expected[sources.numpy()])
                weights = graph.dense().double().masked_fill(graph.dense() == no_edge(dtype), INF)
                sums = expected[sources.numpy()][:, :, None] + weights.numpy()  # [source, u, v]
                sums[:, np.arange(n), np.arange(n)] = INF
                for row, source in enumerate(sources.tolist()):
                    least = sums[row].min(0)
                    by_source = sums[row, source] == least
                    first = np.where(by_source, source, sums[row].argmin(0))
                    first[~np.isfinite(least)] = -1
                    first[source] = -1
                    np.testing.assert_array_equal(pred[row].cpu(), first, err_msg=name)

    def test_parts_of_the_tree(self, monkeypatch: pytest.MonkeyPatch) -> None:
        dtype = self.dtypes[0]
        for name, graph in self.graphs(dtype).items():
            levels = max(2, graph.n // 3), 2
            monkeypatch.setattr(GpuSweeps, "_levels", lambda *_, levels=levels: levels)
            sweeps, expected = self.sweeps(graph), expected_rows(graph)
            sources = torch.arange(graph.n).flip(0)[:70]
            found = finite(sweeps.rows(sources, INF))
            np.testing.assert_array_equal(found, expected[sources.numpy()], err_msg=name)

    def test_wide_records_and_many_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_NARROW_SLOTS", 0)
        monkeypatch.setattr(module, "_LABEL_BYTES", 1)
        dtype, n = self.dtypes[0], self.side**2
        graph = graph_of(n, grid(self.side, 5), dtype)
        sweeps, expected = self.sweeps(graph), expected_rows(graph)
        out = torch.full((n, n), -7, dtype=dtype, device=self.device)
        sweeps.all_rows(out)
        np.testing.assert_array_equal(finite(out), expected)
        found = finite(sweeps.table_to(torch.arange(n))(torch.arange(n), INF))
        np.testing.assert_array_equal(found, expected)

    def test_weights_that_change(self) -> None:
        """Rows, tables and pairs follow; also after symmetric weights become others."""
        for symmetric in (True, False):
            graph = graph_of(self.side**2, grid(self.side, 7, symmetric=symmetric), torch.float32)
            sweeps, sources = self.sweeps(graph), torch.arange(graph.n)[:33]
            indices = sweeps.elimination.tree.weight_indices_of(graph)
            sweeps.rows(sources, INF)
            for edge, weight in ((0, 2000), (0, 1)):
                sweeps.table_to(sources)(sources, INF)  # by weights on the device
                graph.by_source.weights[edge] = weight
                # Not in place: weights on the CPU would follow by themselves.
                changed = sweeps.elimination.with_changes(
                    indices[[edge]], np.float32([weight]), in_place=False
                )
                sweeps = sweeps.after_changes(*changed)
                expected = expected_rows(graph)
                found = finite(sweeps.rows(sources, INF))
                np.testing.assert_array_equal(found, expected[sources.numpy()])
                found = finite(sweeps.table_to(sources)(sources, INF))
                np.testing.assert_array_equal(found, expected[: len(sources), : len(sources)])


@pytest.mark.gpu
class TestOnGpu(SweepsContract):
    device, side = "cuda", 33

    def test_any_shape(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Threads of one lane and of two, in one to four warps."""
        for dtype in (torch.float32, torch.int64):
            graph = graph_of(33**2, grid(33, 6, symmetric=False), dtype)
            sweeps, expected = self.sweeps(graph), expected_rows(graph)
            for lanes in (1, 2) if dtype.itemsize == 4 else (1,):
                for warps in (1, 2, 4):
                    shape = module._Shape(lanes, warps)
                    monkeypatch.setattr(GpuSweeps, "_shape", lambda *_, shape=shape: shape)
                    out = torch.full((graph.n, graph.n), -7, dtype=dtype, device="cuda")
                    sweeps.all_rows(out)
                    np.testing.assert_array_equal(finite(out), expected, err_msg=str(shape))


@pytest.mark.gpu
class TestInDeviceMemory(SweepsContract):
    """Values in device memory, as where shared memory is too small."""

    device, side, in_shared_memory = "cuda", 33, False


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="test_interpreter.py starts the interpreter"
)
class TestInterpreted(SweepsContract):
    device, side, dtypes = "cpu", 4, (torch.float32, torch.int64)
    table_tile: ClassVar[dict[str, int]] = {"BLOCK_M": 4, "BLOCK_N": 8, "DEPTHS": 2}

    def graphs(self, dtype: torch.dtype) -> dict[str, SparseGraph]:
        """All but the grid whose directions weigh the same: the tree is symmetric too."""
        found = super().graphs(dtype)
        del found["grid"]
        return found


def test_the_example_of_the_kernel_is_what_the_host_makes() -> None:
    """The tree, the records, the walk and the shared memory in the docstring of the sweep in
    Gluon.
    """
    from tri_apsp.kernels.nvidia import sweeps as kernels

    edges = np.array([[1, 2, 1], [1, 4, 2], [1, 0, 5], [4, 3, 4]]).T
    graph = graph_of(5, np.concatenate([edges, edges[[1, 0, 2]]], 1), torch.float32)
    found = elimination_tree(graph, np.array([1, 0, 3, 4, 2]), 100)
    elimination = customize(found, graph, found.weight_indices_of(graph))
    drawn = (kernels.__doc__ or "").replace("+- ", "   ").splitlines()
    lines = [" ".join(line.split()) for line in drawn]
    # The tree, with the edges of each position to its ancestors.
    for p, vertex in enumerate(found.vertices):
        own = slice(*found.offsets[p : p + 2])
        ends = zip(found.vertices[found.ancestors[own]], elimination.upward[own], strict=True)
        row = f"vertex {vertex} position {p} {' '.join(f'to {a}: {w:g}' for a, w in ends)}"
        indent = 4 + 4 * found.depths[p]
        assert drawn[lines.index(row.strip())].startswith(" " * indent + "vertex")
    # The records, and the walk of the lane of vertex 3.
    config = dataclasses.replace(default_config("nvidia", graph.dtype), sweep_unroll=4)
    sweeps = GpuSweeps(elimination, torch.device("cpu"), in_shared_memory=False, config=config)
    schedule, records = sweeps._records((), True, 4)
    weights = records.view(graph.dtype)[:, 1:3].tolist()
    distances, path = expected_rows(graph)[3], (2, 4, 3)
    slots, x = [INF] * schedule.slots, INF
    for r in range(schedule.edges.shape[1]):
        (both, *_, last), (w_a, w_b) = records[r].tolist(), weights[r]
        a, b, code, vertex = both & 0xFFFF, both >> 16, last & 0xFFF, last >> 12
        x = min(x, slots[a] + w_a, slots[b] + w_b)
        row = f"{r} {a} {b} {w_a:g} {w_b:g} {vertex} {code}"
        if code and vertex in path:
            x = min(x, distances[vertex])
            row += f" {distances[vertex]:g}"
        else:
            row += " -"
        row += "" if x == INF else f" {x:g}"
        if code:
            assert x == distances[vertex]
            slots[code - 1], x = x, INF
            row += f" slot {code - 1}"
        assert row in lines
    text = " ".join(lines)
    first, *_, last = records[3].tolist()
    assert f"begins with the word 0x{first:08x}, and ends with 0x{last:08x}" in text
    # Shared memory.
    shape = module._Shape(lanes=2, warps=1)
    buffer, slot = (CHUNK + AHEAD) * 16, shape.block * graph.dtype.itemsize
    starts = [0, buffer, *(2 * buffer + slot * i for i in range(schedule.slots + 1))]
    names = ["buffer 0", "buffer 1", *(f"slot {i}" for i in range(schedule.slots)), "the end"]
    for start, name in zip(starts, names, strict=True):
        assert f"byte {start} {name}" in text
    *sizes, size = module._allocations_of(shape, schedule.slots, graph.dtype.itemsize, wide=False)
    assert f"allocations of {', '.join(map(str, sizes))} and {size} words" in text
    assert f"a chunk of {CHUNK} records, and the {AHEAD} that" in text
