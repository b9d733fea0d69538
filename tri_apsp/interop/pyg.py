"""Transforms of PyTorch Geometric: the distances between all vertices of a graph, and the encodings
of Graphormer.

What a transform adds is packed, n * n values for each graph in row order, so that a data loader
joins graphs of different sizes; `padded` returns it as (batch, n, n, ...).
"""

from typing import Any

import torch
from torch_geometric.data import Batch, HeteroData
from torch_geometric.transforms import BaseTransform

from tri_apsp.api import pack, shortest_paths, unpack
from tri_apsp.arguments import as_integer
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs import from_edge_index
from tri_apsp.interop.graphormer import encodings
from tri_apsp.messages import shown


class ShortestPathDistances(BaseTransform):  # type: ignore[misc]
    """Add the distances between all vertices of a graph, to `Data` or in one call to all graphs of
    a `Batch`.

    Args:
        max_distance: larger distances, and those without a path, become this, rounded down for
            integers; None: they stay, and no path is no_edge of the dtype, which is inf for floats.
        edge_weight: the attribute with the weights of the edges, (edges,) or (edges, 1), as
            from_edge_index takes them; None: each weighs 1.
        name: the attribute to add: (sum of n * n,) of the dtype of the weights, or float32.

    Raises:
        InputError: a `max_distance` that is not above 0; a `name` with "index", "batch", "face" or
            "adj" in it, since a data loader changes such attributes. When it is applied, what
            from_edge_index and shortest_paths raise.

    Cost:
        One call of shortest_paths for all graphs of a `Batch`, padded to the largest.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from tri_apsp.interop.pyg import ShortestPathDistances, padded
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> data = ShortestPathDistances(max_distance=5)(data)
        >>> distances, sizes = padded(data, "shortest_path_distances", fill=5)
        >>> distances.tolist(), sizes.tolist()
        ([[[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [5.0, 5.0, 0.0]]], [3])
    """

    def __init__(
        self,
        max_distance: float | None = None,
        *,
        edge_weight: str | None = None,
        name: str = "shortest_path_distances",
    ) -> None:
        if max_distance is not None and (
            not isinstance(max_distance, (int, float)) or not max_distance > 0
        ):
            raise InputError(
                f"`max_distance` must be greater than 0, but is {shown(max_distance)}; give such a "
                "number, or None."
            )
        if any(word in name for word in ("index", "batch", "face", "adj")):
            raise InputError(
                "`name` must not contain 'index', 'batch', 'face' or 'adj', since a data loader "
                f"changes the values of such attributes, but is {name!r}; choose another."
            )
        self.max_distance, self.edge_weight, self.name = max_distance, edge_weight, name

    def forward(self, data: Any) -> Any:
        """Return the data with the attribute; BaseTransform passes a shallow copy, so that the
        caller's data are unchanged.

        Args:
            data: `Data` or `Batch`, with `edge_index`, and the attribute of the weights if one was
                named.

        Raises:
            InputError: as for from_edge_index and shortest_paths; the data lack edges, or the
                attribute of the weights.
        """
        edge_index = _attribute(data, "edge_index")
        edge_weight = None if self.edge_weight is None else _attribute(data, self.edge_weight)
        shape = getattr(edge_weight, "shape", ())
        if edge_weight is not None and shape[1:] == (1,):  # as data have edge_attr
            edge_weight = edge_weight.flatten()
        weights, sizes = from_edge_index(edge_index, edge_weight, **_graphs(data))
        distances = shortest_paths(weights, sizes=sizes).distances
        if self.max_distance is not None:
            most = (
                self.max_distance
                if distances.is_floating_point()
                else min(int(self.max_distance), torch.iinfo(distances.dtype).max)
            )
            distances = distances.clamp(max=most)
        _add(data, self.name, *pack(distances, sizes))
        return data


class GraphormerEncodings(BaseTransform):  # type: ignore[misc]
    """Add `spatial_positions` and `edge_paths`, to `Data` or in one call to all graphs of a
    `Batch`; see graphormer.Encodings.

    They are (sum of n * n,) and (sum of n * n, max_distance) of int64. An edge path counts the
    edges of its own graph, so that a data loader can join graphs; `padded` counts those
    of the batch.

    Args:
        max_distance: the most edges of a path that are told apart, at least 1.

    Raises:
        InputError: a `max_distance` that is no integer from 1 on. When it is applied, what
            from_edge_index raises, or edges of a batch that are not grouped by graph.

    Cost:
        As for `graphormer.encodings`, for all graphs of a `Batch` in one call.

    Source:
        Ying et al., NeurIPS 2021, section 3.1.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> from tri_apsp.interop.pyg import GraphormerEncodings, padded
        >>> path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> batch = GraphormerEncodings(max_distance=2)(Batch.from_data_list([path, path]))
        >>> padded(batch, "spatial_positions", fill=4)[0][1].tolist()
        [[0, 1, 2], [3, 0, 1], [3, 3, 0]]
        >>> padded(batch, "edge_paths", fill=-1)[0][1, 0, 2].tolist()
        [2, 3]
    """

    def __init__(self, max_distance: int) -> None:
        self.max_distance = as_integer(max_distance, "max_distance", least=1)

    def forward(self, data: Any) -> Any:
        """Return the data with the attributes, as ShortestPathDistances does.

        Args:
            data: `Data` or `Batch`, with `edge_index`.

        Raises:
            InputError: as for `from_edge_index`; the data lack edges; edges of a batch that are not
                grouped by graph.
        """
        edge_index = _attribute(data, "edge_index")
        found = encodings(edge_index, max_distance=self.max_distance, **_graphs(data))
        positions, offsets = pack(found.spatial_positions, found.sizes)
        first = _edge_offsets(data, len(found.sizes))[:, None, None, None]
        paths = torch.where(found.edge_paths >= 0, found.edge_paths - first, -1)
        columns = [pack(column, found.sizes)[0] for column in paths.unbind(3)]
        _add(data, "spatial_positions", positions, offsets)
        _add(data, "edge_paths", torch.stack(columns, 1), offsets)
        return data


def padded(
    data: Any, name: str, *, fill: float | int, edges: bool | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a transform added, padded to the largest graph, and the sizes of the graphs.

    Args:
        data: `Data`, or a `Batch` that a data loader made.
        name: the attribute: (sum of n * n,) or (sum of n * n, columns).
        fill: the value of padding.
        edges: whether the attribute holds edges, counted from 0 in each graph: they are counted
            through the batch then. None: if it is "edge_paths".

    Returns:
        The matrices, (batch, n, n) or (batch, n, n, columns) of the dtype of the attribute, and the
        sizes of the graphs, (batch,) of int64.

    Raises:
        InputError: the attribute has other than n * n values for each graph of n vertices, as after
            vertices were removed; a `fill` that its dtype cannot hold; the data lack the attribute;
            edges that are not grouped by graph.

    Cost:
        A copy; the host blocks until it has the sizes, once for each column.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Batch, Data
        >>> from tri_apsp.interop.pyg import ShortestPathDistances, padded
        >>> edges = torch.tensor([[0], [1]])
        >>> graphs = [Data(edge_index=edges, num_nodes=n) for n in (2, 3)]
        >>> batch = Batch.from_data_list(list(map(ShortestPathDistances(9), graphs)))
        >>> distances, sizes = padded(batch, "shortest_path_distances", fill=9)
        >>> distances.shape, sizes.tolist()
        (torch.Size([2, 3, 3]), [2, 3])
    """
    values = _attribute(data, name)
    sizes = (
        torch.bincount(data.batch, minlength=data.num_graphs)
        if isinstance(data, Batch)
        else torch.tensor([data.num_nodes], device=values.device)
    )
    offsets = torch.nn.functional.pad(torch.cumsum(sizes * sizes, 0), (1, 0))
    if values.dim() not in (1, 2) or len(values) != int(offsets[-1]):
        raise InputError(
            f"the attribute {name!r} must hold {int(offsets[-1])} values, n * n for each graph of "
            f"n vertices, but has shape {tuple(values.shape)}; apply the transform again after "
            "vertices were removed."
        )
    columns = values[:, None] if values.dim() == 1 else values
    matrices = torch.stack(
        [unpack(column.contiguous(), offsets, fill=fill)[0] for column in columns.unbind(1)], 3
    )
    if name == "edge_paths" if edges is None else edges:
        first = _edge_offsets(data, len(sizes))[:, None, None, None]
        matrices = torch.where(matrices >= 0, matrices + first, matrices)
    return (matrices[..., 0] if values.dim() == 1 else matrices), sizes


def _attribute(data: Any, name: str) -> Any:
    """Return an attribute of the data.

    Raises:
        InputError: they lack it, or are of several kinds of vertices.
    """
    if not hasattr(data, "to_dict"):
        raise InputTypeError(
            f"`data` must be Data or a Batch of them, but is {shown(data)}; give Data, or of a "
            "list Batch.from_data_list(data)."
        )
    if isinstance(data, HeteroData):
        raise InputError(
            f"`data` must be Data or a Batch of them, but are {type(data).__name__}; give the "
            "to_homogeneous() of each graph."
        )
    found = getattr(data, name, None)
    if found is not None:
        return found
    remedy = "set it, or name another"
    if name == "edge_index" and getattr(data, "adj_t", None) is not None:
        remedy = (
            "apply this before ToSparseTensor, or set data.edge_index = "
            "torch_geometric.utils.to_edge_index(data.adj_t)[0].flip(0)"
        )
    given = ", ".join(data.to_dict()) or "none"
    raise InputError(f"`data` must have the attribute {name!r}, but have {given}; {remedy}.")


def _graphs(data: Any) -> dict[str, Any]:
    """Return which graph each vertex belongs to, as arguments of `from_edge_index`."""
    of_batch = (
        {"batch": data.batch, "batch_size": int(data.num_graphs)} if isinstance(data, Batch) else {}
    )
    return {"num_nodes": data.num_nodes, **of_batch}


def _edge_offsets(data: Any, graphs: int) -> torch.Tensor:
    """Return the first edge of each graph, (graphs,) of int64."""
    if not isinstance(data, Batch):
        return torch.zeros(1, dtype=torch.int64, device=data.edge_index.device)
    graph = data.batch[data.edge_index[0]]
    if bool((graph[1:] < graph[:-1]).any()):
        raise InputError(
            "the edges of a batch must be grouped by graph, in the order of the graphs, but are "
            "not; make the Batch of the graphs again, or sort its edges."
        )
    counts = torch.bincount(graph, minlength=graphs)
    return torch.cumsum(counts, 0) - counts


def _add(data: Any, name: str, values: torch.Tensor, offsets: torch.Tensor) -> None:
    """Add an attribute, such that a batch can be taken apart again."""
    data[name] = values
    if getattr(data, "_slice_dict", None) is not None:
        data._slice_dict = {**data._slice_dict, name: offsets.cpu()}
        data._inc_dict = {**data._inc_dict, name: torch.zeros(len(offsets) - 1, dtype=torch.int64)}
