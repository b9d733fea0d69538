"""Verifying distances before the caller gets them: no negative cycle, and every distance in the
range of the dtype.
"""

from collections.abc import Callable

import torch

from tri_apsp.engines import Engine
from tri_apsp.semirings import DistanceRange, distance_range, no_edge
from tri_apsp.value_checks import raise_out_of_range
from tri_apsp.value_range import KnownRanges, PendingRanges, ValueRange, row_blocks


class NegativeDiagonalError(Exception):
    """A solve was left early, since a diagonal value became negative."""


class EarlyCheck:
    """Checks blocks that a solve has closed, and raises once a diagonal value is negative.

    Where the device is still computing a check, it is evaluated by the next call. The solve has
    queued more work in between, so the device does not idle while the host blocks.

    Raises:
        NegativeDiagonalError: by each call and by finish().
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queued: PendingRanges | None = None

    def __call__(self, closed: torch.Tensor) -> None:
        """Check a diagonal block of the distances that was closed."""
        diagonal = closed.diagonal(dim1=-2, dim2=-1)[:, None]
        before, self._queued = self._queued, self._engine.queue_value_range(diagonal)
        if isinstance(self._queued, KnownRanges):
            self.finish()
        elif _is_negative(before):
            self._queued.read()  # frees its buffer
            raise NegativeDiagonalError

    def finish(self) -> None:
        """Evaluate the last check."""
        last, self._queued = self._queued, None
        if _is_negative(last):
            raise NegativeDiagonalError


def _is_negative(pending: PendingRanges | None) -> bool:
    """Return whether some value is negative, once its range is computed."""
    return pending is not None and pending.read()[0].lowest < 0


def verify(
    distances: torch.Tensor,
    weights_range: ValueRange,
    engine: Engine,
    close: Callable[[torch.Tensor], None],
    *,
    found: ValueRange | None = None,
) -> bool:
    """Check solved distances. Beside negative weights, integers that mean "no edge" are not all
    no_edge, but at least distance_range(dtype, negative=True).beyond: they are set to no_edge.

    Args:
        distances: (batch, n, n), changed in place. A padded vertex is one that no edge touches.
        weights_range: the value range of the weights below no_edge.
        engine: of the solve.
        close: solves a matrix in place, as `distances` was solved; called only if reachability is
            in doubt.
        found: the value range of `distances` below no_edge, with the diagonal, if known; its
            highest values may be bounds.

    Returns:
        False if a diagonal value is negative, as a negative cycle, rounding, or clamped integers
        leave it.

    Raises:
        DistanceRangeError: a distance is out of the range of the dtype.

    Cost: one value range, unless `found` suffices, and one more pass for negative integers; in
    doubt, one more solve and one more matrix.
    """
    if distances.numel() == 0:
        return True
    known = None if found is None else decided_by_ranges(distances.dtype, weights_range, found)
    if known is not None:
        return known
    negative = weights_range.lowest < 0
    allowed = distance_range(distances.dtype, negative=negative)
    if found is None or (
        allowed.beyond != no_edge(distances.dtype) and found.highest >= allowed.beyond
    ):
        found = engine.value_ranges([distances], allowed.beyond, diagonal=negative)[0]
    if negative and found.lowest_diagonal is not None and found.lowest_diagonal < 0:
        return False
    longest = weights_range.highest_below
    if may_be_too_far(distances.dtype, found, allowed, longest):
        exact = engine.value_ranges([distances], allowed.beyond)[0]
        if may_be_too_far(distances.dtype, exact, allowed, longest):
            check_reachability(distances, allowed, close)
    if found.highest >= allowed.beyond and negative and not distances.is_floating_point():
        for block in row_blocks(distances):
            block.masked_fill_(block >= allowed.beyond, no_edge(distances.dtype))
    return True


def decided_by_ranges(
    dtype: torch.dtype, weights_range: ValueRange, found: ValueRange
) -> bool | None:
    """Return what `verify` does, where the value ranges alone tell it; None: they do not.

    Raises:
        DistanceRangeError: a distance is below the range.
    """
    negative = weights_range.lowest < 0
    allowed = distance_range(dtype, negative=negative)
    if allowed.beyond != no_edge(dtype) and found.highest >= allowed.beyond:
        return None
    if negative and found.lowest_diagonal is not None and found.lowest_diagonal < 0:
        return False
    return None if may_be_too_far(dtype, found, allowed, weights_range.highest_below) else True


def may_be_too_far(
    dtype: torch.dtype,
    found: ValueRange,
    allowed: DistanceRange,
    longest: float | int | None,
) -> bool:
    """Return whether some distance may have exceeded the range, by the value range of all and the
    longest edge.

    Raises:
        DistanceRangeError: a distance is below the range.

    Follow a shortest path to a vertex that is reachable but too far: its last vertex in range has a
    distance of at least `ceiling` minus the longest edge. So if no distance comes that close to the
    ceiling, none exceeded it.
    """
    if found.lowest < allowed.lowest:
        raise_out_of_range(dtype, f"a path weighs less than {allowed.lowest}")
    if found.highest < allowed.beyond:
        return False
    farthest = found.highest_below
    return (
        farthest is not None
        and longest is not None
        and farthest + max(longest, 0) >= allowed.ceiling
    )


def check_reachability(
    distances: torch.Tensor, allowed: DistanceRange, close: Callable[[torch.Tensor], None]
) -> None:
    """Distinguish "unreachable" from "too far": a solve stores no_edge for both.

    Reachability is the same solve with every known distance replaced by 0.
    """
    reachable = torch.zeros_like(distances)
    for block, source in zip(row_blocks(reachable), row_blocks(distances), strict=True):
        block.masked_fill_(source >= allowed.beyond, no_edge(distances.dtype))
    close(reachable)
    for block, source in zip(row_blocks(reachable), row_blocks(distances), strict=True):
        if bool(((block == 0) & (source >= allowed.beyond)).any()):
            most = (
                f"more than {allowed.ceiling:g}"
                if distances.is_floating_point()
                else f"{allowed.beyond} or more"
            )
            raise_out_of_range(distances.dtype, f"a path weighs {most}")
