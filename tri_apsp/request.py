"""What a caller asked of shortest_paths: arguments are checked here, once; `offsets` by
plan_packed.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, Union, get_args

import numpy as np
import torch

from tri_apsp.arguments import (
    DenseBatch,
    Vertices,
    as_float_or_inf,
    as_tensor,
    as_vector,
    byte_count,
    check_config,
    check_dtype,
    check_flags,
    check_method,
    check_options,
    check_out_tensor,
    check_overwrite,
    check_tensor,
    check_weights,
    farthest_of,
    numbers_of,
    sources_of,
    with_sizes,
)
from tri_apsp.configs import Config, MethodName, current_method
from tri_apsp.device import Devices, resolve_all
from tri_apsp.dispatch import needs_operation, operation_error
from tri_apsp.elimination.restricted import RestrictedGraph
from tri_apsp.errors import InputError, InputTypeError, error_for
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    DenseGraph,
    SparseGraph,
    cast_weights,
    check_output,
    is_sparse,
    sparse_graph,
)
from tri_apsp.graphs.files import to_path
from tri_apsp.graphs.labels import Labels
from tri_apsp.graphs.npy_file import NpyFile, weights_file
from tri_apsp.memory import fits_memory
from tri_apsp.messages import shown
from tri_apsp.plan import Checkpoint, NegativeCycles, Options
from tri_apsp.semirings import DTYPES, solved_dtype
from tri_apsp.shared_memory import overlaps
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS, ROWS, RowMethod

MethodChoice: TypeAlias = Literal["auto", MethodName, "johnson", RowMethod]
"""The methods of shortest_paths."""

_SPARSE_METHODS = (JOHNSON, *ROW_METHODS)
METHOD_CHOICES: tuple[str, ...] = ("auto", *get_args(MethodName), *_SPARSE_METHODS)


Place: TypeAlias = Union[torch.Tensor, str, "os.PathLike[str]"]
"""A tensor, or the path of a file."""
BlockRows: TypeAlias = Place | Sequence[torch.Tensor]
"""Weights (n, n) in memory or in a `.npy` file, or in blocks of rows."""
Matrix: TypeAlias = "torch.Tensor | NpyFile | tuple[torch.Tensor, ...]"
"""The same, checked."""


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of shortest_paths, which documents them, checked except for values of weights.

    Attributes:
        weights: dense weights on the device where they are solved; None of a sparse graph, and in
            blocks of rows.
        batch: the dense weights, unless they are packed.
        graph: the sparse graph, on that device.
        matrix: what is solved in blocks of rows, where it was given; else None.
        block_rows_because: why it is; "" if it is not.
        devices: where it is solved; several hold blocks of rows, or share the call.
        unused_devices: how many more were named, which would make the solve of one matrix slower.
        labels: of the vertices of a graph that was read from a file.
        offsets: of packed weights.
        sources: (rows,) of int64 on the CPU; None: all vertices.
        targets: (columns,) of int64 on the CPU; None: all vertices.
        limit: rounded to the dtype of the graph.
        nearest: how many rows are wanted, the distances from so many nearest sources; 0: those from
            each source.
        out: where the distances go; None: a new tensor, or with options.overwrite the weights.
        options: what the caller wants of the distances.
        memory: the bytes that blocks of rows may take on a device; None: what is free.
        checkpoint: where the state of such a solve is kept; None: nowhere.
        name: of the argument that is the graph, for messages.
        restricted: the graph with zones or turns whose larger graph is solved; None: it has none.
        directed: whether each edge counts in one direction; else the graph has both already.
    """

    weights: torch.Tensor | None
    batch: DenseBatch | None
    graph: SparseGraph | None
    matrix: Matrix | None
    block_rows_because: str
    devices: tuple[torch.device, ...]
    unused_devices: int
    labels: Labels | None
    offsets: torch.Tensor | None
    sources: torch.Tensor | None
    targets: torch.Tensor | None
    method: str
    config: Config | None
    limit: float | None
    nearest: int
    out: Place | None
    options: Options
    memory: int | None
    checkpoint: Checkpoint | None
    name: str
    restricted: RestrictedGraph | None
    directed: bool

    @classmethod
    def of(
        cls,
        graph: Any,
        *,
        sources: Vertices | None = None,
        targets: Vertices | None = None,
        directed: bool = True,
        sizes: torch.Tensor | None = None,
        offsets: torch.Tensor | None = None,
        method: str = "auto",
        config: Config | None = None,
        limit: float | None = None,
        nearest: int = 0,
        dtype: torch.dtype | None = None,
        out: Place | Sequence[torch.Tensor] | None = None,
        check: bool = True,
        predecessors: bool = False,
        negative_cycles: NegativeCycles = "raise",
        weight_error: float = 0.0,
        device: Devices | None = None,
        memory: int | str | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        block_rows_because: str = "",
        name: str = "graph",
    ) -> Request:
        """Check the arguments of shortest_paths.

        Args:
            block_rows_because: why the graph is rows of a matrix, in this process or in others;
                "": the arguments decide.
            name: of the argument `graph`.

        Raises:
            InputError: an argument breaks a rule, or does not go with another.
        """
        method = current_method(method)
        sizes, offsets = as_vector(sizes, "sizes"), as_vector(offsets, "offsets")
        check_method(method, METHOD_CHOICES)
        check_config(config)
        check_flags(directed=directed)
        kept, budget = _checkpoint_of(checkpoint), None
        if memory is not None:
            budget = byte_count(memory, "memory")
        labels = restricted = None
        if isinstance(graph, RestrictedGraph):
            if not directed:
                raise InputError(
                    f"`directed=False` does not go with a graph with {graph.restriction}, but is "
                    "given; give it to prepare."
                )
            restricted = graph
            if graph.n or sources is not None or nearest:
                begins = torch.arange(graph.n) if sources is None else sources_of(sources, graph.n)
                sources, every = graph.starts[begins], torch.arange(graph.n)
                targets = every if targets is None else sources_of(targets, graph.n, "targets")
            graph = graph.inner
        if isinstance(graph, DenseGraph):
            graph, labels = graph.weights, graph.labels
        if isinstance(graph, (str, os.PathLike)):
            graph = weights_file(graph, name)
        elif _are_blocks(graph):
            graph = tuple(as_tensor(block, name) for block in graph)
        graph = as_tensor(graph, name)
        is_tensor, is_sparse_graph = isinstance(graph, torch.Tensor), is_sparse(graph)
        home = _home_of(graph)
        devices = home if device is None else resolve_all(device)
        devices = devices[:1] if nearest else devices
        is_matrix = (
            is_tensor
            and not is_sparse_graph
            and graph.dim() == 2
            and all(x is None for x in (sources, targets, limit, sizes, offsets))
            and not (nearest or method in _SPARSE_METHODS)
        )
        named = len(devices)
        if is_matrix and named > 1 and method == "auto" and budget is None and kept is None:
            from tri_apsp.dense.device_count import helpful_devices  # which few calls need

            devices = helpful_devices(graph, devices, config, dtype, predecessors=predecessors)
        if not block_rows_because:
            block_rows_because = _block_rows_because(graph, devices, is_matrix, out, budget, kept)
        is_shared = len(devices) > 1 and not block_rows_because
        is_here = bool(block_rows_because) or home[0] in devices
        overwrite = _is_in_place(out, graph) and is_here  # else the weights are copied first
        if block_rows_because and not (overwrite or out is None or isinstance(out, torch.Tensor)):
            if isinstance(out, (list, tuple)):
                raise InputTypeError(
                    "`out` may be a list only if it has the blocks of `graph`, which are then "
                    "solved in place; give these, one tensor or a path, or leave it out."
                )
            to_path(out, "out", or_tensor=True)
        options = Options(overwrite, check, predecessors, negative_cycles, weight_error)
        check_options(options)
        if block_rows_because or offsets is not None or sizes is not None or overwrite or not check:
            given = {
                "sources": sources is not None,
                "directed=False": not directed,
                "sizes": sizes is not None,
                "offsets": offsets is not None,
                "limit": limit is not None,
                "dtype": dtype is not None,
                "out=graph": overwrite,
                "check=False": not check,
                f"method={method!r}": method in _SPARSE_METHODS,
                "a sparse graph": is_sparse_graph,
            }
            names = {option for option, is_given in given.items() if is_given}
            if block_rows_because:
                _refuse_block_rows(names, method, block_rows_because, is_matrix=is_matrix)
            _refuse_combinations(names)
        if is_shared and is_tensor and needs_operation(graph, sizes):
            raise operation_error("device", "name one device.")
        batch = sparse = matrix = None
        if block_rows_because:
            if is_matrix:
                if overwrite:
                    check_overwrite(graph)
                graph = numbers_of(_converted(graph, dtype, directed=directed), name)
            matrix = graph if isinstance(graph, NpyFile) else _rows_tensors(graph, name)
        elif is_sparse_graph:
            place = None if device is None or is_shared else devices[0]
            sparse = sparse_graph(graph, dtype=dtype, device=place)
            sparse = sparse if directed else sparse.both_ways()
            labels = sparse.labels if restricted is None else restricted.labels
        elif offsets is None:
            if is_tensor:
                graph = _converted(graph, dtype, directed=directed)
            batch = check_weights(graph)
            if graph.device != devices[0] and not is_shared:
                graph = graph.to(devices[0])
                sizes = sizes.to(devices[0]) if isinstance(sizes, torch.Tensor) else sizes
                batch = check_weights(graph)
            if overwrite:
                check_overwrite(graph)
            if sizes is not None:
                batch = with_sizes(batch, sizes, check=check)
        elif is_tensor and not is_shared:
            graph = graph.to(devices[0])
            if isinstance(offsets, torch.Tensor) and offsets.device.type != "cpu":
                offsets = offsets.to(devices[0])
        if weight_error:
            operand: Any = next(x for x in (matrix, sparse, graph) if x is not None)
            operand = operand[0] if isinstance(operand, tuple) else operand
            kind = str(operand.dtype).removeprefix("torch.")
            if not kind.startswith("float"):
                raise InputError(
                    f"`weight_error` needs weights of floats, but they have dtype {kind}; leave it "
                    "out, or convert them."
                )
        request = cls(
            weights=None if is_sparse_graph or block_rows_because else graph,
            batch=batch,
            graph=sparse,
            matrix=matrix,
            block_rows_because=block_rows_because,
            devices=devices,
            unused_devices=named - len(devices),
            labels=labels,
            offsets=offsets,
            sources=None,
            targets=None,
            method=method,
            config=config,
            limit=limit,
            nearest=nearest,
            out=None if overwrite else out,  # type: ignore[arg-type]  # a list is the weights
            options=options,
            memory=budget,
            checkpoint=kept,
            name=name,
            restricted=restricted,
            directed=directed,
        )
        if nearest or sources is not None:
            request = request._with_sources(sources, targets)
        elif limit is not None or targets is not None:
            option = "limit" if limit is not None else "targets"
            raise InputError(f"`{option}` needs `sources`, but there are none; name them.")
        # Planning refuses packed graphs that are no tensor, and what blocks of rows do not take.
        if request.out is not None and not block_rows_because and (is_sparse_graph or is_tensor):
            request.check_out()
        return request

    def _with_sources(self, sources: Vertices | None, targets: Vertices | None) -> Request:
        """Return the request with checked sources, targets and limit."""
        if self.is_batch:
            raise InputError(
                "`sources` need one graph, (n, n), but `graph` is a batch; leave them out."
            )
        vertices = sources_of(sources, self.n)
        limit = farthest_of(self.limit, self.dtype)
        columns = None if targets is None else sources_of(targets, self.n, "targets")
        return dataclasses.replace(self, sources=vertices, targets=columns, limit=limit)

    def check_out(self) -> None:
        """Refuse a tensor of another shape or dtype, and a file that cannot be written."""
        if not isinstance(self.out, torch.Tensor):
            path, extension = check_output(
                to_path(self.out, "out", or_tensor=True), DISTANCE_FORMATS
            )
            dimensions = len(self.shape)
            if dimensions == 1 or (dimensions == 3 and extension == ".csv"):
                raise InputError(
                    f"`out` must be a file that can hold distances {self.shape}, but is "
                    f"{path.name}; give a tensor{', or write .npy' if dimensions == 3 else ''}."
                )
            return
        check_out_tensor(self.out, self.shape, self.dtype)

    @property
    def n(self) -> int:
        """The number of vertices."""
        if self.graph is not None:
            return self.graph.n
        assert self.batch is not None
        return self.batch.n

    @property
    def own_sources(self) -> torch.Tensor | None:
        """The sources, as vertices of the graph that was given."""
        if self.restricted is None or self.sources is None:
            return self.sources
        return self.restricted.owners[self.sources]

    @property
    def graph_count(self) -> int | None:
        """The number of graphs of a batch, padded or packed; None for one graph."""
        if self.offsets is not None:
            return len(self.offsets) - 1
        return self.batch.count if self.batch is not None and self.is_batch else None

    @property
    def rows(self) -> int:
        """The number of rows of distances to solve."""
        if self.nearest:
            return self.nearest
        return self.n if self.sources is None else len(self.sources)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the distances."""
        if self.offsets is not None:
            assert self.weights is not None
            return tuple(self.weights.shape)
        batch = (self.batch.count,) if self.batch is not None and self.is_batch else ()
        return (*batch, self.rows, self.n if self.targets is None else len(self.targets))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that the graph is solved in."""
        return solved_dtype(self._given.dtype)

    @property
    def device(self) -> torch.device:
        return self._given.device

    @property
    def out_there(self) -> torch.Tensor | None:
        """The tensor `out`, if it is where the graph is solved."""
        is_there = isinstance(self.out, torch.Tensor) and self.out.device == self.device
        return self.out if is_there else None  # type: ignore[return-value]

    @property
    def writes_blocks(self) -> bool:
        """Whether blocks of rows go to `out` while a sparse method solves the next ones: to memory
        of the host that is not the device's, or to a `.npy` file.
        """
        if self.out is None or self.nearest or self.rows <= ROWS:
            return False
        if isinstance(self.out, torch.Tensor):
            return self.out.is_cpu and self.device.type != "cpu"
        return Path(self.out).suffix == ".npy"

    @property
    def is_batch(self) -> bool:
        return self.batch is not None and self.batch.batched

    @property
    def needs_sparse(self) -> bool:
        """Whether only a sparse plan has what was asked for."""
        return self.method in _SPARSE_METHODS or self.limit is not None or self.nearest > 0

    @property
    def needs_dense(self) -> bool:
        """Whether only a dense plan has what was asked for."""
        sized = self.batch is not None and self.batch.sizes is not None
        return sized or self.options.overwrite or not self.options.check

    @cached_property
    def by_edges(self) -> SparseGraph:
        """The graph by its edges; those of dense weights are found once."""
        return self.graph if self.graph is not None else sparse_graph(self.weights)

    def as_batch(self) -> DenseBatch:
        """Return the graph as dense weights; those of a sparse graph are made."""
        return self.batch if self.batch is not None else check_weights(self.by_edges.dense())

    @property
    def _given(self) -> torch.Tensor | SparseGraph:
        given = self.weights if self.graph is None else self.graph
        assert given is not None
        return given


_ROWS = ("sources", "limit")
# What does not go with each argument, and why.
_EXCLUSIVE: dict[str, tuple[tuple[str, ...], str]] = {
    "offsets": (
        (*_ROWS, "sizes", "directed", "dtype", "out=graph", "method", "a sparse graph"),
        "which are those of packed graphs, solved whole by dense methods",
    ),
    "sizes": ((*_ROWS, "method", "a sparse graph"), "which are those of dense graphs"),
    "out=graph": (
        (*_ROWS, "directed", "dtype", "method", "a sparse graph"),
        "which solves all rows in the memory of dense weights",
    ),
    "check=False": ((*_ROWS, "method", "a sparse graph"), "which is for dense methods"),
}
# What does not go with blocks of rows, nor if they are in a file or several tensors.
_NOT_IN_ROWS = (*_ROWS, "sizes", "offsets")
_NOT_IN_FILES = (*_NOT_IN_ROWS, "directed", "dtype")


def _refuse_combinations(given: set[str]) -> None:
    """Refuse arguments that exclude each other."""
    for option, (others, because) in _EXCLUSIVE.items():
        if option not in given:
            continue
        for other in sorted(given):
            if other in others or other.split("=")[0] in others:
                raise InputError(
                    f"`{other}` must not be given with `{option}`, {because}; leave one of them "
                    "out."
                )


def _refuse_block_rows(given: set[str], method: str, because: str, *, is_matrix: bool) -> None:
    """Refuse what blocks of rows do not take."""
    refused = _NOT_IN_ROWS if is_matrix else _NOT_IN_FILES
    wrong = sorted(name for name in given if name.split("=")[0] in refused)
    if method != "auto":
        wrong.append("method")
    if wrong:
        raise InputError(
            f"`{wrong[0]}` must not be given with {because}, where one whole dense matrix is "
            "solved in blocks of rows; leave one of them out."
        )


def _block_rows_because(
    graph: Any,
    devices: tuple[torch.device, ...],
    is_matrix: bool,
    out: object,
    memory: int | None,
    checkpoint: Checkpoint | None,
) -> str:
    """Return why a graph is solved in blocks of rows, as the end of a sentence; "" if it is not."""
    if isinstance(graph, NpyFile):
        return "weights in a file"
    if isinstance(graph, tuple):
        return "weights in blocks"
    if len(devices) > 1 and is_matrix:
        return "several devices"
    if memory is not None:
        return "`memory`"
    if checkpoint is not None:
        return "`checkpoint`"
    if (
        is_matrix
        and devices[0].type != "cpu"
        and (isinstance(out, (str, os.PathLike)) or getattr(out, "is_cpu", False))
        and not fits_memory(graph.numel() * graph.itemsize, devices[0])
    ):
        return "a matrix that its device does not hold"
    return ""


def _home_of(graph: Any) -> tuple[torch.device, ...]:
    """Return where a graph is, a device for each of several blocks of rows."""
    parts = graph if isinstance(graph, tuple) else (graph,)
    return tuple(getattr(part, "device", torch.device("cpu")) for part in parts)


def _are_blocks(graph: object) -> bool:
    """Return whether a graph is a matrix in blocks of rows."""
    kinds = torch.Tensor, np.ndarray
    return isinstance(graph, (list, tuple)) and any(isinstance(x, kinds) for x in graph)


def _is_in_place(out: object, graph: Any) -> bool:
    """Return whether distances are to replace the weights.

    Raises:
        InputError: they share memory, but are not the same tensor.
    """
    if isinstance(graph, NpyFile):
        is_path = isinstance(out, (str, os.PathLike)) and bool(str(out))
        return is_path and Path(out).exists() and Path(out).samefile(graph.path)  # type: ignore[arg-type]
    if isinstance(graph, tuple) and isinstance(out, (list, tuple)):
        return len(out) == len(graph) and all(map(_is_in_place, out, graph))
    tensors = [x for x in (out, graph) if isinstance(x, torch.Tensor)]
    if len(tensors) < 2 or any(x.layout != torch.strided for x in tensors):
        return False
    if out is graph:
        return True
    facts = [(x.data_ptr(), x.shape, x.stride(), x.dtype, x.device) for x in tensors]
    if facts[0] == facts[1]:
        return bool(graph.numel() > 0)
    if overlaps(*tensors):
        raise InputError(
            "`out` must be the weights, which it replaces, or share no memory with them, but does; "
            "give `out` the weights themselves, or another tensor."
        )
    return False


def _checkpoint_of(value: object) -> Checkpoint | None:
    """Return where checkpoints go, with an absolute path."""
    if value is None:
        return None
    folder, every = value if isinstance(value, Checkpoint) else Checkpoint(value)  # type: ignore[arg-type]
    if isinstance(every, bool) or not isinstance(every, (int, float)) or not every >= 0:
        raise error_for(every, int, float)(
            "`every` must be a number of seconds that is not negative, but is "
            f"{shown(every)}; give one."
        )
    return Checkpoint(to_path(folder, "checkpoint").absolute(), as_float_or_inf(every))


def _rows_tensors(graph: Any, name: str) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Return rows of a matrix, or blocks of them, checked."""
    if isinstance(graph, tuple):
        return tuple(_rows_tensor(block, name) for block in graph)
    return _rows_tensor(graph, name)


def _rows_tensor(value: object, name: str) -> torch.Tensor:
    """Return an argument that is rows (rows, n) of weights.

    Raises:
        InputError: it is something else, or of a dtype or kind that block rows do not solve.
    """
    if is_sparse(value):
        raise InputTypeError(
            f"`{name}` must be dense weights to be solved in blocks of rows, but is "
            f"{shown(value)}; give rows of prepare(graph, order='none').dense()."
        )
    tensor = check_tensor(value, name)
    is_bool = tensor.dtype == torch.bool
    remedy = f"give torch.where({name}, 1.0, torch.inf)" if is_bool else None
    check_dtype(tensor, name, DTYPES, remedy)
    if tensor.dim() != 2:
        raise InputError(
            f"`{name}` must be rows of one matrix, (rows, n), but has shape "
            f"{tuple(tensor.shape)}; give a tensor of two dimensions."
        )
    if tensor.requires_grad:
        raise InputError(
            f"`{name}` must not require a gradient, which a solve of block rows does not compute; "
            "give its .detach()."
        )
    if tensor.is_neg():
        raise InputError(
            f"`{name}` must hold its values, but is a view with torch's negative bit; give its "
            ".resolve_neg()."
        )
    return tensor


def _converted(graph: torch.Tensor, dtype: torch.dtype | None, *, directed: bool) -> torch.Tensor:
    """Return dense weights in another dtype, and with the lighter edge of both directions."""
    if dtype is not None and (not isinstance(dtype, torch.dtype) or graph.dtype != dtype):
        _refuse_conversion(graph)
        graph = cast_weights(graph, dtype)
    if directed:
        return graph
    check_weights(graph)
    either = torch.maximum if graph.dtype == torch.bool else torch.minimum
    return either(graph, graph.mT)


def _refuse_conversion(graph: torch.Tensor) -> None:
    """Refuse to convert weights in a call that torch records: values are checked, not traced."""
    if needs_operation(graph):
        raise operation_error("dtype", "convert the weights with .to().")
