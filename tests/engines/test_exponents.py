"""Products by exponents: on a GPU, and in Triton's interpreter."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels import exponents_model as model
from tri_apsp.solver import exponents as solver_exponents

import tri_apsp
from tri_apsp import engines
from tri_apsp.configs import EXPONENTS_PART, GpuTiles, default_config
from tri_apsp.engines import MatrixSpec, Update, triton_exponents
from tri_apsp.engines.triton_exponents import (
    _MARGIN,
    BLOCK_EDGE,
    Remaining,
    _encode,
    _sample,
    _Work,
    exponent_product,
    exponents_of,
)
from tri_apsp.methods import METHODS, Observer
from tri_apsp.report.families import FAMILIES

DTYPES = (torch.int16, torch.int32, torch.float32)
OTHERS = [pytest.param(dtype, marks=pytest.mark.slow) for dtype in DTYPES[1:]]
DEFAULT_TILES = GpuTiles(128, 128, 128, num_warps=8, num_stages=6)
WIDE_TILES = GpuTiles(128, 256, 128, num_warps=8, num_stages=6)
TILES = [
    DEFAULT_TILES,
    WIDE_TILES,
    *(dataclasses.replace(tiles, block_k=512) for tiles in (DEFAULT_TILES, WIDE_TILES)),
]
WINDOW = exponents_of(128).WINDOW
SIZES = [(1, 1, 1), (1, 1, 2), (130, 5, 200), (128, 256, 128), (100, 300, 129)]
interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="for Triton's interpreter alone"
)


@pytest.fixture(params=[pytest.param(True, id="gluon"), pytest.param(False, id="plain")])
def gluon(request: pytest.FixtureRequest) -> bool:
    """Whether a product runs in the Gluon kernel, or in the plain one."""
    if request.param and torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the Gluon kernel is for compute capability 9.x")
    return bool(request.param)


def operands(
    m: int,
    n: int,
    depth: int,
    dtype: torch.dtype,
    *,
    highest: int = 9,
    device: str = "cpu",
    seed: int = 0,
) -> tuple[torch.Tensor, ...]:
    """C, A and B of two graphs, with missing edges, as views of wider rows."""
    generator = torch.Generator().manual_seed(seed)

    def draw(rows: int, columns: int) -> torch.Tensor:
        values = torch.randint(0, highest + 1, (2, rows, columns + 3), generator=generator).to(
            dtype
        )
        values[torch.rand(values.shape, generator=generator) < 0.3] = tri_apsp.no_edge(dtype)
        return values.to(device)[..., :columns]

    return draw(m, n), draw(m, depth), draw(depth, n)


@contextmanager
def samples_replaced(certain: int, uncertain: int) -> Iterator[None]:
    """Within it, each sample has `certain` + `uncertain` tiles, of which `certain` seem certain;
    with none, products begin.
    """

    def store(sample: torch.Tensor, zeros: torch.Tensor, *_: Any) -> None:
        sample.zero_()
        sample[:certain], sample[certain : certain + uncertain] = 2, 1
        zeros.zero_()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton_exponents, "_sample", store)
        yield


def product_without_sample(
    update: Update, tiles: GpuTiles = DEFAULT_TILES, **options: Any
) -> Remaining:
    with samples_replaced(0, 0):
        return exponent_product(update, tiles, **options)


def check(
    c: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    tiles: GpuTiles = DEFAULT_TILES,
    **options: Any,
) -> torch.Tensor:
    """Compare the blocks that are certain with min_plus, and return the others."""
    found = c.clone()
    uncertain, counts = product_without_sample(Update(found, a, b), tiles, **options)
    of_tiles = uncertain[:, :, :: tiles.block_n // BLOCK_EDGE]
    assert counts.tolist() == [of_tiles.numel(), int((of_tiles == 0).sum())]
    left = (
        uncertain.bool()
        .repeat_interleave(BLOCK_EDGE, 1)
        .repeat_interleave(BLOCK_EDGE, 2)[:, : c.shape[1], : c.shape[2]]
    )
    assert torch.equal(found, torch.where(left, c, tri_apsp.min_plus(a, b, c))), (c.shape, a.shape)
    return uncertain


def leave_one_path(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, above: int
) -> tuple[int, int]:
    """Leave one path for the last pair of graph 1, `above` more than the least sum; return the tile
    of the pair.
    """
    missing = tri_apsp.no_edge(c.dtype)
    c[1], c[1, -1, -1] = 3, missing
    a[1, -1], b[1, :, -1] = missing, missing
    a[1, -1, 0], a[1, -1, 1], b[1, 1, -1] = (
        0,
        above,
        0,
    )  # vertex 0 leads to others, but not to the last one
    b[1, 0, 0] = 0
    return (c.shape[1] - 1) // BLOCK_EDGE, (c.shape[2] - 1) // BLOCK_EDGE


def test_the_rule_has_the_numbers_of_the_kernels() -> None:
    assert exponents_of(128).WINDOW == solver_exponents._WINDOW
    assert exponents_of(128).ZERO == solver_exponents._ZERO


@interpreted
@pytest.mark.parametrize(("m", "n", "depth"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_interpreted_products(dtype: torch.dtype, m: int, n: int, depth: int) -> None:
    check(*operands(m, n, depth, dtype), gluon=False)


@interpreted
def test_interpreted_tiles_of_two_blocks() -> None:
    for columns, expected in ((slice(0, 1), [1, 1, 0]), (slice(270, 280), [0, 0, 1])):
        c, a, b = operands(40, 300, 150, torch.int16)
        b[0, :, columns] = 1000
        b[0, 0, columns] = 0  # vertex 0, to which some rows have no edge
        uncertain = check(c, a, b, WIDE_TILES, gluon=False)
        assert uncertain[0].tolist() == [expected]


@interpreted
@pytest.mark.parametrize(("above", "reported"), [(WINDOW, 0), (WINDOW + 1, 1)])
def test_interpreted_edge_of_the_window(above: int, reported: int) -> None:
    c, a, b = operands(40, 50, 128, torch.int16, highest=3)
    place = leave_one_path(c, a, b, above)
    assert check(c, a, b, gluon=False)[1][place] == reported


@interpreted
@pytest.mark.parametrize("value", [-1, -0.0, 0.5, float("nan")])
def test_interpreted_other_values(value: float) -> None:
    c, a, b = operands(140, 30, 50, torch.float32)
    a[0, 3, 7] = value
    found = product_without_sample(Update(c.clone(), a, b), gluon=False)
    assert found.uncertain[0].flatten().tolist() == [1, 0]


@pytest.mark.gpu
@pytest.mark.parametrize("value", [-1, -0.0, 0.5, float("nan")])
def test_other_values(value: float, gluon: bool) -> None:
    c, a, b = operands(140, 130, 50, torch.float32, device="cuda")
    wrong = a.clone(), b.clone()
    wrong[0][0, 3, 7] = wrong[1][0, 7, 128] = value
    for operands_, expected in (((wrong[0], b), [1, 1, 0, 0]), ((a, wrong[1]), [0, 1, 0, 1])):
        found = product_without_sample(Update(c.clone(), *operands_), gluon=gluon)
        assert found.uncertain[0].flatten().tolist() == expected


@pytest.mark.gpu
def test_rows_that_are_far_apart(gluon: bool) -> None:
    """Of 128 rows, 2^30 values; of all rows, more than 2^31."""
    given = operands(300, 300, 300, torch.int16, device="cuda")
    memory = torch.empty(300 << 23, dtype=torch.int16, device="cuda")
    c, a, b = (
        memory.as_strided((1, 300, 300), (0, 1 << 23, 1), 1000 * i).copy_(x[:1])
        for i, x in enumerate(given)
    )
    expected = tri_apsp.min_plus(*(x[:1] for x in (*given[1:], given[0])))
    remaining = product_without_sample(Update(c, a, b), gluon=gluon)
    assert not remaining.uncertain.any()
    assert torch.equal(c, expected)
    c.copy_(given[0][:1])
    b[:, :, 150:] += 3000
    found = sample(c, a, b)
    assert found == sample(*(x.contiguous() for x in (c, a, b)))
    assert 0 < found[1] < found[0]


def check_encoding(
    m: int, n: int, depth: int, dtype: torch.dtype, tiles: GpuTiles, *, highest: int, device: str
) -> None:
    """Compare encodings with those of the model; long lines of graph 1 have a value that is
    refused, or above NO_EDGE.
    """
    _, a, b = operands(m, n, depth, dtype, highest=highest, device=device)
    if dtype.is_floating_point:
        others = [-1, -0.0, 0.5, torch.nan, -torch.inf]
    else:
        others = [-1, torch.iinfo(dtype).min, torch.iinfo(dtype).max]
    for lines in (a, b.mT):
        for line, value in enumerate(others[: lines.shape[1] if depth > 100 else 0]):
            lines[1, line, 0] = value
    sizes = [
        triton_exponents._SAMPLED,
        4 * -(-m // BLOCK_EDGE) * BLOCK_EDGE,
        4 * -(-n // tiles.block_n) * tiles.block_n,
        2,
    ]
    work = _Work(*(torch.zeros(size, dtype=torch.int32, device=device) for size in sizes))
    found = _encode(a, b, work, tiles, EXPONENTS_PART)
    sides = ((a, 1, tiles.block_m, work.a_ranges), (b, 0, tiles.block_n, work.b_ranges))
    for encoded, (x, k_axis, tile, ranges) in zip(found, sides, strict=True):
        given = x.masked_fill(x >= tri_apsp.no_edge(dtype), model.NO_EDGE).cpu().numpy()
        expected = model.encode_tiles(given, k_axis, tiles.block_k, tile=tile, part=EXPONENTS_PART)
        for values, wanted in zip(
            (encoded.powers.float(), encoded.scores, ranges), expected, strict=True
        ):
            np.testing.assert_array_equal(values.cpu().numpy().ravel(), wanted.ravel())


def name_of(tiles: GpuTiles) -> str:
    return f"{tiles.block_n}x{tiles.block_k}"


every_tile = pytest.mark.parametrize("tiles", TILES, ids=name_of)
smallest_and_largest_tiles = pytest.mark.parametrize("tiles", TILES[::3], ids=name_of)


@interpreted
@every_tile
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_interpreted_encoding(dtype: torch.dtype, tiles: GpuTiles) -> None:
    check_encoding(130, 140, 530, dtype, tiles, highest=30, device="cpu")


@pytest.mark.gpu
@every_tile
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_encoding(dtype: torch.dtype, tiles: GpuTiles) -> None:
    for m, n, highest in ((300, 300, 9), (5, 300, 30), (300, 5, 3000)):
        for depth in (1, 2, 130, 385, 513, 1025):
            check_encoding(m, n, depth, dtype, tiles, highest=highest, device="cuda")


def sampled_places(tiles: GpuTiles, m: int, n: int) -> list[tuple[int, int]]:
    """The first row of each tile of a sample, and the first column of its results."""
    tiles_m, tiles_n, groups = -(-m // BLOCK_EDGE), -(-n // tiles.block_n), tiles.block_n // 8
    count = triton_exponents._SAMPLED
    places = (
        (i * tiles_m // count, i * 37 % count * tiles_n // count * groups + i % groups)
        for i in range(count)
    )
    return [(row * BLOCK_EDGE, min(8 * column, (n - 1) // 8 * 8)) for row, column in places]


def sample(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *more: Any, tiles: GpuTiles = DEFAULT_TILES
) -> list[int]:
    """Return how many tiles a sample has, and how many of them seem certain."""
    count = triton_exponents._SAMPLED
    found, zeros = (
        torch.full((size,), 3, dtype=torch.int32, device=c.device)
        for size in (count, 300 * count + 1)
    )
    _sample(found, zeros[:-1], Update(c, a, b, *more), tiles)
    assert not zeros[:-1].any()
    assert zeros[-1] == 3
    return [int((found > 0).sum()), int((found > 1).sum())]


def check_samples(device: str, tiles: GpuTiles) -> None:
    """Compare samples with what is known of all tiles."""
    places = sampled_places(tiles, 300, 300)
    count = len(places)
    for dtype in DTYPES:
        missing = tri_apsp.no_edge(dtype)
        for m, n, depth in ((5, 7, 3), (300, 200, 150)):
            c, a, b = operands(m, n, depth, dtype, highest=7, device=device)
            assert sample(c, a, b, tiles=tiles) == [count, count]
            assert sample(torch.full_like(c, 9), a + 3000, b, tiles=tiles) == [
                count,
                count,
            ]  # C is certain
            assert sample(c, a + 3000, b, (0, 0), True, tiles=tiles) == [count, 0]
            assert sample(c, torch.full_like(a, missing), b, (0, 0), True, tiles=tiles) == [
                count,
                count,
            ]
        aligned = (
            [(304, 528, 0)] if device == "cuda" else []
        )  # a GPU copies aligned values asynchronously
        for n, depth, more in (*aligned, (300, 514, 3)):
            c, a, b = (
                torch.full((1, rows, columns + more), missing, dtype=dtype, device=device)[
                    ..., :columns
                ]
                for rows, columns in ((n, n), (n, depth), (depth, n))
            )
            check_last_paths_of_samples(tiles, c, a, b)
        check_limits_of_samples(
            tiles, *(torch.full_like(x, missing) for x in (c, a[..., :5], b[:, :5]))
        )
        c[:, 256:] = 0  # the last of three rows of tiles
        assert sample(c, a, b, tiles=tiles) == [count, sum(row == 256 for row, _ in places)]
        assert (
            sample(c, a, b, (0, 256), tiles=tiles)
            == [sum(row == 256 and column >= 256 for row, column in places)] * 2
        )
        assert sample(c, a, b, (128, 300), tiles=tiles) == [
            sum(row == 0 and column < 128 for row, column in places),
            0,
        ]
        both = [torch.cat((x, x)) for x in (c, a, b)]
        both[0][1] = missing
        assert sample(*both, tiles=tiles) == [count, sum(row == 256 for row, _ in places[::2])]
        c[:, 64:] = 0  # tiles are skipped in part: only the rows that are left are certain
        assert sample(c, a, b, tiles=tiles) == [count, sum(row > 0 for row, _ in places)]
        assert (
            sample(c, a, b, (0, 64), tiles=tiles) == [sum(column >= 64 for _, column in places)] * 2
        )
        # A graph for each tile of the sample, and one more, which is not in it.
        many = [x.expand(count + 1, -1, -1).clone() for x in (c[:, :5, :5], a[:, :5], b[..., :5])]
        for first, certain in ((count, count), (count - 1, count - 1), (0, 0)):
            many[0][:], many[0][first:] = 0, missing
            assert sample(*many, tiles=tiles) == [count, certain]


def check_last_paths_of_samples(
    tiles: GpuTiles, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> None:
    """Give each pair one path, over the last vertex, in matrices without edges; the other edges are
    far apart.
    """
    n, limit, count = (
        c.shape[1],
        exponents_of(tiles.block_k).WINDOW - _MARGIN,
        triton_exponents._SAMPLED,
    )
    a[:, :, 0], a[:, :, 2], b[:, -1], b[:, 2], b[:, 3] = 0, 3000, 0, 3000, 3000
    for above, certain in ((limit, count), (limit + 1, 0)):
        a[:, :, -1] = above
        assert sample(c, a, b, tiles=tiles) == [count, certain]
        assert sample(c, a, b, (0, n), tiles=tiles) == [0, 0]
        c[:] = limit
        assert sample(c, a, b, tiles=tiles) == [count, count]
        assert sample(c, a, b, (0, 0), True, tiles=tiles) == [count, certain]
        c[:] = tri_apsp.no_edge(c.dtype)


def check_limits_of_samples(
    tiles: GpuTiles, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> None:
    missing, numbers, count = (
        tri_apsp.no_edge(c.dtype),
        exponents_of(tiles.block_k),
        triton_exponents._SAMPLED,
    )
    window, rest, limit = numbers.WINDOW, numbers.REACH - numbers.WINDOW, numbers.WINDOW - _MARGIN
    a[:, :, 0], b[:, 2] = 0, 0  # no path: certain only where exact
    for x, y, certain in (
        (window, rest, count),
        (rest, window, count),
        (window, rest + 1, 0),
        (window + 1, 0, 0),
        (0, window + 1, 0),
    ):
        a[:, :, 1], b[:, 3] = x, y
        assert sample(c, a, b, tiles=tiles) == [count, certain]
    a[:], b[:] = missing, missing
    for r, s in ((300, 0), (0, 300), (1400, 1400)):  # least values; the result is a path, or C
        a[:, :, 0], a[:, :, 2], b[:, 1], b[:, 2], b[:, 3] = r, r + 900, s, s + 900, s + 900
        for above, certain in ((limit, count), (limit + 1, 0)):
            a[:, :, 1], c[:] = r + above, missing
            assert sample(c, a, b, tiles=tiles) == [count, certain]
            a[:, :, 1], c[:] = r + 500, r + s + above
            assert sample(c, a, b, tiles=tiles) == [count, certain]


@interpreted
@smallest_and_largest_tiles
def test_interpreted_samples(tiles: GpuTiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_exponents, "_SAMPLED", 8)  # 64 take minutes
    check_samples("cpu", tiles)


@pytest.mark.gpu
@every_tile
def test_samples(tiles: GpuTiles) -> None:
    check_samples("cuda", tiles)


def check_products_after_a_sample(device: str, *, gluon: bool) -> None:
    c, a, b = operands(140, 130, 150, torch.int16, device=device)
    for certain, uncertain, failed in (
        (15, 49, True),
        (16, 48, False),
        (0, 1, True),
        (0, 0, False),
    ):
        found = c.clone()
        with samples_replaced(certain, uncertain):
            remaining = exponent_product(Update(found, a, b), DEFAULT_TILES, gluon=gluon)
            again = exponent_product(Update(c.clone(), a, b, (0, 128)), DEFAULT_TILES, gluon=gluon)
        assert torch.equal(found, c if failed else tri_apsp.min_plus(a, b, c))
        assert remaining.uncertain.flatten().tolist() == [int(failed)] * 8
        assert remaining.counts.tolist() == ([64, 0] if failed else [8, 8])
        assert again.uncertain[0].tolist() == [[0, 0], [0, int(failed)]]
        assert again.counts.tolist() == ([64, 0] if failed else [2, 2])


@interpreted
def test_interpreted_products_in_memory_of_other_values() -> None:
    """All memory that is not set by a kernel holds the greatest number."""
    torch.use_deterministic_algorithms(True)
    try:
        for depth in (0, 150):
            c, a, b = operands(140, 130, depth, torch.int16)
            for above in (0, 3000) if depth else (0,):
                found = c.clone()
                remaining = exponent_product(
                    Update(found, a + above, b, fresh=above > 0), DEFAULT_TILES, gluon=False
                )
                assert torch.equal(found, c if above else tri_apsp.min_plus(a, b, c))
                assert remaining.uncertain.flatten().tolist() == [int(above > 0)] * 8
                assert remaining.counts.tolist() == ([64, 0] if above else [8, 8])
    finally:
        torch.use_deterministic_algorithms(False)


@interpreted
def test_interpreted_products_after_a_sample() -> None:
    check_products_after_a_sample("cpu", gluon=False)


@pytest.mark.gpu
def test_products_after_a_sample(gluon: bool) -> None:
    check_products_after_a_sample("cuda", gluon=gluon)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "tiles",
    [pytest.param(tiles, marks=() if tiles in TILES[::3] else pytest.mark.slow) for tiles in TILES],
    ids=name_of,
)
@pytest.mark.parametrize("dtype", [torch.int16, *OTHERS], ids=str)
def test_products(dtype: torch.dtype, tiles: GpuTiles, gluon: bool) -> None:
    if not gluon and tiles.block_k == 512:
        pytest.skip("a slice of the plain kernel lies in shared memory as a whole")
    # Other dtypes differ from int16 in encoding and in storing alone.
    sizes = ((100, 300, 128), (1000, 700, 513), (5, 7, 0))
    for m, n, depth in (*sizes, *SIZES, (300, 300, 1025)) if dtype == torch.int16 else sizes:
        for highest in (0, 9, 30, 3000):
            uncertain = check(
                *operands(m, n, depth, dtype, highest=highest, device="cuda"), tiles, gluon=gluon
            )
            assert highest > 9 or not uncertain.any(), (m, n, depth)
        window = exponents_of(tiles.block_k).WINDOW
        for above in (window, window + 1):
            if m > 1 and depth > 1:
                c, a, b = operands(m, n, depth, dtype, highest=3, device="cuda")
                place = leave_one_path(c, a, b, above)
                assert check(c, a, b, tiles, gluon=gluon)[1][place] == above - window, (m, n, depth)


@pytest.mark.gpu
@pytest.mark.parametrize("skip", [(0, 128), (128, 300), (1, 130)])
def test_skipped_tiles_are_not_computed(skip: tuple[int, int], gluon: bool) -> None:
    c, a, b = operands(300, 300, 300, torch.int16, highest=3, device="cuda")
    found = c.clone()
    _, counts = exponent_product(Update(found, a, b, skip), DEFAULT_TILES, gluon=gluon)
    computed = {(0, 128): 4, (128, 300): 1, (1, 130): 9}[skip]  # of 9 tiles
    assert counts.tolist() == [2 * computed] * 2
    expected = tri_apsp.min_plus(a, b, c)
    rows = slice(*skip)
    expected[:, rows], expected[:, :, rows] = c[:, rows], c[:, :, rows]
    assert torch.equal(found, expected)


def recorded(engine: engines.Engine) -> list[Remaining]:
    """Return a list of what the products by exponents of an engine will leave."""
    multiply, found = engine.multiply_certain_tiles, []  # type: ignore[attr-defined]

    def record(*arguments: Any) -> Remaining:
        found.append(multiply(*arguments))
        return found[-1]

    engine.multiply_certain_tiles = record  # type: ignore[attr-defined]
    return found


@pytest.fixture(scope="module")
def families() -> dict[str, torch.Tensor]:
    """Edges of 4100 vertices whose distances are small, or large; and none."""
    n, generator = 4100, torch.Generator("cuda").manual_seed(1)
    empty = torch.zeros(n, n, dtype=torch.bool, device="cuda")
    ring = empty.clone()
    ring[range(n), [*range(1, n), 0]] = True
    return {name: draw(n, generator) for name, (draw, _) in FAMILIES.items()} | {
        "ring": ring,
        "empty": empty,
    }


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["kleene", "floyd_warshall", "squaring"])
@pytest.mark.parametrize(
    "dtype",
    [torch.int16, torch.float32, pytest.param(torch.int32, marks=pytest.mark.slow)],
    ids=str,
)
def test_solves_are_those_of_ordinary_products(
    families: dict[str, torch.Tensor], dtype: torch.dtype, method: str
) -> None:
    config, generator = default_config("nvidia", dtype), torch.Generator("cuda").manual_seed(2)
    for highest in (1, 4, 16):
        for name, edges in families.items():
            heaviest = 1 if name == "ring" else highest  # for its paths to fit int16
            weights = torch.randint(
                1, heaviest + 1, edges.shape, generator=generator, device="cuda", dtype=dtype
            )
            weights = weights.masked_fill_(~edges, tri_apsp.no_edge(dtype)).fill_diagonal_(0)
            engine = engines.make(
                "nvidia", MatrixSpec(4100, dtype, weights.device, True, exponents_from=1024), config
            )
            remaining, found = recorded(engine), weights[None].clone()
            METHODS[method].solve(found, engine, Observer())
            assert remaining, "no product was tried"
            assert torch.equal(found[0], tri_apsp.shortest_paths(weights).distances), (
                name,
                highest,
            )


@pytest.mark.gpu
def test_products_stop_where_few_tiles_are_certain(gluon: bool) -> None:
    c, a, b = (x[:1] for x in operands(8192, 8192, 300, torch.int16, highest=16000, device="cuda"))
    before = c.clone()
    uncertain, counts = product_without_sample(Update(c, a, b), gluon=gluon)
    tried, certain = counts.tolist()
    assert certain == 0
    assert 64 <= tried < uncertain.numel()
    assert bool(uncertain.all())
    assert torch.equal(c, before)


@pytest.mark.gpu
def test_failed_products_are_ordinary_products() -> None:
    weights = torch.randint(0, 16000, (2048, 2048), dtype=torch.int16, device="cuda")
    spec = MatrixSpec(2048, torch.int16, weights.device, True, exponents_from=1024)
    engine = engines.make("nvidia", spec, default_config("nvidia", torch.int16))
    small = weights % 8
    found = [torch.full_like(weights, tri_apsp.no_edge(torch.int16))[None] for _ in range(3)]
    remaining = recorded(engine)
    engine.product(
        Update(found[1], weights[None], weights[None]), Update(found[2], small[None], small[None])
    )
    engine.product(
        Update(found[0], small[None], small[None]), Update(found[1], weights[None], weights[None])
    )
    assert [one.uncertain.float().mean().item() for one in remaining] == [1, 0, 0, 1]
    assert [one.counts.tolist() for one in remaining] == [
        [64, 0],
        [256, 256],
        [256, 256],
        [64, 0],
    ]  # of 256 tiles
    for c, x in zip(found, (small, weights, small), strict=True):
        assert torch.equal(c[0], tri_apsp.min_plus(x, x))
