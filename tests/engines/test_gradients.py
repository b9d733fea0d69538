"""The sums of gradients of the engines, by those of a loop: on a CPU, on a GPU, and in Triton's
interpreter.
"""

from typing import ClassVar

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import engines
from tri_apsp.configs import default_config
from tri_apsp.engines import Engine, MatrixSpec


def engine(name: str, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Engine:
    return engines.make(
        MatrixSpec(8, dtype, torch.device(device), False), default_config(name, dtype)
    )


def whole(*shape: int, most: int = 9) -> torch.Tensor:
    return torch.randint(
        -most, most + 1, shape, generator=torch.Generator().manual_seed(sum(shape))
    ).float()


def check_argmin(made: Engine, dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    (batch, m, depth, n), device = shape, made.spec.device
    a, b = whole(batch, m, depth).to(device, dtype), whole(batch, depth, n).to(device, dtype)
    a[0, 0] = float("inf")
    sums = a[:, :, :, None] + b[:, None]
    c = sums.amin(2)
    expected = (sums == c[:, :, None]).int().argmax(2).int()
    expected[c == float("inf")] = -1
    for known in (c, None):
        product, found = made.argmin(a, b, known)
        assert torch.equal(product, c)
        assert torch.equal(found, expected)


class SumsContract:
    name: ClassVar[str]
    device: ClassVar[str] = "cpu"

    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        made = engine(self.name, gradient.dtype, self.device)
        return made.edge_gradient(gradient.to(self.device), predecessors.to(self.device)).cpu()

    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, ...]:
        made = engine(self.name, gradient.dtype, self.device)
        return tuple(
            x.cpu()
            for x in made.factor_gradients(gradient.to(self.device), chosen.to(self.device), depth)
        )

    @pytest.mark.parametrize(
        ("batch", "n", "dtype"),
        [
            (1, 1, torch.float32),
            (1, 7, torch.float64),
            (40, 5, torch.float32),
            (2, 100, torch.float32),
        ],
    )
    def test_edge_gradient(self, batch: int, n: int, dtype: torch.dtype) -> None:
        """Of whole gradients, and of NaN where there is no path."""
        random = torch.Generator().manual_seed(n)
        weights = torch.rand(batch, n, n, generator=random)
        weights.masked_fill_(torch.rand(batch, n, n, generator=random) > 0.1, float("inf"))
        predecessors = cpu_predecessors(weights)
        gradient, expected = whole(batch, n, n).to(dtype), np.zeros((batch, n, n))
        values, rows = gradient.numpy(), predecessors.tolist()
        for graph, source, target in np.argwhere(predecessors.numpy() >= 0).tolist():
            vertex = target
            while (before := rows[graph][source][vertex]) >= 0:
                expected[graph, before, vertex] += values[graph, source, target]
                vertex = before
        gradient.masked_fill_(predecessors < 0, float("nan"))
        found = self.edge_gradient(gradient, predecessors)
        assert found.dtype == dtype
        assert np.array_equal(found.numpy(), expected)

    def test_a_path_through_every_vertex(self) -> None:
        n = 70
        predecessors = torch.full((1, n, n), -1, dtype=torch.int32)
        for i in range(n):
            predecessors[0, i, i + 1 :] = torch.arange(i, n - 1)
        found = self.edge_gradient(torch.ones(1, n, n), predecessors)[0]
        edges = torch.arange(1, n) * torch.arange(n - 1, 0, -1)
        assert torch.equal(found.diagonal(1), edges.float())
        assert found.sum() == edges.sum()

    @pytest.mark.parametrize(
        ("batch", "m", "depth", "n"),
        [(1, 1, 1, 1), (3, 20, 7, 33), (100, 4, 5, 6), (1, 90, 200, 70)],
    )
    def test_factor_gradients(self, batch: int, m: int, depth: int, n: int) -> None:
        gradient, chosen = whole(batch, m, n), torch.randint(-1, depth, (batch, m, n)).int()
        one = (
            torch.nn.functional.one_hot(chosen.long() + 1, depth + 1)[..., 1:] * gradient[..., None]
        )
        of_a, of_b = self.factor_gradients(gradient, chosen, depth)
        assert torch.equal(of_a, one.sum(2))
        assert torch.equal(of_b, one.sum(1).mT)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize(
        "shape", [(1, 1, 1, 1), (2, 65, 9, 3), (1, 5, 70, 66), (1, 9, 67, 50)], ids=str
    )
    def test_argmin(self, dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
        check_argmin(engine(self.name, dtype, self.device), dtype, shape)

    @pytest.mark.parametrize("magnitude", [1e-280, 1.0, 1e300])
    def test_gradients_of_any_magnitude(self, magnitude: float) -> None:
        gradient = torch.rand(2, 30, 40, dtype=torch.float64) * magnitude
        gradient[1] *= 1e-5  # each graph has a scale of its own
        chosen = torch.zeros(2, 30, 40, dtype=torch.int32)
        of_a, of_b = self.factor_gradients(gradient, chosen, 1)
        assert torch.allclose(of_a[:, :, 0], gradient.sum(2), rtol=1e-12, atol=0)
        assert torch.allclose(of_b[:, 0], gradient.sum(1), rtol=1e-12, atol=0)

    @pytest.mark.parametrize("value", [float("inf"), float("nan")])
    def test_a_gradient_that_is_not_finite(self, value: float) -> None:
        """It leaves no number in its own graph, and does not reach another."""
        gradient, chosen = torch.ones(2, 3, 4), torch.zeros(2, 3, 4, dtype=torch.int32)
        gradient[0, 1, 2] = value
        of_a, of_b = self.factor_gradients(gradient, chosen, 1)
        assert not of_a[0, 1].isfinite().any()
        assert not of_b[0, 0, 2].isfinite()
        assert torch.equal(of_a[1, :, 0], torch.full((3,), 4.0))
        assert torch.equal(of_b[1, 0], torch.full((4,), 3.0))


def cpu_predecessors(weights: torch.Tensor) -> torch.Tensor:
    found = tri_apsp.shortest_paths(
        weights, predecessors=True, config=tri_apsp.Config(engine="cpu")
    ).predecessors
    assert found is not None
    return found


class TestSumsOnACpu(SumsContract):
    name = "cpu"


@cases.interpreted
class TestSumsInterpreted(SumsContract):
    name = "portable"


@pytest.mark.gpu
class TestSumsOnAGpu(SumsContract):
    name, device = "portable", "cuda"

    def test_rows_of_several_blocks(self) -> None:
        """As many sources as programs take in turn, and paths of many edges."""
        n = 2500
        weights = torch.full((n, n), float("inf"))
        weights.diagonal(1).fill_(1)
        weights[torch.randint(0, n, (3 * n,)), torch.randint(0, n, (3 * n,))] = 900.0
        predecessors = cpu_predecessors(weights)[None]
        gradient = whole(1, n, n)
        expected = engine("cpu").edge_gradient(gradient, predecessors)
        for _ in range(3):
            assert torch.equal(self.edge_gradient(gradient, predecessors), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(2, 65, 9, 3), (3, 64, 32, 64), (2, 200, 500, 300)], ids=str)
def test_argmin_of_the_nvidia_engine(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    check_argmin(engine("nvidia", dtype, "cuda"), dtype, shape)


# On a GPU, a kernel for each of 8, 16, 32 and 64 vertices and each dtype.
SMALL = [
    *((torch.float32, shape) for shape in ((3, 2), (9, 8), (70, 13), (5000, 16), (3, 20), (5, 32))),
    *((torch.float32, shape) for shape in ((2, 33), (3, 64))),
    *((torch.float64, shape) for shape in ((1, 1), (2, 16), (3, 64))),
]


class SmallGraphsContract:
    name: ClassVar[str]
    device: ClassVar[str]

    def gradient(
        self, gradient: torch.Tensor, weights: torch.Tensor, sizes: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradient of the weights, and the distances."""
        distances = tri_apsp.shortest_paths(weights, sizes=sizes).distances
        spec = MatrixSpec(weights.shape[-1], weights.dtype, weights.device, False, sizes)
        made = engines.make(spec, default_config(self.name, weights.dtype))
        found = made.weights_gradient(gradient, weights, distances)
        assert found is not None
        return found, distances

    @pytest.mark.parametrize(("dtype", "shape"), SMALL)
    def test_integers(self, dtype: torch.dtype, shape: tuple[int, int]) -> None:
        """For weights of each sign, with ties, and padded; without strides of whole rows."""
        batch, n = shape
        for negative, padded in ((False, False), (True, False), (True, True)):
            make = cases.negative_graph if negative else cases.random_graph
            drawn = np.stack([make(n, seed=i, degree=3) for i in range(min(batch, 5))])
            weights = (
                cases.tensor(drawn, dtype, self.device)
                .repeat(-(-batch // 5), 1, 1)[:batch]
                .mT.contiguous()
                .mT
            )
            sizes = (torch.arange(batch, device=self.device) * 3 + 1) % (n + 1) if padded else None
            if sizes is not None:
                padding = torch.arange(n, device=self.device) >= sizes[:, None]
                weights.masked_fill_(padding[:, None], -float("inf")).masked_fill_(
                    padding[:, :, None], float("nan")
                )
            gradient = whole(batch, n, n).to(self.device, dtype)
            result, _ = self.gradient(gradient, weights, sizes)
            for i in range(min(batch, 30)):
                size = n if sizes is None else int(sizes[i])
                expected = np.zeros((n, n))
                of_graph, of_gradient = (
                    x[i, :size, :size].double().cpu().numpy() for x in (weights, gradient)
                )
                expected[:size, :size] = cases.gradient_of_weights(of_graph, of_gradient)
                np.testing.assert_array_equal(result[i].cpu().numpy(), expected)

    @pytest.mark.parametrize("kind", cases.ROUNDED)
    @pytest.mark.parametrize(
        ("n", "dtype"),
        [(16, torch.float64), (5, torch.float32), (31, torch.float32), (64, torch.float32)],
    )
    def test_rounding_loses_no_gradient(self, kind: str, n: int, dtype: torch.dtype) -> None:
        """What flows out of a vertex but not into it is what its distances brought."""
        weights = torch.from_numpy(
            cases.rounded_graphs(kind, n, np.float32 if dtype == torch.float32 else np.float64)
        )
        weights = weights.to(self.device)
        gradient = whole(*weights.shape).to(self.device, dtype)
        found, distances = self.gradient(gradient, weights)
        gradient = gradient.masked_fill(distances.isinf(), 0)
        gradient.diagonal(dim1=1, dim2=2).zero_()
        assert torch.equal(found.sum(2) - found.sum(1), gradient.sum(2) - gradient.sum(1))
        # And its paths are as long as the distances.
        lengths = [
            (x.double() * y.nan_to_num(posinf=0)).sum((1, 2))
            for x, y in ((found, weights), (gradient, distances))
        ]
        scale = distances.nan_to_num(posinf=0).abs().amax((1, 2)) * gradient.abs().sum((1, 2))
        assert ((lengths[0] - lengths[1]).abs() <= n * torch.finfo(dtype).eps * scale).all()

    def test_a_gradient_that_is_not_finite(self) -> None:
        weights = torch.full((2, 4, 4), float("inf"), device=self.device)
        weights.diagonal(1, 1, 2).fill_(1)
        gradient = torch.ones(2, 4, 4, device=self.device)
        gradient[0, 0, 2] = float("nan")
        found, _ = self.gradient(gradient, weights)
        assert found[0].isnan().nonzero().tolist() == [[0, 1], [1, 2]]
        assert found[1].isfinite().all()


class TestSmallGraphsOnACpu(SmallGraphsContract):
    name = device = "cpu"


@pytest.mark.gpu
class TestSmallGraphsOnAGpu(SmallGraphsContract):
    name, device = "nvidia", "cuda"
