"""Sparse methods on a GPU: rounds of kernels, after some of which the host reads whether that one
changed anything.
"""

from functools import cache, cached_property
from typing import Any

import torch

from tri_apsp.device import current, describe
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.shared import sparse as kernels
from tri_apsp.semirings import no_edge
from tri_apsp.sparse.engine import SparseEngine
from tri_apsp.sparse.rounds import FIRST, chunks_of, rounds

# Vertices of a program and threads for each of them: for vertices of at most _SHORT edges, and for
# others.
_SHORT = 64
_TILES = ((32, 8), (1, 512))
# Edges of a program that takes segments; entries of one that joins them.
_SEGMENTS, _CARRIES = 1024, 1024
# Queued vertices of a program, and edges at a time.
_QUEUED, _EXPANDED = 16, 64
# Columns of a program over rows at most, and edges of each of its chunks.
_COLUMNS, _CHUNK = 512, 128
# Bytes of the distances of a slab. 1024 sources of a power-law graph of 2 million edges take 48 ms
# on an H200 with 32 MB, which stay in the L2 cache, and 22 ms with 512 MB: fewer and larger
# launches gain more.
_SLAB_BYTES = 512 << 20
# The host reads after at most this many rounds whether one changed a value.
_MOST_ROUNDS = 64
# Predecessors that are found at a time: this bounds temporaries.
_VALUES_PER_BLOCK = 1 << 25
# The most programs along axis 1 of a grid of CUDA, which are rows or blocks of columns.
_GRID_ROWS = 65535


class TritonSparseEngine(SparseEngine):
    """By the kernels of tri_apsp.kernels.shared.sparse, on the current stream."""

    def distances(
        self,
        method: str,
        sources: torch.Tensor,
        limit: float,
        *,
        targets: torch.Tensor | None = None,
        early_stop: bool = True,
    ) -> torch.Tensor:
        graph, starts = self.graph, sources.to(self.graph.device)
        with current(graph.device):
            if not graph.edges:
                return self._only_sources(starts)
            largest = torch.tensor([limit], dtype=graph.dtype, device=graph.device)
            if method == "many_sources":
                return self._many_sources(starts, largest)
            d = self._only_sources(starts)
            if method == "frontier":
                for row, start in zip(d, starts, strict=True):
                    self._frontier(row, start, largest)
                return d
            run = self._pull if method == "output_parallel" else self._segments
            all_rounds = method == "output_parallel" and not early_stop
            for rows in torch.split(d, _GRID_ROWS):
                lowered = torch.zeros(len(rows), dtype=torch.int32, device=graph.device)
                for _ in range(graph.n - 1) if all_rounds else rounds(lowered, _MOST_ROUNDS):
                    run(rows, lowered, largest)
        return d

    def _only_sources(self, starts: torch.Tensor) -> torch.Tensor:
        """Return distances (rows, n) of which only those of the sources are known."""
        d = torch.full(
            (len(starts), self.graph.n),
            no_edge(self.graph.dtype),
            dtype=self.graph.dtype,
            device=starts.device,
        )
        d[torch.arange(len(starts), device=starts.device), starts] = 0
        return d

    def predecessors(self, sources: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
        starts = sources.to(self.graph.device)
        pred = torch.empty(distances.shape, dtype=torch.int32, device=self.graph.device)
        step = min(_GRID_ROWS, max(1, _VALUES_PER_BLOCK // max(1, self.graph.n)))
        with current(self.graph.device):
            for first in range(0, len(starts), step):
                rows = slice(first, first + step)
                pred[rows] = self._predecessors(starts[rows], distances[rows])
        return pred

    def _predecessors(self, starts: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        pred = _unknown(starts, d)
        if not self.graph.edges:
            return pred
        level = torch.full_like(pred, -1)
        level[torch.arange(len(starts), device=d.device), starts] = 0
        not_closer, found = pred.new_zeros(len(starts)), pred.new_zeros(1)
        self._tight(pred, level, not_closer, found, d, 0, fewest=False)
        again = not_closer.nonzero().flatten()
        if len(again):
            d, level = d[again], level[again]
            part = _unknown(starts[again], d)
            for number in rounds(found, _MOST_ROUNDS):
                self._tight(part, level, not_closer, found, d, number, fewest=True)
            pred[again] = part
        return pred

    def _tight(
        self,
        pred: torch.Tensor,
        level: torch.Tensor,
        not_closer: torch.Tensor,
        found: torch.Tensor,
        d: torch.Tensor,
        number: int,
        *,
        fewest: bool,
    ) -> None:
        lists = self.graph.by_destination
        for order, tile in self._classes:
            _launcher(kernels._tight_kernel, self.graph.dtype, *tile, fewest)(
                (-(-len(order) // tile[0]), len(pred), 1),
                pred,
                level,
                not_closer,
                found,
                order,
                lists.offsets,
                lists.vertices,
                lists.weights,
                d,
                number,
                len(order),
                self.graph.n,
            )

    @cached_property
    def _classes(self) -> list[tuple[torch.Tensor, tuple[int, int]]]:
        """The vertices with edges to them, by their number: those with few, and the others, if
        there are any; each with its tile.
        """
        degrees, order = self.graph.by_destination.degrees.sort()
        none, short = (int((degrees <= most).sum()) for most in (0, _SHORT))
        parts = order[none:short], order[short:]
        classes = zip(parts, _TILES, strict=True)
        return [(part.to(torch.int32), tile) for part, tile in classes if len(part)]

    def _pull(self, d: torch.Tensor, lowered: torch.Tensor, limit: torch.Tensor) -> None:
        lists = self.graph.by_destination
        for order, tile in self._classes:
            _launcher(kernels._pull_kernel, d.dtype, *tile)(
                (-(-len(order) // tile[0]), len(d), 1),
                d,
                lowered,
                order,
                lists.offsets,
                lists.vertices,
                lists.weights,
                limit,
                len(order),
                self.graph.n,
            )

    @cached_property
    def _targets(self) -> torch.Tensor:
        """The destination of each edge, by destination."""
        return self.graph.by_destination.owners().to(torch.int32)

    def _segments(self, d: torch.Tensor, lowered: torch.Tensor, limit: torch.Tensor) -> None:
        lists, edges = self.graph.by_destination, self.graph.edges
        blocks = -(-edges // _SEGMENTS)
        carried = d.new_empty(len(d), 2, blocks)
        _launcher(kernels._segments_kernel, d.dtype)(
            (blocks, len(d), 1),
            d,
            lowered,
            carried,
            lists.vertices,
            self._targets,
            lists.weights,
            limit,
            edges,
            self.graph.n,
        )
        _launcher(kernels._carries_kernel, d.dtype)(
            (len(d), 1, 1), d, lowered, carried, self._targets, limit, blocks, edges, self.graph.n
        )

    def _frontier(self, d: torch.Tensor, start: torch.Tensor, limit: torch.Tensor) -> None:
        lists, n = self.graph.by_source, self.graph.n
        queues = torch.empty(2, n, dtype=torch.int32, device=d.device)
        queues[0, 0] = start
        counts = torch.zeros(_MOST_ROUNDS + 1, dtype=torch.int32, device=d.device)
        counts[0] = 1
        queued = torch.zeros(n, dtype=torch.int32, device=d.device)
        programs = 8 * describe(d.device).units
        number, batch = 0, FIRST
        while True:
            for place in range(batch):
                number += 1
                now, later = queues[(number - 1) % 2], queues[number % 2]
                _launcher(kernels._push_kernel, d.dtype)(
                    (programs, 1, 1),
                    d,
                    now,
                    counts[place:],
                    later,
                    counts[place + 1 :],
                    queued,
                    lists.offsets,
                    lists.vertices,
                    lists.weights,
                    limit,
                    number,
                )
            last = int(counts[batch])
            if not last:
                return
            counts.zero_()
            counts[0] = last
            batch = min(2 * batch, _MOST_ROUNDS)

    @cached_property
    def _chunks(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return chunks_of(self.graph.by_destination, _CHUNK)

    def _many_sources(self, starts: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        graph, needed = self.graph, FIRST
        result = torch.empty(len(starts), graph.n, dtype=graph.dtype, device=graph.device)
        most = min(max(16, _SLAB_BYTES // (graph.n * graph.dtype.itemsize)), _COLUMNS * _GRID_ROWS)
        width = 1 << (most.bit_length() - 1)  # a power of two, so that each thread has a column
        for first in range(0, len(starts), width):
            part = starts[first : first + width]
            x = torch.full(
                (graph.n, len(part)), no_edge(graph.dtype), dtype=graph.dtype, device=graph.device
            )
            x[part, torch.arange(len(part), device=part.device)] = 0
            changed = torch.full((graph.n,), -2, dtype=torch.int32, device=graph.device)
            changed[part] = 0
            self._pull_rows(x, changed, limit, needed)
            result[first : first + len(part)] = x.mT
            if first + width < len(starts):
                needed = int(changed.max()) + 1  # slabs mostly take about as many rounds
        return result

    def _pull_rows(
        self, x: torch.Tensor, changed: torch.Tensor, limit: torch.Tensor, needed: int
    ) -> None:
        """Lower rows in rounds; the host reads for the first time after as many as are `needed`."""
        chunks, lists, width = self._chunks, self.graph.by_destination, x.shape[1]
        block = min(_COLUMNS, max(16, 1 << (width - 1).bit_length()))
        grid = len(chunks[0]), -(-width // block), 1
        lowered = changed.new_zeros(1)
        for number in rounds(lowered, _MOST_ROUNDS, needed):
            _launcher(kernels._pull_rows_kernel, x.dtype, block)(
                grid,
                x,
                changed,
                lowered,
                *chunks,
                lists.vertices,
                lists.weights,
                limit,
                number,
                width,
            )


def _unknown(starts: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """Return predecessors (rows, n) that are to be found: -2, but -1 at the starts and where there
    is no path.
    """
    pred = torch.full_like(d, -1, dtype=torch.int32).masked_fill_(d < no_edge(d.dtype), -2)
    pred[torch.arange(len(starts), device=d.device), starts] = -1
    return pred


@cache
def _launcher(
    kernel: Any, dtype: torch.dtype, block: int = 0, lanes: int = 0, fewest: bool = False
) -> Launcher:
    return Launcher(kernel, kernel_constants(kernel, dtype, block, lanes, fewest))


def kernel_constants(
    kernel: Any, dtype: torch.dtype, block: int = 0, lanes: int = 0, fewest: bool = False
) -> dict[str, Any]:
    """Return the constants and the warps of a kernel; `block`: its VERTICES, or BLOCK of
    _pull_rows_kernel.
    """
    missing = no_edge(dtype)
    row_warps = max(1, block // 128)  # each thread has four neighbouring columns
    known: dict[Any, dict[str, Any]] = {
        kernels._pull_kernel: {"NO_EDGE": missing, "VERTICES": block, "LANES": lanes},
        kernels._segments_kernel: {"NO_EDGE": missing, "BLOCK": _SEGMENTS},
        kernels._carries_kernel: {"NO_EDGE": missing, "EDGES": _SEGMENTS, "BLOCK": _CARRIES},
        kernels._push_kernel: {"VERTICES": _QUEUED, "BLOCK": _EXPANDED},
        kernels._pull_rows_kernel: {
            "NO_EDGE": missing,
            "EDGES": min(16, 16 * 32 * row_warps // max(1, block)),  # 16 values for each thread
            "BLOCK": block,
            "num_warps": row_warps,
        },
        kernels._tight_kernel: {"VERTICES": block, "LANES": lanes, "FEWEST": fewest},
    }
    return {"num_warps": 4} | known[kernel]
