"""What a caller asked of shortest_paths: arguments are checked here, once; `offsets` by
plan_packed.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import torch

from tri_apsp.arguments import (
    DenseBatch,
    Vertices,
    check_config,
    check_flags,
    check_method,
    check_options,
    check_overwrite,
    check_weights,
    check_writable,
    limit_of,
    sources_of,
    with_sizes,
)
from tri_apsp.configs import Config, MethodName
from tri_apsp.dispatch import needs_operation, operation_error
from tri_apsp.errors import InputError
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
from tri_apsp.plan import NegativeCycles, Options
from tri_apsp.semirings import dtype_name, solved_dtype
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS, RowMethod

MethodChoice: TypeAlias = Literal["auto", MethodName, "johnson", RowMethod]
"""The methods of shortest_paths."""

_SPARSE_METHODS = (JOHNSON, *ROW_METHODS)
METHOD_CHOICES: tuple[str, ...] = ("auto", *get_args(MethodName), *_SPARSE_METHODS)


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of shortest_paths, which documents them, checked except for values of weights.

    Attributes:
        weights: dense weights as they were given; None of a sparse graph.
        batch: the dense weights, unless they are packed.
        graph: the sparse graph.
        labels: of the vertices of a graph that was read from a file.
        offsets: of packed weights.
        sources: (rows,) of int64 on the CPU; None: all vertices.
        targets: (columns,) of int64 on the CPU; None: all vertices.
        limit: rounded to the dtype of the graph.
        nearest: whether one row is wanted, the distances from the nearest source.
        out: where the distances go; None: a new tensor.
        options: what the caller wants of the distances.
    """

    weights: torch.Tensor | None
    batch: DenseBatch | None
    graph: SparseGraph | None
    labels: Labels | None
    offsets: torch.Tensor | None
    sources: torch.Tensor | None
    targets: torch.Tensor | None
    method: str
    config: Config | None
    limit: float | None
    nearest: bool
    out: torch.Tensor | str | os.PathLike[str] | None
    options: Options

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
        nearest: bool = False,
        dtype: torch.dtype | None = None,
        out: torch.Tensor | str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        check: bool = True,
        predecessors: bool = False,
        negative_cycles: NegativeCycles = "raise",
    ) -> Request:
        """Check the arguments of shortest_paths.

        Raises:
            InputError: an argument breaks a rule, or does not go with another.
        """
        check_method(method, METHOD_CHOICES)
        check_config(config)
        options = Options(overwrite, check, predecessors, negative_cycles)
        check_options(options)
        check_flags(directed=directed)
        labels = None
        if isinstance(graph, DenseGraph):
            graph, labels = graph.weights, graph.labels
        sparse_graph_given = is_sparse(graph)
        if offsets is not None or sizes is not None or overwrite or not check:  # see _EXCLUSIVE
            given = {
                "sources": sources is not None,
                "directed=False": not directed,
                "sizes": sizes is not None,
                "offsets": offsets is not None,
                "limit": limit is not None,
                "dtype": dtype is not None,
                "out": out is not None,
                "overwrite": overwrite,
                "check=False": not check,
                f"method={method!r}": method in _SPARSE_METHODS,
                "a sparse graph": sparse_graph_given,
            }
            _refuse_combinations({name for name, is_given in given.items() if is_given})
        batch = sparse = None
        if sparse_graph_given:
            sparse = sparse_graph(graph, dtype=dtype)
            sparse = sparse if directed else sparse.both_ways()
            labels = sparse.labels
        elif offsets is None:
            if dtype is not None and isinstance(graph, torch.Tensor) and graph.dtype != dtype:
                _refuse_conversion(graph)
                graph = cast_weights(graph, dtype)
            batch = check_weights(graph)
            if not directed:
                graph = torch.minimum(graph, graph.mT)
                batch = check_weights(graph)
            if overwrite:
                check_overwrite(graph)
            if sizes is not None:
                batch = with_sizes(batch, sizes, check=check)
        weights = None if sparse_graph_given else graph
        request = cls(
            weights,
            batch,
            sparse,
            labels,
            offsets,
            None,
            None,
            method,
            config,
            limit,
            nearest,
            out,
            options,
        )
        if nearest or sources is not None:
            request = request._with_sources(sources, targets)
        elif limit is not None or targets is not None:
            option = "limit" if limit is not None else "targets"
            raise InputError(f"`{option}` needs `sources`, but there are none; name them.")
        # Planning refuses packed graphs that are no tensor.
        if out is not None and (sparse_graph_given or isinstance(graph, torch.Tensor)):
            request._check_out()
        return request

    def _with_sources(self, sources: Vertices | None, targets: Vertices | None) -> Request:
        """Return the request with checked sources, targets and limit."""
        if self.is_batch:
            raise InputError(
                "`sources` need one graph, (n, n), but `graph` is a batch; leave them out."
            )
        vertices = sources_of(sources, self.n)
        limit = None if self.limit is None else limit_of(self.limit, self.dtype)
        columns = None if targets is None else sources_of(targets, self.n, "targets")
        return dataclasses.replace(self, sources=vertices, targets=columns, limit=limit)

    def _check_out(self) -> None:
        """Refuse a tensor of another shape, dtype or device, and a file that cannot be written."""
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
        expected = self.shape, self.dtype, self.device
        given = tuple(self.out.shape), self.out.dtype, self.out.device
        if given != expected or self.out.layout != torch.strided or self.out.requires_grad:
            shape, dtype, device = expected
            raise InputError(
                f"`out` must be a dense tensor {shape} of {dtype_name(dtype)} on {device} without "
                f"a gradient, but is {given[0]} of {dtype_name(given[1])} on {given[2]}; make one "
                "with torch.empty."
            )
        check_writable(self.out, "out")

    @property
    def n(self) -> int:
        """The number of vertices."""
        if self.graph is not None:
            return self.graph.n
        assert self.batch is not None
        return self.batch.n

    @property
    def rows(self) -> int:
        """The number of rows of distances to solve."""
        if self.nearest:
            return 1
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
    def is_batch(self) -> bool:
        return self.batch is not None and self.batch.batched

    @property
    def needs_sparse(self) -> bool:
        """Whether only a sparse plan has what was asked for."""
        return self.method in _SPARSE_METHODS or self.limit is not None or self.nearest

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
        (*_ROWS, "sizes", "directed", "dtype", "overwrite", "method", "a sparse graph"),
        "which are those of packed graphs, solved whole by dense methods",
    ),
    "sizes": ((*_ROWS, "method", "a sparse graph"), "which are those of dense graphs"),
    "overwrite": (
        (*_ROWS, "directed", "dtype", "out", "method", "a sparse graph"),
        "which solves all rows in the memory of dense weights",
    ),
    "check=False": ((*_ROWS, "method", "a sparse graph"), "which is for dense methods"),
}


def _refuse_combinations(given: set[str]) -> None:
    """Refuse arguments that exclude each other."""
    for option, (others, because) in _EXCLUSIVE.items():
        if option not in given:
            continue
        for other in sorted(given):
            if other.split("=")[0] in others:
                raise InputError(
                    f"`{other}` must not be given with `{option}`, {because}; leave one of them "
                    "out."
                )


def _refuse_conversion(graph: torch.Tensor) -> None:
    """Refuse to convert weights in a call that torch records: values are checked, not traced."""
    if needs_operation(graph):
        raise operation_error("dtype", "convert the weights with .to().")
