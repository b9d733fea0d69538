"""Ragged batches: graphs of different sizes whose values lie one after another in one tensor,
without padding.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.arguments import (
    SIZE_DTYPES,
    as_tensor,
    as_vector,
    check_size_values,
    check_weights,
    fill_of,
)
from tri_apsp.configs import Config
from tri_apsp.dense.plan import DensePlan, plan_dense, plan_with
from tri_apsp.dense.run import run
from tri_apsp.engines.packing import pack_into, unpacked
from tri_apsp.errors import (
    ApspError,
    DistanceRangeError,
    InputError,
    NegativeCycleError,
    error_for,
)
from tri_apsp.memory import memory_for
from tri_apsp.messages import shown
from tri_apsp.paths.gradient import weights_gradient
from tri_apsp.plan import Options, Plan
from tri_apsp.result import Result
from tri_apsp.semirings import no_edge, solved_dtype

# Graphs of up to 8, 16, 32 or 64 vertices are padded to the largest among them; larger ones by at
# most a quarter.
_SMALLEST, _POWERS_UP_TO, _STEPS = 8, 64, 4
# The most values of padded graphs that are solved together.
_VALUES = 1 << 27
_FEWER = "solve fewer graphs at a time"


@dataclass(frozen=True)
class _SizeGroup:
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

    @property
    def values(self) -> int:
        """Return how many values they have, padded to the largest."""
        return len(self.graphs) * self.n * self.n


def pack(matrices: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """See tri_apsp.pack."""
    matrices, sizes = as_tensor(matrices, "matrices"), as_vector(sizes, "sizes")
    if (
        not isinstance(matrices, torch.Tensor)
        or matrices.dim() != 3
        or matrices.shape[1] != matrices.shape[2]
    ):
        raise error_for(matrices, torch.Tensor)(
            f"`matrices` must be a tensor (batch, n, n), but is {shown(matrices)}; pad the graphs "
            "to the size of the largest."
        )
    if (
        not isinstance(sizes, torch.Tensor)
        or sizes.shape != matrices.shape[:1]
        or sizes.dtype not in SIZE_DTYPES
    ):
        raise error_for(sizes, torch.Tensor)(
            f"`sizes` must be a tensor ({len(matrices)},) of int64 or int32, one size for each "
            f"graph, but is {shown(sizes)}; give torch.tensor(sizes)."
        )
    engines.choose(matrices.device)  # which raises if no kernel can run
    host = sizes.cpu().to(torch.int64)
    check_size_values(host, matrices.shape[1])
    offsets = torch.zeros(len(host) + 1, dtype=torch.int64)
    torch.cumsum(host * host, 0, out=offsets[1:])
    total = int(offsets[-1])
    with memory_for(
        "packed graphs", total * matrices.itemsize, matrices.device, "pack fewer at a time"
    ):
        values = matrices.new_empty(total)
        offsets = offsets.to(matrices.device)
        pack_into(values, matrices, offsets[:-1], host.to(matrices.device))
    return values, offsets


def unpack(
    values: torch.Tensor, offsets: torch.Tensor, *, fill: float | int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """See tri_apsp.unpack."""
    values, offsets = as_vector(values, "values"), as_vector(offsets, "offsets")
    starts, sizes = check_packed(values, offsets, "values")
    engines.choose(values.device)  # which raises if no kernel can run
    fill = fill_of(fill, values.dtype)
    n = int(sizes.max(initial=0))
    device = values.device
    size = len(sizes) * n * n * values.itemsize
    with memory_for(
        "graphs padded to the largest", size, device, "keep them packed, or unpack fewer at a time"
    ):
        starts_there, sizes_there = (
            torch.from_numpy(array).to(device) for array in (starts, sizes)
        )
        return unpacked(values, starts_there, sizes_there, n, fill), sizes_there


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedPlan(Plan):
    """How packed graphs are solved: in groups of similar size, each a padded batch.

    Attributes:
        groups: the groups with their plans, the smallest graphs first.
        options: what the caller wants of the distances.
    """

    groups: tuple[tuple[_SizeGroup, DensePlan], ...] = field(repr=False)
    options: Options = field(repr=False)


def plan_packed(
    weights: object, offsets: object, method: str, config: Config | None, options: Options
) -> PackedPlan:
    """Return what solves packed graphs, whose values are not read.

    Args:
        weights: (total,).
        offsets: (batch + 1,).
        method, config, options: as plan_dense.

    Raises:
        InputError: as plan_dense; a tensor or offsets that are not those of packed graphs.
    """
    starts, sizes = check_packed(weights, offsets, "graph")
    assert isinstance(weights, torch.Tensor)

    dtype = solved_dtype(weights.dtype)

    def plan(group: _SizeGroup | None) -> DensePlan:
        shape = (0, 0, 0) if group is None else (len(group.graphs), group.n, group.n)
        like = torch.empty(1, dtype=dtype, device=weights.device)  # one value in memory
        batch = check_weights(like.expand(shape) if 0 not in shape else like.new_empty(shape))
        if group is not None:
            batch = dataclasses.replace(batch, sizes=group.sizes)
        return plan_dense(batch, method, config, options)

    groups = tuple((group, plan(group)) for group in _groups(starts, sizes, weights.device))
    largest = groups[-1][1] if groups else plan(None)
    return PackedPlan(
        way="packed",
        method=largest.method,
        engine=largest.engine,
        config=largest.config,
        reason=largest.reason,
        memory=_result_bytes(weights, options)
        + max((plan.memory for _, plan in groups), default=0),
        groups=groups,
        options=options,
    )


def _result_bytes(weights: torch.Tensor, options: Options) -> int:
    """Return the bytes of packed distances, and of predecessors if they are wanted."""
    index = torch.int32.itemsize if options.predecessors else 0
    return len(weights) * (solved_dtype(weights.dtype).itemsize + index)


def run_packed(weights: torch.Tensor, plan: PackedPlan) -> Result:
    """Return the result of packed graphs, packed as they are.

    Raises:
        As shortest_paths; the graph is named as the caller numbers it.
    """
    device = weights.device
    dtype = solved_dtype(weights.dtype)
    wanted = plan.options.predecessors
    size = _result_bytes(weights, plan.options)
    with memory_for("distances of packed graphs", size, device, _FEWER):
        distances = weights.new_empty(len(weights), dtype=dtype)
        found = weights.new_empty(len(weights), dtype=torch.int32) if wanted else None
    cycles, exponents = [], False
    fill = no_edge(weights.dtype) if weights.dtype != torch.bool else False
    for group, of_group in plan.groups:
        with memory_for("padded graphs", group.values * weights.itemsize, device, _FEWER):
            padded = unpacked(weights, group.starts, group.sizes, group.n, fill)
        batch = check_weights(padded, sizes=group.sizes, check=plan.options.check)
        try:
            solved = run(batch, of_group)
        except ApspError as error:
            raise _renumbered(error, group, padded, of_group) from None
        exponents |= solved.exponents
        pack_into(distances, solved.distances, group.starts, group.sizes)
        if found is not None and solved.predecessors is not None:
            pack_into(found, solved.predecessors, group.starts, group.sizes)
        if (cycle := solved.negative_cycle) is not None:
            cycles.append(dataclasses.replace(cycle, graph=int(group.graphs[cycle.graph])))
    first = min(cycles, key=lambda cycle: cycle.graph, default=None)
    return Result(distances, dataclasses.replace(plan, exponents=exponents), found, first)


def packed_gradient(
    gradient: torch.Tensor,
    weights: torch.Tensor,
    distances: torch.Tensor,
    offsets: torch.Tensor,
    predecessors: torch.Tensor | None = None,
    check: bool = True,
) -> torch.Tensor:
    """Return the gradient of packed weights by that of their distances, as weights_gradient does;
    all (total,).
    """
    starts, sizes = check_packed(weights, offsets, "weights")
    infinity = no_edge(weights.dtype)
    result = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
    for group in _groups(starts, sizes, weights.device):

        def padded(values: torch.Tensor, fill: float, group: _SizeGroup = group) -> torch.Tensor:
            return unpacked(values, group.starts, group.sizes, group.n, fill)

        matrices = 4 if predecessors is None else 5  # with the result
        with memory_for(
            "padded graphs", matrices * group.values * weights.itemsize, weights.device, _FEWER
        ):
            of_group = weights_gradient(
                padded(gradient, 0),
                padded(weights, infinity),
                padded(distances, infinity),
                group.sizes,
                None if predecessors is None else padded(predecessors, -1),
                check=check,
            )
            pack_into(result, of_group, group.starts, group.sizes)
    return result


def _renumbered(
    error: ApspError, group: _SizeGroup, padded: torch.Tensor, plan: DensePlan
) -> ApspError:
    """Return an error of a group with the number that the caller gives to the graph."""
    if isinstance(error, NegativeCycleError):
        graphs = [int(group.graphs[graph]) for graph in error.graphs]
        number = int(group.graphs[error.batch or 0])
        return error.of_graphs(number, graphs)
    if isinstance(error, InputError | DistanceRangeError):  # of the values of some graph
        for graph, matrix, size in zip(group.graphs, padded, group.sizes.tolist(), strict=True):
            alone = check_weights(matrix[:size, :size])
            try:
                run(alone, plan_with(alone, plan.method, plan.config, options=plan.options))
            except type(error) as found:
                return type(error)(f"graph {graph} of the packed batch: {found}")
            except ApspError:  # another error than that of the group
                continue
    return error


def _groups(starts: np.ndarray, sizes: np.ndarray, device: torch.device) -> Iterator[_SizeGroup]:
    """Yield groups of graphs of similar sizes, the smallest first."""
    buckets = _padded_sizes(sizes)
    order = np.argsort(buckets, kind="stable")
    bounds = np.flatnonzero(np.diff(buckets[order], prepend=-1, append=-1))
    for begin, end in itertools.pairwise(bounds):
        members = order[begin:end]
        n = int(sizes[members].max())
        step = max(1, _VALUES // max(1, n * n))
        for first in range(0, len(members), step):
            some = members[first : first + step]  # ascending, as the order is stable
            moved = [torch.from_numpy(array[some]).to(device) for array in (starts, sizes)]
            yield _SizeGroup(some, moved[0], moved[1], n)


def _padded_sizes(sizes: np.ndarray) -> np.ndarray:
    """Return the size to which each graph may be padded: the upper end of its bucket; 0 for graphs
    without a vertex.
    """
    exponent = np.ceil(np.log2(np.maximum(sizes, _SMALLEST))).astype(np.int64)
    step = np.where(
        sizes > _POWERS_UP_TO, np.left_shift(1, exponent - 1) // _STEPS, np.left_shift(1, exponent)
    )
    return np.where(sizes > 0, -(-sizes // step) * step, 0)


def check_packed(values: object, offsets: object, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check a packed tensor; return where each graph starts, and its size, of int64 on the host."""
    if not isinstance(values, torch.Tensor) or values.layout != torch.strided or values.dim() != 1:
        raise error_for(values, torch.Tensor)(
            f"`{name}` with `offsets` must be a dense tensor of one dimension, the values of one "
            f"graph after another, but is {shown(values)}; make one with tri_apsp.pack."
        )
    remedy = "convert it" if isinstance(offsets, torch.Tensor) else "give torch.tensor(offsets)"
    if (
        not isinstance(offsets, torch.Tensor)
        or offsets.dtype not in SIZE_DTYPES
        or offsets.dim() != 1
        or not len(offsets)
    ):
        raise error_for(offsets, torch.Tensor)(
            "`offsets` must be a tensor (batch + 1,) of int64 or int32, where the values of each "
            f"graph begin and the last end, but is {shown(offsets)}; {remedy}."
        )
    if offsets.is_meta or (offsets.device.type != "cpu" and offsets.device != values.device):
        raise InputError(
            f"`offsets` must be on the CPU or on the device of `{name}`, {values.device}, but are "
            f"on {offsets.device}; move them."
        )
    on_host = offsets.cpu().numpy().astype(np.int64)
    if on_host[0] != 0 or on_host[-1] != len(values):
        raise InputError(
            f"`offsets` must begin with 0 and end with {len(values)}, the length of `{name}`, but "
            f"begin with {on_host[0]} and end with {on_host[-1]}; correct them."
        )
    lengths = np.diff(on_host)
    sizes = np.sqrt(np.maximum(lengths, 0)).round().astype(np.int64)
    wrong = np.flatnonzero(sizes * sizes != lengths)
    if len(wrong):
        graph = int(wrong[0])
        raise InputError(
            "`offsets` must leave a square number of values to each graph, but leave "
            f"{lengths[graph]} to graph {graph}; correct them."
        )
    return on_host[:-1], sizes
