"""Ragged batches: graphs of different sizes whose values lie one after another in one tensor, without padding."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from tri_apsp.engines.packed import pack_into, unpacked
from tri_apsp.errors import ApspError, InputError, NegativeCycleError
from tri_apsp.semirings import DTYPES, dtype_name, no_edge
from tri_apsp.solver.gradient import weights_gradient
from tri_apsp.solver.memory import memory_for
from tri_apsp.solver.result import NegativeCycle, Result

__all__ = ["pack", "packed_gradient", "solve_packed", "unpack"]

# Graphs of up to 8, 16, 32 or 64 vertices are padded to the largest among them; larger ones by at most a quarter.
_SMALLEST, _POWERS_UP_TO, _STEPS = 8, 64, 4
# The most values of padded graphs that are solved together.
_VALUES = 1 << 27
_OFFSET_DTYPES = (torch.int64, torch.int32)


@dataclass(frozen=True)
class _Group:
    """Graphs that are solved together.

    Attributes:
        graphs: their numbers, ascending, on the host.
        starts, sizes: (graphs,) of int64, on the device of the values.
        n: the vertices of the largest.
    """

    graphs: np.ndarray[tuple[int], np.dtype[np.int64]]
    starts: torch.Tensor
    sizes: torch.Tensor
    n: int


def pack(matrices: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the graphs of a padded batch one after another.

    Args:
        matrices: (batch, n, n) of any dtype, such as weights, distances or predecessors; graph g is matrices[g, :s, :s] with
            s = sizes[g].
        sizes: (batch,) of int64 or int32, each in [0, n].

    Returns:
        values: (total,): the sizes[g]^2 values of each graph in row order.
        offsets: (batch + 1,) of int64, on the device of `matrices`: graph g begins at offsets[g].

    Raises:
        InputError: other shapes, dtypes or sizes.

    Cost: a copy; the host waits for the sizes.
    """
    if not isinstance(matrices, torch.Tensor) or matrices.dim() != 3 or matrices.shape[1] != matrices.shape[2]:
        raise InputError(f"`matrices` must be a tensor (batch, n, n), but is {_kind(matrices)}; add a dimension if need be.")
    if not isinstance(sizes, torch.Tensor) or sizes.shape != matrices.shape[:1] or sizes.dtype not in _OFFSET_DTYPES:
        raise InputError(
            f"`sizes` must be a tensor ({len(matrices)},) of int64 or int32, one size for each graph, but is {_kind(sizes)}; "
            "give torch.tensor(sizes)."
        )
    host = sizes.cpu().to(torch.int64)
    if len(host) and not 0 <= int(host.min()) <= int(host.max()) <= matrices.shape[1]:
        raise InputError(
            f"`sizes` must lie in [0, {matrices.shape[1]}], the vertices of a matrix, but one is "
            f"{int(host.min()) if int(host.min()) < 0 else int(host.max())}; count the vertices of each graph again."
        )
    offsets = torch.zeros(len(host) + 1, dtype=torch.int64)
    torch.cumsum(host * host, 0, out=offsets[1:])
    values = matrices.new_empty(int(offsets[-1]))
    offsets = offsets.to(matrices.device)
    pack_into(values, matrices, offsets[:-1], host.to(matrices.device))
    return values, offsets


def unpack(
    values: torch.Tensor, offsets: torch.Tensor, *, fill: float | int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the graphs of a packed tensor as a padded batch, and their sizes: the inverse of pack.

    Args:
        values: (total,) of any dtype.
        offsets: (batch + 1,) of int64 or int32, as shortest_paths takes them.
        fill: the value of padding; None: no_edge(dtype). For predecessors, give -1.

    Returns:
        matrices: (batch, n, n), n being the vertices of the largest graph.
        sizes: (batch,) of int64, on the device of the values.

    Raises:
        InputError: as shortest_paths for `offsets`; no `fill` for a dtype that has no no_edge.
        TooLargeError: the matrices do not fit the memory of the device.

    Cost: a copy; the host waits for the offsets.
    """
    starts, sizes = _checked(values, offsets, "values")
    if fill is None:
        fill = no_edge(values.dtype)
    n = int(sizes.max(initial=0))
    device = values.device
    size = len(sizes) * n * n * values.itemsize
    with memory_for("graphs padded to the largest", size, device, "keep them packed, or unpack fewer at a time"):
        on_device = (torch.from_numpy(array).to(device) for array in (starts, sizes))
        moved_starts, moved_sizes = on_device
        return unpacked(values, moved_starts, moved_sizes, n, fill), moved_sizes


def solve_packed(
    weights: torch.Tensor, offsets: object, solve: Callable[..., Result], *, predecessors: bool, **options: object
) -> Result:
    """Return the result of packed graphs, packed as they are.

    Args:
        weights: (total,).
        offsets: (batch + 1,).
        solve: returns the Result of padded weights and `sizes`.
        predecessors, options: those of shortest_paths.

    Raises:
        As shortest_paths; the graph is named as the caller numbers it.
    """
    starts, sizes = _checked(weights, offsets, "weights")
    if weights.dtype not in (*DTYPES, torch.bool):
        solve(weights.new_empty((0, 1, 1)))  # refuses it
    device, dtype = weights.device, torch.float32 if weights.dtype == torch.bool else weights.dtype
    remedy = "solve fewer graphs at a time"
    with memory_for("distances of packed graphs", len(weights) * dtype.itemsize, device, remedy):
        distances = weights.new_empty(len(weights), dtype=dtype)
        found = weights.new_empty(len(weights), dtype=torch.int32) if predecessors else None
    results = []
    for group in _groups(starts, sizes, device):
        fill = no_edge(weights.dtype) if weights.dtype != torch.bool else False
        padded = unpacked(weights, group.starts, group.sizes, group.n, fill)
        try:
            result = solve(padded, sizes=group.sizes, predecessors=predecessors, **options)
        except ApspError as error:
            raise _renumbered(error, group, padded, solve, options) from None
        pack_into(distances, result.distances, group.starts, group.sizes)
        if found is not None and result.predecessors is not None:
            pack_into(found, result.predecessors, group.starts, group.sizes)
        cycle = result.negative_cycle
        if cycle is not None:
            own = dataclasses.replace(cycle, graph=int(group.graphs[cycle.graph]))
            result = dataclasses.replace(result, negative_cycle=own)
        results.append(result)
    if not results:
        results.append(solve(weights.new_empty((0, 0, 0)), **options))
    largest = results[-1]
    cycles = [result.negative_cycle for result in results if result.negative_cycle is not None]
    first: NegativeCycle | None = min(cycles, key=lambda cycle: cycle.graph, default=None)
    return dataclasses.replace(largest, distances=distances, predecessors=found, negative_cycle=first)


def packed_gradient(
    gradient: torch.Tensor,
    weights: torch.Tensor,
    distances: torch.Tensor,
    offsets: torch.Tensor,
    predecessors: torch.Tensor | None = None,
    *,
    check: bool = True,
) -> torch.Tensor:
    """Return the gradient of packed weights by that of their distances; as solver.gradient.weights_gradient, all (total,)."""
    starts, sizes = _checked(weights, offsets, "weights")
    infinity = no_edge(weights.dtype)
    result = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
    for group in _groups(starts, sizes, weights.device):

        def padded(values: torch.Tensor, fill: float, group: _Group = group) -> torch.Tensor:
            return unpacked(values, group.starts, group.sizes, group.n, fill)

        of_group = weights_gradient(
            padded(gradient, 0), padded(weights, infinity), padded(distances, infinity), group.sizes,
            None if predecessors is None else padded(predecessors, -1), check=check,
        )  # fmt: skip
        pack_into(result, of_group, group.starts, group.sizes)
    return result


def _renumbered(
    error: ApspError, group: _Group, padded: torch.Tensor, solve: Callable[..., Result], options: dict[str, object]
) -> ApspError:
    """Return an error of a group with the number that the caller gives to the graph."""
    if isinstance(error, NegativeCycleError):
        graphs = [int(group.graphs[graph]) for graph in error.graphs]
        batch = int(group.graphs[error.batch or 0])
        return NegativeCycleError(error.vertices, batch, error.base, error.weight, graphs, error.mark)
    for place, graph in enumerate(group.graphs):
        size = int(group.sizes[place])
        try:
            solve(padded[place, :size, :size], **options)
        except ApspError as alone:
            return type(alone)(f"graph {graph} of the packed batch: {alone}")
    return error


def _groups(starts: np.ndarray, sizes: np.ndarray, device: torch.device) -> Iterator[_Group]:
    """Yield groups of graphs of similar sizes, the smallest first."""
    kinds = _classes(sizes)
    order = np.argsort(kinds, kind="stable")
    bounds = np.flatnonzero(np.diff(kinds[order], prepend=-1, append=-1))
    for begin, end in itertools.pairwise(bounds):
        members = order[begin:end]
        n = int(sizes[members].max())
        step = max(1, _VALUES // max(1, n * n))
        for first in range(0, len(members), step):
            some = np.sort(members[first : first + step])
            moved = [torch.from_numpy(array[some]).to(device) for array in (starts, sizes)]
            yield _Group(some, moved[0], moved[1], n)


def _classes(sizes: np.ndarray) -> np.ndarray:
    """Return for each size that to which graphs of its class may be padded; 0 for graphs without a vertex."""
    exponent = np.ceil(np.log2(np.maximum(sizes, _SMALLEST))).astype(np.int64)
    step = np.where(sizes > _POWERS_UP_TO, np.left_shift(1, exponent - 1) // _STEPS, np.left_shift(1, exponent))
    return np.where(sizes > 0, -(-sizes // step) * step, 0)


def _checked(values: object, offsets: object, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check a packed tensor; return where each graph starts, and its size, of int64 on the host."""
    if not isinstance(values, torch.Tensor) or values.layout != torch.strided or values.dim() != 1:
        raise InputError(
            f"`{name}` with `offsets` must be a dense tensor of one dimension, the values of one graph after another, but is "
            f"{_kind(values)}; make one with tri_apsp.pack."
        )
    if not isinstance(offsets, torch.Tensor) or offsets.dtype not in _OFFSET_DTYPES or offsets.dim() != 1 or not len(offsets):
        raise InputError(
            "`offsets` must be a tensor (batch + 1,) of int64 or int32, where the values of each graph begin and the last "
            f"end, but is {_kind(offsets)}; give torch.tensor(offsets)."
        )
    bounds = offsets.cpu().numpy().astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != len(values):
        raise InputError(
            f"`offsets` must begin with 0 and end with {len(values)}, the length of `{name}`, but begin with {bounds[0]} and "
            f"end with {bounds[-1]}; correct them."
        )
    lengths = np.diff(bounds)
    sizes = np.sqrt(np.maximum(lengths, 0)).round().astype(np.int64)
    wrong = np.flatnonzero(sizes * sizes != lengths)
    if len(wrong):
        graph = int(wrong[0])
        raise InputError(
            f"`offsets` must leave a square number of values to each graph, but leave {lengths[graph]} to graph {graph}; "
            "correct them."
        )
    return bounds[:-1].copy(), sizes


def _kind(value: object) -> str:
    """Return what was given, in a few words."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{tuple(value.shape)} of {dtype_name(value.dtype)}"
