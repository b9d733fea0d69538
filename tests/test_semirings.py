"""Products over semirings against plain loops, on every engine."""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import cases
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import tri_apsp
from tri_apsp import Config, GpuTiles, InputError, semiring_product, tuned
from tri_apsp.errors import DistanceRangeError
from tri_apsp.semirings import SEMIRINGS, SemiringName

INF = math.inf
SUMS: dict[SemiringName, Callable[..., float]] = {
    "min_plus": min,
    "max_plus": max,
    "max_min": max,
    "min_max": min,
    "max_times": max,
}
PRODUCTS: dict[SemiringName, Callable[[float, float], float]] = {
    "min_plus": lambda x, y: x + y,
    "max_plus": lambda x, y: x + y,
    "max_min": min,
    "min_max": max,
    "max_times": lambda x, y: x * y,
}
SMALL_SHAPES = ((1, 1, 1), (0, 3, 2), (3, 0, 4), (5, 7, 0), (2, 3, 5))
SHAPES = (*SMALL_SHAPES, (33, 65, 9), (40, 70, 66))
INTERPRETED = Config(engine="portable", product=GpuTiles(32, 64, 4, group_m=2))


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("interpreted", marks=cases.interpreted),
        *(pytest.param(name, marks=pytest.mark.gpu) for name in ("nvidia", "portable")),
    ]
)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine, or "interpreted" of the portable one without a GPU."""
    name: str = request.param
    return name


@pytest.fixture
def device(engine: str) -> Iterator[str]:
    """The device on which that engine is forced."""
    interpreted = engine == "interpreted"
    with tuned.using(INTERPRETED if interpreted else Config(engine=engine)):
        yield "cpu" if engine in ("cpu", "interpreted") else "cuda"


def values(
    shape: tuple[int, ...], dtype: torch.dtype, semiring: SemiringName, seed: int
) -> torch.Tensor:
    """Small integers with ties, of which a fifth is zero of the semiring."""
    random = torch.Generator().manual_seed(seed)
    lowest = 0 if semiring == "max_times" else -9
    x = torch.randint(lowest, 9, shape, generator=random).to(dtype)
    missing = torch.rand(shape, generator=random) < 0.2
    return x.masked_fill(missing, SEMIRINGS[semiring].zero(dtype))


def by_loops(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, semiring: SemiringName
) -> tuple[torch.Tensor, torch.Tensor]:
    """The product of (m, k) and (k, n), and its arguments, in Python's numbers."""
    zero, add, times = SEMIRINGS[semiring].zero(a.dtype), SUMS[semiring], PRODUCTS[semiring]
    left, right = a.tolist(), b.T.tolist()
    found, arguments = [], []
    for row, column in itertools.product(left, right):
        terms = [
            zero if zero in (x, y) and "plus" in semiring else times(x, y)
            for x, y in zip(row, column, strict=True)
        ]
        best = add([*terms, zero])
        found.append(best)
        arguments.append(-1 if best == zero else terms.index(best))
    result = torch.tensor(found, dtype=a.dtype).reshape(len(a), b.shape[1])
    chosen = torch.tensor(arguments, dtype=torch.int64).reshape(result.shape)
    if c is not None:
        better = torch.maximum if add is max else torch.minimum
        total = better(result, c)
        result, chosen = total, chosen.masked_fill(total == c, -1)
    return result, chosen


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=[] if dtype in (torch.float32, torch.int32) else pytest.mark.slow)
        for dtype in cases.DTYPES
    ],
    ids=str,
)
@pytest.mark.parametrize("semiring", SUMS)
def test_against_loops(
    engine: str, device: str, semiring: SemiringName, dtype: torch.dtype
) -> None:
    if semiring == "max_times" and not dtype.is_floating_point:
        return
    shapes = (*SMALL_SHAPES, (33, 6, 9)) if engine == "interpreted" else SHAPES
    for seed, (m, k, n) in enumerate(shapes):
        a, b = values((m, k), dtype, semiring, seed), values((k, n), dtype, semiring, seed + 50)
        for c in (None, values((m, n), dtype, semiring, seed + 99)):
            expected = by_loops(a, b, c, semiring)
            operands = [None if x is None else x.to(device) for x in (a, b, c)]
            for check in (True, False):
                found = semiring_product(
                    *operands, semiring=semiring, return_arguments=True, check=check
                )
                assert torch.equal(found[0].cpu(), expected[0]), (m, k, n)
                assert torch.equal(found[1].cpu(), expected[1]), (m, k, n)
            assert torch.equal(semiring_product(*operands, semiring=semiring), found[0])


def test_batches_strides_and_infinities(device: str) -> None:
    for semiring, (low, high) in {
        "max_min": (-INF, INF),
        "min_max": (-INF, INF),
        "max_plus": (-INF, 5.0),
        "max_times": (0.0, 5.0),
    }.items():
        choices = torch.tensor([low, high, 0.0, 0.5, 2.0])
        pick = torch.randint(0, 5, (2, 3, 9, 8), generator=torch.Generator().manual_seed(1))
        a, b = choices[pick]
        given = a.to(device).mT.contiguous().mT, b.to(device).mT
        found = semiring_product(*given, semiring=semiring)  # type: ignore[arg-type]
        for x, y, z in zip(a, b.mT, found.cpu(), strict=True):
            assert torch.equal(z, by_loops(x, y, None, semiring)[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dtype",
    [torch.int32, *(pytest.param(x, marks=pytest.mark.slow) for x in (torch.int16, torch.int64))],
    ids=str,
)
def test_integers_at_the_ends_of_their_range(device: str, dtype: torch.dtype) -> None:
    """Without a sum there is nothing to wrap, and the ends are values like others."""
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    pick = torch.tensor([[low, high, 0], [high, high, low], [low, low, low]], dtype=dtype)
    for semiring in ("max_min", "min_max"):
        expected = by_loops(pick, pick.T, None, semiring)  # type: ignore[arg-type]
        found = semiring_product(pick.to(device), pick.T.to(device), semiring=semiring)
        assert torch.equal(found.cpu(), expected[0])


def test_the_range_of_sums(device: str) -> None:
    most = int(tri_apsp.no_edge(torch.int32))
    x = torch.full((2, 2), most - 1, dtype=torch.int32, device=device)
    with pytest.raises(DistanceRangeError, match="a sum is too far from 0"):
        semiring_product(x, x, semiring="max_plus")
    halves = torch.full((2, 2), -(most // 2), dtype=torch.int32, device=device)
    assert semiring_product(halves, halves, semiring="max_plus").tolist() == 2 * [2 * [-most + 1]]
    large = torch.full((2, 2), 1e30, device=device)
    with pytest.raises(DistanceRangeError, match="a product is larger than the largest float"):
        semiring_product(large, large, semiring="max_times")


def test_products_of_probabilities_are_rounded_once(device: str) -> None:
    random = torch.Generator().manual_seed(0)
    a, b = torch.rand(20, 30, generator=random), torch.rand(30, 10, generator=random)
    found = semiring_product(a.to(device), b.to(device), semiring="max_times").cpu()
    for i, j in itertools.product(range(20), range(10)):
        pairs = zip(a[i].tolist(), b[:, j].tolist(), strict=True)
        exact = max(Fraction(x) * Fraction(y) for x, y in pairs)
        assert found[i, j] == torch.tensor(float(exact), dtype=torch.float64).float()


@pytest.mark.parametrize("semiring", SUMS)
def test_gradients(engine: str, device: str, semiring: SemiringName) -> None:
    if engine == "interpreted":
        pytest.skip("takes minutes; test_gradients_of_ties runs the same kernels")
    random = torch.Generator().manual_seed(3)
    shapes = (2, 4, 5), (2, 5, 3), (2, 4, 3)
    operands = [
        torch.rand(shape, dtype=torch.float64, generator=random).to(device).requires_grad_()
        for shape in shapes
    ]

    def of(*given: torch.Tensor) -> torch.Tensor:
        return semiring_product(*given, semiring=semiring)

    assert gradcheck(of, operands[:2], nondet_tol=0)
    assert gradcheck(of, operands, nondet_tol=0)
    with pytest.raises(InputError, match="must not be differentiated again"):
        torch.autograd.grad(of(*operands).sum(), operands, create_graph=True)[0].sum().backward()


def test_gradients_of_ties(device: str) -> None:
    """The smallest k; of the lesser value that of a, where both are."""
    ones = torch.ones(2, 3, device=device)
    for semiring, of_a, of_b in (
        ("max_plus", [2.0, 0, 0], [2.0, 0, 0]),
        ("max_times", [2.0, 0, 0], [2.0, 0, 0]),
        ("max_min", [2.0, 0, 0], [0.0, 0, 0]),
        ("min_max", [2.0, 0, 0], [0.0, 0, 0]),
    ):
        a, b = ones.clone().requires_grad_(), ones.mT.clone().requires_grad_()
        semiring_product(a, b, semiring=semiring).sum().backward()  # type: ignore[call-overload]
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.tolist() == [of_a, of_a]
        assert b.grad.mT.tolist() == [of_b, of_b]


@pytest.mark.parametrize("semiring", SUMS)
def test_transforms(semiring: SemiringName) -> None:
    a, b = values((4, 5, 5), torch.float32, semiring, 1), values((5, 5), torch.float32, semiring, 2)

    def of(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return semiring_product(x, y, semiring=semiring, return_arguments=True)

    expected = [of(x, b) for x in a]
    for result in (
        torch.func.vmap(of, in_dims=(0, None))(a, b),
        torch.compile(of, fullgraph=True, backend="aot_eager")(a, b.expand(4, 5, 5)),
    ):
        for part, one in zip(zip(*result, strict=True), expected, strict=True):
            assert torch.equal(part[0], one[0])
            assert torch.equal(part[1], one[1])


@pytest.mark.parametrize(
    ("semiring", "value", "message"),
    [
        ("max_times", -1.0, r"must be in \[0, 3.40282e\+38\] .* but has -1; replace it, by 0 for"),
        ("max_times", INF, "but has inf"),
        ("log", INF, "but has inf; replace it, by -inf for none"),
        ("max_plus", INF, r"must be in \[-inf, 3.40282e\+38\] .* inf; replace it, by -inf for"),
        *((name, math.nan, "nan|NaN") for name in SEMIRINGS),
    ],
)
def test_values_that_are_refused(semiring: SemiringName, value: float, message: str) -> None:
    wrong, right = torch.ones(3, 3), torch.ones(3, 3)
    wrong[1, 2] = value
    for operands in ((wrong, right), (right, wrong), (right, right, wrong)):
        with pytest.raises(InputError, match=message):
            semiring_product(*operands, semiring=semiring)


def log_by_terms(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
    terms = a[..., :, :, None] + b[..., None, :, :]
    if c is not None:
        terms = torch.cat((terms, c[..., :, None, :]), -2)
    return terms.logsumexp(-2)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def torch_device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [1, 30, 400, 3000])
def test_log(torch_device: str, dtype: torch.dtype, scale: float) -> None:
    """Also where exponentials less their maxima underflow, and rows and columns without values."""
    random = torch.Generator().manual_seed(int(scale))
    for m, k, n in ((7, 9, 5), (1, 1, 1), (30, 70, 20), (0, 2, 3), (3, 0, 2)):
        a, b, c = (
            (torch.randn(2, *shape, dtype=torch.float64, generator=random) * scale).to(dtype)
            for shape in ((m, k), (k, n), (m, n))
        )
        a[torch.rand(a.shape, generator=random) < 0.3] = -INF
        a[:, -1:], b[:, :, :1] = -INF, -INF
        for added in (None, c):
            operands = [None if x is None else x.to(torch_device) for x in (a, b, added)]
            found = semiring_product(*operands, semiring="log").cpu()
            expected = log_by_terms(*(None if x is None else x.double() for x in (a, b, added)))
            assert torch.equal(found.isinf(), expected.isinf())
            torch.testing.assert_close(found.double(), expected, rtol=2.0**-23, atol=1e-12)


def test_derivatives_of_log(torch_device: str) -> None:
    random = torch.Generator().manual_seed(0)
    for scale in (1.0, 500.0):  # of the second, sums are computed from terms
        a, b, c = (
            (torch.randn(2, *shape, dtype=torch.float64, generator=random) * scale)
            .to(torch_device)
            .requires_grad_()
            for shape in ((3, 4), (4, 2), (3, 2))
        )

        def of(*operands: torch.Tensor) -> torch.Tensor:
            return semiring_product(*operands, semiring="log")

        for operands in ((a, b), (a, b, c)):
            assert gradcheck(of, operands)
            assert gradgradcheck(of, operands)
            given = torch.autograd.grad(of(*operands).sum(), operands)
            plain = torch.autograd.grad(log_by_terms(*operands).sum(), operands)
            for x, y in zip(given, plain, strict=True):
                torch.testing.assert_close(x, y)
    with torch.no_grad():
        batches = torch.func.vmap(of)(a, b)
        assert torch.equal(batches, of(a, b))
        assert torch.equal(torch.compile(of, fullgraph=True, backend="aot_eager")(a, b), batches)
    torch.compile(of, fullgraph=True, backend="aot_eager")(a, b).sum().backward()
    torch.testing.assert_close(a.grad, torch.autograd.grad(of(a, b).sum(), a)[0])


def test_arguments_that_are_refused() -> None:
    x = torch.ones(2, 2)
    with pytest.raises(InputError, match=r"`semiring` must be one of 'min_plus', .* but is 'plus'"):
        semiring_product(x, x, semiring="plus")  # type: ignore[call-overload]
    for name in ("max_times", "log"):
        with pytest.raises(InputError, match=f"'{name}' must be floats, but are int32"):
            semiring_product(x.int(), x.int(), semiring=name)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="`return_arguments` does not go with"):
        semiring_product(x, x, semiring="log", return_arguments=True)
    with pytest.raises(InputError, match="semiring 'max_min' must be numbers, but are bool"):
        semiring_product(x > 0, x > 0, semiring="max_min")
    with pytest.raises(DistanceRangeError, match="a sum is larger than the largest float"):
        semiring_product(*2 * [torch.full((1, 1), 3e38)], semiring="log")
    least = torch.full((2, 2), -(2**30), dtype=torch.int32)
    match = r"in \[-1073741823, 1073741823\] in the semiring 'max_plus', but has -1073741824"
    with pytest.raises(InputError, match=match):
        semiring_product(least, x.int(), semiring="max_plus")
