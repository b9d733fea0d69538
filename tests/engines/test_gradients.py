"""The sums of gradients of the engines, by those of a loop; on a CPU also those that GPUs compute."""

from __future__ import annotations

import os

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import engines
from tri_apsp.configs import default_config
from tri_apsp.engines import Engine, MatrixSpec, triton_gradients


class TorchSums:
    """What the engines of GPUs compute, on a CPU."""

    edge_gradient = staticmethod(triton_gradients.edge_gradient)
    factor_gradients = staticmethod(triton_gradients.factor_gradients)


def engine(name: str, dtype: torch.dtype = torch.float32) -> Engine | type[TorchSums]:
    if name == "torch":
        return TorchSums
    return engines.make(name, MatrixSpec(8, dtype, torch.device("cpu"), False), default_config(name, dtype))


every_sum = pytest.mark.parametrize("name", ["cpu", "torch"])
SHAPES = [(1, 1), (1, 7), (40, 5), (2, 100)]


def whole(*shape: int, most: int = 9) -> torch.Tensor:
    return torch.randint(-most, most + 1, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


@every_sum
@pytest.mark.parametrize(("batch", "n"), SHAPES)
def test_edge_gradient(name: str, batch: int, n: int) -> None:
    weights = torch.rand(batch, n, n).masked_fill_(torch.rand(batch, n, n) > 0.1, float("inf"))
    predecessors = tri_apsp.shortest_paths(weights, predecessors=True).predecessors
    gradient, expected = whole(batch, n, n), torch.zeros(batch, n, n)
    for graph, source, target in np.argwhere(predecessors.numpy() >= 0).tolist():
        vertex = target
        while (before := int(predecessors[graph, source, vertex])) >= 0:
            expected[graph, before, vertex] += gradient[graph, source, target]
            vertex = before
    assert torch.equal(engine(name).edge_gradient(gradient, predecessors), expected)


@every_sum
def test_a_path_through_every_vertex(name: str) -> None:
    n = 70
    predecessors = torch.full((1, n, n), -1, dtype=torch.int32)
    for i in range(n):
        predecessors[0, i, i + 1 :] = torch.arange(i, n - 1)
    found = engine(name).edge_gradient(torch.ones(1, n, n), predecessors)[0]
    edges = torch.arange(1, n) * torch.arange(n - 1, 0, -1)
    assert torch.equal(found.diagonal(1), edges.float())
    assert found.sum() == edges.sum()


@every_sum
@pytest.mark.parametrize(("batch", "m", "depth", "n"), [(1, 1, 1, 1), (3, 20, 7, 33), (100, 4, 5, 6), (1, 90, 200, 70)])
def test_factor_gradients(name: str, batch: int, m: int, depth: int, n: int) -> None:
    gradient, chosen = whole(batch, m, n), torch.randint(-1, depth, (batch, m, n)).int()
    one = torch.nn.functional.one_hot(chosen.long() + 1, depth + 1)[..., 1:] * gradient[..., None]
    of_a, of_b = engine(name).factor_gradients(gradient, chosen, depth)
    assert torch.equal(of_a, one.sum(2))
    assert torch.equal(of_b, one.sum(1).mT)


PRODUCTS = [(1, 1, 1, 1), (2, 65, 9, 3), (1, 5, 70, 66)]


def check_argmin(name: str, dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    batch, m, depth, n = shape
    a, b = whole(batch, m, depth).to(dtype), whole(batch, depth, n).to(dtype)
    a[0, 0] = float("inf")
    sums = a[:, :, :, None] + b[:, None]
    c = sums.amin(2)
    c[-1, -1, -1] -= 1  # which no sum is
    expected = (sums == c[:, :, None]).int().argmax(2).int()
    expected[c == float("inf")] = expected[-1, -1, -1] = -1
    assert torch.equal(engine(name, dtype).argmin(a, b, c), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
def test_argmin(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    check_argmin("cpu", dtype, shape)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="runs in a process of its own, with TRITON_INTERPRET=1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
def test_argmin_interpreted(dtype: torch.dtype, shape: tuple[int, int, int, int]) -> None:
    check_argmin("portable", dtype, shape)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (9, 8), (70, 13), (2, 16), (3, 20), (5, 32), (2, 33), (3, 64), (5000, 16)])
def test_small_graphs(dtype: torch.dtype, shape: tuple[int, int]) -> None:
    """Of the nvidia engine, for weights of each sign, with ties, and padded; without strides of whole rows."""
    batch, n = shape
    for negative, padded in ((False, False), (True, False), (True, True)):
        drawn = [(cases.negative_graph if negative else cases.random_graph)(n, seed=i, degree=3) for i in range(min(batch, 5))]
        weights = cases.tensor(np.stack(drawn), dtype, "cuda").repeat(-(-batch // 5), 1, 1)[:batch].mT.contiguous().mT
        sizes = (torch.arange(batch, device="cuda") * 3 + 1) % (n + 1) if padded else None
        if sizes is not None:
            padding = torch.arange(n, device="cuda") >= sizes[:, None]
            weights.masked_fill_(padding[:, None], -float("inf")).masked_fill_(padding[:, :, None], float("nan"))
        distances = tri_apsp.shortest_paths(weights, sizes=sizes).distances
        gradient = whole(batch, n, n).to("cuda", dtype)
        made = engines.make("nvidia", MatrixSpec(n, dtype, weights.device, False, sizes), default_config("nvidia", dtype))
        result = made.weights_gradient(gradient, weights, distances)
        for i in range(min(batch, 30)):
            size = n if sizes is None else int(sizes[i])
            expected = np.zeros((n, n))
            of_graph, of_gradient = (x[i, :size, :size].double().cpu().numpy() for x in (weights, gradient))
            expected[:size, :size] = cases.gradient_of_weights(of_graph, of_gradient)
            np.testing.assert_array_equal(result[i].cpu().numpy(), expected)
