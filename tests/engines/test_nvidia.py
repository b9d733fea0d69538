"""The nvidia engine, on a GPU: Gluon has no interpreter. tests/kernels has its machine code."""

import cases
import numpy as np
import pytest
import torch
from engines.contract import EngineContract

import tri_apsp
from tri_apsp import Config, GpuTiles, engines, no_edge, tuned
from tri_apsp.configs import SMALL_GRAPHS, default_config
from tri_apsp.engines import Update
from tri_apsp.engines.triton_base import TritonEngine
from tri_apsp.semirings import distance_range

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="the nvidia engine needs Triton")


class TestNvidiaEngine(EngineContract):
    name, device = "nvidia", "cuda"
    shapes = (
        (1, 1, 1),
        (63, 65, 1),
        (100, 31, 257),
        (130, 200, 67),
    )  # each is a compilation for each dtype
    large = (500, 340)
    closures = (1, 2, 31, 64, 65, 300)
    dtypes = (torch.float32, torch.int16, torch.float64)


@pytest.mark.slow
class TestOtherDtypes(TestNvidiaEngine):
    dtypes = (torch.int32, torch.int64)


def contract_of(dtypes: tuple[torch.dtype, ...], config: Config) -> TestNvidiaEngine:
    contract = TestNvidiaEngine()
    contract.dtypes, contract.config = dtypes, config  # type: ignore[misc]
    return contract


@pytest.mark.parametrize(
    ("tiles", "dtype"),
    [
        (GpuTiles(128, 64, 16, num_warps=4, num_stages=3), torch.float32),
        (GpuTiles(128, 128, 8, num_warps=8, num_stages=2), torch.int16),
        pytest.param(
            GpuTiles(32, 64, 4, num_warps=1, num_stages=4), torch.float64, marks=pytest.mark.slow
        ),
    ],
)
def test_other_tiles(tiles: GpuTiles, dtype: torch.dtype) -> None:
    contract = contract_of((dtype,), Config(product=tiles, small_product=tiles))
    contract.test_product_on_awkward_shapes()
    contract.test_product_with_negative_values()


@pytest.mark.parametrize(
    ("tile", "warps", "programs", "dtype"),
    [
        (32, 2, 4, torch.float32),
        (64, 8, 2, torch.int16),
        pytest.param(32, 4, 1, torch.int16, marks=pytest.mark.slow),
        pytest.param(128, 8, 1, torch.float32, marks=pytest.mark.slow),
    ],
)
def test_other_closures(tile: int, warps: int, programs: int, dtype: torch.dtype) -> None:
    config = Config(closure_tile=tile, closure_warps=warps, closure_programs=programs)
    contract_of((dtype,), config).test_closure()


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.int16,
        *(
            pytest.param(dtype, marks=pytest.mark.slow)
            for dtype in (torch.int32, torch.int64, torch.float64)
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "shape", [(1, 500, 330, 1300), (3, 64, 64, 4000), (1, 3000, 2900, 600)], ids=str
)
def test_tiles_that_programs_share(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, shape: tuple[int, int, int, int]
) -> None:
    """Few tiles and a long k, of which no part consists of whole slices; or some of many tiles.
    From call to call.
    """
    batch, m, n, k = shape
    monkeypatch.setattr(
        "tri_apsp.engines.nvidia.split_k_tiles",
        lambda tiles, k, units, *_: (max(0, tiles - units), 3),
    )
    rng = torch.Generator(device="cuda").manual_seed(0)
    a, b, c = (
        torch.randint(-50, 100, (batch, *size), device="cuda", generator=rng).to(dtype)
        for size in ((m, k), (k, n), (m, n))
    )
    portable = engines.make(
        engines.MatrixSpec(m, dtype, c.device, False), default_config("portable", dtype)
    )
    engine = engines.make(
        engines.MatrixSpec(m, dtype, c.device, False), default_config("nvidia", dtype)
    )
    for fresh in (False, True, False):
        found, expected = ((c.clone(), c.clone()) for _ in range(2))
        for made, (first, second) in ((engine, found), (portable, expected)):
            made.product(Update(first, a, b, fresh=fresh), Update(second, a, b))
        assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def test_tiles_that_programs_share_in_graphs() -> None:
    """Each graph has locks of its own: it may run beside others, and beside what is launched on the
    stream of its capture.
    """
    a, b = torch.randint(0, 100, (2, 1, 300, 5000), device="cuda", dtype=torch.int32)
    b = b.mT.contiguous()
    engine = engines.make(
        engines.MatrixSpec(300, torch.int32, a.device, False),
        default_config("nvidia", torch.int32),
    )
    expected = torch.full((1, 300, 300), 1000, device="cuda", dtype=torch.int32)
    found = [torch.full_like(expected, 1000) for _ in range(3)]
    engine.product(Update(expected, a, b))
    graphs = [torch.cuda.CUDAGraph() for _ in range(2)]
    capture = torch.cuda.Stream()
    for graph, c in zip(graphs, found, strict=False):
        with torch.cuda.graph(graph, stream=capture):
            engine.product(Update(c, a, b))
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()
    for _ in range(20):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
        with torch.cuda.stream(capture):
            engine.product(Update(found[2], a, b))
    torch.cuda.synchronize()
    assert all(torch.equal(c, expected) for c in found)


CONFIG = default_config("nvidia", torch.float32)
# A shape of each kind: one warp, one program per graph and tile, one program per graph, several.
SHAPES = [(1, 1), (300, 20), (5, 64), (7, 129), (1, 1000)]
# Each case is a compilation of up to 20 s. Dtypes differ in the strategy alone.
QUICK = [
    *((torch.float32, shape, False) for shape in SHAPES),
    *((torch.float32, shape, True) for shape in ((300, 20), (7, 129), (1, 1000))),
    (torch.int16, (300, 20), True),
    (torch.int16, (1, 1000), False),
    (torch.float64, (7, 129), False),
]
SLOW = [
    (torch.int16, (7, 129), True),
    *(
        (dtype, shape, False)
        for dtype in (torch.int32, torch.int64, torch.float64)
        for shape in ((300, 20), (1, 1000))
    ),
]


@pytest.mark.parametrize(
    ("dtype", "shape", "padded"),
    [*QUICK, *(pytest.param(*solve, marks=pytest.mark.slow) for solve in SLOW)],
    ids=str,
)
def test_a_solve_in_one_launch(dtype: torch.dtype, shape: tuple[int, int], padded: bool) -> None:
    """It computes and reports what separate launches do, in repeated calls, for weights of any
    sign.
    """
    batch, n = shape
    beyond = distance_range(
        dtype, negative=True
    ).beyond  # from here on, no path: an edge of less than 0 may have lowered it
    for make in (cases.random_graph, cases.negative_graph, cases.random_graph):
        graphs = np.stack([make(n, seed=i) for i in range(min(batch, 3))])[
            np.arange(batch) % 3 % min(batch, 3)
        ]
        graphs[:, range(n), range(n)] = 5
        weights = cases.tensor(graphs, dtype, "cuda")
        sizes = torch.arange(batch, device="cuda") * 7 % (n + 1) if padded else None
        engine = engines.make(engines.MatrixSpec(n, dtype, weights.device, False, sizes), CONFIG)
        for given in (weights, torch.stack((weights, weights - 99), dim=-1)[..., 0]):
            expected, report = TritonEngine.queue_solve_of(engine, given)(given, sizes)  # type: ignore[arg-type]
            distances, own = engine.queue_solve_of(given)(given, sizes)
            for x in (distances, expected):
                assert x.is_contiguous()
            assert ((distances == expected) | (distances >= beyond) & (expected >= beyond)).all()
            (found, last), (separate, _) = own.read(), report.read()
            # Of the weights, a diagonal, or no_edge past the last vertex, may count or not.
            assert min(found.lowest, 0) == min(separate.lowest, 0)
            assert max(found.highest_below or 0, 0) == max(separate.highest_below or 0, 0)
            (of_distances,) = engine.value_ranges([distances], no_edge(dtype), diagonal=True)
            if n > SMALL_GRAPHS[dtype.itemsize]:
                assert of_distances == last
            else:  # whose highest distances are only bounded
                assert min(of_distances.lowest, 0) == last.lowest
                assert min(of_distances.lowest_diagonal, 0) == last.lowest_diagonal
                (of_paths,) = engine.value_ranges([distances], beyond)
                assert last.highest_below is None or last.highest_below >= (
                    of_paths.highest_below or 0
                )


def test_solves_side_by_side() -> None:
    """Reports that are read late, and in another order, are those of their own solves."""
    graphs = [
        cases.tensor(cases.random_graph(n)[None], torch.float32, "cuda") for n in (90, 200, 70)
    ]
    made = [
        engines.make(engines.MatrixSpec(w.shape[1], w.dtype, w.device, False), CONFIG)
        for w in graphs
    ]
    solved = [engine.queue_solve_of(w)(w, None) for engine, w in zip(made, graphs, strict=True)]
    for w, (distances, report) in reversed(list(zip(graphs, solved, strict=True))):
        weights, found = report.read()
        assert weights.highest_below == w[w.isfinite()].max()
        assert found.highest_below == distances[distances.isfinite()].max()


class TestStridesBeyondInt32:
    """A tile spans more values than int32 counts."""

    ROW = (1 << 25) + 16

    @pytest.mark.parametrize("engine", ["nvidia", "portable"])
    def test_views(self, engine: str) -> None:
        wide = torch.full((70, self.ROW), no_edge(torch.int16), dtype=torch.int16, device="cuda")
        graph = cases.tensor(cases.random_graph(70), torch.int16, "cuda")
        wide[:, 3:73] = graph
        view = wide[:, 3:73]
        with tuned.using(Config(engine=engine)):
            assert torch.equal(
                tri_apsp.min_plus(view, view, view), tri_apsp.min_plus(graph, graph, graph)
            )
            expected = tri_apsp.shortest_paths(graph).distances
            assert torch.equal(tri_apsp.shortest_paths(view).distances, expected)
            assert tri_apsp.shortest_paths(view, out=view).distances is view
        assert torch.equal(view, expected)
        assert (wide[:, :3] == no_edge(torch.int16)).all()
        assert (wide[:, 73:] == no_edge(torch.int16)).all()

    def test_a_long_product(self) -> None:
        a = torch.full((64, self.ROW), 100, dtype=torch.int16, device="cuda")
        b = torch.full((self.ROW, 40), 100, dtype=torch.int16, device="cuda")
        rows = torch.arange(64, device="cuda")
        a[rows, rows * 500_000 + 7] = 1
        b[rows * 500_000 + 7] = rows[:, None].to(torch.int16)
        assert torch.equal(
            tri_apsp.min_plus(a, b),
            (rows[:, None] + 1).clamp(max=100).to(torch.int16).expand(64, 40),
        )
