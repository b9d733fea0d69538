"""Min-plus products by exponents: their arithmetic, and the kernel's source on NumPy arrays."""

import doctest

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.exponents_tiles import encode_tiles
from kernels.gluon_stand_in import Pointer, import_kernels, launch

from tri_apsp.configs import exponents_of
from tri_apsp.kernels.nvidia import exponents_model as model
from tri_apsp.kernels.nvidia.exponents_model import NO_EDGE
from tri_apsp.semirings import no_edge

kernel = import_kernels("kernels.nvidia.exponents")._exponent_product_kernel
TILE, SLICE, PART = 16, 16, 8
SLICES = (64, 128, 512)


def exact(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with_b = np.where(
        (a < NO_EDGE)[:, :, None] & (b < NO_EDGE)[None], a[:, :, None] + b[None], NO_EDGE
    )
    return np.minimum(np.minimum(c, NO_EDGE), with_b.min(1, initial=NO_EDGE))


def add_up(terms: np.ndarray, rng: np.random.Generator, *, cut_off: bool) -> np.float32:
    """Return the float32 sum of terms in a random order and grouping, each sum rounded to nearest
    or cut off.
    """
    values = list(rng.permutation(terms.astype(np.float64)))
    while len(values) > 1:
        first = values.pop(int(rng.integers(len(values))))
        second = values.pop(int(rng.integers(len(values))))
        exact = first + second
        rounded = np.float64(np.float32(exact))
        if cut_off and rounded > exact:
            rounded = np.float64(np.nextafter(np.float32(exact), np.float32(0)))
        values.append(
            0.0 if cut_off and rounded < 2.0**-126 else rounded
        )  # some hardware keeps no subnormal numbers
    return np.float32(values[0])


@st.composite
def operands(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """C, A and B, with few or many edges, values close together or not, ties, and values at and
    beyond the window's edge.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    depth, slice_length = draw(st.integers(0, 300)), draw(st.sampled_from(SLICES))
    window, reach = exponents_of(slice_length)[1:3]
    highest = draw(
        st.sampled_from([1, 2, 5, reach // 2, window, window + 1, window + 2, 40, 300, 16382])
    )
    start = draw(st.sampled_from([0, 0, 1, 7, 1340, 1350, 2690, 2699, 2710]))
    a, b = (
        np.minimum(start + rng.integers(0, highest + 1, shape), NO_EDGE - 1)
        for shape in ((m, depth), (depth, n))
    )
    for x in (a, b):
        x[rng.random(x.shape) < draw(st.sampled_from([0, 0.2, 0.9, 1]))] = NO_EDGE
    c = rng.integers(0, 2 * (start + highest) + 2, (m, n))
    c[rng.random(c.shape) < draw(st.sampled_from([0, 0.5, 1]))] = NO_EDGE
    return c, a, b, slice_length, int(rng.integers(2**32))


def test_the_example_of_the_model() -> None:
    """The docstring of the model computes the example of kernels.shared.exponents."""
    found = doctest.testmod(model)
    assert found.attempted
    assert not found.failed


@settings(max_examples=200, deadline=None)
@given(operands())
def test_what_is_certain_is_exact(
    given_operands: tuple[np.ndarray, np.ndarray, np.ndarray, int, int],
) -> None:
    c, a, b, slice_length, _ = given_operands
    found, certain = model.product(c, a, b, slice_length)
    np.testing.assert_array_equal(found[certain], exact(c, a, b)[certain])


@settings(max_examples=100, deadline=None)
@given(operands(), st.booleans())
def test_sums_in_any_order(
    given_operands: tuple[np.ndarray, np.ndarray, np.ndarray, int, int], cut_off: bool
) -> None:
    """Rounded to nearest or cut off, the sum of a slice decodes to the same minimum."""
    c, a, b, slice_length, seed = given_operands
    a, b, c = a[:1], b[:, :1], c[:1, :1]
    rng = np.random.default_rng(seed)
    p, q = (
        model.encode(a, slice_length, first=True).powers,
        model.encode(b.T, slice_length, first=False).powers,
    )
    terms = p[0].astype(np.float64) * q[0]
    sums = np.array([add_up(slice_, rng, cut_off=cut_off) for slice_ in terms], np.float32).reshape(
        -1, 1, 1
    )
    found, certain = model.product(c, a, b, slice_length, sums)
    assert not certain or found == exact(c, a, b)


@pytest.mark.parametrize("slice_length", SLICES)
def test_all_terms_equal(slice_length: int) -> None:
    """The largest exponent: as many terms as a slice may have add up to infinity, which counts like
    one term.
    """
    zeros = np.zeros((1, slice_length), np.int64)
    for value in (0, 1, exponents_of(slice_length).WINDOW // 2):
        found, certain = model.product(
            np.full((1, 1), NO_EDGE), zeros + value, zeros.T, slice_length
        )
        assert certain
        assert found == value


@pytest.mark.parametrize("slice_length", SLICES)
@pytest.mark.parametrize("beyond", [0, 1])
def test_the_edge_of_the_window(slice_length: int, beyond: int) -> None:
    """The only path is one of WINDOW; one step beyond the window it is not found, and nothing
    claims that there is none.
    """
    above = exponents_of(slice_length).WINDOW + beyond
    a, b = np.full((1, 128), NO_EDGE), np.full((128, 1), NO_EDGE)
    a[0, 0], a[0, 5] = 0, above  # no edge goes on from vertex 0
    b[5, 0] = 0
    found, certain = model.product(np.full((1, 1), NO_EDGE), a, b, slice_length)
    assert bool(certain) == (not beyond)
    assert beyond or found == above


@pytest.mark.parametrize("slice_length", SLICES)
@pytest.mark.parametrize("beyond", [0, 1])
def test_the_edge_of_exact_pairs(slice_length: int, beyond: int) -> None:
    """Lines that span REACH together show that there is no path; those that span more do not."""
    window, reach = exponents_of(slice_length)[1:3]
    a, b = np.full((1, 128), NO_EDGE), np.full((128, 1), NO_EDGE)
    a[0, 0], a[0, 1] = 5, 5 + reach - window
    b[2, 0], b[3, 0] = 7, 7 + window + beyond
    result, certain = model.product(np.full((1, 1), NO_EDGE), a, b, slice_length)
    assert bool(certain) == (not beyond)
    assert beyond or result == NO_EDGE
    b[1, 0] = 7 + window
    result, certain = model.product(np.full((1, 1), NO_EDGE), a, b, slice_length)
    assert bool(certain) == (not beyond)
    assert beyond or result == 12 + reach


@pytest.mark.parametrize("wrong", [-1, -0.0, 0.5, np.nan])
def test_other_values_leave_nothing_certain(wrong: float) -> None:
    a = np.zeros((1, 128))
    a[0, 3] = wrong
    for found, certain in (
        model.product(np.zeros((1, 1)), a, np.zeros((128, 1)), 128),
        model.product(np.zeros((1, 1)), np.zeros((1, 128)), a.T, 128),
    ):
        assert found.shape == (1, 1)
        assert not certain.any()


def encoded(x: np.ndarray, k_axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return encode_tiles(x, k_axis, 128, tile=TILE, part=PART, length=SLICE)


@pytest.mark.parametrize(
    ("buffers", "fresh", "skip"), [(3, 0, (3, 9)), (6, 1, (0, 0)), (4, 0, (15, 35))]
)
@pytest.mark.parametrize(("m", "n", "depth"), [(1, 1, 1), (17, 40, 29), (33, 15, 96), (5, 7, 0)])
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_the_kernel_on_numpy(
    dtype: torch.dtype, m: int, n: int, depth: int, buffers: int, fresh: int, skip: tuple[int, int]
) -> None:
    """Tiles of results that are certain are exact; others are reported, and not written."""
    rng = np.random.default_rng(m + n + depth)
    values = np.dtype(str(dtype).removeprefix("torch."))
    a, b = rng.integers(0, 9, (2, m, depth)), rng.integers(0, 9, (2, depth, n))
    a[rng.random(a.shape) < 0.3] = NO_EDGE
    if depth > 8:
        a[1, 0], b[1, :, 0] = (
            100,
            100,
        )  # row 0 of graph 1 has one entry in reach, which leads nowhere
        a[1, 0, 0], b[1, 0, 0] = 0, NO_EDGE
    c = np.where(rng.random((2, m, n)) < 0.5, NO_EDGE, rng.integers(0, 30, (2, m, n)))
    given_c = np.where(c == NO_EDGE, no_edge(dtype), c).astype(values)
    (p, r, of_rows), (q, s, of_columns) = encoded(a, 1), encoded(b, 0)
    slices = r.shape[1]
    tiles_m, tiles_n = of_rows.shape[2] // TILE, of_columns.shape[2] // TILE
    found, uncertain = given_c.copy(), np.full(2 * tiles_m * tiles_n, 7, np.int32)
    row, counts = 2**33, np.zeros(2, np.int32)
    launch(
        kernel,
        (tiles_m * tiles_n, 2),
        Pointer(found, (2**50, row, 1)),
        Pointer(uncertain, (1,)),
        Pointer(counts, (1,)),
        *(Pointer(x.ravel(), (1,)) for x in (p, q, r, s.view(np.int32), of_rows, of_columns)),
        m,
        n,
        slices,
        fresh,
        *skip,
        2**50,
        row,
        NO_EDGE=no_edge(dtype),
        **exponents_of(128)._asdict(),
        BLOCK_M=TILE,
        BLOCK_N=TILE,
        SLICE=SLICE,
        PART=PART,
        BUFFERS=buffers,
        GROUP_M=2,
        LEAST_TRIED=64,
        WORTHWHILE=8,
    )
    skipped = sum(
        any(
            max(start, skip[0]) == start and min(start + TILE, size) <= skip[1]
            for start, size in ((i, m), (j, n))
        )
        for i in range(0, m, TILE)
        for j in range(0, n, TILE)
    )  # tiles of which every row or every column is skipped: they are not computed
    assert counts.tolist() == [uncertain.size - 2 * skipped, (uncertain == 0).sum() - 2 * skipped]
    reported = uncertain.reshape(2, tiles_m, tiles_n).repeat(TILE, 1).repeat(TILE, 2)[:, :m, :n]
    assert set(uncertain.tolist()) <= {0, 1}
    expected = np.stack(
        [exact(np.where(fresh, NO_EDGE, x), y, z) for x, y, z in zip(c, a, b, strict=True)]
    )
    expected = np.where(expected == NO_EDGE, no_edge(dtype), expected)
    for part in ((slice(None), slice(*skip)), (slice(None), slice(None), slice(*skip))):
        expected[part] = given_c[part]
    np.testing.assert_array_equal(found, np.where(reported, given_c, expected))
    if depth > 8:
        assert reported[1, 0, 0]
        assert not reported.all()


@pytest.mark.parametrize(
    ("counts", "computed"), [((3, 0), True), ((4, 0), False), ((9, 1), False), ((8, 1), True)]
)
def test_the_kernel_stops_where_few_tiles_are_certain(
    counts: tuple[int, int], computed: bool
) -> None:
    """One program of an all-zero product, after others that tried and left tiles; one of eight must
    be certain.
    """
    zeros = np.zeros((1, 16, 16), np.int64)
    (p, r, of_rows), (q, s, of_columns) = encoded(zeros, 1), encoded(zeros, 0)
    found, uncertain, now = (
        np.full((1, 16, 16), 5, np.int16),
        np.full(1, 7, np.int32),
        np.array(counts, np.int32),
    )
    launch(
        kernel,
        (1, 1),
        Pointer(found, (256, 16, 1)),
        Pointer(uncertain, (1,)),
        Pointer(now, (1,)),
        *(Pointer(x.ravel(), (1,)) for x in (p, q, r, s.view(np.int32), of_rows, of_columns)),
        16,
        16,
        1,
        0,
        0,
        0,
        256,
        16,
        NO_EDGE=NO_EDGE,
        **exponents_of(128)._asdict(),
        BLOCK_M=TILE,
        BLOCK_N=TILE,
        SLICE=SLICE,
        PART=PART,
        BUFFERS=3,
        GROUP_M=2,
        LEAST_TRIED=4,
        WORTHWHILE=8,
    )
    assert uncertain[0] == (not computed)
    assert (found == (0 if computed else 5)).all()
    assert now.tolist() == [counts[0] + computed, counts[1] + computed]
