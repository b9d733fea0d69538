"""Flows along shortest paths of an eliminated graph: counts of paths before the sweeps, and the
flows over edges of the graph after them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tri_apsp.elimination.weights import Elimination
from tri_apsp.engines.cpu_tasks import Array
from tri_apsp.semirings import dtype_name

TOO_MANY_PATHS = (
    "the number of shortest paths between two vertices must fit float64, but exceeds it; give "
    "weights that differ."
)


FLOW_LANES = (torch.float32, False), (torch.float64, False), (torch.float64, True)
"""Lanes of flows, fastest first: their dtype, and whether counts have a rate."""
DEMAND_EXPONENT = {torch.float32: 90, torch.float64: 20}
"""The power of two of the largest demand of a source, so that ratios of flows and counts are not
subnormal.
"""
MOST_EXPONENT = 1000
"""The power of two by which a rate lowers the counts of the farthest paths."""


MOST_ADDED = 512
"""float32 is used up to this height of a tree, and this number of flows into one position. Beyond,
roundings may add up: of a star of 100 000 leaves to 1e-4, of one of 512 to 4e-7.
"""


class Flows(NamedTuple):
    """What travels along shortest paths, on the CPU.

    Attributes:
        through: (n,) of float64, the flow that passes through each vertex, without that of its
            ends.
        loads: (2, filled edges) of float64, the flow over the edges of the graph, upward and
            downward.
        unserved: (sources,) of float64, the demand from each source that has no path.
    """

    through: torch.Tensor
    loads: torch.Tensor
    unserved: torch.Tensor


class PathCounts:
    """The numbers of shortest paths below the edges of a filled graph, all of float64.

    A path of weight w counts 2^(-rate w). That cancels in all ratios, and keeps counts that grow
    with the distance within the range of float64.

    Attributes:
        weights: (2, edges), upward and downward, inf where there is no path.
        counts: (2, edges).
        own: (2, edges), the share of the edge of the graph in its count.
    """

    def __init__(self, elimination: Elimination, rate: float) -> None:
        from tri_apsp.kernels.cpu.flows import count_paths

        tree, limit, self._has_rate = elimination.tree, elimination.limit, rate > 0
        given = np.stack((elimination.upward, elimination.downward))
        self.weights = np.where(given <= limit, given.astype(np.float64), np.inf)
        is_edge = (elimination.given == given) & (given <= limit)
        single = np.where(is_edge, np.exp2(-rate * np.where(is_edge, self.weights, 0.0)), 0.0)
        self.counts = single.copy()
        self._lists = tree.offsets, tree.ancestors, *tree.descents
        count_paths(*self._lists, *self.weights, *self.counts)
        self.counts[np.isinf(self.weights)] = 0.0
        # A count is 0 where the rate loses it.
        self.own = np.divide(single, self.counts, out=single, where=single > 0)

    def of_lanes(self, lane_dtype: torch.dtype) -> tuple[Array, Array]:
        """Return weights and counts in the dtype of lanes. For float32, weights are scaled by a
        power of two, so that all sums below inf are exact: those of fewer than 2^24 quanta, which
        divide each weight.
        """
        dtype = np.dtype(dtype_name(lane_dtype))
        with np.errstate(over="ignore"):
            counts = self.counts.astype(dtype)
            if not self._has_rate:
                # Sweeps begin with several paths, so that they exceed this where they use it, but 0
                # times it is 0.
                counts = np.minimum(counts, np.finfo(dtype).max)
            if dtype == np.float64:
                return self.weights, counts
            finite = self.weights[np.isfinite(self.weights)]
            exponent = int(np.frexp(finite.max(initial=0))[1])
            quanta = np.ldexp(finite, 52 - exponent).astype(np.int64)
            lowest = int(np.bitwise_or.reduce(quanta, initial=1 << 52))
            trailing = (lowest & -lowest).bit_length() - 1
            return np.ldexp(self.weights, 156 - exponent - trailing).astype(dtype), counts

    def unpack(self, through: Array, loads: Array) -> None:
        """Turn flows over filled edges (2, edges) into those over edges of the graph, and add what
        passes through the positions below them to `through` (n,).
        """
        from tri_apsp.kernels.cpu.flows import unpack_flows

        unpack_flows(*self._lists, *self.weights, *self.counts, *loads, through)
        loads *= self.own
