"""Predecessors of the rows of each rank, the same that one process finds.

A rank lists the edges from its own vertices that may end a shortest path, receives those of the
others, and searches its own rows. Vertices whose predecessors are in doubt need more: the edges to
them, and the distances from them, which the ranks send each other in parts.
"""

import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.engines import MatrixSpec
from tri_apsp.engines.row_exchange import RowExchange
from tri_apsp.memory import require_memory
from tri_apsp.paths.predecessors import tolerance_of
from tri_apsp.ranks.communicator import Communicator
from tri_apsp.value_range import largest_magnitude

# How what two ranks give is combined.
_ADD: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
    "any": torch.logical_or,
}
# Values of a matrix that are received at a time.
_RECEIVED = 1 << 26


def find_row_predecessors(
    ranks: Communicator,
    weights: torch.Tensor,
    distances: torch.Tensor,
    counts: Sequence[int],
    config: CompleteConfig,
    *,
    nonnegative: bool,
) -> torch.Tensor:
    """Return the predecessors of the rows of this rank, (rows, n) of int32; see
    Engine.predecessors.

    Args:
        ranks: this one and the others, which make the same call.
        weights: the rows (rows, n) of this rank, of any strides.
        distances: (rows, n) of these weights, contiguous, on the same device.
        counts: the rows of each rank.
        config: of the engine, the same on all ranks.
        nonnegative: whether no weight of any rank is negative.

    Raises:
        TooLargeError: on all ranks, if the memory of one does not hold the edges that all list. On
            a GPU, if more than an eighth of all pairs are such edges, a rank needs all weights
            instead; so it does for floats whose rounding hides paths along cycles of weight 0.

    Cost: that of Engine.predecessors, divided among the ranks; n^2 values received at most, and
    twice as many for vertices in doubt.
    """
    n, dtype, device = sum(counts), distances.dtype, distances.device
    module = "cpu_predecessors" if device.type == "cpu" else "triton_predecessors"
    search = importlib.import_module(f"tri_apsp.engines.{module}")
    exchange = _Exchange(ranks, counts)
    largest = None
    if dtype.is_floating_point and not nonnegative:
        largest = exchange.combined(largest_magnitude(distances[None])[None], "max")[0]
    tolerance = tolerance_of(dtype, n, largest)
    if n <= search.MOST_SEARCHED_WHOLE:
        own = slice(exchange.first, exchange.first + len(distances))
        all_weights, all_distances = (exchange.rows(each)[None] for each in (weights, distances))
        engine = engines.make(MatrixSpec(n, dtype, device, nonnegative), config)
        return engine.predecessors(all_weights, all_distances, tolerance)[0, own].clone()
    if dtype.is_floating_point:
        weights, distances = exchange.align(search.sources_together(dtype), weights, distances)
    found: torch.Tensor = search.row_predecessors(weights, distances, tolerance, exchange)
    return found[exchange.own]


class _Exchange(RowExchange):
    """The exchange of ranks that have some rows each."""

    has_all = False

    def __init__(self, ranks: Communicator, counts: Sequence[int]) -> None:
        self._ranks, self._counts = ranks, counts
        self._cuts = [0, *itertools.accumulate(counts)]
        self._inner_cuts = {cut for cut in self._cuts if 0 < cut < self._cuts[-1]}
        self.first, self.own = self._cuts[ranks.rank], slice(0, counts[ranks.rank])

    def rows(self, own: torch.Tensor) -> torch.Tensor:
        """Return the rows of all vertices, given own ones."""
        return self._collected(own, self._counts)

    def align(self, together: int, *matrices: torch.Tensor) -> list[torch.Tensor]:
        """Extend the rows of this rank to whole groups of `together` sources: the predecessors of
        floats depend on which sources are searched together. Return matrices (rows, n) with the
        rows of other ranks that complete the first and the last group.
        """
        first, end, n = self.first, self.first + self.own.stop, self._cuts[-1]
        before = [matrix[:0] for matrix in matrices]
        after = before
        for number in self.divided(together):
            begin, stop = number * together, min((number + 1) * together, n)
            ends = [min(max(cut, begin), stop) for cut in self._cuts]
            counts = [b - a for a, b in itertools.pairwise(ends)]
            mine = slice(max(begin - first, 0), max(stop - first, 0))
            parts = [self._collected(matrix[mine], counts) for matrix in matrices]
            if begin < first < stop and first < end:
                before = [part[: first - begin] for part in parts]
            if begin < end < stop and first < end:
                after = [part[end - begin :] for part in parts]
        self.first -= len(before[0])
        self.own = slice(len(before[0]), len(before[0]) + end - first)
        if not len(before[0]) and not len(after[0]):
            return list(matrices)
        return [torch.cat(parts) for parts in zip(before, matrices, after, strict=True)]

    def combined(self, values: Any, how: Literal["sum", "max", "min", "any"]) -> Any:
        if isinstance(values, (np.ndarray, torch.Tensor)):
            return _like(values, self._ranks.combined(_tensor(values), _ADD[how]))
        return getattr(np, how)(self._ranks.gather(values))

    def joined(self, values: Any) -> Any:
        counts, given = self._ranks.gather(len(values)), _tensor(values)
        self._require("a list of the tight edges", sum(counts) * given.itemsize, given.device)
        return _like(values, self._collected(given, counts))

    def merged(self, starts: Any, ends: Any, *entries: Any) -> tuple[Any, ...]:
        own = [_tensor(values) for values in entries]
        own_starts, own_counts = _tensor(starts), _tensor(ends) - _tensor(starts)
        all_counts = self._collected(own_counts[None], [1] * self._ranks.size)
        totals = all_counts.sum(0)
        all_ends = totals.cumsum(0)
        count = int(all_ends[-1])
        size = count * (8 + sum(values.itemsize for values in own))
        self._require("a list of the tight edges", size, own_counts.device)
        merged = [values.new_empty(count) for values in own]
        begins = all_ends - totals  # where the entries of a rank begin
        for rank, counts in enumerate(all_counts):
            if rank == self._ranks.rank:
                places = _places(own_starts, counts)
                parts = [values[places] for values in own]
            else:
                parts = [values.new_empty(int(counts.sum())) for values in own]
            self._send(parts, rank)
            places = _places(begins, counts)
            for values, part in zip(merged, parts, strict=True):
                values[places] = part
            begins = begins + counts
        return tuple(_like(starts, each) for each in (all_ends - totals, all_ends, *merged))

    def all_rows(self, weights: Any) -> Any:
        rows = self._own_rows(weights)
        self._require("a copy of the weights", rows.shape[1] ** 2 * rows.itemsize, rows.device)
        return _matrix_like(weights, self.rows(rows))

    def divided(self, width: int) -> list[int]:
        return sorted({cut // width for cut in self._inner_cuts if cut % width})

    def edges_to(self, wanted: Any, weights: Any) -> tuple[Any, Any]:
        vertices, rows = self._vertices(wanted), self._own_rows(weights)
        size = len(vertices) * rows.shape[1] * rows.itemsize
        self._require("a copy of the weights", size, rows.device)
        edges = self.rows(rows.index_select(1, vertices))
        return _like(weights, vertices), _matrix_like(weights, edges)

    def beside(self, wanted: Any, weights: Any, distances: Any) -> Iterator[tuple[Any, Any, Any]]:
        vertices = self._vertices(wanted)
        w, d = self._own_rows(weights), self._own_rows(distances)
        first, step = self._cuts[self._ranks.rank], max(1, _RECEIVED // self._cuts[-1])
        for begin in range(0, len(vertices), step):
            some = vertices[begin : begin + step]
            ends = np.searchsorted(some.cpu().numpy(), self._cuts)
            mine = some[ends[self._ranks.rank] : ends[self._ranks.rank + 1]] - first
            edges = self.rows(w.index_select(1, some))
            back = self._collected(d.index_select(0, mine), np.diff(ends).tolist())
            yield _like(weights, some), *(_matrix_like(weights, x) for x in (edges, back))

    def _vertices(self, wanted: Any) -> torch.Tensor:
        """Return the vertices that some rank wants, given (n,) or (1, n)."""
        return _tensor(self.combined(wanted, "any")).flatten().nonzero().flatten()

    def _own_rows(self, matrix: Any) -> torch.Tensor:
        """Return the rows (rows, n) of this rank, given (rows, n) or (1, rows, n)."""
        return _tensor(matrix).flatten(0, -2)[self.own]

    def _collected(self, own: torch.Tensor, counts: Sequence[int]) -> torch.Tensor:
        """Return the rows that the ranks give, each as many as in `counts`, one after another."""
        found = own.new_empty((sum(counts), *own.shape[1:]))
        parts = torch.split(found, list(counts))
        parts[self._ranks.rank].copy_(own)
        for rank, part in enumerate(parts):
            self._send([part], rank)
        return found

    def _send(self, tensors: Sequence[torch.Tensor], owner: int) -> None:
        """Copy tensors from the rank `owner` to the others."""
        waits = [self._ranks.broadcast(each, owner) for each in tensors if each.numel()]
        for wait in waits:
            wait()

    def _require(self, what: str, size: int, device: torch.device) -> None:
        """Refuse what each rank must hold, of `size` bytes, where it does not fit one of them."""
        whole = f"{what} of {self._cuts[-1]} vertices, which predecessors need on each device,"
        remedy = "solve without predecessors, or on devices with more memory"
        self._ranks.together(lambda: require_memory(whole, size, device, remedy))


def _places(starts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the numbers from starts[j] to starts[j] + counts[j], for one j after another."""
    total = int(counts.sum())
    shifts = starts - (counts.cumsum(0) - counts)
    return shifts.repeat_interleave(counts) + torch.arange(total, device=counts.device)


def _tensor(values: Any) -> torch.Tensor:
    """Return an array of NumPy as a tensor."""
    return torch.from_numpy(values) if isinstance(values, np.ndarray) else values


def _like(given: Any, found: torch.Tensor) -> Any:
    """Return what was found as an array of NumPy, if that was given."""
    return found.numpy() if isinstance(given, np.ndarray) else found


def _matrix_like(given: Any, found: torch.Tensor) -> Any:
    """As _like, and a batch of one matrix, if such a batch was given."""
    return _like(given, found[None] if given.ndim == 3 else found)
