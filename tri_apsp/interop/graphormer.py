"""The encodings of Graphormer for batches of graphs: how far vertices are apart, and which edges
lie between them.

Source: Ying et al., Do Transformers Really Perform Bad for Graph Representation?, NeurIPS 2021,
section 3.1.
"""

from typing import NamedTuple

import torch

from tri_apsp.api import shortest_paths
from tri_apsp.arguments import as_integer
from tri_apsp.graphs.edge_index import from_edge_index, matrix_indices
from tri_apsp.memory import check_memory

# Matrices of int64 that encodings take beside the edge paths.
_MATRICES = 12


class Encodings(NamedTuple):
    """The encodings of a batch of graphs, padded to the largest.

    Attributes:
        spatial_positions: (batch, n, n) of int64, an index for an embedding of max_distance + 3
            rows: the edges of a shortest path, at most max_distance; max_distance + 1 where there
            is no path; max_distance + 2 in the padding.
        edge_paths: (batch, n, n, max_distance) of int64: the columns of `edge_index` that a
            shortest path takes, from its first edge to at most max_distance, then -1. Of parallel
            edges it takes the first, of several shortest paths that of shortest_paths(...,
            predecessors=True).
        sizes: (batch,) of int64, the vertices of each graph.
    """

    spatial_positions: torch.Tensor
    edge_paths: torch.Tensor
    sizes: torch.Tensor


def encodings(
    edge_index: torch.Tensor,
    batch: torch.Tensor | None = None,
    num_nodes: int | None = None,
    *,
    max_distance: int,
    max_num_nodes: int | None = None,
    batch_size: int | None = None,
) -> Encodings:
    """Return spatial positions and edge paths of unweighted graphs, in the layout of PyTorch
    Geometric.

    Args:
        edge_index: (2, edges) of int64 or int32, as for `from_edge_index`.
        batch: (num_nodes,), the graph of each vertex, ascending; None: one graph.
        num_nodes: the vertices of all graphs; None: as `batch` or `edge_index` shows.
        max_distance: the most edges that are told apart, at least 1.
        max_num_nodes: n of the result; None: the vertices of the largest graph.
        batch_size: the number of graphs; None: that which `batch` shows.

    Returns:
        (batch, n, n) spatial positions, (batch, n, n, max_distance) edge paths, and the sizes.

    Raises:
        InputError: as for `from_edge_index`; a `max_distance` that is no integer from 1 on.
        TooLargeError: the result does not fit the memory of the device.

    Cost:
        A solve with predecessors, and for each pair max_distance + log2(n) lookups and 8
        (max_distance + 12) bytes.

    Source:
        Ying et al., Do Transformers Really Perform Bad for Graph Representation?, NeurIPS 2021,
        section 3.1.

    Examples:
        >>> import torch
        >>> from tri_apsp.interop.graphormer import encodings
        >>> found = encodings(torch.tensor([[0, 1, 2], [1, 2, 3]]), max_distance=2)
        >>> found.spatial_positions[0].tolist()  # 3: no path
        [[0, 1, 2, 2], [3, 0, 1, 2], [3, 3, 0, 1], [3, 3, 3, 0]]
        >>> found.edge_paths[0, 0].tolist()  # the first two edges of the paths from vertex 0
        [[-1, -1], [0, -1], [0, 1], [0, 1]]
    """
    max_distance = as_integer(max_distance, "max_distance", least=1)
    weights, sizes = from_edge_index(
        edge_index,
        None,
        batch,
        num_nodes,
        max_num_nodes=max_num_nodes,
        batch_size=batch_size,
        dtype=torch.int32,
    )
    check_memory(
        weights.shape[-1],
        len(sizes),
        torch.int64,
        weights.device,
        matrices=max_distance + _MATRICES,
    )
    result = shortest_paths(weights, sizes=sizes, check=False, predecessors=True)
    assert result.predecessors is not None
    predecessors = result.predecessors.to(torch.int64)
    n = weights.shape[-1]
    vertex = torch.arange(n, device=weights.device)
    reachable = (predecessors >= 0) | (
        (vertex[:, None] == vertex) & (vertex < sizes[:, None])[:, :, None]
    )
    distances = torch.where(reachable, result.distances.to(torch.int64), max_distance + 1)
    paths = _edge_paths(
        predecessors,
        distances,
        reachable,
        _first_parallel_edges(edge_index, batch, weights),
        max_distance,
    )
    outside = vertex >= sizes[:, None]
    positions = torch.where(reachable, distances.clamp(max=max_distance), max_distance + 1)
    positions.masked_fill_(outside[:, :, None] | outside[:, None, :], max_distance + 2)
    return Encodings(positions, paths, sizes)


def features_along(edge_paths: torch.Tensor, edge_features: torch.Tensor) -> torch.Tensor:
    """Return the features of the edges along each path, and zeros after its last edge.

    Args:
        edge_paths: (batch, n, n, max_distance) of int64, see Encodings.
        edge_features: (edges, features).

    Returns:
        (batch, n, n, max_distance, features) of the dtype of `edge_features`, by which it is
        differentiable. With weights w (max_distance, features), the edge encoding c of the paper is
        `(features * w).sum((-1, -2)) / spatial_positions.clamp(min=1)`.

    Cost:
        A value for each feature of each of max_distance edges of each pair of vertices.

    Source:
        Ying et al., NeurIPS 2021, section 3.1.

    Examples:
        >>> import torch
        >>> from tri_apsp.interop.graphormer import encodings, features_along
        >>> found = encodings(torch.tensor([[0, 1], [1, 2]]), max_distance=2)
        >>> features = torch.tensor([[10.0], [20.0]])  # one for each edge
        >>> features_along(found.edge_paths, features)[0, 0, 2].tolist()
        [[10.0], [20.0]]
    """
    none = edge_features.new_zeros((1, *edge_features.shape[1:]))
    return torch.cat((none, edge_features))[edge_paths + 1]  # -1 is the first row


def _first_parallel_edges(
    edge_index: torch.Tensor, batch: torch.Tensor | None, weights: torch.Tensor
) -> torch.Tensor:
    """Return the first column of `edge_index` with each edge, (batch, n, n) of int64."""
    graphs, n, _ = weights.shape
    edges = edge_index.shape[1]
    first = torch.full((graphs * n * n,), edges, device=weights.device)
    if batch is None:
        batch = torch.zeros(n, dtype=torch.int64, device=weights.device)
    index = matrix_indices(edge_index, batch, n)
    first.scatter_reduce_(0, index, torch.arange(edges, device=weights.device), "amin")
    return first.view(graphs, n, n)


def _edge_paths(
    predecessors: torch.Tensor,
    distances: torch.Tensor,
    reachable: torch.Tensor,
    edges: torch.Tensor,
    max_distance: int,
) -> torch.Tensor:
    """Return the edges of each path from its first on; all are (batch, n, n)."""
    graphs, n, _ = predecessors.shape
    paths = torch.full((graphs, n, n, max_distance), -1, device=predecessors.device)
    source = torch.arange(n, device=predecessors.device)[:, None]
    before = torch.where(predecessors >= 0, predecessors, source)
    vertex = torch.arange(n, device=predecessors.device).expand(graphs, n, n).contiguous()
    # From far vertices to the last before them that is near enough: each round doubles how far a
    # path is followed.
    nearer = torch.where(reachable & (distances > max_distance), before, vertex)
    for _ in range(max(1, n).bit_length()):
        nearer = nearer.gather(2, nearer)
    vertex, flat = nearer, edges.flatten(1)
    for _ in range(max_distance):
        previous = before.gather(2, vertex)
        edge = flat.gather(1, (previous * n + vertex).flatten(1)).view(graphs, n, n)
        moves = reachable & (previous != vertex)
        item = torch.where(moves, distances.gather(2, vertex) - 1, 0)
        paths.scatter_reduce_(
            3, item.unsqueeze(3), torch.where(moves, edge, -1).unsqueeze(3), "amax"
        )
        vertex = torch.where(moves, previous, vertex)
    return paths
