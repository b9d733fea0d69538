"""reachability: every engine agrees with squaring on every dtype and layout; what it refuses."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import Config, EngineError, InputError, TooLargeError, tuned

INTERPRETER = os.environ.get("TRITON_INTERPRET") == "1"
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def digraph(n: int, degree: float = 1.2) -> np.ndarray:
    """A random directed graph near the degree at which a large component forms, with some loops."""
    return np.random.default_rng(n).random((n, n)) < degree / max(n, 1)


def cycle(n: int) -> np.ndarray:
    """One cycle through all vertices, in a random order: one edge from each."""
    order = np.random.default_rng(n).permutation(n)
    edges = np.zeros((n, n), bool)
    edges[order, np.roll(order, 1)] = True
    return edges


def disconnected(n: int) -> np.ndarray:
    edges = digraph(n, 3)
    edges[: n // 2, n // 2 :] = edges[n // 2 :, : n // 2] = False
    return edges


GRAPHS: dict[str, Callable[[int], np.ndarray]] = {
    "random": digraph,
    "dag": lambda n: np.triu(digraph(n, 4), 1),
    "path backwards": lambda n: np.eye(n, k=-1, dtype=bool),
    "cycle": cycle,
    "disconnected": disconnected,
    "no edge": lambda n: np.zeros((n, n), bool),
    "every edge": lambda n: np.ones((n, n), bool),
}


def expected(edges: np.ndarray) -> torch.Tensor:
    """The reflexive transitive closure, by squaring."""
    closed, before = edges | np.eye(len(edges), dtype=bool), None
    while not np.array_equal(closed, before):
        before, numbers = closed, closed.astype(np.float32)
        closed = numbers @ numbers > 0
    return torch.from_numpy(closed)


class ReachabilityContract:
    engine: ClassVar[str]
    device: ClassVar[str] = "cpu"
    sizes: ClassVar[Sequence[int]] = (*range(0, 71, 5), 63, 64, 65, 127, 128, 129, 500)
    large: ClassVar[dict[str, int]] = {"random": 1100, "cycle": 1100}
    """Graphs of several blocks, and their vertices."""

    @pytest.fixture(autouse=True)
    def _engine(self) -> Iterator[None]:
        with tuned.using(Config(engine=self.engine)):
            yield

    def reachability(self, adjacency: torch.Tensor) -> torch.Tensor:
        """The closure on the device of these tests, which leaves its input as it is."""
        adjacency = adjacency.to(self.device)
        before = adjacency.clone()
        found = tri_apsp.reachability(adjacency)
        assert torch.equal(adjacency, before)
        assert (found.dtype, found.shape, found.device) == (
            torch.bool,
            adjacency.shape,
            adjacency.device,
        )
        assert found.is_contiguous()
        return found.cpu()

    @pytest.mark.parametrize("kind", GRAPHS)
    def test_agrees_with_squaring(self, kind: str) -> None:
        for n in self.sizes if kind == "random" else self.sizes[-3:]:
            edges = GRAPHS[kind](n)
            assert torch.equal(self.reachability(torch.from_numpy(edges)), expected(edges)), n

    def test_a_graph_of_several_blocks(self) -> None:
        for kind, n in self.large.items():
            edges = GRAPHS[kind](n)
            assert torch.equal(self.reachability(torch.from_numpy(edges)), expected(edges)), kind

    def test_dtypes(self) -> None:
        """Any value but 0 is an edge, a negative one too."""
        edges = digraph(self.sizes[-2])
        for dtype in INTEGERS:
            values = torch.from_numpy(edges) * (torch.arange(len(edges)) % 100 - 100)  # -100 to -1
            assert torch.equal(self.reachability(values.to(dtype)), expected(edges)), dtype

    def test_batches(self) -> None:
        n = self.sizes[-1] + 1
        graphs = np.stack([digraph(n), cycle(n), disconnected(n)])
        closures = torch.stack([expected(edges) for edges in graphs])
        assert torch.equal(self.reachability(torch.from_numpy(graphs)), closures)
        for shape in ((0, 5, 5), (2, 0, 0), (0, 0)):
            assert self.reachability(torch.zeros(shape, dtype=torch.bool)).shape == shape

    def test_strides(self) -> None:
        n = self.sizes[-2]
        edges = digraph(n)
        plain = torch.from_numpy(edges).to(self.device)
        outer = torch.ones((2 * n, 3 * n), dtype=torch.int32, device=self.device)
        outer[::2, 1::3] = plain
        for view in (plain.T.contiguous().T, outer[::2, 1::3], plain.expand(2, n, n)):
            assert torch.equal(self.reachability(view), expected(edges).expand(view.shape))


class TestCpu(ReachabilityContract):
    engine = "cpu"

    @pytest.mark.parametrize("threads", [1, 3])
    def test_threads_change_no_bit(self, threads: int) -> None:
        """Panels are replaced while other tasks read them."""
        edges = digraph(1200, 3)
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            assert torch.equal(self.reachability(torch.from_numpy(edges)), expected(edges))
        finally:
            torch.set_num_threads(before)


@pytest.mark.skipif(not INTERPRETER, reason="runs in a process of its own, with TRITON_INTERPRET=1")
class TestPortableInterpreted(ReachabilityContract):
    engine = "portable"
    sizes = (0, 1, 33)
    large: ClassVar = {"cycle": 129}

    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tri_apsp.engines.boolean.portable import PortableBooleanEngine

        monkeypatch.setattr(PortableBooleanEngine, "BLOCK_SIZE", 128)
        monkeypatch.setattr(PortableBooleanEngine, "CUTOFF", 512)


class GpuContract(ReachabilityContract):
    device = "cuda"

    def test_agrees_with_distances(self) -> None:
        edges = torch.from_numpy(digraph(5000)).cuda()
        distances = tri_apsp.shortest_paths(edges).distances
        assert torch.equal(tri_apsp.reachability(edges), distances < float("inf"))

    def test_a_batch_of_more_graphs_than_a_grid_takes(self) -> None:
        edges = torch.zeros((70_000, 3, 3), dtype=torch.bool, device="cuda")
        edges[:, 0, 1] = edges[:, 1, 2] = True
        found = tri_apsp.reachability(edges)
        assert torch.equal(found, torch.ones(3, 3, device="cuda").triu().bool().expand(found.shape))

    def test_the_host_does_not_block(self) -> None:
        """Except to check the values of weights: a synchronization would raise."""
        edges = torch.from_numpy(digraph(3000)).cuda()
        closed = tri_apsp.reachability(edges)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = tri_apsp.reachability(edges)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(found, closed)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64], ids=str)
def test_weights_are_not_taken_for_an_adjacency_matrix(dtype: torch.dtype) -> None:
    """Else each missing edge would be one; the remedy works, for a negative cycle too."""
    missing = tri_apsp.no_edge(dtype)
    weights = torch.full((3, 3), missing, dtype=dtype)
    weights[0, 1], weights[1, 0] = -5, 2
    with pytest.raises(InputError, match=r"must have 0 where .*; give `adjacency != no_edge`"):
        tri_apsp.reachability(weights)
    found = tri_apsp.reachability(weights != missing)
    assert found.int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert tri_apsp.reachability(weights.clamp(max=missing - 1)).all()


@pytest.mark.gpu
class TestNvidia(GpuContract):
    engine = "nvidia"


@pytest.mark.gpu
class TestNvidiaByCounting(GpuContract):
    engine = "nvidia"

    @pytest.fixture(autouse=True)
    def _count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tri_apsp.engines.boolean.nvidia import NvidiaBooleanEngine

        if torch.cuda.get_device_capability()[0] != 9:
            pytest.skip("products are counted on compute capability 9.x")
        monkeypatch.setattr(NvidiaBooleanEngine, "LEAST_COUNTED", 0)


@pytest.mark.gpu
class TestPortable(GpuContract):
    engine = "portable"


EDGES = torch.ones(2, 2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        ([[0, 1], [1, 0]], "`adjacency` must be a torch tensor or a NumPy array, but is list"),
        (EDGES[:1], r"must be square.*\(1, 2\); pad missing vertices with 0\."),
        (EDGES[0], r"`adjacency` must be square.*\(2,\); reshape it\."),
        (EDGES.float(), "float32; give `adjacency != no_edge` of weights, else `adjacency != 0`"),
        (EDGES.half(), "bool, uint8, .* or int64, but has float16; give `adjacency"),
        (EDGES.to("meta"), "must be on the CPU or a CUDA device"),
    ],
    ids=str,
)
def test_refused(adjacency: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        tri_apsp.reachability(adjacency)
    assert "\n" not in str(caught.value)


def test_a_stored_0_of_a_sparse_graph_is_an_edge() -> None:
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 0.0]), (np.array([0, 1]), np.array([1, 2]))), shape=(3, 3)
    )
    assert tri_apsp.reachability(matrix).int().tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    found = tri_apsp.reachability(torch.from_numpy(matrix.toarray() != 0))
    assert found.int().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_too_large_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1 << 20)

    def pack(*args: object) -> None:
        pytest.fail("memory was allocated")

    monkeypatch.setattr("tri_apsp.engines.boolean.cpu.CpuBooleanEngine.pack", pack)
    with pytest.raises(
        TooLargeError, match=r"a problem of 2000 vertices in bool \(1.\d+ matrices\) must fit"
    ):
        tri_apsp.reachability(torch.zeros(1, dtype=torch.bool).expand(2000, 2000))


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr("tri_apsp.engines.has_triton", lambda: False)
    with (
        tuned.using(Config(engine="portable")),
        pytest.raises(EngineError, match="needs Triton, but it is not installed"),
    ):
        tri_apsp.reachability(torch.ones(2, 2, dtype=torch.bool))


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "cpu") for name in GRAPHS),
        *(pytest.param(name, "cuda", marks=pytest.mark.gpu) for name in ("random", "no edge")),
    ],
)
def test_rows_and_sparse_graphs(name: str, device: str) -> None:
    """All rows of sparse graphs; chosen ones, also of dense adjacencies."""
    edges = GRAPHS[name](150)
    closed, dense = expected(edges), torch.from_numpy(edges).to(device)
    sources = [149, 0, 149, *range(70)]
    sparse = tri_apsp.prepare(dense)
    assert torch.equal(tri_apsp.reachability(sparse).cpu(), closed)
    for adjacency in (sparse, dense, dense.int(), dense.to_sparse_csr()):
        found = tri_apsp.reachability(adjacency, sources=sources)
        assert found.device.type == device
        assert torch.equal(found.cpu(), closed[sources])
    assert tri_apsp.reachability(scipy.sparse.csr_array(edges), sources=3).shape == (1, 150)


def test_rows_are_refused() -> None:
    edges = torch.from_numpy(digraph(5))
    with pytest.raises(InputError, match="`sources` need one graph"):
        tri_apsp.reachability(edges[None], sources=0)
    with pytest.raises(InputError, match=r"`sources` must lie in \[0, 5\)"):
        tri_apsp.reachability(edges, sources=5)
    with pytest.raises(InputError, match="give `adjacency != no_edge`"):
        tri_apsp.reachability(
            torch.full((3, 3), tri_apsp.no_edge(torch.int32), dtype=torch.int32), sources=0
        )
    assert tri_apsp.reachability(scipy.sparse.csr_array((0, 0))).shape == (0, 0)
