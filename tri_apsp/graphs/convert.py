"""Dense weights from the graph containers of other libraries: NumPy, SciPy, NetworkX."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from tri_apsp.arguments import as_tensor
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.cast import cast_weights, widen
from tri_apsp.graphs.graph import EdgeList
from tri_apsp.memory import check_memory
from tri_apsp.messages import reason_of, shown, warn_of_attribute
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name, no_edge, remedy_for

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import sparray, spmatrix


_SPARSE_FORMATS = ("coo", "csr", "csc", "lil", "dok", "bsr", "dia")


def from_numpy(
    array: npt.NDArray[Any],
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    *,
    missing: float | None = None,
) -> torch.Tensor:
    """Return the dense weights that a NumPy array holds: entry [i, j] is the weight of the edge i
    -> j.

    An adjacency matrix in which 0 means no edge, as NetworkX and SciPy make them, needs
    `missing=0`.

    Args:
        array: (n, n) or (batch, n, n) real numbers. No edge is inf in floats and `no_edge(dtype)`
            in int16, int32 and int64; a masked entry of a masked array is no edge as well. In an
            array of bool, True is an edge of weight 1 and False is no edge.
        dtype: float32, float64, int16, int32 or int64; None keeps that of `array`, which must then
            be one of these, or takes float32 for bool.
        device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.
        missing: another value that means no edge, such as 0 or NaN; None: there is none.

    Returns:
        A new tensor of the shape of `array`, which shares no memory with it; its diagonal is 0
        where it was not negative.

    Warns:
        RoundingWarning: once, if an integer is not exact in a float dtype, such as 16777217 in
            float32.

    Raises:
        InputError: another shape; complex numbers or objects; another dtype of `array` without the
            argument `dtype`; NaN or -inf; a fraction where `dtype` is an integer.
        DistanceRangeError: a value that `dtype` cannot hold.
        TooLargeError: the result does not fit the memory of `device`.

    Cost:
        O(n^2); workspace of up to two copies of `array`.

    Examples:
        >>> import numpy as np
        >>> import torch
        >>> from tri_apsp import from_numpy
        >>> adjacency = np.array([[0, 3, 0], [0, 0, -1], [2, 0, 0]])  # 0 means no edge
        >>> from_numpy(adjacency, torch.float32, missing=0)
        tensor([[ 0.,  3., inf],
                [inf,  0., -1.],
                [ 2., inf,  0.]])
    """
    if not isinstance(array, np.ndarray):
        raise InputTypeError(
            f"`array` must be a NumPy array, but is a {type(array).__name__}; wrap it in "
            "np.asarray, or give a SciPy matrix to from_scipy."
        )
    check_missing(missing)
    target = dtype_of(array.dtype, dtype, "`array`")
    place = resolve(device)
    if array.ndim in (2, 3):
        check_memory(array.shape[-1], array.shape[0] if array.ndim == 3 else 1, target, place)
    # Masked and missing entries become 0 first, since their values are arbitrary and must not
    # decide the dtype.
    numbers, absent = np.ma.getdata(array), np.ma.getmask(array)
    if numbers.dtype == np.bool_:
        numbers, absent = np.ones(numbers.shape, np.float32), absent | ~numbers
    if missing is not None:
        absent = absent | (np.isnan(numbers) if missing != missing else numbers == missing)
    if absent.any():
        numbers = np.where(absent, numbers.dtype.type(0), numbers)
    kept = np.array(numbers if numbers.dtype.name in DTYPES_BY_NAME else widen(numbers), order="C")
    kept[absent] = no_edge(DTYPES_BY_NAME[kept.dtype.name])
    result = cast_weights(as_tensor(kept, "array"), target, "array").to(place)
    result.diagonal(dim1=-2, dim2=-1).clamp_(max=0)
    return result


def check_missing(missing: object) -> None:
    """Refuse a value for no edge that is neither a number nor None."""
    if missing is not None and (not isinstance(missing, Real) or isinstance(missing, bool)):
        raise InputTypeError(
            f"`missing` must be a number, but is {shown(missing)}; give the value that means no "
            "edge, such as 0."
        )


def from_scipy(
    matrix: sparray | spmatrix, dtype: torch.dtype | None = None, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Return the dense weights of a SciPy sparse matrix: every stored entry is an edge, every other
    pair is no edge.

    Args:
        matrix: (n, n), in any format; not changed. A stored zero is an edge of weight 0, but no
            edge in the formats bsr and dia, which pad with zeros. A stored inf, or no_edge(dtype)
            in int16, int32 and int64, is no edge. Of several entries at one place the smallest
            counts (SciPy would add them up). In a matrix of bool, a stored True is an edge of
            weight 1, and a stored False is no edge.
        dtype: float32, float64, int16, int32 or int64; None keeps that of `matrix`, which must then
            be one of these, or takes float32 for bool.
        device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.

    Returns:
        A new (n, n) tensor; its diagonal is 0 where no negative entry is stored.

    Warns:
        RoundingWarning: once, if an integer is not exact in a float dtype, such as 16777217 in
            float32.

    Raises:
        InputError: as for `from_numpy`; a matrix that is not sparse, or is damaged.
        DistanceRangeError: a value that `dtype` cannot hold.
        TooLargeError: the result does not fit the memory of `device`.

    Cost:
        O(n^2 + entries); workspace of a few values for each entry.

    Examples:
        >>> import scipy.sparse
        >>> from tri_apsp import from_scipy
        >>> entries = [3.0, -1.0, 0.0], ([0, 1, 2], [1, 2, 0])  # the 0 is stored: an edge
        >>> from_scipy(scipy.sparse.coo_array(entries, shape=(3, 3))).tolist()
        [[0.0, 3.0, inf], [inf, 0.0, -1.0], [0.0, inf, 0.0]]
    """
    untyped: Any = matrix  # SciPy's annotations lack the dtype of these two base classes
    edges = edges_of_sparse(untyped, "`matrix`")
    return edges.to_weights(dtype_of(untyped.dtype, dtype, "`matrix`"), device)


def from_networkx(
    graph: nx.Graph[Any],
    weight: str | None = "weight",
    nodelist: Iterable[Hashable] | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    *,
    sparse: bool = False,
) -> Any:
    """Return the weights of a NetworkX graph, directed or not, with or without parallel edges.

    Args:
        graph: an edge of an undirected graph counts in both directions; of parallel edges the
            lightest counts.
        weight: the edge attribute that holds the weight; an edge without it weighs 1. None: every
            edge weighs 1.
        nodelist: the nodes that become vertices 0, 1, ..., each once; None takes
            `list(graph.nodes)`. Edges of other nodes are left out.
        dtype: float32, float64, int16, int32 or int64; never derived from the weights, which are
            Python numbers.
        device: of the result: "auto", "cpu", "cuda", "cuda:N" or a torch.device.
        sparse: True: return a sparse graph, whose memory does not grow with n^2. Its
            `by_source.rows` and `Paths.rows` count the edges as list(graph.edges) does.

    Returns:
        A new (n, n) tensor; its diagonal is 0 where no loop is negative. With `sparse` a
        SparseGraph.

    Warns:
        RoundingWarning: once, if an integer is not exact in a float dtype, such as 16777217 in
            float32.
        ApspWarning: no edge has the attribute, and it is not "weight".

    Raises:
        InputError: another kind of graph; a node that is listed twice or is not in the graph; a
            weight that is not a real number, is NaN or -inf, or is a fraction where `dtype` is an
            integer.
        DistanceRangeError: a weight that `dtype` cannot hold.
        TooLargeError: the result does not fit the memory of `device`.

    Cost:
        A loop of Python over the edges, and O(n^2).

    Examples:
        >>> import networkx as nx
        >>> from tri_apsp import from_networkx
        >>> graph = nx.Graph()
        >>> graph.add_weighted_edges_from([("a", "b", 3), ("b", "c", 1.5)])
        >>> from_networkx(graph, nodelist=["a", "b", "c"])
        tensor([[0.0000, 3.0000,    inf],
                [3.0000, 0.0000, 1.5000],
                [   inf, 1.5000, 0.0000]])
    """
    if isinstance(graph, type) or not all(
        hasattr(graph, name) for name in ("nodes", "edges", "is_directed")
    ):
        raise InputTypeError(
            f"`graph` must be a NetworkX graph, but is a {type(graph).__name__}; build one with "
            "networkx.Graph."
        )
    if weight is not None and not isinstance(weight, str):
        raise InputTypeError(
            f"`weight` must be the name of an edge attribute, but is {weight!r}; give a str, or "
            "None."
        )
    nodes = list(graph.nodes if nodelist is None else nodelist)
    index = {node: position for position, node in enumerate(nodes)}
    if len(index) < len(nodes):
        twice = next(node for position, node in enumerate(nodes) if index[node] != position)
        raise InputError(
            f"`nodelist` must list each node once, but repeats {twice!r}; remove the repetition."
        )
    for node in nodes:
        if node not in graph:
            raise InputError(
                f"`nodelist` must list nodes of the graph, but {node!r} is not in it; add it or "
                "leave it out."
            )
    rows = [
        (index[source], index[target], _number(attributes.get(weight, 1), source, target), number)
        for number, (source, target, attributes) in enumerate(graph.edges(data=True))
        if source in index and target in index
    ]
    has_values = any(weight in data for _, _, data in graph.edges(data=True))
    warn_of_attribute(weight, len(rows), has_values=has_values)
    sources, targets, weights, numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
    ends = np.array(sources, np.int64), np.array(targets, np.int64)
    places = np.array(numbers, np.int64)
    edges = EdgeList(len(nodes), *ends, np.array(weights, object), rows=places)
    edges = edges if graph.is_directed() else edges.both_ways()
    if sparse:
        from tri_apsp.graphs.sparse import sparse_graph  # which imports this module

        return sparse_graph(edges, dtype=dtype, device=resolve(device))
    return edges.to_weights(dtype, device)


def _number(value: object, source: object, target: object) -> float | int:
    if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)):
        number = int(value) if isinstance(value, Integral) else float(value)
        if -sys.float_info.max <= number <= sys.float_info.max or number == float("inf"):
            return number
    raise InputError(
        f"edge weights must be real numbers that float64 can hold, and neither NaN nor -inf, but "
        f"edge ({source!r}, {target!r}) has {value!r}; correct it, or name another attribute in "
        "`weight`."
    )


def edges_of_sparse(matrix: Any, name: str) -> EdgeList:
    """Return the stored entries of a sparse matrix as edges, as `from_scipy` does; error messages
    call the matrix `name`.

    Raises:
        InputError: for a matrix that is not square, sparse and real, or is damaged; for NaN or
            -inf.
    """
    layout = getattr(matrix, "format", None)
    if layout not in _SPARSE_FORMATS:
        remedy = (
            "convert an array with from_numpy" if layout is None else "convert it with .tocsr()"
        )
        raise InputTypeError(
            f"{name} must be a SciPy sparse matrix in one of the formats "
            f"{', '.join(_SPARSE_FORMATS)}, but is "
            f"{type(matrix).__name__ if layout is None else layout}; {remedy}."
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{name} must be square, but has shape {matrix.shape}; add empty rows or columns for "
            "missing vertices."
        )
    _check_real(matrix.dtype, name)
    check_format(matrix, name)
    # tocoo keeps several entries at one place; a conversion to csr would add them up.
    entries = matrix.tocoo(copy=False)
    if layout in ("bsr", "dia"):
        entries.eliminate_zeros()  # their padding; what `matrix` stores stays
    return edges_of_entries(matrix.shape[0], entries.row, entries.col, entries.data)


def check_format(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix of SciPy whose arrays do not fit each other, before SciPy converts it,
    which reads and writes beyond its memory then.

    Raises:
        InputError: it is damaged.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        try:
            matrix.check_format(full_check=True)
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # whose differences may overflow
                raise ValueError("its offsets must rise")
        except ValueError as error:
            raise InputError(
                f"{name} must be a valid sparse matrix, but is not: {reason_of(error)}; build it "
                "anew."
            ) from None


def edges_of_entries(
    n: int, rows: npt.NDArray[Any], columns: npt.NDArray[Any], weights: npt.NDArray[Any]
) -> EdgeList:
    """Return the entries of a sparse matrix as edges, without those that mean no edge."""
    present = np.ones(len(weights), np.bool_)
    dtype = DTYPES_BY_NAME.get(weights.dtype.name)
    if weights.dtype == np.bool_:
        weights, present = weights.astype(np.int64), weights
    elif dtype is not None and not dtype.is_floating_point:
        present = weights != no_edge(dtype)
    numbers = np.flatnonzero(present)
    return EdgeList(n, rows[present], columns[present], weights[present], rows=numbers)


def dtype_of(
    source: np.dtype[Any],
    requested: torch.dtype | None,
    name: str,
    dtypes: Sequence[torch.dtype] = DTYPES,
) -> torch.dtype:
    """Return the dtype of weights that the caller `requested`, or else that of the array `name`.

    Raises:
        InputError: for another than `dtypes`, or an array that holds no real numbers.
    """
    _check_real(source, name)
    if requested is not None:
        no_edge(requested)  # refuses an unsupported dtype
        return requested
    found = torch.float32 if source == np.bool_ else DTYPES_BY_NAME.get(source.name)
    if found is None or found not in dtypes:
        raise InputError(
            f"{name} must have one of the dtypes {', '.join(map(dtype_name, dtypes))} or bool, but "
            f"has {source.name}; {remedy_for(source)}."
        )
    return found


def _check_real(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind not in "biuf":
        raise InputError(
            f"{name} must hold real numbers, but has dtype {dtype.name}; {remedy_for(dtype)}."
        )
