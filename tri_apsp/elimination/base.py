"""Distance queries on an eliminated graph, with one implementation per type of device."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.elimination.flows import (
    DEMAND_EXPONENT,
    FLOW_LANES,
    MOST_ADDED,
    TOO_MANY_PATHS,
    Flows,
    PathCounts,
)
from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.errors import DistanceRangeError
from tri_apsp.graphs.sparse import SparseGraph
from tri_apsp.paths.following import Paths


class Totals(NamedTuple):
    """Totals of the distances from, or to, each vertex, on the CPU.

    Attributes:
        total: (n,) of float64, the sum of those that are finite.
        reached: (n,) of float64, how many are finite, the vertex itself included.
        farthest: (n,) of float64, the largest finite one, at least 0.
    """

    total: torch.Tensor
    reached: torch.Tensor
    farthest: torch.Tensor

    def plus(self, other: "Totals") -> "Totals":
        """Return the totals of these distances and of others."""
        farthest = torch.maximum(self.farthest, other.farthest)
        return Totals(self.total + other.total, self.reached + other.reached, farthest)


class Sweeps(ABC):
    """Distances of an eliminated graph on one device. Vertices are tensors of int64 on the CPU;
    distances beyond the limit of the elimination, or of a call, are its `missing`.
    """

    engine: str
    """The engine whose kernels sweep: "cpu", "nvidia" or "portable"."""

    def __init__(self, elimination: Elimination, device: torch.device) -> None:
        self.elimination, self.device = elimination, device

    @abstractmethod
    def after_changes(self, elimination: Elimination, edges: Array) -> "Sweeps":
        """Return the sweeps after some edges of the filled graph changed. Those of before must not
        be used afterwards.
        """

    def prefers_table(self, sources: int, targets: int) -> bool:
        """Return whether a table takes less time than columns of rows()."""
        # A label reads some of the live slots for each ancestor; a sweep reads every edge once.
        tree = self.elimination.tree
        climb = tree.height * max(4, tree.slot_count // 4)
        return (sources + targets) * climb < sources * (tree.edges + tree.n)

    def rows_together(self) -> int:
        """Return the number of rows that take about the time of one row; 1 on a CPU."""
        return 1

    @abstractmethod
    def rows(
        self, sources: torch.Tensor, limit: float, columns: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the distances from each source to each vertex, (sources, n), or to those of some
        columns.
        """

    @abstractmethod
    def all_rows(self, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return all distances, (n, n), in `out` if that is given."""

    @abstractmethod
    def rows_with_predecessors(
        self, sources: torch.Tensor, limit: float, graph: SparseGraph
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the rows, and the predecessors (sources, n) of int32: the vertices with the
        smallest sum, -1 at sources and without a path. Of several, the source is taken, else the
        smallest.

        Args:
            graph: the graph that is eliminated.

        Returns:
            The distances, the predecessors, and the rows in which some predecessor is no closer to
            the source, so that predecessors may form a loop; 1-D of int64 on the CPU.
        """

    @abstractmethod
    def table_to(self, targets: torch.Tensor) -> Callable[[torch.Tensor, float], torch.Tensor]:
        """Return a function of sources and a limit, which returns the distances from each source to
        each target, (sources, targets). It keeps the labels of the targets for its next call.
        """

    @abstractmethod
    def nearest(self, sources: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the distances (k, n) of each vertex from the nearest sources, each given once, and
        these, (k, n) of int64: of several as near the smallest, -1 without a path.
        """

    @abstractmethod
    def paths(self, sources: torch.Tensor, targets: torch.Tensor) -> Paths:
        """Return a shortest path from sources[i] to targets[i] for each i."""

    @abstractmethod
    def pairs(self, sources: torch.Tensor, targets: torch.Tensor, limit: float) -> torch.Tensor:
        """Return the distance from sources[i] to targets[i] for each i."""

    @abstractmethod
    def totals(self, *, from_source: bool, part: range | None = None) -> Totals:
        """Return the totals of the distances to each vertex; `from_source`: from each vertex.

        Args:
            part: the positions in the order of elimination whose vertices get totals; others get
                0. None: all.
        """

    def for_flows(self, sources: int) -> "Sweeps":
        """Return the sweeps that take the least time for flows of some sources."""
        return self

    def flows(
        self, sources: torch.Tensor, demand: torch.Tensor, demand_rows: torch.Tensor
    ) -> Flows:
        """Return the flows of demand along shortest paths. An edge is on one if sums are equal, so
        float64 must hold the sum of each path; weights are positive.

        Args:
            sources: 1-D.
            demand: (rows, sources) of float64, not negative: what travels from a source
                to each vertex of a row; (rows, 1) if it is the same from each.
            demand_rows: (n,) of int32 on the CPU, the row of each vertex.

        Raises:
            DistanceRangeError: the number of shortest paths exceeds float64.
        """
        unit = demand.max().item() if len(demand) == 1 and demand.numel() else 0.0
        if unit > 0 and bool((demand == unit).all()):  # sums of ones are exact
            demand = torch.ones_like(demand)
        else:
            unit = 1.0
        tree = self.elimination.tree
        starts, row_of = tree.positions[sources.numpy()], demand_rows.numpy()[tree.vertices]
        demand, vertices = demand.to(self.device), np.bincount(row_of, minlength=len(demand))
        total = torch.from_numpy(vertices).to(demand) @ demand
        most = math.frexp(total.max().item())[1] if len(total) else 0
        for dtype, has_rate in FLOW_LANES[self._flow_lanes :]:
            counts = PathCounts(self.elimination, self._rate(sources)) if has_rate else self._counts
            scale = min(1023, DEMAND_EXPONENT[dtype] - most)  # of a power that float64 holds
            asked = (demand * 2.0**scale).to(dtype)
            found = self._flows(starts, asked, row_of, counts)
            if found is not None:
                through, loads, unserved = found
                counts.unpack(through, loads)
                parts = through[tree.positions], loads, unserved
                return Flows(*(torch.from_numpy(unit * np.ldexp(x, -scale)) for x in parts))
            self._flow_lanes = min(self._flow_lanes + 1, len(FLOW_LANES) - 1)
        raise DistanceRangeError(TOO_MANY_PATHS)

    @cached_property
    def _flow_lanes(self) -> int:
        """The first of FLOW_LANES that held all counts so far."""
        tree = self.elimination.tree
        added = max(tree.height, np.diff(tree.descents.offsets).max(initial=0))
        return int(added > MOST_ADDED)

    @cached_property
    def _counts(self) -> PathCounts:
        return PathCounts(self.elimination, 0.0)

    @abstractmethod
    def _rate(self, sources: torch.Tensor) -> float:
        """Return the rate by which counts of paths from some sources fit float64, if any does."""

    @abstractmethod
    def _flows(
        self, starts: Array, demand: torch.Tensor, demand_rows: Array, counts: PathCounts
    ) -> tuple[Array, Array, Array] | None:
        """Return the flows by lanes of the dtype of the demand, of float64: through positions, over
        filled edges (2, edges), and the unserved demand from each start. None if that dtype does
        not hold a count or a distance.

        Args:
            starts: positions of the sources.
            demand: (rows, sources) or (rows, 1), on the device.
            demand_rows: (n,) of int32, the row of each position.
        """

    @abstractmethod
    def within(
        self,
        limits: torch.Tensor,
        amounts: torch.Tensor,
        *,
        from_source: bool,
        part: range | None = None,
    ) -> torch.Tensor:
        """Return for each limit and vertex the sum of the amounts of the vertices from which it is
        within the limit, (limits, n) of float64 on the CPU; `from_source`: of those that are within
        the limit from it.

        Args:
            limits: 1-D, of the dtype of the weights on the CPU.
            amounts: (n,) of float64 on the CPU.
            part: as for totals.
        """
