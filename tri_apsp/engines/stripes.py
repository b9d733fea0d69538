"""In-place products with a closed block of any size, for engines that launch programs side by side."""

from __future__ import annotations

from tri_apsp.engines.base import WORKSPACE, Block, Engine, Update, block

__all__ = ["multiply_in_stripes"]

# A stripe of whole tiles keeps every program busy to its end.
_GRAIN = 64


def multiply_in_stripes(engine: Engine, closed: Block, row: Block, column: Block) -> None:
    """row <- closed * row and column <- column * closed, for closed (h, h), row (h, w) and column (v, h).

    A program must not read what another has already replaced: in floats, the result would depend on who came first.
    So each stripe is copied to a workspace and replaced by products of the copy, one of each panel side by side. Where the
    engine has memory to spare, all is one stripe.
    """
    height, width, length = closed.shape[1], row.shape[2], column.shape[1]
    step = longest = max(width, length)
    spare = engine.spare(row, height, longest)
    if spare is None:
        step = _stripe_width(int(WORKSPACE / 2 * engine.weights.n**2), height, longest)
        spare = engine.scratch(row, height, min(step, width)), engine.scratch(column, min(step, length), height)
    old_row, old_column = spare
    for start in range(0, longest, step):
        across, down = (start, min(start + step, width)), (start, min(start + step, length))
        updates, copies = [], []
        if start < width:
            stripe, old = block(row, (0, height), across), block(old_row, (0, height), (0, across[1] - start))
            copies.append((old, stripe))
            updates.append(Update(stripe, closed, old))
        if start < length:
            stripe, old = block(column, down, (0, height)), block(old_column, (0, down[1] - start), (0, height))
            copies.append((old, stripe))
            updates.append(Update(stripe, old, closed))
        engine.copy(*copies)
        engine.product(*updates)


def _stripe_width(values: int, height: int, width: int) -> int:
    """Return how many columns of `height` rows to take at a time, as even as whole grains allow, in a workspace of `values`."""
    widest = max(1, values // height)
    if widest >= width:
        return width
    even = -(-width // -(-width // widest))
    in_grains = -(-even // _GRAIN) * _GRAIN
    return in_grains if in_grains <= widest else max(widest // _GRAIN * _GRAIN, min(widest, _GRAIN))
