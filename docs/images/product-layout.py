"""Draws product-layout.svg: which thread holds which values of a 64 x 128 tile, with 4 warps."""

from matplotlib.patches import Rectangle
from style import plt, save

ROWS, COLUMNS = 64, 128
# BlockedLayout([1, 4], [4, 8], [2, 2], [1, 0]): per thread, threads per warp, warps.
HUES = ["#4c78a8", "#f58518", "#54a24b", "#b279a2"]


def owner(row: int, column: int) -> tuple[int, int]:
    """Return the warp and the thread that hold a value."""
    warp = 2 * (row // 4 % 2) + column // 32 % 2
    return warp, 8 * (row % 4) + column // 4 % 8


figure, (tile, block) = plt.subplots(
    2, 1, figsize=(9, 8.2), height_ratios=[2.0, 1.0], layout="constrained"
)
# The tile: blocks of 4 rows and 32 columns, and what thread 0 of warp 0 holds.
for row in range(0, ROWS, 4):
    for column in range(0, COLUMNS, 32):
        warp = owner(row, column)[0]
        tile.add_patch(Rectangle((column, row), 32, 4, fc=HUES[warp], alpha=0.30, ec="white"))
        tile.text(column + 17, row + 2.1, f"warp {warp}", ha="center", va="center", fontsize=11)
for row in range(ROWS):
    for column in range(0, COLUMNS, 4):
        if owner(row, column) == (0, 0):
            tile.add_patch(Rectangle((column, row), 4, 1, fc="black"))
tile.set(xlim=(0, COLUMNS), ylim=(ROWS, 0), xticks=range(0, 129, 16), yticks=range(0, 65, 8))
tile.set_title("A tile of C, 64 rows x 128 columns; black: the 64 values of thread 0 of warp 0")
tile.set(xlabel="column", ylabel="row")
# One block of a warp: 32 threads, each with four neighbours of a row.
for row in range(4):
    for column in range(0, 32, 4):
        warp, thread = owner(row, column)
        first = thread == 0
        block.add_patch(
            Rectangle(
                (column, row),
                4,
                1,
                fc="black" if first else HUES[warp],
                ec="white",
                lw=2,
                alpha=1 if first else 0.30,
            )
        )
        block.text(
            column + 2,
            row + 0.5,
            f"thread {thread}",
            ha="center",
            va="center",
            fontsize=11,
            color="white" if first else "black",
        )
        for value in range(1, 4):
            block.plot([column + value] * 2, [row, row + 0.12], color="white", lw=1)
block.set(xlim=(0, 32), ylim=(4, 0), xticks=range(0, 33, 4), yticks=range(5))
block.set_title("The first block of warp 0: each thread holds four neighbours of one row")
block.set(xlabel="column", ylabel="row")
for axes in (tile, block):
    for spine in axes.spines.values():
        spine.set_visible(False)
save(figure, __file__)
