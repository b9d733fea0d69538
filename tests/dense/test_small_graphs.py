"""Batches of small graphs: every n up to 70, which passes each of the kernels that such batches
have.
"""

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import no_edge

BATCHES = (1, 2, 31, 33, 200)
GRAPHS = 33
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
every_device = pytest.mark.parametrize("device", DEVICES)


def marks(dtype: torch.dtype, device: str) -> list[pytest.MarkDecorator]:
    """Which dtypes are slow: on a GPU all but the most common one, since every n has kernels of its
    own.
    """
    quick = cases.QUICK_DTYPES if device == "cpu" else (torch.float32,)
    slow = [] if dtype in quick else [pytest.mark.slow]
    return slow if device == "cpu" else [pytest.mark.gpu, *slow]


every_dtype_and_device = pytest.mark.parametrize(
    ("dtype", "device"),
    [
        pytest.param(dtype, device, marks=marks(dtype, device))
        for dtype in cases.DTYPES
        for device in ("cpu", "cuda")
    ],
    ids=str,
)
every_part = pytest.mark.parametrize(
    "part", range(4)
)  # of the numbers of vertices, so that no test takes minutes


def vertices(device: str) -> list[int]:
    """Every n up to 33 and some up to 70; fewer on a GPU, where each kind of n above 32 takes
    seconds to compile.
    """
    return [*range(34), 47, 48, 49, 63, 64, 65, 70] if device == "cpu" else [*range(34), 49, 63, 64]


def batches(device: str, n: int) -> tuple[int, ...]:
    """On a CPU one graph and all of them, and for two n so many that threads share them in parts of
    several. On a GPU every batch, but two for more than one tile, where each takes kernels of its
    own.
    """
    if device == "cpu":
        return (1, 33, 200) if n in (33, 64) else (1, 33)
    return BATCHES if n <= 64 else (2, 200)


def random_graphs(n: int, negative: bool) -> torch.Tensor:
    """GRAPHS graphs of whole weights in float64 without a negative cycle, from very few edges to
    nearly all.
    """
    random = torch.Generator().manual_seed(n)
    weights = torch.randint(0, 50, (GRAPHS, n, n), generator=random).double()
    if negative:
        potential = torch.randint(0, 30, (GRAPHS, n, 1), generator=random)
        weights += potential - potential.mT
    density = torch.linspace(0.05, 0.9, GRAPHS)[:, None, None]
    return weights.masked_fill_(torch.rand((GRAPHS, n, n), generator=random) > density, torch.inf)


def solved(weights: torch.Tensor) -> torch.Tensor:
    """The distances by Floyd and Warshall's loop; NumPy starts no threads for so few values."""
    distances = weights.clone()
    distances.diagonal(dim1=1, dim2=2).clamp_(max=0)
    d = distances.numpy()
    for k in range(weights.shape[-1]):
        np.minimum(d, d[:, :, k, None] + d[:, k, None, :], out=d)
    return distances


def padded(
    matrices: torch.Tensor, sizes: torch.Tensor | None, value: float = torch.inf
) -> torch.Tensor:
    """The leading block of each matrix, and `value` outside."""
    if sizes is None:
        return matrices
    outside = torch.arange(matrices.shape[-1]) >= sizes[:, None]
    return matrices.masked_fill(outside[:, :, None] | outside[:, None, :], value)


def cast(matrices: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    values = matrices.masked_fill(matrices.isinf(), 0).to(dtype)
    return values.masked_fill_(matrices.isinf(), no_edge(dtype))


def repeated(graphs: torch.Tensor, batch: int) -> torch.Tensor:
    """A batch of these graphs, from the last to the first, again and again."""
    return graphs[GRAPHS - 1 - torch.arange(batch) % GRAPHS]


@every_dtype_and_device
@pytest.mark.parametrize("negative", [False, True], ids=["nonnegative", "negative"])
@pytest.mark.parametrize("with_sizes", [False, True], ids=["whole", "padded"])
@every_part
def test_every_n_and_batch(
    device: str, dtype: torch.dtype, negative: bool, with_sizes: bool, part: int
) -> None:
    for n in vertices(device)[part::4]:
        weights = random_graphs(n, negative)
        generator = torch.Generator().manual_seed(n)
        sizes = torch.randint(0, n + 1, (GRAPHS,), generator=generator) if with_sizes else None
        expected = cast(padded(solved(padded(weights, sizes)), sizes), dtype).to(device)
        weights = padded(cast(weights, dtype), sizes, -7).to(device)
        for batch in batches(device, n):
            given = None if sizes is None else repeated(sizes, batch).to(device)
            found = tri_apsp.shortest_paths(repeated(weights, batch), sizes=given).distances
            assert torch.equal(found, repeated(expected, batch)), (n, batch)


@every_device
@pytest.mark.parametrize("n", [3, 8, 16, 31, 64])
@pytest.mark.parametrize("graph", [0, 600, 999])
def test_invalid_graph_among_many(device: str, n: int, graph: int) -> None:
    weights = repeated(random_graphs(n, False).float(), 1000).to(device)
    weights[graph, 0, n - 1] = float("nan")
    with pytest.raises(tri_apsp.InputError, match=rf"NaN at \({graph}, 0, {n - 1}\)"):
        tri_apsp.shortest_paths(weights)
    weights[graph, 0, n - 1], weights[graph, n - 1, 0] = 1, -2
    with pytest.raises(tri_apsp.NegativeCycleError):
        tri_apsp.shortest_paths(weights)
    for padding in (weights[:, :-1, :-1], weights):  # the invalid edge lies in the padding
        size = torch.full((1000,), padding.shape[-1] - (padding is weights), device=device)
        assert (tri_apsp.shortest_paths(padding, sizes=size).distances >= 0).all()
