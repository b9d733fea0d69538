"""Batches of graphs in the layout of PyTorch Geometric: one list of edges for all graphs, and the
graph of each vertex.
"""

from typing import Any

import torch

from tri_apsp.arguments import as_integer, as_tensor, as_vector, check_dtype, check_tensor
from tri_apsp.errors import InputError
from tri_apsp.memory import check_memory
from tri_apsp.semirings import DTYPES, dtype_name, no_edge


def from_edge_index(
    edge_index: torch.Tensor,
    edge_weight: torch.Tensor | None = None,
    batch: torch.Tensor | None = None,
    num_nodes: int | None = None,
    *,
    max_num_nodes: int | None = None,
    batch_size: int | None = None,
    dtype: torch.dtype | None = None,
    check: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return dense weights of the graphs of a batch in the layout of PyTorch Geometric, and their
    sizes.

    Args:
        edge_index: (2, edges) of int64 or int32, the vertices from which and to which each edge
            leads.
        edge_weight: (edges,) of float32, float64, int16, int32 or int64, on the same device; None:
            every edge weighs 1.
        batch: (num_nodes,) of int64 or int32, the graph of each vertex, in ascending order; None:
            all are of the first graph.
        num_nodes: the vertices of all graphs; None: as many as `batch` has, or up to the last one
            that has an edge.
        max_num_nodes: n of the result, at least the vertices of the largest graph; None: as many as
            that has, for which the host blocks.
        batch_size: the number of graphs; None: that which `batch` shows, for which the host blocks.
        dtype: of the weights if `edge_weight` is None; None: float32. In int16, small graphs are
            solved fastest.
        check: check the values of `edge_index` and `batch`. With False, and with `num_nodes` or
            `batch`, `max_num_nodes` and `batch_size`, the host does not block; values that break
            a rule give an undefined result, or an error of torch.

    Returns:
        The weights and the sizes of the graphs.

        - Weights: (batch_size, n, n) on the device of `edge_index`: of parallel edges the lightest,
          no_edge where there is none, and at most 0 on the diagonal. Differentiable by
          `edge_weight`; of parallel edges of one weight, each gets a share. Values of the weights
          are not checked, which `shortest_paths` does; an integer beyond no_edge is no edge.
        - Sizes: (batch_size,) of int64, the vertices of each graph; the rows and columns behind
          them are padding.

    Raises:
        InputError: another shape, dtype or device; a vertex out of range; `batch` is not in
            ascending order; an edge between two graphs; more vertices than `max_num_nodes`, or more
            graphs than `batch_size`.
        TooLargeError: the result does not fit the memory of the device.

    Cost:
        A few passes over the edges and one over the result.

    Examples:
        >>> import torch
        >>> from tri_apsp import from_edge_index, shortest_paths
        >>> edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 4]])
        >>> graph_of = torch.tensor([0, 0, 1, 1, 1])  # two graphs, of 2 and 3 vertices
        >>> weights, sizes = from_edge_index(edges, torch.tensor([5, 6, 7, 8]), graph_of)
        >>> weights.shape, sizes.tolist()
        (torch.Size([2, 3, 3]), [2, 3])
        >>> shortest_paths(weights, sizes=sizes).distances[1, 0].tolist()
        [0, 7, 15]
    """
    edge_index = as_tensor(edge_index, "edge_index")
    edge_weight, batch = as_vector(edge_weight, "edge_weight"), as_vector(batch, "batch")
    _check_tensors(edge_index, edge_weight, batch, dtype)
    _check_counts(batch, num_nodes=num_nodes, max_num_nodes=max_num_nodes, batch_size=batch_size)
    if batch is not None:
        num_nodes = len(batch)
    elif num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    if check:
        _check_values(edge_index, batch, num_nodes)
    graphs = 1 if batch is None and batch_size is None else batch_size
    largest = max_num_nodes
    if check or graphs is None or largest is None:
        shown, vertices = _extent(batch, num_nodes)
        graphs = shown if graphs is None else as_integer(graphs, "batch_size", shown)
        largest = vertices if largest is None else as_integer(largest, "max_num_nodes", vertices)
    dtype = edge_weight.dtype if edge_weight is not None else dtype or torch.float32
    if not torch.compiler.is_compiling():  # which cannot trace it
        check_memory(largest, graphs, dtype, edge_index.device)
    shape = graphs, largest, largest
    weights = torch.full(shape, no_edge(dtype), dtype=dtype, device=edge_index.device)
    if batch is None:
        batch = torch.zeros(num_nodes, dtype=torch.int64, device=edge_index.device)
    sizes = torch.zeros(graphs, dtype=torch.int64, device=edge_index.device)
    weights.diagonal(dim1=1, dim2=2).fill_(0)
    if weights.numel() and edge_index.numel():
        weights = _with_edges(weights, edge_index, edge_weight, batch)
    return weights, sizes.index_add_(
        0, batch.to(torch.int64), torch.ones_like(batch, dtype=torch.int64)
    )


def _check_values(edge_index: torch.Tensor, batch: torch.Tensor | None, vertices: int) -> None:
    """Check that edges join vertices of one graph, and that graphs ascend from 0."""
    outside = (edge_index < 0) | (edge_index >= vertices)
    if outside.any():
        raise InputError(
            f"`edge_index` must hold vertices in [0, {vertices}), but one is "
            f"{int(edge_index[outside][0])}; correct that edge."
        )
    if batch is None or not len(batch):
        return
    if batch[0] < 0 or (batch[1:] < batch[:-1]).any():
        raise InputError(
            "`batch` must hold graphs in ascending order from 0 on, but does not; count them from "
            "0, and sort the vertices by graph."
        )
    ends = batch[edge_index.to(torch.int64)]
    crossing = int((ends[0] != ends[1]).sum())
    if crossing:
        raise InputError(
            f"`edge_index` must join vertices of the same graph, but {crossing} of its edges lead "
            "from one graph to another; remove them, or correct `batch`."
        )


def _extent(batch: torch.Tensor | None, vertices: int) -> tuple[int, int]:
    """Return the number of graphs, and the vertices of the largest."""
    if batch is None or not vertices:
        return min(1, vertices), vertices
    return int(batch[-1]) + 1, int(_places(batch).max()) + 1


def _places(batch: torch.Tensor) -> torch.Tensor:
    """Return the place of each vertex in its graph."""
    return torch.arange(len(batch), device=batch.device) - torch.searchsorted(batch, batch)


def matrix_indices(edge_index: torch.Tensor, batch: torch.Tensor, n: int) -> torch.Tensor:
    """Return the index of each edge in the elements of weights (graphs, n, n)."""
    place = _places(batch)
    source, target = edge_index.to(torch.int64)
    return (batch[source].to(torch.int64) * n + place[source]) * n + place[target]


def _with_edges(
    weights: torch.Tensor,
    edge_index: torch.Tensor,
    edge_weight: torch.Tensor | None,
    batch: torch.Tensor,
) -> torch.Tensor:
    """Return the weights (graphs, n, n), at most those of the edges; in their memory, unless an
    edge has a gradient.
    """
    index = matrix_indices(edge_index, batch, weights.shape[-1])
    values = weights.new_ones(len(index)) if edge_weight is None else edge_weight
    flat = weights.view(-1)
    scatter = flat.scatter_reduce if values.requires_grad else flat.scatter_reduce_
    return scatter(0, index, values, "amin").view(weights.shape)


def _check_counts(batch: torch.Tensor | None, **counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None:
            as_integer(value, name)
    if batch is not None and counts["num_nodes"] not in (None, len(batch)):
        raise InputError(
            f"`num_nodes` must be {len(batch)}, the length of `batch`, but is "
            f"{counts['num_nodes']}; leave it out."
        )


def _check_tensors(
    edge_index: Any, edge_weight: Any, batch: Any, dtype: torch.dtype | None
) -> None:
    """Check types, shapes, dtypes and devices."""
    indices = (torch.int64, torch.int32), "call .to(torch.int64)"
    given: dict[str, tuple[Any, ...]] = {
        "edge_index": (edge_index, *indices),
        "edge_weight": (edge_weight, DTYPES),
        "batch": (batch, *indices),
    }
    for name, (tensor, *allowed) in given.items():
        if tensor is None and name != "edge_index":
            continue
        check_dtype(check_tensor(tensor, name), name, *allowed)
        if tensor.device != edge_index.device:
            raise InputError(
                f"`{name}` must be on the device of `edge_index`, {edge_index.device}, but is on "
                f"{tensor.device}; move it."
            )
    if edge_index.dim() != 2 or len(edge_index) != 2:
        raise InputError(
            f"`edge_index` must have shape (2, edges), but has {tuple(edge_index.shape)}; "
            "transpose it if need be."
        )
    if batch is not None and batch.dim() != 1:
        raise InputError(
            f"`batch` must have shape (num_nodes,), but has {tuple(batch.shape)}; flatten it."
        )
    if edge_weight is None:
        if dtype is not None:
            no_edge(dtype)  # refuses other dtypes
        return
    if edge_weight.shape != edge_index.shape[1:]:
        raise InputError(
            f"`edge_weight` must have shape ({edge_index.shape[1]},), one weight for each edge, "
            f"but has {tuple(edge_weight.shape)}; choose one value of each edge."
        )
    if dtype is not None and dtype != edge_weight.dtype:
        raise InputError(
            f"`dtype` must be that of `edge_weight`, {dtype_name(edge_weight.dtype)}, but is "
            f"{dtype_name(dtype)}; leave it out."
        )
