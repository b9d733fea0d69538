"""Products by exponents: their encoding and samples on a GPU and in Triton's interpreter, whole
products and solves on a GPU.
"""

import dataclasses
from typing import Any

import cases
import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.exponents_tiles import encode_tiles

import tri_apsp
from reports.studies.exponents import FAMILIES
from tri_apsp import engines
from tri_apsp.configs import EXPONENT_DTYPES as DTYPES
from tri_apsp.configs import EXPONENTS_PART, GpuTiles, default_config, exponents_of
from tri_apsp.engines import MatrixSpec, Update
from tri_apsp.engines import exponents as module
from tri_apsp.engines.exponents import (
    BLOCK_EDGE,
    ByExponents,
    Remaining,
    exponent_product,
    recorded_products,
)
from tri_apsp.engines.nvidia import NvidiaEngine
from tri_apsp.kernels.nvidia.exponents_model import NO_EDGE
from tri_apsp.methods import METHODS, Observer

DEFAULT_TILES = GpuTiles(128, 128, 128, num_warps=8, num_stages=6)
WIDE_TILES = GpuTiles(128, 256, 128, num_warps=8, num_stages=6)
TILES = [
    DEFAULT_TILES,
    WIDE_TILES,
    *(dataclasses.replace(tiles, block_k=512) for tiles in (DEFAULT_TILES, WIDE_TILES)),
]


def name_of(tiles: GpuTiles) -> str:
    return f"{tiles.block_n}x{tiles.block_k}"


# On a GPU each pair is a compilation: dtypes differ in encoding and storing, tiles in the rest.
QUICK = [(torch.int16, TILES[0]), (torch.int16, TILES[3]), (torch.float32, TILES[0])]
dtypes_and_tiles = pytest.mark.parametrize(
    ("dtype", "tiles"),
    [
        pytest.param(
            dtype,
            tiles,
            marks=() if (dtype, tiles) in QUICK else pytest.mark.slow,
            id=f"{dtype}-{name_of(tiles)}",
        )
        for dtype in DTYPES
        for tiles in TILES
    ],
)


@pytest.fixture
def hopper() -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("products by exponents run on compute capability 9.x")


def on_hopper(test: Any) -> Any:
    return pytest.mark.gpu(pytest.mark.usefixtures("hopper")(test))


def operands(
    m: int,
    n: int,
    depth: int,
    dtype: torch.dtype,
    *,
    highest: int = 9,
    device: str = "cuda",
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


def product_after_sample(
    update: Update, tiles: GpuTiles = DEFAULT_TILES, *, certain: int = 0, uncertain: int = 0
) -> Remaining:
    """A product whose sample has `certain` + `uncertain` tiles, of which `certain` seem certain;
    with none, it begins.
    """

    def store(sample: torch.Tensor, zeros: torch.Tensor, *_: Any) -> None:
        sample.zero_()
        sample[:certain], sample[certain : certain + uncertain] = 2, 1
        zeros.zero_()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_sample", store)
        return exponent_product(update, tiles)


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
        module._SAMPLED,
        4 * -(-m // BLOCK_EDGE) * BLOCK_EDGE,
        4 * -(-n // tiles.block_n) * tiles.block_n,
        2,
    ]
    sample, a_ranges, b_ranges, counts = (
        torch.zeros(size, dtype=torch.int32, device=device) for size in sizes
    )
    of_a, of_a_scores, of_b, of_b_scores = module._encode(
        a, b, counts, sample, a_ranges, b_ranges, tiles
    )
    sides = (
        (a, 1, tiles.block_m, (of_a.float(), of_a_scores, a_ranges)),
        (b, 0, tiles.block_n, (of_b.float(), of_b_scores, b_ranges)),
    )
    for x, k_axis, tile, encoded in sides:
        given = x.masked_fill(x >= tri_apsp.no_edge(dtype), NO_EDGE).cpu().numpy()
        expected = encode_tiles(given, k_axis, tiles.block_k, tile=tile, part=EXPONENTS_PART)
        for values, wanted in zip(encoded, expected, strict=True):
            np.testing.assert_array_equal(values.cpu().numpy().ravel(), wanted.ravel())


@cases.interpreted
@pytest.mark.parametrize(
    ("dtype", "tiles", "depth"), [(torch.int16, TILES[1], 140), (torch.float32, TILES[2], 530)]
)
def test_interpreted_encoding(dtype: torch.dtype, tiles: GpuTiles, depth: int) -> None:
    """Of more than one slice."""
    check_encoding(130, 140, depth, dtype, tiles, highest=30, device="cpu")


@pytest.mark.gpu
@dtypes_and_tiles
def test_encoding(dtype: torch.dtype, tiles: GpuTiles) -> None:
    for m, n, highest in ((300, 300, 9), (5, 300, 30), (300, 5, 3000)):
        for depth in (2, 130, 385, 513, 1025):
            check_encoding(m, n, depth, dtype, tiles, highest=highest, device="cuda")


def sampled_places(tiles: GpuTiles, m: int, n: int) -> list[tuple[int, int]]:
    """The first row of each tile of a sample, and the first column of its results."""
    tiles_m, tiles_n, groups = -(-m // BLOCK_EDGE), -(-n // tiles.block_n), tiles.block_n // 8
    count = module._SAMPLED
    places = (
        (i * tiles_m // count, i * 37 % count * tiles_n // count * groups + i % groups)
        for i in range(count)
    )
    return [(row * BLOCK_EDGE, min(8 * column, (n - 1) // 8 * 8)) for row, column in places]


def sample(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *more: Any, tiles: GpuTiles = DEFAULT_TILES
) -> list[int]:
    """Return how many tiles a sample has, and how many of them seem certain."""
    count = module._SAMPLED
    found, zeros = (
        torch.full((size,), 3, dtype=torch.int32, device=c.device)
        for size in (count, 300 * count + 1)
    )
    module._sample(found, zeros[:-1], Update(c, a, b, *more), tiles)
    assert not zeros[:-1].any()
    assert zeros[-1] == 3
    return [int((found > 0).sum()), int((found > 1).sum())]


def check_samples(device: str, tiles: GpuTiles, dtype: torch.dtype) -> None:
    """Compare samples with what is known of all tiles."""
    places = sampled_places(tiles, 300, 300)
    count = len(places)
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
    assert sample(c, a, b, (0, 64), tiles=tiles) == [sum(column >= 64 for _, column in places)] * 2
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
        exponents_of(tiles.block_k).WINDOW - module._MARGIN,
        module._SAMPLED,
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
        module._SAMPLED,
    )
    window, rest, limit = (
        numbers.WINDOW,
        numbers.REACH - numbers.WINDOW,
        numbers.WINDOW - module._MARGIN,
    )
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


@cases.interpreted
def test_interpreted_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAMPLED", 8)  # 64 take minutes
    check_samples("cpu", TILES[0], torch.int16)


@pytest.mark.gpu
@dtypes_and_tiles
def test_samples(dtype: torch.dtype, tiles: GpuTiles) -> None:
    check_samples("cuda", tiles, dtype)


def check(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, tiles: GpuTiles) -> torch.Tensor:
    """Compare the blocks that are certain with min_plus, and return the others."""
    found = c.clone()
    uncertain, counts = product_after_sample(Update(found, a, b), tiles)
    of_tiles = uncertain[:, :, :: tiles.block_n // BLOCK_EDGE]
    assert counts.tolist() == [of_tiles.numel(), int((of_tiles == 0).sum())]
    rows = uncertain.bool().repeat_interleave(BLOCK_EDGE, 1)
    left = rows.repeat_interleave(BLOCK_EDGE, 2)[:, : c.shape[1], : c.shape[2]]
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
    # Vertex 0 leads to others, but not to the last one.
    a[1, -1, 0], a[1, -1, 1], b[1, 1, -1] = 0, above, 0
    b[1, 0, 0] = 0
    return (c.shape[1] - 1) // BLOCK_EDGE, (c.shape[2] - 1) // BLOCK_EDGE


@on_hopper
@dtypes_and_tiles
def test_products(dtype: torch.dtype, tiles: GpuTiles) -> None:
    sizes = [(5, 7, 0), (1, 1, 2), (100, 300, 128), (128, 256, 128), (1000, 700, 513)]
    window = exponents_of(tiles.block_k).WINDOW
    for m, n, depth in sizes:
        for highest in (0, 9, 30, 3000):
            uncertain = check(*operands(m, n, depth, dtype, highest=highest), tiles)
            assert highest > 9 or not uncertain.any(), (m, n, depth)
        for above in (window, window + 1) if m > 1 and depth > 1 else ():
            c, a, b = operands(m, n, depth, dtype, highest=3)
            place = leave_one_path(c, a, b, above)
            assert check(c, a, b, tiles)[1][place] == above - window, (m, n, depth)


@on_hopper
@pytest.mark.parametrize("value", [-1, -0.0, 0.5, float("nan")])
def test_other_values(value: float) -> None:
    c, a, b = operands(140, 130, 50, torch.float32)
    wrong = a.clone(), b.clone()
    wrong[0][0, 3, 7] = wrong[1][0, 7, 128] = value
    for operands_, expected in (((wrong[0], b), [1, 1, 0, 0]), ((a, wrong[1]), [0, 1, 0, 1])):
        found = product_after_sample(Update(c.clone(), *operands_))
        assert found.uncertain[0].flatten().tolist() == expected


@on_hopper
def test_rows_that_are_far_apart() -> None:
    """Of 128 rows, 2^30 values; of all rows, more than 2^31."""
    given = operands(300, 300, 300, torch.int16)
    memory = torch.empty(300 << 23, dtype=torch.int16, device="cuda")
    c, a, b = (
        memory.as_strided((1, 300, 300), (0, 1 << 23, 1), 1000 * i).copy_(x[:1])
        for i, x in enumerate(given)
    )
    expected = tri_apsp.min_plus(*(x[:1] for x in (*given[1:], given[0])))
    remaining = product_after_sample(Update(c, a, b))
    assert not remaining.uncertain.any()
    assert torch.equal(c, expected)
    c.copy_(given[0][:1])
    b[:, :, 150:] += 3000
    found = sample(c, a, b)
    assert found == sample(*(x.contiguous() for x in (c, a, b)))
    assert 0 < found[1] < found[0]


@on_hopper
@pytest.mark.parametrize(
    ("certain", "uncertain", "failed"),
    [(15, 49, True), (16, 48, False), (0, 1, True), (0, 0, False)],
)
def test_products_after_a_sample(certain: int, uncertain: int, failed: bool) -> None:
    c, a, b = operands(140, 130, 150, torch.int16)
    found, in_part = c.clone(), Update(c.clone(), a, b, (0, 128))
    tiles = {"certain": certain, "uncertain": uncertain}
    remaining = product_after_sample(Update(found, a, b), **tiles)
    assert torch.equal(found, c if failed else tri_apsp.min_plus(a, b, c))
    assert remaining.uncertain.flatten().tolist() == [int(failed)] * 8
    assert remaining.counts.tolist() == ([64, 0] if failed else [8, 8])
    remaining = product_after_sample(in_part, **tiles)
    assert remaining.uncertain[0].tolist() == [[0, 0], [0, int(failed)]]
    assert remaining.counts.tolist() == ([64, 0] if failed else [2, 2])


@on_hopper
def test_products_in_memory_of_other_values() -> None:
    """All memory that is not set by a kernel holds the greatest number."""
    torch.use_deterministic_algorithms(True)
    try:
        for depth, above in ((0, 0), (150, 0), (150, 3000)):
            c, a, b = operands(140, 130, depth, torch.int16)
            found = c.clone()
            remaining = exponent_product(
                Update(found, a + above, b, fresh=above > 0), DEFAULT_TILES
            )
            assert torch.equal(found, c if above else tri_apsp.min_plus(a, b, c))
            assert remaining.uncertain.flatten().tolist() == [int(above > 0)] * 8
            assert remaining.counts.tolist() == ([64, 0] if above else [8, 8])
    finally:
        torch.use_deterministic_algorithms(False)


@on_hopper
@pytest.mark.parametrize(("skip", "computed"), [((0, 128), 4), ((128, 300), 1), ((1, 130), 9)])
def test_skipped_tiles_are_not_computed(skip: tuple[int, int], computed: int) -> None:
    c, a, b = operands(300, 300, 300, torch.int16, highest=3)
    found = c.clone()
    _, counts = exponent_product(Update(found, a, b, skip), DEFAULT_TILES)
    assert counts.tolist() == [2 * computed] * 2  # of 9 tiles per graph
    expected = tri_apsp.min_plus(a, b, c)
    rows = slice(*skip)
    expected[:, rows], expected[:, :, rows] = c[:, rows], c[:, :, rows]
    assert torch.equal(found, expected)


@on_hopper
def test_products_stop_where_few_tiles_are_certain() -> None:
    c, a, b = (x[:1] for x in operands(8192, 8192, 300, torch.int16, highest=16000))
    before = c.clone()
    uncertain, counts = product_after_sample(Update(c, a, b))
    tried, certain = counts.tolist()
    assert certain == 0
    assert 64 <= tried < uncertain.numel()
    assert bool(uncertain.all())
    assert torch.equal(c, before)


def engine_of(weights: torch.Tensor) -> ByExponents:
    spec = MatrixSpec(weights.shape[-1], weights.dtype, weights.device, True)
    engine = engines.make(spec, default_config("nvidia", weights.dtype))
    assert isinstance(engine, NvidiaEngine)
    return ByExponents(engine, 1024)


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


@on_hopper
@pytest.mark.parametrize(
    ("dtype", "method"),
    [
        (torch.int16, "kleene"),
        (torch.float32, "squaring"),
        pytest.param(torch.float32, "floyd_warshall", marks=pytest.mark.slow),
        pytest.param(torch.int32, "kleene", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_solves_are_those_of_direct_products(
    families: dict[str, torch.Tensor], dtype: torch.dtype, method: str
) -> None:
    generator = torch.Generator("cuda").manual_seed(2)
    for highest in (1, 4, 16):
        for name, edges in families.items():
            heaviest = 1 if name == "ring" else highest  # for its paths to fit int16
            weights = torch.randint(
                1, heaviest + 1, edges.shape, generator=generator, device="cuda", dtype=dtype
            )
            weights = weights.masked_fill_(~edges, tri_apsp.no_edge(dtype)).fill_diagonal_(0)
            found, expected = weights[None].clone(), tri_apsp.shortest_paths(weights).distances
            with recorded_products() as remaining:
                METHODS[method].solve(found, engine_of(weights), Observer())
            assert remaining, "no product was tried"
            assert torch.equal(found[0], expected), (name, highest)


@on_hopper
def test_failed_products_are_direct_products() -> None:
    weights = torch.randint(0, 16000, (2048, 2048), dtype=torch.int16, device="cuda")
    engine, small = engine_of(weights), weights % 8
    found = [torch.full_like(weights, tri_apsp.no_edge(torch.int16))[None] for _ in range(3)]
    order = [(1, weights), (2, small), (0, small), (1, weights)]
    updates = [Update(found[place], x[None], x[None]) for place, x in order]
    with recorded_products() as remaining:
        engine.product(*updates[:2])
        engine.product(*updates[2:])
    assert [one.uncertain.float().mean().item() for one in remaining] == [1, 0, 0, 1]
    success = [256, 256]  # of 256 tiles
    assert [one.counts.tolist() for one in remaining] == [[64, 0], success, success, [64, 0]]
    for c, x in zip(found, (small, weights, small), strict=True):
        assert torch.equal(c[0], tri_apsp.min_plus(x, x))
