import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.engines.cpu import CpuEngine


@pytest.mark.parametrize(
    ("graph", "products"),
    [
        (
            cases.chain(33),
            5,
        ),  # 32 edges on the longest path: 2^5, and no product is left to see that nothing changes
        (cases.chain(20), 5),  # 19 edges
        (
            cases.random_graph(200, degree=200, low=1, high=1),
            1,
        ),  # complete: the first product changes nothing
        (cases.chain(34), 6),  # 33 edges
        (cases.random_graph(2), 0),  # no path has more than one edge
        (np.array([[0.0, -1.0], [2.0, 0.0]]), 1),  # but a negative cycle would have two
        (cases.random_graph(1), 0),
    ],
    ids=["chain of 33", "chain of 20", "complete", "chain of 34", "two", "two, negative", "one"],
)
def test_a_product_that_changes_nothing_is_the_last(
    monkeypatch: pytest.MonkeyPatch, graph: cases.Matrix, products: int
) -> None:
    calls: list[int] = []
    product = CpuEngine.product
    monkeypatch.setattr(
        CpuEngine, "product", lambda engine, *updates: (calls.append(1), product(engine, *updates))
    )
    cases.assert_distances(
        tri_apsp.shortest_paths(cases.tensor(graph, torch.float32), method="squaring").distances,
        graph,
    )
    assert len(calls) == products


def test_a_negative_cycle_that_an_early_check_finds() -> None:
    """The first product, whose result is not in the memory of the distances, shows the cycle."""
    n = 1100  # from where on blocks are checked early
    weights = torch.full((n, n), torch.inf)
    weights[range(n), [*range(1, n), 0]] = 1
    weights[1, 0] = -2
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(weights, method="squaring")
    assert (sorted(caught.value.vertices), caught.value.weight) == ([0, 1], -1)
    marked = tri_apsp.shortest_paths(weights, method="squaring", negative_cycles="mark")
    assert bool((marked.distances == -torch.inf).all())
