"""Predecessors by the GPU engines: on a GPU, or in Triton's interpreter
(tests/kernels/test_interpreter.py starts that).
"""

from typing import ClassVar

import cases
import pytest
import torch
from hard_graphs import HARD, RTOL

import tri_apsp

pytest.importorskip("triton", reason="the engines need Triton")

from tri_apsp.engines import triton_predecessors as module
from tri_apsp.engines.base import Tolerance
from tri_apsp.engines.triton_predecessors import small_predecessors

# Few places in lists, so that all edges are searched; or enough for every edge.
PAIRS_PER_EDGE = {"all edges": 1 << 30, "lists": 1}


class PredecessorContract:
    device: ClassVar[str]
    engine: ClassVar[str]
    sizes: ClassVar[tuple[int, ...]]
    dtypes: ClassVar[tuple[torch.dtype, ...]] = cases.DTYPES

    @pytest.fixture(
        params=["lists", pytest.param("all edges", marks=pytest.mark.slow)], autouse=True
    )
    def _search(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_PAIRS_PER_EDGE", PAIRS_PER_EDGE[request.param])

    def check(self, weights: torch.Tensor) -> tri_apsp.Result:
        config = tri_apsp.Config(engine=self.engine)
        weights = weights.to(self.device)
        result = tri_apsp.shortest_paths(weights, config=config, predecessors=True)
        cases.assert_predecessors(result, weights, rtol=RTOL.get(weights.dtype, 0.0))
        return result

    @pytest.mark.parametrize("name", HARD)
    def test_predecessors_lead_to_the_source_despite_rounding(self, name: str) -> None:
        for n in self.sizes:
            for dtype in self.dtypes:
                if dtype in RTOL:
                    self.check(HARD[name](n).to(dtype))

    @pytest.mark.parametrize("case", cases.CASES)
    def test_integers_add_up_exactly(self, case: str) -> None:
        for n in self.sizes:
            for dtype in self.dtypes:
                if not dtype.is_floating_point:
                    self.check(cases.tensor(cases.CASES[case](n), dtype))

    def test_long_paths_of_weight_0(self) -> None:
        """A ring, of which a search finds one vertex more, so that queues take over; and a graph
        that searches solve.
        """
        n = self.sizes[-1]
        for dtype in self.dtypes:
            ring = torch.full((n, n), tri_apsp.no_edge(dtype), dtype=dtype)
            vertices = torch.arange(n)
            ring[vertices, (vertices + 1) % n] = 0
            result = self.check(ring)
            expected = (vertices - 1).remainder(n).expand(n, n).clone().fill_diagonal_(-1)
            assert torch.equal(result.predecessors.cpu(), expected.int())  # type: ignore[union-attr]
            zeros_and_ones = cases.tensor(cases.random_graph(n, low=0, high=1), dtype)
            result = self.check(zeros_and_ones)
            if not dtype.is_floating_point:
                config = tri_apsp.Config(engine="cpu")
                expected = tri_apsp.shortest_paths(
                    zeros_and_ones, config=config, predecessors=True
                ).predecessors
                assert torch.equal(result.predecessors.cpu(), expected)  # type: ignore[union-attr]

    def test_queues_of_a_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Graphs with and without cycles of weight 0; the queues take over after one search of each
        strip.
        """
        monkeypatch.setattr(module, "_LEAST_SHARE", 0.99)
        n = self.sizes[-1]
        vertices, sizes = torch.arange(n), torch.tensor([n, n, 0, n, n - 1])
        for dtype in self.dtypes:
            graphs = torch.full((5, n, n), tri_apsp.no_edge(dtype), dtype=dtype)
            chain, ring, _, ring_and_chain, ties = graphs
            chain[vertices[:-1], vertices[1:]] = 1
            ring[vertices, (vertices + 1) % n] = 0
            ring_and_chain[vertices[:8], (vertices[:8] + 1) % 8] = 0
            ring_and_chain[[3, 8, 9], [8, 9, 10]] = 1
            ties[vertices, (vertices + 1) % (n - 1)] = 0
            ties[[0, 0, 4, 5], [4, 5, 7, 7]] = 0
            found, expected = (
                tri_apsp.shortest_paths(
                    graphs.to(device),
                    sizes=sizes.to(device),
                    config=tri_apsp.Config(engine=engine),
                    predecessors=True,
                ).predecessors
                for device, engine in ((self.device, self.engine), ("cpu", "cpu"))
            )
            assert torch.equal(found.cpu(), expected)  # type: ignore[union-attr]

    def test_distances_below_every_sum(self) -> None:
        """The tolerance doubles until an edge reaches a vertex whose distances are 64 units too
        small.
        """
        n, eps = 9, torch.finfo(torch.float32).eps
        vertices, rows = torch.arange(n - 1), [0, 1, 2, 4, 5, 6, 7]
        weights = torch.full((1, n, n), cases.INF)
        weights[0, vertices, (vertices + 1) % (n - 1)], weights[0, 3, n - 1] = 0, 1
        distances = tri_apsp.shortest_paths(weights, config=tri_apsp.Config(engine="cpu")).distances
        distances[0, rows, n - 1] *= 1 - 64 * eps
        sizes = torch.tensor([n], dtype=torch.int32, device=self.device)
        tolerance = Tolerance(4 * eps, 0, 8 * n * eps, 0, has_absolute=False)
        found = module.find_predecessors(
            weights.to(self.device), distances.to(self.device), sizes, tolerance
        )
        assert found[0, :, -1].tolist() == [3] * (n - 1) + [-1]

    def test_strides_and_sizes(self) -> None:
        n = self.sizes[-1]
        graphs = cases.tensor(
            torch.stack(
                [torch.from_numpy(cases.random_graph(n, seed=s)) for s in range(3)]
            ).numpy(),
            torch.int32,
        )
        self.check(graphs.mT)
        sizes = torch.tensor([n, n // 2, 0])
        poisoned = graphs.clone()
        for graph, size in zip(poisoned, sizes, strict=True):
            graph[size:], graph[:, size:] = cases.lowest(graph.dtype), cases.lowest(graph.dtype)
        config = tri_apsp.Config(engine=self.engine)
        result = tri_apsp.shortest_paths(
            poisoned.to(self.device), sizes=sizes.to(self.device), config=config, predecessors=True
        )
        for item, size in enumerate(sizes.tolist()):
            alone = tri_apsp.shortest_paths(
                graphs[item, :size, :size].to(self.device), config=config, predecessors=True
            )
            found = result.predecessors[item]  # type: ignore[index]
            assert torch.equal(found[:size, :size], alone.predecessors)  # type: ignore[arg-type]
            assert (found[size:] == -1).all()
            assert (found[:, size:] == -1).all()


@pytest.mark.gpu
class TestPredecessorsOnGpu(PredecessorContract):
    device, engine, sizes = "cuda", "nvidia", (2, 65, 200, 1100)
    dtypes = (torch.float32, torch.int32)

    @pytest.fixture(params=["search", "product"], autouse=True)
    def _product(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.param == "search":
            monkeypatch.setattr("tri_apsp.engines.nvidia._PRODUCT_MAX_VERTICES", {})

    def test_the_same_again(self) -> None:
        config = tri_apsp.Config(engine=self.engine)
        weights = cases.tensor(
            cases.random_graph(self.sizes[-1], low=0, high=3), torch.float32, self.device
        )
        first, second = (
            tri_apsp.shortest_paths(weights, config=config, predecessors=True).predecessors
            for _ in range(2)
        )
        assert torch.equal(first, second)  # type: ignore[arg-type]

    @pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
    def test_the_product_finds_what_the_search_finds(
        self, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
    ) -> None:
        for make in (cases.random_graph, cases.negative_graph):
            weights = cases.tensor(make(700), dtype, "cuda")
            first = tri_apsp.shortest_paths(weights, predecessors=True).predecessors
            monkeypatch.setattr("tri_apsp.engines.nvidia._PRODUCT_MAX_VERTICES", {})
            assert torch.equal(
                first, tri_apsp.shortest_paths(weights, predecessors=True).predecessors
            )  # type: ignore[arg-type]

    @pytest.mark.parametrize("dtype", [torch.int32, torch.float64])
    def test_the_workspace_is_what_was_announced(self, dtype: torch.dtype) -> None:
        n = 1100
        vertices = torch.arange(n)
        weights = torch.full((8, n, n), tri_apsp.no_edge(dtype), dtype=dtype)
        weights[:, vertices, (vertices + 1) % n] = 0
        distances, sizes = (
            torch.zeros_like(weights).cuda(),
            torch.full((8,), n, dtype=torch.int32, device="cuda"),
        )
        weights = weights.cuda()
        tolerance = Tolerance(
            *([4 * torch.finfo(dtype).eps, 0, 1e-6, 0] if dtype.is_floating_point else [0] * 4),
            has_absolute=False,
        )
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        found = module.find_predecessors(weights, distances, sizes, tolerance)
        peak = torch.cuda.max_memory_allocated() - before - found.nbytes
        assert peak <= module.predecessors_workspace(weights) * weights.nbytes

    def test_many_pairs(self) -> None:
        for n in (4097, 8192):
            generator = torch.Generator().manual_seed(n)
            weights = torch.rand(n, n, generator=generator)
            result = self.check(
                weights.masked_fill(torch.rand(n, n, generator=generator) > 0.03, cases.INF)
            )
            sources, targets = torch.randint(0, n, (2, 20), generator=generator)
            found, hops = result.paths(sources, targets), result.next_hops()
            for path, source, target in zip(found, sources.tolist(), targets.tolist(), strict=True):
                assert path.tolist() == result.path(source, target)
                assert source == target or hops[source, target] == path[1]


@pytest.mark.gpu
@pytest.mark.slow
class TestOtherDtypesOnGpu(PredecessorContract):
    device, engine, sizes = "cuda", "nvidia", (2, 65, 200, 1100)
    dtypes = (torch.float64, torch.int16, torch.int64)


@cases.interpreted
class TestPredecessorsInterpreted(PredecessorContract):
    device, engine, sizes, dtypes = "cpu", "portable", (11,), (torch.float32,)

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several strips of sources."""
        monkeypatch.setattr(module, "_WIDTH", 4)

    @pytest.mark.parametrize("search", PAIRS_PER_EDGE)
    def test_several_blocks_of_vertices(self, monkeypatch: pytest.MonkeyPatch, search: str) -> None:
        monkeypatch.setattr(module, "_WIDTH", 32)
        monkeypatch.setattr(module, "_PAIRS_PER_EDGE", PAIRS_PER_EDGE[search])
        self.check(cases.tensor(cases.random_graph(34, low=0, high=1), torch.int16))


@cases.interpreted
class TestTermsOfAProductInterpreted:
    """The check of predecessors that are the first terms of distances times weights."""

    def predecessors(self, weights: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """Predecessors of (batch, n, n), and whether there may be a loop of them."""
        from tri_apsp.gpu.launcher import Launcher
        from tri_apsp.kernels.shared.product_predecessors import _check_terms_kernel

        batch, n, _ = weights.shape
        distances = tri_apsp.shortest_paths(
            weights, config=tri_apsp.Config(engine="cpu")
        ).distances.contiguous()
        edges = weights.clone()
        edges.diagonal(dim1=1, dim2=2).fill_(tri_apsp.no_edge(weights.dtype))
        sums = distances.double()[:, :, :, None] + edges.double()[:, None]
        found = sums.argmin(2).int()
        found[sums.amin(2) >= tri_apsp.no_edge(weights.dtype)] = -1
        loops = torch.zeros((), dtype=torch.int32)
        relative = 4 * torch.finfo(weights.dtype).eps if weights.is_floating_point() else 0
        constants = {
            "RELATIVE": relative,
            "NO_EDGE": tri_apsp.no_edge(weights.dtype),
            "BLOCK": 64,
            "num_warps": 4,
        }
        blocks = -(-n * n // 64)
        Launcher(_check_terms_kernel, constants)(
            (batch * blocks, 1, 1), found, loops, weights, distances, n, blocks, *weights.stride()
        )
        return found, bool(loops)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
    @pytest.mark.parametrize("n", [1, 2, 19])
    def test_interpreted(self, dtype: torch.dtype, n: int) -> None:
        """The same as of the cpu engine, with ties, without paths, and with any strides."""
        graphs = [
            cases.tensor(cases.random_graph(n, seed=seed, low=1, high=4), dtype)
            for seed in range(3)
        ]
        weights = torch.stack(graphs).mT
        found, loops = self.predecessors(weights)
        config = tri_apsp.Config(engine="cpu")
        assert torch.equal(
            found, tri_apsp.shortest_paths(weights, config=config, predecessors=True).predecessors
        )
        assert not loops

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.int64])
    @pytest.mark.parametrize("n", [1, 2, 15, 19])
    def test_small_graphs_interpreted(self, dtype: torch.dtype, n: int) -> None:
        """The same as of the cpu engine, of padded graphs too, and none that may form a loop."""
        graphs = [
            cases.tensor(cases.random_graph(n, seed=seed, low=1, high=4), dtype)
            for seed in range(3)
        ]
        weights, sizes = torch.stack(graphs).mT, torch.tensor([n, n // 2, 0])
        relative = 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0
        config = tri_apsp.Config(engine="cpu")
        for given in (None, sizes):
            solved = tri_apsp.shortest_paths(weights, sizes=given, config=config, predecessors=True)
            found = small_predecessors(weights, solved.distances, given, relative)
            assert found is not None
            assert torch.equal(found, solved.predecessors)

    @pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
    def test_small_graphs_with_a_loop_interpreted(self, dtype: torch.dtype) -> None:
        weights = torch.full((2, 6, 6), tri_apsp.no_edge(dtype), dtype=dtype)
        weights[1, 0, 1], weights[1, 1, 2], weights[1, 2, 1] = 5, 0, 0
        distances = tri_apsp.shortest_paths(weights).distances
        relative = 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0
        assert small_predecessors(weights, distances, None, relative) is None
        assert small_predecessors(weights[:1], distances[:1], None, relative) is not None

    def test_pairs_without_a_term_interpreted(self) -> None:
        """Integers below no_edge that no path explains, as unchecked negative weights leave them:
        what lies beside the tensors is not read.
        """
        memory = torch.full((2, 20), tri_apsp.no_edge(torch.int32), dtype=torch.int32)
        weights, distances = (row[2:11].view(1, 3, 3) for row in memory)
        weights[0, 2, 0] = -5
        distances[0, 0, 0] = distances[0, 1, 1] = distances[0, 2, 2] = 0
        distances[0, 1, 0] -= 5
        for beside in (-100, 0, 100):
            memory[:, :2] = memory[:, 11:] = beside
            assert small_predecessors(weights, distances, None, 0) is None

    def test_a_cycle_of_weight_0_interpreted(self) -> None:
        for dtype, zero in ((torch.int32, 0), (torch.float32, 0), (torch.float32, 1e-9)):
            weights = torch.full((2, 6, 6), tri_apsp.no_edge(dtype), dtype=dtype)
            weights[1, 0, 1] = 5
            weights[1, [1, 2, 3], [2, 3, 1]] = torch.tensor(zero).to(dtype)
            assert self.predecessors(weights)[1]
            weights[1, 2, 3] = 1  # vertices 1 and 2 are equally far from 0, but no cycle weighs 0
            assert self.predecessors(weights)[1] == dtype.is_floating_point
            weights[1, [1, 2, 3], [2, 3, 1]] = 1
            assert not self.predecessors(weights)[1]
