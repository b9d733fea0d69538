"""Batches of graphs of different sizes: the padding is never read as a graph, and comes out as
no_edge.
"""

from collections.abc import Callable
from unittest.mock import Mock

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import DistanceRangeError, InputError, NegativeCycleError, no_edge
from tri_apsp.arguments import DenseBatch
from tri_apsp.dense.negative_diagonal import Attempt, DenseAttempts
from tri_apsp.dense.plan import plan_dense
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.methods import METHODS
from tri_apsp.plan import Options

NAN, INF = float("nan"), float("inf")
SMALL = tri_apsp.Config(block_size=4, cutoff=6)
N = 23
SIZES = (9, 0, N, 1, 14, 5)

FLOAT_GARBAGE = (NAN, -INF, 0, -1)
# Values that padding may hold; the other dtypes are those of other tests.
GARBAGE = [
    pytest.param(dtype, value, id=f"{str(dtype).removeprefix('torch.')}-{value}")
    for dtype in cases.QUICK_DTYPES
    for value in (
        FLOAT_GARBAGE
        if dtype.is_floating_point
        else (torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0, -1)
    )
]
every_garbage = pytest.mark.parametrize(("dtype", "garbage"), GARBAGE)
in_place_or_not = pytest.mark.parametrize("overwrite", [False, True], ids=["copy", "overwrite"])

# How a batch may lie in memory; each keeps the values.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda weights: weights,
    "transposed": lambda weights: weights.mT.contiguous().mT,
    "batch last": lambda weights: weights.permute(1, 2, 0).contiguous().permute(2, 0, 1),
    "cut out": lambda weights: torch.nn.functional.pad(weights, (2, 3, 1, 1), value=7)[
        :, 1:-1, 2:-3
    ],
}


def graphs(*, negative: bool = False, sizes: tuple[int, ...] = SIZES) -> list[cases.Matrix]:
    make = cases.negative_graph if negative else cases.random_graph
    return [make(size, seed=seed) for seed, size in enumerate(sizes)]


def pad(
    parts: list[cases.Matrix], n: int, dtype: torch.dtype, garbage: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The graphs as a batch (batch, n, n) that is `garbage` elsewhere, and their sizes."""
    weights = torch.full((len(parts), n, n), garbage, dtype=dtype)
    for matrix, part in zip(weights, parts, strict=True):
        matrix[: len(part), : len(part)] = cases.tensor(part, dtype)
    return weights, torch.tensor([len(part) for part in parts])


def solved_alone(weights: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """What a padded solve must return: each graph solved by itself, and no_edge elsewhere."""
    expected = torch.full(weights.shape, no_edge(weights.dtype), dtype=weights.dtype)
    for i, size in enumerate(sizes.tolist()):
        expected[i, :size, :size] = tri_apsp.shortest_paths(
            weights[i, :size, :size].cpu().contiguous()
        ).distances
    return expected


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors are equal, NaN equal to NaN."""
    return torch.equal(left.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8))


@every_garbage
@in_place_or_not
@pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "negative"])
def test_each_graph_is_solved_as_if_alone(
    dtype: torch.dtype, garbage: float, overwrite: bool, negative: bool
) -> None:
    weights, sizes = pad(graphs(negative=negative), N, dtype, garbage)
    expected = solved_alone(weights, sizes)
    for check in (True,) if negative else (True, False):
        given = weights.clone()
        result = tri_apsp.shortest_paths(
            given, sizes=sizes, out=given if overwrite else None, check=check
        )
        assert torch.equal(result.distances, expected)
        assert (result.distances is given) == overwrite
        assert overwrite or same_bits(given, weights)


@pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
def test_every_dtype(dtype: torch.dtype) -> None:
    weights, sizes = pad(graphs(negative=True), N, dtype, cases.lowest(dtype))
    found = tri_apsp.shortest_paths(weights, sizes=sizes).distances
    assert torch.equal(found, solved_alone(weights, sizes))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
def test_every_method_in_blocks_smaller_than_the_graphs(method: str, dtype: torch.dtype) -> None:
    weights, sizes = pad(graphs(negative=True), N, dtype, -1)
    result = tri_apsp.shortest_paths(
        weights, sizes=sizes, method=method, config=cases.config_for(method, SMALL)
    )
    assert torch.equal(result.distances, solved_alone(weights, sizes))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@in_place_or_not
def test_any_strides(layout: Callable[[torch.Tensor], torch.Tensor], overwrite: bool) -> None:
    plain, sizes = pad(graphs(negative=True), N, torch.float32, NAN)
    weights = layout(plain)
    assert same_bits(weights, plain)
    result = tri_apsp.shortest_paths(weights, sizes=sizes, out=weights if overwrite else None)
    assert torch.equal(result.distances, solved_alone(plain, sizes))
    assert (result.distances is weights) == overwrite
    assert overwrite or same_bits(weights, plain)


@pytest.mark.parametrize("check", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_sizes_of_either_dtype_with_any_stride(dtype: torch.dtype, check: bool) -> None:
    weights, sizes = pad(graphs(), N, torch.float32, NAN)
    strided = torch.full((len(SIZES), 2), -7, dtype=dtype)[:, 0]
    strided.copy_(sizes)
    result = tri_apsp.shortest_paths(weights, sizes=strided, check=check)
    assert torch.equal(result.distances, solved_alone(weights, sizes))
    assert torch.equal(strided, sizes.to(dtype))


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (2, 5)])
@in_place_or_not
def test_no_vertices(shape: tuple[int, int], overwrite: bool) -> None:
    batch, n = shape
    weights, sizes = torch.full((batch, n, n), NAN), torch.zeros(batch, dtype=torch.int32)
    found = tri_apsp.shortest_paths(
        weights, sizes=sizes, out=weights if overwrite else None
    ).distances
    assert torch.equal(found, torch.full((batch, n, n), INF))


def test_a_positive_diagonal_counts_as_zero_in_the_graph_only() -> None:
    weights, sizes = torch.full((2, 3, 3), 5.0), torch.tensor([2, 0])
    distances = tri_apsp.shortest_paths(weights, sizes=sizes).distances
    assert distances[0].tolist() == [[0, 5, INF], [5, 0, INF], [INF, INF, INF]]
    assert (distances[1] == INF).all()


# Small batches are read at once, large ones in blocks: of rows, or of whole graphs.
SHAPES = {"at once": (3, 9), "blocks of rows": (3, 200), "blocks of graphs": (40, 50)}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))


def mostly_garbage(
    shape: tuple[int, int], dtype: torch.dtype, garbage: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of graphs of few vertices and of nearly n by turns."""
    batch, n = shape
    sizes = tuple(2 + (n - 2 - i) % (n - 1) if i % 2 else 4 for i in range(batch))
    return pad(graphs(sizes=sizes), n, dtype, garbage)


@every_garbage
@in_place_or_not
@shapes
def test_large_batches(
    dtype: torch.dtype, garbage: float, overwrite: bool, shape: tuple[int, int]
) -> None:
    weights, sizes = mostly_garbage(shape, dtype, garbage)
    expected = solved_alone(weights, sizes)
    assert torch.equal(
        tri_apsp.shortest_paths(weights, sizes=sizes, out=weights if overwrite else None).distances,
        expected,
    )


INT16 = torch.iinfo(torch.int16)
BAD_VALUES = {
    "NaN": (
        torch.float32,
        NAN,
        1,
        InputError,
        r"must hold numbers, but has NaN at \(1, 2, 1\); replace",
    ),
    "minus infinity": (
        torch.float64,
        -INF,
        1,
        InputError,
        r"minus infinity, but is -inf at \(1, 2, 1\); replace",
    ),
    "above no_edge": (torch.int16, INT16.max, 1, InputError, r"one is 32767 at \(1, 2, 1\)"),
    "below -no_edge": (torch.int16, INT16.min, 1, InputError, r"one is -32768 at \(1, 2, 1\)"),
    "above no_edge on the diagonal": (
        torch.int16,
        INT16.max,
        2,
        InputError,
        r"one is 32767 at \(1, 2, 2\)",
    ),
    "too negative": (
        torch.int16,
        -4096,
        1,
        DistanceRangeError,
        r"beside negative weights.*but one is -4096",
    ),
}


@pytest.mark.parametrize("case", BAD_VALUES.values(), ids=list(BAD_VALUES))
@in_place_or_not
@shapes
def test_bad_values_in_a_graph(
    case: tuple[torch.dtype, float, int, type[Exception], str],
    overwrite: bool,
    shape: tuple[int, int],
) -> None:
    """The padding holds the same value in front of it, which must neither count nor be named."""
    dtype, value, column, error, message = case
    weights, sizes = mostly_garbage(shape, dtype, value)
    weights[1, 2, column] = value
    before = weights.clone()
    with pytest.raises(error, match=message):
        tri_apsp.shortest_paths(weights, sizes=sizes, out=weights if overwrite else None)
    assert same_bits(weights, before)


@in_place_or_not
@shapes
def test_a_long_edge_beside_a_negative_one(overwrite: bool, shape: tuple[int, int]) -> None:
    """Beside negative int16 weights, others must lie below 8193: in the graphs, whatever the
    padding holds.
    """
    weights, sizes = mostly_garbage(shape, torch.int16, 8193)
    size = int(sizes[1])
    weights[1, :size, :size] = 8192
    weights[1, 0, 1] = -1
    before = weights.clone()
    copy = weights.clone()
    tri_apsp.shortest_paths(copy, sizes=sizes, out=copy if overwrite else None)
    weights[1, 1, 2] = before[1, 1, 2] = 8193
    with pytest.raises(DistanceRangeError, match="but one is 8193"):
        tri_apsp.shortest_paths(weights, sizes=sizes, out=weights if overwrite else None)
    assert torch.equal(weights, before)


@every_garbage
@in_place_or_not
@pytest.mark.parametrize("early", [False, True], ids=["at the end", "while solving"])
def test_a_negative_cycle_says_which_graph(
    dtype: torch.dtype,
    garbage: float,
    overwrite: bool,
    early: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if early:
        monkeypatch.setattr(CpuEngine, "check_interval", 1)
    weights, cycle = cases.negative_cycle(12, 3)
    parts = [*graphs(sizes=(5, 0, 20)), weights]
    padded, sizes = pad(parts, 20, dtype, garbage)
    before = padded.clone()
    with pytest.raises(NegativeCycleError, match="graph 3") as caught:
        tri_apsp.shortest_paths(
            padded, sizes=sizes, out=padded if overwrite else None, config=SMALL
        )
    assert caught.value.batch == 3
    assert max(caught.value.vertices) < 12
    if not overwrite:
        assert set(caught.value.vertices) == set(cycle)
        assert same_bits(padded, before)


def test_a_cycle_through_the_padding_is_none() -> None:
    """0 -> 1 -> 0 weighs 2; only over the padded vertex 2 would it weigh less than 0."""
    weights = torch.tensor([[[0.0, 1, -5], [1, 0, -5], [-5, -5, -5]]])
    distances = tri_apsp.shortest_paths(weights, sizes=torch.tensor([2])).distances
    assert distances.tolist() == [[[0, 1, INF], [1, 0, INF], [INF, INF, INF]]]
    with pytest.raises(NegativeCycleError):
        tri_apsp.shortest_paths(weights, sizes=torch.tensor([3]))


@in_place_or_not
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [[9000] * 2, [-4000] * 2, [-4000] * 12], ids=str)
def test_distances_out_of_range(overwrite: bool, method: str, steps: list[int]) -> None:
    """A path too negative is no negative cycle, where the weights show it."""
    n = len(steps) + 1
    chain = np.full((n, n), INF)
    chain[np.arange(n - 1), np.arange(1, n)] = steps
    weights, sizes = pad([graphs(sizes=(4,))[0], chain], 16, torch.int16, 0)
    errors = (DistanceRangeError, NegativeCycleError) if overwrite else DistanceRangeError
    config = cases.config_for(method, SMALL)
    with pytest.raises(errors):
        tri_apsp.shortest_paths(
            weights, sizes=sizes, method=method, config=config, out=weights if overwrite else None
        )


@pytest.mark.parametrize(
    ("size", "error"), [(2, DistanceRangeError), (3, NegativeCycleError)], ids=str
)
def test_a_padded_vertex_is_never_named(size: int, error: type[Exception]) -> None:
    """Clamped values may turn the diagonal negative at padded vertices alone; overwritten weights
    cannot show more.
    """
    distances = torch.full((2, 3, 3), no_edge(torch.int16), dtype=torch.int16)
    distances[1, 2, 2], distances[1, 0, 1] = -1, -16383
    batch = DenseBatch(distances, True, torch.tensor([3, size]))
    plan = plan_dense(batch, options=Options(overwrite=True))
    attempts = DenseAttempts(batch, Mock(), Attempt(distances, True, None, plan))
    with pytest.raises(error, match=r"weighs too little|through vertex 2 of graph 1"):
        attempts.settle()


def test_unchecked_sizes_out_of_range_count_as_the_nearest() -> None:
    weights, _ = pad(graphs(sizes=(4, 4, 4)), 4, torch.float32, NAN)
    given, clamped = torch.tensor([-3, 2, 1 << 40]), torch.tensor([0, 2, 4])
    result = tri_apsp.shortest_paths(weights, sizes=given, check=False)
    assert torch.equal(result.distances, solved_alone(weights, clamped))


FITTING = torch.tensor([1, 2, 3])
BAD_SIZES = [
    ([1, 2, 3], r"must be a dense torch tensor, but is list; make one with torch.tensor"),
    (FITTING.to_sparse(), "must be a dense torch tensor, but is sparse_coo"),
    (FITTING[:2], r"shape \(3,\), one size for each graph, but has shape \(2,\); reshape"),
    (torch.tensor(2), r"must have shape \(3,\).*but has shape \(\)"),
    (FITTING.float(), "must have dtype int32 or int64, but has float32; convert"),
    (FITTING.to("meta"), "must be on the device of the weights, cpu, but is on meta; move"),
]
OUT_OF_RANGE = [
    (torch.tensor([4, -1, -2]), r"must lie in \[0, 4\].*but sizes\[1\] is -1; count"),
    (torch.tensor([0, 4, 5]), r"must lie in \[0, 4\].*but sizes\[2\] is 5; count"),
    (torch.tensor([0, 1 << 40, -1]), r"but sizes\[1\] is 1099511627776"),
]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("sizes", "message"), BAD_SIZES + OUT_OF_RANGE, ids=str)
def test_bad_sizes(sizes: object, message: str, overwrite: bool) -> None:
    for dtype in cases.QUICK_DTYPES:
        weights = torch.full((3, 4, 4), 2, dtype=dtype)
        refused(weights, sizes, message, True, overwrite=overwrite)
        if not message.startswith(("must lie", "but sizes")):
            refused(weights, sizes, message, False, overwrite=overwrite)


def test_sizes_of_a_single_graph() -> None:
    message = r"must come with weights \(batch, n, n\), but these have shape \(4, 4\); leave"
    refused(torch.full((4, 4), 2.0), torch.tensor([2]), message, True)


def refused(
    weights: torch.Tensor, sizes: object, message: str, check: bool, *, overwrite: bool = True
) -> None:
    before = weights.clone()
    with pytest.raises(InputError, match=message) as caught:
        tri_apsp.shortest_paths(
            weights, sizes=sizes, out=weights if overwrite else None, check=check
        )  # type: ignore[arg-type]
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert torch.equal(weights, before)


@pytest.mark.gpu
class TestOnTheGpu:
    @every_garbage
    @in_place_or_not
    def test_each_graph_is_solved_as_if_alone(
        self, dtype: torch.dtype, garbage: float, overwrite: bool
    ) -> None:
        weights, sizes = pad(graphs(negative=True), N, dtype, garbage)
        given = weights.cuda()
        result = tri_apsp.shortest_paths(
            given, sizes=sizes.cuda(), out=given if overwrite else None
        )
        assert torch.equal(result.distances.cpu(), solved_alone(weights, sizes))

    @pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
    @pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "negative"])
    def test_graphs_of_many_blocks(self, dtype: torch.dtype, negative: bool) -> None:
        weights, sizes = pad(
            graphs(negative=negative, sizes=(300, 0, 1, 64, 65, 257)), 300, dtype, 0
        )
        result = tri_apsp.shortest_paths(weights.cuda(), sizes=sizes.int().cuda())
        assert torch.equal(result.distances.cpu(), solved_alone(weights, sizes))

    @pytest.mark.parametrize("engine", ["nvidia", "portable"])
    @pytest.mark.parametrize("overwrite", [False, True], ids=["copied", "in place"])
    def test_more_graphs_than_a_grid_takes(self, engine: str, overwrite: bool) -> None:
        """In one launch where the nvidia engine solves a copy, and as blocks where one closure is
        not all.
        """
        small, sizes = pad(graphs(sizes=(5, 0, 3, 7)), 7, torch.float32, NAN)
        weights, many = small.repeat(20_000, 1, 1).cuda(), sizes.repeat(20_000).cuda()
        expected = solved_alone(small, sizes).repeat(20_000, 1, 1)
        for config in (
            tri_apsp.Config(engine=engine),
            tri_apsp.Config(engine=engine, block_size=2, cutoff=2),
        ):
            given = weights.clone()
            found = tri_apsp.shortest_paths(
                given, sizes=many, config=config, out=given if overwrite else None
            )
            assert torch.equal(found.distances.cpu(), expected)

    @pytest.mark.parametrize("engine", ["nvidia", "portable"])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
    def test_sizes_out_of_range(self, engine: str, dtype: torch.dtype) -> None:
        """Kernels that close a whole graph read them before anything is checked."""
        config = tri_apsp.Config(engine=engine)
        for n in (4, 40, 130):
            weights = torch.full((3, n, n), 2, dtype=dtype, device="cuda")
            for size in (-1, n + 1, (1 << 32) + 1):
                with pytest.raises(
                    InputError, match=rf"in \[0, {n}\].* but sizes\[1\] is {size}; count"
                ):
                    tri_apsp.shortest_paths(
                        weights, sizes=torch.tensor([n, size, 0]).cuda(), config=config
                    )

    def test_unchecked_sizes_wait_for_nothing(self) -> None:
        weights, sizes = (tensor.cuda() for tensor in pad(graphs(), N, torch.float32, NAN))
        tri_apsp.shortest_paths(weights, sizes=sizes, check=False)  # compiles
        torch.cuda.set_sync_debug_mode("error")
        try:
            result = tri_apsp.shortest_paths(weights, sizes=sizes, check=False)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(result.distances.cpu(), solved_alone(weights, sizes))
