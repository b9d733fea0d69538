"""from_edge_index: the layout of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from tri_apsp import InputError, TooLargeError, from_edge_index, no_edge
from tri_apsp.semirings import DTYPES

INF = float("inf")


def random_batch(
    sizes: list[int], seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[nx.MultiDiGraph]]:
    """The edges of random graphs with loops and parallel edges, in any order; their weights; the
    batch; and the graphs.
    """
    generator = torch.Generator().manual_seed(seed)
    sources, targets, graphs, first = list[int](), list[int](), [], 0
    for size in sizes:
        ends = torch.randint(0, max(1, size), (2, 3 * size), generator=generator).tolist()
        graphs.append(nx.MultiDiGraph())
        graphs[-1].add_nodes_from(range(size))
        sources += [first + v for v in ends[0]]
        targets += [first + v for v in ends[1]]
        first += size
    order = torch.randperm(len(sources), generator=generator)
    edges, weights = (
        torch.tensor([sources, targets])[:, order],
        torch.randint(1, 9, (len(sources),), generator=generator),
    )
    batch = torch.repeat_interleave(
        torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.int64)
    )
    starts = [sum(sizes[:g]) for g in range(len(sizes))]
    for (source, target), weight in zip(edges.T.tolist(), weights.tolist(), strict=True):
        g = int(batch[source])
        graphs[g].add_edge(source - starts[g], target - starts[g], weight=weight)
    return edges, weights, batch, graphs


@pytest.mark.parametrize(
    ("dtype", "weighted", "index_dtype"),
    [
        (dtype, place % 2 == 0, (torch.int32, torch.int64)[place % 2])
        for place, dtype in enumerate(DTYPES)
    ],
    ids=str,
)
def test_weights_are_those_of_networkx(
    dtype: torch.dtype, weighted: bool, index_dtype: torch.dtype
) -> None:
    edges, weights, batch, graphs = random_batch([5, 0, 9, 1, 3, 0])
    given = weights.to(dtype) if weighted else None
    dense, sizes = from_edge_index(
        edges.to(index_dtype), given, batch.to(index_dtype), dtype=dtype, batch_size=6
    )
    assert (dense.shape, dense.dtype, sizes.tolist()) == ((6, 9, 9), dtype, [5, 0, 9, 1, 3, 0])
    far = dense == no_edge(dtype)
    for found, graph in zip(dense.double().masked_fill(far, INF).numpy(), graphs, strict=True):
        expected = np.full((9, 9), INF)
        if graph:
            kept = {"weight": "weight" if weighted else "none", "multigraph_weight": min}
            n = len(graph)
            expected[:n, :n] = nx.to_numpy_array(graph, nonedge=INF, **kept)
        np.fill_diagonal(expected, 0)
        np.testing.assert_array_equal(found, expected)


def test_one_graph() -> None:
    edges = torch.tensor([[0, 2, 2], [2, 1, 1]])
    dense, sizes = from_edge_index(edges, torch.tensor([4.0, 7.0, 5.0]))
    assert dense.tolist() == [[[0, INF, 4], [INF, 0, INF], [INF, 5, 0]]]
    assert sizes.tolist() == [3]
    dense, sizes = from_edge_index(edges, num_nodes=4, max_num_nodes=6)
    assert (dense.shape, sizes.tolist()) == ((1, 6, 6), [4])
    assert dense[0, 2].tolist() == [INF, 1, 0, INF, INF, INF]


def test_loops_count_only_if_they_are_negative() -> None:
    dense, _ = from_edge_index(torch.tensor([[0, 1], [0, 1]]), torch.tensor([3, -2]))
    assert dense.diagonal(dim1=1, dim2=2).tolist() == [[0, -2]]


@pytest.mark.parametrize("vertices", [0, 3])
def test_no_edges(vertices: int) -> None:
    edges = torch.empty(2, 0, dtype=torch.int64)
    for batch, num_nodes in ((None, vertices), (torch.zeros(vertices, dtype=torch.int64), None)):
        dense, sizes = from_edge_index(edges, None, batch, num_nodes, batch_size=1)
        assert (dense.shape, sizes.tolist()) == ((1, vertices, vertices), [vertices])
    assert from_edge_index(edges)[0].shape == (1, 0, 0)
    assert from_edge_index(edges, batch=torch.empty(0, dtype=torch.int64))[0].shape == (0, 0, 0)


def test_graphs_behind_the_last_vertex_and_more_padding() -> None:
    edges, _, batch, _ = random_batch([4, 2])
    dense, sizes = from_edge_index(edges, batch=batch, max_num_nodes=7, batch_size=3)
    assert (dense.shape, sizes.tolist()) == ((3, 7, 7), [4, 2, 0])
    assert torch.equal(dense[:2, :4, :4], from_edge_index(edges, batch=batch)[0])
    unchecked = from_edge_index(edges, batch=batch, max_num_nodes=7, batch_size=3, check=False)
    assert torch.equal(unchecked[0], dense)
    assert torch.equal(unchecked[1], sizes)


EDGES, BATCH = torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([0, 0, 1, 1])
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a list": (
        {"edge_index": [[0], [1]]},
        "must be a torch tensor, but is list; .* or give data.edge_index of Data",
    ),
    "pairs": (
        {"edge_index": EDGES.T},
        r"`edge_index` must have shape \(2, edges\), but has \(3, 2\); transpose",
    ),
    "float indices": (
        {"edge_index": EDGES.float()},
        "`edge_index` must have one of the dtypes int64 or int32, but has float32",
    ),
    "too far": (
        {"edge_index": EDGES + 1},
        r"`edge_index` must hold vertices in \[0, 4\), but one is 4; correct",
    ),
    "negative": (
        {"edge_index": EDGES - 1},
        r"`edge_index` must hold vertices in \[0, 4\), but one is -1",
    ),
    "two graphs": (
        {"edge_index": EDGES.flip(0) * 3 % 4},
        "must join vertices of the same graph, but . of its edges",
    ),
    "not sorted": (
        {"batch": BATCH.flip(0)},
        "`batch` must hold graphs in ascending order from 0 on, but does not",
    ),
    "negative graph": (
        {"batch": BATCH - 1},
        "`batch` must hold graphs in ascending order from 0 on, but does not",
    ),
    "a column": (
        {"batch": BATCH[:, None]},
        r"`batch` must have shape \(num_nodes,\), but has \(4, 1\)",
    ),
    "weights": (
        {"edge_weight": torch.ones(2)},
        r"`edge_weight` must have shape \(3,\), one weight for each edge, but",
    ),
    "half": (
        {"edge_weight": torch.ones(3).half()},
        "`edge_weight` must have one of the dtypes .*, but has float16; convert",
    ),
    "dtype": (
        {"edge_weight": torch.ones(3), "dtype": torch.int16},
        "`dtype` must be that of `edge_weight`, float32",
    ),
    "other dtype": ({"dtype": torch.float16}, "must have one of the dtypes"),
    "vertices": ({"num_nodes": 5}, "`num_nodes` must be 4, the length of `batch`, but is 5"),
    "padding": (
        {"max_num_nodes": 1},
        "`max_num_nodes` must be at least 2, but is 1",
    ),
    "graphs": ({"batch_size": 1}, "`batch_size` must be at least 2, but is 1"),
    "a bool": ({"batch_size": True}, "`batch_size` must be an integer, but is True"),
    "device": (
        {"batch": BATCH.to("meta")},
        "`batch` must be on the CPU or a CUDA device, but is on meta; move",
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=list(BAD))
def test_bad_input(case: tuple[dict[str, Any], str]) -> None:
    arguments, message = case
    with pytest.raises(InputError, match=message) as caught:
        from_edge_index(**{"edge_index": EDGES, "batch": BATCH, **arguments})
    assert str(caught.value).endswith(".")


def test_too_large() -> None:
    with pytest.raises(TooLargeError):
        from_edge_index(EDGES, num_nodes=10**8)


@pytest.mark.gpu
def test_nothing_waits_for_the_gpu() -> None:
    edges, weights, batch, _ = random_batch([5, 0, 9, 1, 3])
    expected = from_edge_index(edges, weights.float(), batch)
    given = [tensor.cuda() for tensor in (edges, weights.float(), batch)]
    for found in (from_edge_index(*given), from_edge_index(*given, max_num_nodes=9)):
        assert all(
            torch.equal(one.cpu(), other) for one, other in zip(found, expected, strict=True)
        )
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = from_edge_index(*given, max_num_nodes=9, batch_size=5, check=False)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(one.cpu(), other) for one, other in zip(found, expected, strict=True))
