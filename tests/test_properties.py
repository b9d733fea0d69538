"""What is true of all distances, on graphs that hypothesis invents."""

from __future__ import annotations

import cases
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tri_apsp
from tri_apsp.methods import METHODS

CONFIG = tri_apsp.Config(block_size=3, cutoff=5)  # small enough that small graphs meet every branch


@st.composite
def graphs(draw: st.DrawFn) -> torch.Tensor:
    """Integer-valued weights without a negative cycle: any weights from 0 plus differences of
    potentials.
    """
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.integers(0, 20, (n, n)).astype(np.float64)
    weights[rng.random((n, n)) >= draw(st.floats(0, 1))] = cases.INF
    if draw(st.booleans()):
        potential = rng.integers(0, 40, n)
        weights += potential[:, None] - potential[None, :]
    return cases.tensor(weights, draw(st.sampled_from(cases.QUICK_DTYPES)))


methods = st.sampled_from(sorted(METHODS))
examples = settings(max_examples=40, deadline=None)


def solve(weights: torch.Tensor, method: str) -> torch.Tensor:
    config = cases.config_for(method, CONFIG)
    return tri_apsp.shortest_paths(weights, method=method, config=config).distances


@examples
@given(graphs(), methods)
def test_a_closure(weights: torch.Tensor, method: str) -> None:
    distances = solve(weights, method)
    assert (distances.diagonal() == 0).all()
    assert (distances <= weights).all()
    assert torch.equal(tri_apsp.min_plus(distances, distances), distances)
    assert torch.equal(solve(distances, method), distances)


@examples
@given(graphs(), methods, st.randoms(use_true_random=False))
def test_relabelling_the_vertices_relabels_the_distances(
    weights: torch.Tensor, method: str, random: object
) -> None:
    order = list(range(len(weights)))
    random.shuffle(order)  # type: ignore[attr-defined]
    index = torch.tensor(order)
    assert torch.equal(
        solve(weights[index][:, index], method), solve(weights, method)[index][:, index]
    )


@examples
@given(graphs(), methods)
def test_reversing_every_edge_transposes_the_distances(weights: torch.Tensor, method: str) -> None:
    assert torch.equal(solve(weights.T, method), solve(weights, method).T)


@examples
@given(graphs(), methods, st.integers(0, 13), st.integers(0, 13), st.integers(0, 30))
def test_an_added_edge_lengthens_nothing(
    weights: torch.Tensor, method: str, i: int, j: int, weight: int
) -> None:
    n = len(weights)
    more = weights.clone()
    edge = torch.tensor(weight, dtype=weights.dtype)
    distances = solve(weights, method)
    # From j back to i must not weigh less than -weight, or the edge would close a negative cycle.
    edge = torch.maximum(edge, -distances[j % n, i % n])
    more[i % n, j % n] = torch.minimum(more[i % n, j % n], edge)
    assert (solve(more, method) <= distances).all()


@examples
@given(graphs(), methods, st.integers(1, 20))
def test_scaling_the_weights_scales_the_distances(
    weights: torch.Tensor, method: str, factor: int
) -> None:
    if not weights.is_floating_point():
        return
    assert torch.equal(solve(weights * factor, method), solve(weights, method) * factor)
