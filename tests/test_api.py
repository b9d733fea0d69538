"""The public calls: what they return, where it goes, what they refuse, and that a refusal leaves
the input alone.
"""

import pickle
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import cases
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import Config, CpuTiles, EngineError, GpuTiles, InputError, TooLargeError
from tri_apsp.device import Device
from tri_apsp.engines.triton_base import TritonEngine
from tri_apsp.graphs import DISTANCE_FORMATS, read_graph
from tri_apsp.memory import is_small, memory_for
from tri_apsp.methods import METHODS, auto
from tri_apsp.methods.auto import RULES
from tri_apsp.request import MethodChoice
from tri_apsp.semirings import no_edge, remedy_beyond
from tri_apsp.sparse.plan import ROW_METHODS

INF, NAN = float("inf"), float("nan")
FIVE = cases.tensor(cases.FIVE, torch.float64)
FIVE_DISTANCES = torch.from_numpy(cases.FIVE_DISTANCES)


def test_the_result_says_how_it_was_computed() -> None:
    result = tri_apsp.shortest_paths(FIVE)
    assert torch.equal(result.distances, FIVE_DISTANCES)
    assert (result.method, result.engine) == ("floyd_warshall", "cpu")
    assert (result.config.source, result.exponents) == ("default", False)
    config = Config(cutoff=2, block_size=1)
    given = tri_apsp.shortest_paths(torch.zeros(3, 3), config=config, method="kleene").config
    assert (given.cutoff, given.block_size, given.source) == (2, 1, "given")
    assert isinstance(given.product, CpuTiles)


def test_the_diagonal_counts_as_zero_unless_negative() -> None:
    weights = torch.tensor([[5.0, 1.0], [INF, INF]])
    assert tri_apsp.shortest_paths(weights).distances.tolist() == [[0, 1], [INF, 0]]
    assert weights[0, 0] == 5
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(torch.tensor([[-1.0, 1.0], [INF, INF]]))
    assert caught.value.vertices == (0,)


LARGE = torch.zeros(600, 600)
BY_NAME, LARGE_PRODUCTS = "asked for by name", RULES[-1].reason


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        ({"graph": torch.zeros(10, 10)}, ("one launch", "floyd_warshall", "one block: n <=")),
        ({}, ("dense", "kleene", LARGE_PRODUCTS)),
        ({"method": "squaring"}, ("dense", "squaring", BY_NAME)),
        ({"dtype": torch.float64, "predecessors": True}, ("dense", "kleene", LARGE_PRODUCTS)),
        ({"check": False}, ("dense", "kleene", LARGE_PRODUCTS)),
        ({"negative_cycles": "mark"}, ("dense", "kleene", LARGE_PRODUCTS)),
        ({"config": Config(method="squaring")}, ("dense", "squaring", BY_NAME)),
        ({"config": Config(block_size=9000)}, ("dense", "floyd_warshall", "one block: n <= 9000")),
        ({"config": Config(cutoff=600)}, ("dense", "floyd_warshall", "no recursion")),
        ({"method": "johnson"}, ("sparse", "dijkstra", "of the methods of sparse graphs")),
        ({"method": "frontier"}, ("sparse", "frontier", BY_NAME)),
        ({"sources": 3, "limit": 2}, ("sparse", "dijkstra", "for chosen rows")),
        (
            {"graph": torch.zeros(13), "offsets": torch.tensor([0, 4, 13])},
            ("packed", "floyd_warshall", "one block: n <="),
        ),
    ],
    ids=str,
)
def test_select_returns_the_plan_of_a_call(
    options: dict[str, object], plan: tuple[str, str, str]
) -> None:
    arguments = {"graph": LARGE} | options
    chosen = tri_apsp.select(**arguments)
    way, method, reason = plan
    assert (chosen.way, chosen.method, chosen.engine) == (way, method, "cpu")
    assert chosen.reason.startswith(reason)
    assert chosen.memory > 0
    assert (chosen.config is None) == (way == "sparse")
    ran = tri_apsp.shortest_paths(**arguments).plan
    assert (ran.way, ran.method, ran.engine) == (way, method, "cpu")


@pytest.mark.parametrize(
    ("options", "matrices"),
    [
        ({"method": "kleene"}, 1.05),
        ({"method": "squaring"}, 2),
        ({"method": "kleene", "out": LARGE}, 0.05),
        ({"method": "kleene", "out": torch.empty_like(LARGE)}, 0.05),
        ({"method": "kleene", "negative_cycles": "mark"}, 1.05 + 1 + 5 / 4),
    ],
)
def test_the_memory_of_a_plan(options: dict[str, object], matrices: float) -> None:
    """In matrices of the weights, as shortest_paths states its cost."""
    plan = tri_apsp.select(LARGE, **options)
    assert plan.memory == pytest.approx(matrices * LARGE.numel() * 4)


def test_every_rule_of_auto_can_apply() -> None:
    taken = {
        auto.choose(n, Config(engine=engine, block_size=64, cutoff=512))
        for engine in ("cpu", "portable", "nvidia")
        for n in (10, 100, 1000, 100_000)
    }
    assert taken == set(RULES)


def test_an_edge_of_bool_in_either_direction() -> None:
    edges = torch.zeros(4, 4, dtype=torch.bool)
    edges[0, 1] = edges[2, 1] = True
    found = tri_apsp.shortest_paths(edges, directed=False).distances
    assert found.tolist() == [[0, 1, 2, INF], [1, 0, 1, INF], [2, 1, 0, INF], [INF, INF, INF, 0]]


def test_true_is_an_edge_of_weight_one() -> None:
    edges = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    torch.set_default_dtype(torch.float64)
    try:
        distances = tri_apsp.shortest_paths(edges).distances
    finally:
        torch.set_default_dtype(torch.float32)
    assert distances.dtype == torch.float32
    assert distances.tolist() == [[0, 1, 2], [INF, 0, 1], [INF, INF, 0]]
    assert tri_apsp.min_plus(edges, edges).tolist() == [[INF, INF, 2], [INF] * 3, [INF] * 3]
    converted = tri_apsp.shortest_paths(edges, dtype=torch.int16).distances
    assert converted.tolist() == [[0, 1, 2], [16383, 0, 1], [16383, 16383, 0]]


@pytest.mark.parametrize(
    ("graph", "options"),
    [
        (FIVE, {}),
        (FIVE, {"method": "kleene", "predecessors": True}),
        (FIVE, {"sources": [3, 1, 3]}),
        (FIVE, {"method": "johnson"}),
        (FIVE, {"dtype": torch.int16}),
        (FIVE.expand(2, 5, 5), {"sizes": torch.tensor([5, 3])}),
        (FIVE.flatten(), {"offsets": torch.tensor([0, 25])}),
        (FIVE < 9, {}),
        (FIVE < 9, {"dtype": torch.int64}),
        pytest.param(lambda: tri_apsp.prepare(FIVE), {}, id="prepared"),
        (torch.empty(0, 0), {}),
    ],
    ids=str,
)
def test_out_is_a_tensor(graph: object, options: dict[str, object]) -> None:
    """With any strides; another call's result is the same."""
    graph = graph() if callable(graph) else graph
    expected = tri_apsp.shortest_paths(graph, **options)
    shape = expected.distances.shape
    whole = torch.full((*shape[:-1], shape[-1] + 3), 7, dtype=expected.distances.dtype)
    out = whole[..., 2:-1]
    result = tri_apsp.shortest_paths(graph, out=out, **options)
    assert result.distances is out
    assert torch.equal(out, expected.distances)
    assert (whole[..., :2] == 7).all()
    assert (whole[..., -1] == 7).all()
    assert result.method == expected.method
    if expected.predecessors is not None:
        assert torch.equal(result.predecessors, expected.predecessors)


@pytest.mark.parametrize("extension", DISTANCE_FORMATS)
def test_out_is_a_file(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"distances{extension}"
    result = tri_apsp.shortest_paths(FIVE, out=path)
    assert torch.equal(result.distances, FIVE_DISTANCES)
    if ".csv" in extension:
        assert np.array_equal(np.loadtxt(path, delimiter=","), cases.FIVE_DISTANCES)
    else:
        assert torch.equal(read_graph(path, torch.float64), FIVE_DISTANCES)
    rows = tri_apsp.shortest_paths(FIVE, sources=[2], out=str(path)).distances
    assert torch.equal(rows, FIVE_DISTANCES[2:3])
    before = path.read_bytes()
    with pytest.raises(InputError):
        tri_apsp.shortest_paths(FIVE * NAN, out=path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("method", ["auto", "johnson"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_dtype_converts_the_weights(method: str, dtype: torch.dtype) -> None:
    """inf becomes no_edge; a fraction, or what does not fit, is refused."""
    for graph in (
        FIVE,
        FIVE.float(),
        tri_apsp.prepare(FIVE),
        cases.tensor(cases.FIVE, torch.int16),
    ):
        distances = tri_apsp.shortest_paths(graph, dtype=dtype, method=method).distances
        assert distances.dtype == dtype
        assert torch.equal(distances.double(), FIVE_DISTANCES)
    one_way = tri_apsp.shortest_paths(FIVE[1:3, 1:3], dtype=dtype, method=method).distances
    assert one_way.tolist() == [[0, no_edge(dtype)], [4, 0]]


def test_no_remedy_names_a_wider_dtype_where_there_is_none() -> None:
    assert not [dtype for dtype in (torch.int64, torch.float64) if "wider" in remedy_beyond(dtype)]


def test_type_checkers_know_the_methods() -> None:
    assert get_args(MethodChoice) == ("auto", *METHODS, "johnson", *ROW_METHODS)


def test_results_are_compared_by_identity() -> None:
    """Comparing the distances would raise, since a tensor has no single truth value."""
    weights = torch.rand(3, 3)
    result = tri_apsp.shortest_paths(weights)
    assert result == result
    assert result != tri_apsp.shortest_paths(weights)
    assert len({result, result}) == 1


INT16 = partial(torch.tensor, dtype=torch.int16)
# The graph, and part of the message.
BAD_GRAPHS = [
    (
        [],
        r"must be a torch tensor, dense \(n, n\) or sparse, a NumPy array \(n, n\), a SciPy ",
    ),
    ([[0.0]], r"but is list; give torch.tensor\(\) of numbers, from_pandas\(\) of a table"),
    ({}, r"but is dict; .* or read_sparse_graph\(\) of a file"),
    (torch.zeros(4), r"square, \(n, n\) or \(batch, n, n\), but has shape \(4,\)"),
    (torch.zeros(1, 1, 2, 2), "must be square"),
    (torch.zeros(3, 4), r"square.*has shape \(3, 4\); pad missing vertices with no_edge"),
    (torch.zeros(2, 2).half(), "but has float16; convert"),
    (torch.zeros(2, 2, dtype=torch.complex64), "but has complex64; give its .real, or abs"),
    (torch.zeros(2, 2, dtype=torch.uint8), "but has uint8; convert it to float32"),
    (torch.tensor([[0, 1], [NAN, 0]]), r"must hold numbers, but has NaN at \(1, 0\); replace"),
    (torch.tensor([[0, -INF], [1, 0]]), r"minus infinity, but is -inf at \(0, 1\); replace"),
    (INT16([[0, 16384], [1, 0]]), r"\[-16383, 16383\].*but one is 16384 at \(0, 1\); give"),
    (INT16([[-32768]]), "one is -32768"),
    (torch.tensor([[0, 2**62], [1, 0]]), r"no_edge\(dtype\) for missing edges, or use float64"),
    (torch.zeros(2, 2, device="meta"), "on the CPU or a CUDA device, but is on meta"),
    (torch.zeros(1, 4).expand(4, 4), "must not overlap itself"),
    (torch.zeros(7).as_strided((4, 4), (1, 1)), "must not overlap itself"),
    (torch.eye(3) > 0, "`out` must not be weights of bool"),
    (
        torch.eye(3).to_sparse(),
        "`out=graph`.*sparse graph|sparse graph.*`out=graph`|`out` must be a dense tensor",
    ),
]


@pytest.mark.parametrize(("graph", "message"), BAD_GRAPHS, ids=[case[1] for case in BAD_GRAPHS])
def test_bad_graphs(graph: object, message: str) -> None:
    for method in ("auto", "kleene"):
        with pytest.raises(InputError, match=message) as caught:
            tri_apsp.shortest_paths(graph, method=method, out=graph)
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tri_apsp.shortest_paths([[0.0]]),
        lambda: tri_apsp.hops([[0.0]]),
        lambda: tri_apsp.min_plus(FIVE, 1),
        lambda: tri_apsp.reachability(None),
        lambda: tri_apsp.shortest_paths(FIVE, predecessors=1),
        lambda: tri_apsp.shortest_paths(FIVE, config={"cutoff": 64}),
        lambda: tri_apsp.shortest_paths(FIVE, method=2),
        lambda: tri_apsp.shortest_paths(FIVE, negative_cycles=None),
        lambda: tri_apsp.shortest_paths(FIVE, sources="0"),
        lambda: tri_apsp.shortest_paths(FIVE, sources=[0.5]),
        lambda: tri_apsp.shortest_paths(FIVE, sources=0, limit="1"),
        lambda: tri_apsp.shortest_paths(FIVE[None], sizes=[5]),
        lambda: tri_apsp.shortest_paths(FIVE.flatten(), offsets=[0, 25]),
        lambda: tri_apsp.shortest_paths(FIVE, predecessors=True).path("0", 1),
        lambda: tri_apsp.pack([FIVE], torch.tensor([5])),
        lambda: tri_apsp.no_edge("float32"),
        lambda: tri_apsp.warmup("float32"),
    ],
)
def test_a_wrong_type_is_also_a_type_error(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, InputError)


BATCH = torch.zeros(2, 4, 4)
INT16_GRAPH = torch.zeros(4, 4, dtype=torch.int16)
GRAPH = torch.full((4, 4), 2.0)
# The arguments beside it, and part of the message.
BAD_ARGUMENTS = [
    ({"graph": torch.tensor([[[0.0]], [[NAN]]])}, r"NaN at \(1, 0, 0\)"),
    ({"method": np.zeros(2)}, "`method` must be one of .*, but is ndarray"),
    ({"negative_cycles": np.zeros(2)}, "`negative_cycles` must be .*, but is ndarray"),
    ({"dtype": np.zeros(2)}, "dtype"),
    ({"device": "cuda:99999999999999999999"}, "`device` must be auto, all, cpu"),
    ({"method": "bfs"}, re.escape(", ".join(("auto", *METHODS, "johnson", *ROW_METHODS)))),
    ({"config": Config(engine="tpu")}, "cpu, nvidia, portable, but is 'tpu'"),
    ({"config": Config(block_size=0)}, "block_size must be .*, but is 0"),
    ({"config": Config(cutoff=2.5)}, "cutoff must be .*, but is 2.5"),
    ({"config": Config(cutoff=64.0)}, "cutoff must be"),  # which equals a valid one
    ({"config": Config(product=CpuTiles(0, 1, 1))}, "product.block_m must be .*, but is 0"),
    (
        {"config": Config(product=GpuTiles(16, 16))},
        "must be CpuTiles for the cpu engine, but is GpuTiles",
    ),
    ({"config": {"cutoff": 3}}, "must be a tri_apsp.Config, but is dict"),
    ({"check": "no"}, "`check` must be True or False, but is 'no'"),
    (
        {"out": np.zeros((4, 4))},
        "`out` must be a tensor or a path, but is ndarray; give torch.from",
    ),
    ({"predecessors": 1, "method": "johnson"}, "`predecessors` must be True or False"),
    ({"negative_cycles": "skip"}, "`negative_cycles` must be 'raise' or 'mark', but is 'skip'"),
    ({"negative_cycles": "mark", "out": GRAPH}, "but they are `out`; give another tensor"),
    ({"negative_cycles": "mark", "check": False}, "but check=False was given; leave it out"),
    ({"predecessors": True, "out": GRAPH}, "but they are `out`; give another tensor"),
    # Sources.
    ({"sources": []}, "`sources` must name at least one vertex"),
    ({"sources": [0, 4]}, r"`sources` must lie in \[0, 4\), but one is 4"),
    ({"sources": -1}, r"`sources` must lie in \[0, 4\), but one is -1"),
    ({"sources": "ab"}, "`sources` must be a list or a 1-D tensor of .*, but this is 'ab'; give"),
    ({"sources": [0, None]}, "but one is None; give"),
    ({"sources": {0, 1}}, "but this is set; give"),
    ({"sources": [[0], [1, 2]]}, "but one is list; give"),
    ({"sources": 1.5}, "but has dtype float32; convert it to int64"),
    ({"sources": np.array([0.0])}, "but has dtype float64; convert it to int64"),
    ({"sources": torch.ones(4) < 2}, "a mask of bool; .* of a tensor mask.nonzero"),
    ({"sources": torch.tensor([[0]])}, r"but is \(1, 1\) of int64; give it as one list"),
    ({"sources": torch.tensor([0, 1]).to_sparse()}, r"but is sparse_coo \(2,\) of int64; give"),
    ({"sources": scipy.sparse.csr_array(np.eye(2))}, "but this is csr_array; give"),
    ({"sources": 0, "limit": torch.eye(2)}, r"`limit` must be .* but is \(2, 2\) of float32; give"),
    ({"sources": 0, "limit": -1}, "`limit` must be a number that is not negative"),
    ({"sources": 0, "limit": NAN}, "`limit` must be a number that is not negative"),
    ({"sources": 0, "limit": "far"}, "`limit` must be a number that is not negative"),
    ({"sources": 0, "limit": -(10**5000)}, "`limit` must be .*, but is an integer of 16610 bits"),
    ({"memory": -(10**5000)}, "`memory` must be at least 1, but is an integer of 16610 bits"),
    ({"checkpoint": ("state",)}, "`checkpoint` must be a path, but is tuple"),
    # Arguments that exclude each other.
    ({"limit": 3}, "`limit` needs `sources`"),
    ({"graph": BATCH, "sources": 0}, r"`sources` need one graph, \(n, n\)"),
    ({"sources": 0, "out": GRAPH}, "`sources` must not be given with `out=graph`"),
    ({"dtype": torch.int32, "out": GRAPH}, "`dtype` must not be given with `out=graph`"),
    ({"sources": 0, "check": False}, "`sources` must not be given with `check=False`"),
    ({"method": "johnson", "check": False}, "must not be given with `check=False`"),
    ({"method": "johnson", "sizes": torch.ones(2).int()}, "must not be given with `sizes`"),
    ({"method": "kleene", "sources": 0, "limit": 3}, "`limit` is for methods of sparse graphs"),
    ({"graph": BATCH, "method": "johnson"}, "needs one graph, but `graph` is a batch; solve"),
    (
        {"graph": INT16_GRAPH, "method": "dijkstra"},
        "needs weights of float32.*, but `graph` has int16",
    ),
    ({"method": "johnson", "config": Config(engine="nvidia")}, "'cpu' .*{'engine': 'nvidia'}"),
    ({"method": "johnson", "config": Config(block_size=32)}, "but sets {'block_size': 32}; leave"),
    # Where the distances go.
    ({"out": torch.empty(4, 3)}, r"`out` must be a dense tensor \(4, 4\) of float32 in memory"),
    ({"out": torch.empty(4, 4).double()}, "but is .* of float64; make one"),
    ({"out": torch.empty(4, 4, device="meta")}, "on the device meta; make one"),
    ({"out": torch.empty(4, 4, requires_grad=True)}, "without a gradient"),
    ({"out": torch.eye(4).to_sparse()}, "must be a dense tensor"),
    ({"sources": [0], "out": torch.empty(4, 4)}, r"dense tensor \(1, 4\)"),
    ({"out": torch.empty(1, 4).expand(4, 4)}, "`out` must not overlap itself"),
    ({"out": GRAPH.T}, "`out` must be the weights, which it replaces, or share no memory"),
    ({"out": "distances.gr"}, r"\.npy"),
    ({"out": "/no/such/folder/d.npy"}, "folder of an output must exist"),
    ({"out": 3}, "path"),
    ({"graph": BATCH, "out": "distances.csv"}, r"can hold distances \(2, 4, 4\), .* or write .npy"),
    ({"graph": torch.ones(4), "offsets": torch.tensor([0, 4]), "out": "d.npy"}, "give a tensor"),
    # A dtype.
    ({"dtype": torch.float16}, "float16"),
    ({"dtype": "float64"}, "dtype"),
    ({"graph": torch.full((4, 4), 0.5), "dtype": torch.int32}, "fraction|whole|integer"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_ARGUMENTS, ids=[" ".join(case[0]) for case in BAD_ARGUMENTS]
)
@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        tri_apsp.shortest_paths(**{"graph": GRAPH} | arguments)
    assert str(caught.value).endswith(".")
    assert (GRAPH == 2).all()


@pytest.mark.parametrize("function", [tri_apsp.select, tri_apsp.hops])
def test_other_functions_refuse_the_same_sources(function: Callable[..., object]) -> None:
    for sources in (torch.eye(2).to_sparse(), torch.zeros(4) < 1, "0", [4]):
        with pytest.raises(InputError, match="`sources` must"):
            function(torch.zeros(4, 4), sources=sources)


@pytest.mark.parametrize("engine", ["nvidia", "portable"])
def test_an_engine_that_cannot_run_here_says_why(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    message = f"{engine} engine needs (Triton|a GPU, but the device is cpu; choose a GPU)"
    with pytest.raises(EngineError, match=message):
        tri_apsp.shortest_paths(torch.zeros(2, 2), config=Config(engine=engine))


def test_a_tensor_of_bool_that_does_not_fit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is checked before the weights of 4 bytes per edge are allocated, for which torch
    has an error of its own.
    """
    monkeypatch.setattr("tri_apsp.memory.fits_memory", lambda size, device: size < 4 * 30 * 30)
    monkeypatch.setattr("tri_apsp.arguments.from_bool", lambda edges: pytest.fail("allocated"))
    edges = torch.zeros(30, 30, dtype=torch.bool)
    for call in (lambda: tri_apsp.shortest_paths(edges), lambda: tri_apsp.min_plus(edges, edges)):
        with pytest.raises(TooLargeError, match=r"as float32, must fit .* but needs 3\.5 KiB and"):
            call()


@pytest.mark.parametrize(
    ("shape", "method", "message"),
    [
        (
            (1000, 1000),
            "floyd_warshall",
            r"a problem of 1000 vertices in float32 must fit .* needs 3\.8 MiB and cpu has 1\.0 "
            "MiB free, which fits 512 vertices",
        ),
        ((1000, 1000), "squaring", r"float32 \(2 matrices\) must fit .* but needs 7\.6 MiB"),
        (
            (300, 100, 100),
            "floyd_warshall",
            r"300 graphs of 100 vertices .* 11\.4 MiB and .*, which fits 26 of these graphs; .* or "
            r"fewer graphs at a time\.$",
        ),
        (
            (2, 1000, 1000),
            "floyd_warshall",
            "2 graphs of 1000 vertices .*, which fits one of 512 vertices; .* or a smaller graph",
        ),
    ],
    ids=str,
)
def test_a_graph_too_large_for_the_memory(
    shape: tuple[int, ...], method: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1 << 20)
    with pytest.raises(TooLargeError, match=message):
        tri_apsp.shortest_paths(torch.zeros(1).expand(shape), method=method)


def test_what_needs_no_memory_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1 << 20)
    weights = torch.zeros(1000, 1000)
    found = tri_apsp.shortest_paths(weights, method="floyd_warshall", out=weights)
    assert found.distances is weights
    with pytest.raises(TooLargeError, match=r"needs 3\.8 MiB.*; multiply fewer rows of `a`"):
        tri_apsp.min_plus(weights, weights)


def out_of_memory(*_: object, **__: object) -> torch.Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_an_allocation_that_fails_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small problem is not checked before it is allocated; if the allocation fails, the call
    raises TooLargeError.
    """
    weights = torch.zeros(10, 10)
    monkeypatch.setattr("torch.Tensor.clone", out_of_memory)
    monkeypatch.setattr("torch.Tensor.new_empty", out_of_memory)
    monkeypatch.setattr("numpy.empty", out_of_memory)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 100)
    with pytest.raises(TooLargeError, match=r"a problem of 10 vertices in float32 .*400 bytes"):
        tri_apsp.shortest_paths(weights)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 1 << 30)
    message = r"although enough .*seemed free \(CUDA out of memory\); free what"
    for call in (tri_apsp.shortest_paths, lambda x: tri_apsp.min_plus(x, x)):
        with pytest.raises(TooLargeError, match=message):
            call(weights)


def test_what_fails_to_be_allocated_is_too_large() -> None:
    """Also an array of NumPy; an error that says so keeps its message."""
    guard = partial(memory_for, "hops", 8, torch.device("cpu"), "give fewer sources")
    with pytest.raises(TooLargeError, match="although enough"), guard():
        np.empty(1 << 50)
    with pytest.raises(TooLargeError, match=r"^a workspace$"), guard():
        raise TooLargeError("a workspace")


def test_a_workspace_that_does_not_fit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS["squaring"], "solve", out_of_memory)
    monkeypatch.setattr("tri_apsp.memory.free_memory", lambda device: 799)
    with pytest.raises(TooLargeError, match="800 bytes"):
        tri_apsp.shortest_paths(torch.zeros(10, 10), method="squaring")


def test_what_is_small_depends_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Device("cuda", "a GPU", "a-gpu", 100, memory=64 << 30)
    monkeypatch.setattr("tri_apsp.memory.describe", lambda _: facts)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert is_small(1 << 30, gpu)
    assert not is_small((1 << 30) + 1, gpu)
    assert is_small(1 << 21, cpu)
    assert not is_small((1 << 21) + 1, cpu)


def test_strides_with_which_a_gpu_can_solve_in_place() -> None:
    """Dense weights of any size, and others whose row stride keeps every tile within 32 bits."""
    for n, stride, in_place in (
        (10, 10, True),
        (300_000, 300_000, True),
        (10, 1 << 18, True),
        (10, 1 << 19, False),
    ):
        weights = torch.empty(0, device="meta").as_strided((1, n, n), (1, stride, 1))
        assert TritonEngine.can_solve_in_place(weights) == in_place
    assert not TritonEngine.can_solve_in_place(torch.empty(1, 9, 9, device="meta").transpose(1, 2))


class TestMinPlus:
    def test_product(self) -> None:
        a, b = (
            torch.tensor([[1.0, 5.0], [INF, 2.0]]),
            torch.tensor([[1.0, INF, 0.0], [0.0, INF, 7.0]]),
        )
        assert tri_apsp.min_plus(a, b).tolist() == [[2, INF, 1], [2, INF, 9]]
        c = torch.tensor([[0.0, 3.0, 9.0], [9.0, 9.0, 9.0]])
        assert tri_apsp.min_plus(a, b, c).tolist() == [[0, 3, 1], [2, 9, 9]]
        assert c[0].tolist() == [0, 3, 9]

    def test_a_sum_of_exactly_no_edge_is_refused(self) -> None:
        a, b = (torch.tensor([[value]], dtype=torch.int16) for value in (8000, 8383))
        with pytest.raises(tri_apsp.DistanceRangeError):
            tri_apsp.min_plus(a, b)
        assert tri_apsp.min_plus(a - 1, b).item() == 16382

    @pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
    def test_batches_strides_and_empty_shapes(self, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)
        a = torch.randint(0, 50, (3, 40, 17), generator=generator).to(dtype)
        b = torch.randint(0, 50, (3, 33, 17), generator=generator).to(dtype).mT
        assert torch.equal(tri_apsp.min_plus(a, b), (a[..., None] + b[:, None]).amin(dim=2))
        assert torch.equal(tri_apsp.min_plus(a[1], b[1]), tri_apsp.min_plus(a, b)[1])
        assert (tri_apsp.min_plus(a[:, :, :0], b[:, :0]) == tri_apsp.no_edge(dtype)).all()
        assert tri_apsp.min_plus(a[:, :0], b).shape == (3, 0, 33)
        assert tri_apsp.min_plus(a[:0], b[:0]).shape == (0, 40, 33)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((torch.zeros(2, 3), torch.zeros(2, 3)), r"\(m, k\) and \(k, n\).*but have \(2, 3\)"),
            ((torch.zeros(2, 2), torch.zeros(1, 2, 2)), "must have shapes"),
            ((torch.zeros(2, 2, 2), torch.zeros(3, 2, 2)), "must have shapes"),
            (
                (torch.zeros(2, 2), torch.zeros(2, 3), torch.zeros(2, 2)),
                r"`c` must have.*\(2, 3\), but has \(2, 2\)",
            ),
            ((torch.zeros(2, 2), torch.zeros(2, 2).double()), "`a` is float32 and `b` float64"),
            ((torch.zeros(2, 2), torch.zeros(2, 2).half()), "`b` must have one of the dtypes"),
            ((torch.zeros(2, 2), [[0.0]]), "`b` must be a torch tensor, but is list"),
            ((torch.zeros(2, 2), torch.full((2, 2), NAN)), r"`b` must hold .* has NaN at \(0, 0\)"),
            (
                (torch.zeros(2, 2), torch.zeros(2, 2), torch.full((2, 2), -INF)),
                "`c` must be greater than minus infinity",
            ),
            # A device that is always there stands for the second one.
            ((torch.zeros(2, 2), torch.zeros(2, 2, device="meta")), "CUDA device, but is on meta"),
        ],
    )
    def test_bad_operands(self, arguments: tuple[torch.Tensor, ...], message: str) -> None:
        with pytest.raises(InputError, match=message):
            tri_apsp.min_plus(*arguments)

    @pytest.mark.gpu
    def test_operands_on_two_devices(self) -> None:
        with pytest.raises(
            InputError, match="must be on one device, but `a` is on cpu and `b` on cuda:0; move one"
        ):
            tri_apsp.min_plus(torch.zeros(2, 2), torch.zeros(2, 2, device="cuda"))


@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_the_remedy_for_a_sparse_operand_works(layout: torch.layout) -> None:
    operand = torch.sparse_coo_tensor(
        torch.tensor([[0, 1], [1, 0]]), torch.tensor([3.0, 0.0]), (2, 2)
    ).to_sparse(layout=layout)
    with pytest.raises(InputError, match="`a` must be a dense tensor, but is sparse_") as caught:
        tri_apsp.min_plus(operand, operand)
    found = re.search(r"give (.*), x being its (.*)\.$", str(caught.value))
    known = {"x": eval(f"operand{found[2]}"), "scipy": scipy, "from_scipy": tri_apsp.from_scipy}
    assert eval(found[1], known).tolist() == [[0, 3], [0, 0]]  # the stored 0 is an edge


def test_errors_are_of_the_families_that_callers_know() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(TooLargeError, MemoryError)
    assert issubclass(tri_apsp.DistanceRangeError, OverflowError)
    for options in ({}, {"mark": ""}, {"overwritten": True}):
        given = tri_apsp.NegativeCycleError([3, 1], 2, **options)
        error = pickle.loads(pickle.dumps(given))
        assert (error.vertices, error.batch, str(error)) == ((3, 1), 2, str(given))


ONE_CYCLE = torch.tensor([[0.0, 1.0, INF], [-2.0, 0.0, INF], [INF, INF, 0.0]])
MARK, REMOVE = 'or mark such pairs: negative_cycles="mark"', "remove or raise one of its edges"
LOST = "The weights were overwritten, .*; restore them before you look for the cycle"


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (tri_apsp.shortest_paths, MARK),
        (partial(tri_apsp.shortest_paths, method="johnson"), MARK),
        (lambda w: tri_apsp.shortest_paths(w, out=w), f"{MARK} and another `out`. {LOST}"),
        (partial(tri_apsp.shortest_paths, sources=0), MARK),
        (tri_apsp.distance_blocks, MARK),
        (partial(tri_apsp.closeness, weighted=True), REMOVE),
        (partial(tri_apsp.diameter, weighted=True), REMOVE),
    ],
)
def test_the_remedy_of_a_negative_cycle_is_one_of_the_function(
    call: Callable[[torch.Tensor], object], remedy: str
) -> None:
    with pytest.raises(tri_apsp.NegativeCycleError, match=f"{remedy}\\.$"):
        call(ONE_CYCLE.clone())
