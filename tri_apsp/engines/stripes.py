"""In-place products with a closed block of any size, for engines that launch programs side by side."""

from __future__ import annotations

from tri_apsp.engines.base import WORKSPACE, Block, Engine, Update, block

__all__ = ["multiply_in_stripes"]

# A stripe of whole tiles keeps every program busy to its end.
_GRAIN = 128


def multiply_in_stripes(engine: Engine, closed: Block, row: Block, column: Block) -> None:
    """row <- closed * row and column <- column * closed, for closed (h, h), row (h, w) and column (w, h).

    A program must not read what another has already replaced: in floats, the result would depend on who came first.
    So each stripe is copied to a workspace and replaced by products of the copy, one of each panel side by side.
    """
    _, height, width = row.shape
    step = _stripe_width(int(WORKSPACE / 2 * engine.weights.n**2), height, width)
    old_row = engine.scratch(row, height, step)
    old_column = engine.scratch(column, step, height)
    for start in range(0, width, step):
        stop = min(start + step, width)
        row_stripe, old_row_stripe = (
            block(row, (0, height), (start, stop)),
            block(old_row, (0, height), (0, stop - start)),
        )
        column_stripe = block(column, (start, stop), (0, height))
        old_column_stripe = block(old_column, (0, stop - start), (0, height))
        engine.copy(old_row_stripe, row_stripe)
        engine.copy(old_column_stripe, column_stripe)
        engine.product(Update(row_stripe, closed, old_row_stripe), Update(column_stripe, old_column_stripe, closed))


def _stripe_width(values: int, height: int, width: int) -> int:
    """Return how many columns of `height` rows a workspace of `values` holds, in whole grains if it holds one."""
    widest = max(1, values // height)
    if widest >= width:
        return width
    return max(widest // _GRAIN * _GRAIN, min(widest, _GRAIN))
