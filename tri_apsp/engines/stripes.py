"""In-place products of panels with a closed block of any size, for engines whose programs run
concurrently.
"""

from tri_apsp.engines.base import WORKSPACE, Block, Engine, Update, block

# Stripes consist of whole tiles, so that no program computes part of a tile.
_TILE = 64


def multiply_in_stripes(engine: Engine, closed: Block, row: Block, column: Block) -> None:
    """row <- closed * row and column <- column * closed, for closed (h, h), row (h, w) and column
    (v, h).

    A program must not read what another program has already replaced, or the rounding of floats
    would depend on the order in which programs run. So each stripe is copied to a workspace and
    replaced by products of the copy, one stripe of each panel at the same time. Where the engine
    has memory for it, the whole panel is one stripe.
    """
    height, width, length = closed.shape[1], row.shape[2], column.shape[1]
    step = longest = max(width, length)
    buffers = engine.panel_buffers(row, height, longest)
    if buffers is None:
        step = _stripe_width(int(WORKSPACE / 2 * engine.spec.n**2), height, longest)
        buffers = (
            engine.scratch(row, height, min(step, width)),
            engine.scratch(column, min(step, length), height),
        )
    old_row, old_column = buffers
    for start in range(0, longest, step):
        # The shorter panel may have no stripe left.
        left, top = min(start, width), min(start, length)
        right, bottom = min(start + step, width), min(start + step, length)
        in_row, old_in_row = (
            block(row, (0, height), (left, right)),
            block(old_row, (0, height), (0, right - left)),
        )
        in_column, old_in_column = (
            block(column, (top, bottom), (0, height)),
            block(old_column, (0, bottom - top), (0, height)),
        )
        engine.copy((old_in_row, in_row), (old_in_column, in_column))
        engine.product(Update(in_row, closed, old_in_row), Update(in_column, old_in_column, closed))


def _stripe_width(values: int, height: int, width: int) -> int:
    """Return how many columns of `height` rows to process at a time in a workspace of `values`:
    whole tiles, in even parts.
    """
    widest = max(1, values // height)
    if widest >= width:
        return width
    even = -(-width // -(-width // widest))
    in_tiles = -(-even // _TILE) * _TILE
    return in_tiles if in_tiles <= widest else max(widest // _TILE * _TILE, min(widest, _TILE))
