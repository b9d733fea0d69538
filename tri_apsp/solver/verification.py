"""What must hold of solved distances before a caller sees them: no negative cycle, and every distance in range."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tri_apsp.errors import DistanceRangeError, NegativeCycleError
from tri_apsp.gpu.value_range import Findings, has_kernels
from tri_apsp.semirings import DistanceRange, distance_range, dtype_name, no_edge
from tri_apsp.solver.value_range import Scan, row_blocks, scan

__all__ = ["EarlyLook", "audit", "raise_out_of_range"]


class EarlyLook:
    """Looks at blocks that a solve has closed, and raises once a diagonal shows a negative cycle.

    On a GPU, each call queues a look and reads what the one before found: the solve has queued more since, so that the GPU
    never waits for the host.

    Args:
        distances: (batch, n, n), as far as they are solved.
        weights: the untouched weights, or None where they were overwritten.
        sizes: (batch,) where graphs are padded: only the leading vertices of `weights` and `distances` are a graph.
    """

    def __init__(self, distances: torch.Tensor, weights: torch.Tensor | None, sizes: torch.Tensor | None = None) -> None:
        self._solve = distances, weights, sizes
        self._queued: Findings | None = None

    def __call__(self, closed: torch.Tensor) -> None:
        """Look at a diagonal block of the distances that was closed."""
        diagonal = closed.diagonal(dim1=-2, dim2=-1)[:, None]
        if not has_kernels(diagonal):
            if diagonal.numel() and diagonal.amin().item() < 0:
                _raise_negative(*self._solve)
            return
        before, self._queued = self._queued, Findings(diagonal)
        self._queued.scan(diagonal, None)
        self._queued.mark()
        if before is not None and before.read()[0].lowest < 0:
            self._queued.read()  # which frees its room
            _raise_negative(*self._solve)

    def finish(self) -> None:
        """Read what the last look found."""
        last, self._queued = self._queued, None
        if last is not None and last.read()[0].lowest < 0:
            _raise_negative(*self._solve)


def audit(
    distances: torch.Tensor,
    weights: torch.Tensor | None,
    negative: bool,
    longest: float | int | None,
    close: Callable[[torch.Tensor], None],
    sizes: torch.Tensor | None = None,
    found: Scan | None = None,
) -> None:
    """Raise if the solved `distances` (batch, n, n) are not the distances; else turn every "no edge" into no_edge.

    Args:
        distances: solved in place; entries from `beyond` on become no_edge.
        weights: the untouched weights, or None where they were overwritten.
        negative: whether any weight was negative.
        longest: the largest weight below no_edge, if any.
        close: solves a matrix in place, as `distances` was solved; called only where reachability is in doubt.
        sizes: as for EarlyLook; a padded vertex of `distances` is one that no edge touches.
        found: what a scan of `distances` below no_edge, with the diagonal, found, if there was one.

    Raises:
        NegativeCycleError: some cycle is negative.
        DistanceRangeError: a distance is out of the range of the dtype.

    Cost: one scan, unless there was one that tells enough, and with negative integers one more pass; in doubt, one more solve
    and one more matrix.
    """
    if distances.numel() == 0:
        return
    bounds = distance_range(distances.dtype, negative=negative)
    if found is None or (bounds.beyond != no_edge(distances.dtype) and found.highest >= bounds.beyond):
        found = scan(distances, bounds.beyond, diagonal=negative)
    if negative:
        assert found.lowest_diagonal is not None
        if found.lowest_diagonal < 0:
            _raise_negative(distances, weights, sizes)
        if found.lowest < bounds.lowest:
            raise_out_of_range(distances.dtype, f"a path weighs less than {bounds.lowest}")
    if found.highest < bounds.beyond:
        return
    _check_reachability(distances, found, bounds, longest, close)
    if negative and not distances.is_floating_point():
        for block in row_blocks(distances):
            block.masked_fill_(block >= bounds.beyond, no_edge(distances.dtype))


def _check_reachability(
    distances: torch.Tensor,
    found: Scan,
    bounds: DistanceRange,
    longest: float | int | None,
    close: Callable[[torch.Tensor], None],
) -> None:
    """Tell "unreachable" from "too long": both come out of a solve as no edge; `found` is what the distances hold.

    Follow a shortest path to a vertex that is reachable but too far: its last vertex in range lies at a distance of at
    least `ceiling` minus the longest edge. So if no distance comes that close to the ceiling, none went over it. Only
    if one does, reachability is computed: the same solve with every known distance replaced by 0.
    """
    farthest = found.highest_below
    if farthest is None or longest is None or farthest + max(longest, 0) < bounds.ceiling:
        return
    reachable = torch.zeros_like(distances)
    for block, source in zip(row_blocks(reachable), row_blocks(distances), strict=True):
        block.masked_fill_(source >= bounds.beyond, no_edge(distances.dtype))
    close(reachable)
    for block, source in zip(row_blocks(reachable), row_blocks(distances), strict=True):
        if bool(((block == 0) & (source >= bounds.beyond)).any()):
            raise_out_of_range(distances.dtype, f"a path weighs {bounds.beyond} or more")


def raise_out_of_range(dtype: torch.dtype, what: str) -> None:
    wider = {torch.int16: "int32", torch.int32: "int64"}.get(dtype, "float64")
    raise DistanceRangeError(f"distances must fit {dtype_name(dtype)}, but {what}; use a wider dtype, such as {wider}.")


def _raise_negative(distances: torch.Tensor, weights: torch.Tensor | None, sizes: torch.Tensor | None) -> None:
    """The diagonal has turned negative: raise with a cycle of the weights, or with what the diagonal shows.

    Integers that were clamped on the way can make a diagonal negative without a cycle, also that of a padded vertex; then
    the weights decide.
    """
    diagonal = distances.diagonal(dim1=-2, dim2=-1)
    item = int((diagonal < 0).any(dim=-1).nonzero()[0])
    batch = item if distances.shape[0] > 1 else None
    size = distances.shape[-1] if sizes is None else int(sizes[item])
    if weights is not None:
        cycle = negative_cycle(weights[item, :size, :size])
        if cycle:
            raise NegativeCycleError(cycle, batch)
    vertices = [int(v) for v in (diagonal[item, :size] < 0).nonzero().flatten()]
    clamped = distances[item].amin().item() < distance_range(distances.dtype, negative=True).lowest
    if clamped and not distances.is_floating_point() and (weights is not None or not vertices):
        raise_out_of_range(distances.dtype, "a path weighs too little")
    raise NegativeCycleError(vertices, batch)


def negative_cycle(weights: torch.Tensor) -> list[int]:
    """Return the vertices of one simple negative cycle of weights (n, n) in order, or [] if there is none.

    Bellman-Ford from all vertices at once, in float64: after some round the parents form a cycle, which is negative.
    Cost: n^2 operations a round, usually few more rounds than the cycle has edges, at most n.
    """
    n = weights.shape[0]
    infinity = no_edge(weights.dtype)
    distances = torch.zeros(n, dtype=torch.float64, device=weights.device)
    parents = torch.full((n,), -1, device=weights.device)
    step = max(1, (1 << 22) // n)  # columns at a time
    for turn in range(1, n + 1):
        updated, changed = distances.clone(), False
        for start in range(0, n, step):
            columns = slice(start, start + step)
            part = weights[:, columns]
            through = part.to(torch.float64).masked_fill(part == infinity, float("inf")) + distances[:, None]
            best, source = through.min(dim=0)
            better = best < distances[columns]
            updated[columns] = torch.where(better, best, distances[columns])
            parents[columns] = torch.where(better, source, parents[columns])
            changed = changed or bool(better.any())
        if not changed:
            return []
        distances = updated
        if turn & (turn - 1) == 0 or turn == n:
            cycle = _cycle_of(parents.tolist())
            if cycle:
                return cycle
    return []


def _cycle_of(parents: list[int]) -> list[int]:
    """Return a cycle of the graph v -> parents[v] in the direction of its edges (parent first), or []."""
    seen = [0] * len(parents)
    for start in range(len(parents)):
        vertex, path = start, []
        while vertex >= 0 and not seen[vertex]:
            seen[vertex] = start + 1
            path.append(vertex)
            vertex = parents[vertex]
        if vertex >= 0 and seen[vertex] == start + 1:
            return path[path.index(vertex) :][::-1]
    return []
