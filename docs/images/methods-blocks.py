"""Draws methods-blocks.svg: the blocks of D that each step of floyd_warshall and kleene writes."""

from matplotlib.patches import Rectangle
from style import plt, save

WRITTEN, READ, OTHER = "#4c78a8", "#f2c078", "#eeeeee"


def draw(axes, title, size, written, read=(), names=()):
    for row in range(size):
        for column in range(size):
            place = (row, column)
            hue = WRITTEN if place in written else READ if place in read else OTHER
            axes.add_patch(Rectangle((column, row), 1, 1, fc=hue, ec="white", lw=2))
    for (row, column), name in dict(names).items():
        hue = "white" if (row, column) in written else "black"
        axes.text(column + 0.5, row + 0.5, name, ha="center", va="center", color=hue)
    axes.set(xlim=(0, size), ylim=(size, 0), aspect="equal")
    axes.set_title(title, fontsize=11)
    axes.axis("off")


figure = plt.figure(figsize=(9, 4.6), layout="constrained")
top, bottom = figure.subfigures(2, 1)
# One step of floyd_warshall, for the second of five diagonal blocks.
blocks = [(i, j) for i in range(5) for j in range(5)]
panels = [(i, j) for i, j in blocks if (i == 1) != (j == 1)]
rest = [(i, j) for i, j in blocks if i != 1 and j != 1]
name = {(1, 1): "K"}
top.suptitle(
    "floyd_warshall: the blocks that a step writes (blue) and reads beside them (orange)",
    fontsize=12,
)
row = top.subplots(1, 3)
draw(row[0], "1. K <- K*", 5, [(1, 1)], names=name)
draw(row[1], "2. panels <- K panel, panel K", 5, panels, [(1, 1)], name)
draw(row[2], "3. others <- min(others, column row)", 5, rest, panels, name)
# kleene on four quarters.
bottom.suptitle("kleene: A* and E* divide their quarters in the same way", fontsize=12)
names = {(0, 0): "A", (0, 1): "B", (1, 0): "C", (1, 1): "E"}
steps = [
    ("1. A*", [(0, 0)], []),
    ("2. A B, C A", [(0, 1), (1, 0)], [(0, 0)]),
    ("3. min(E, C B)", [(1, 1)], [(0, 1), (1, 0)]),
    ("4. E*", [(1, 1)], []),
    ("5. E C, B E", [(0, 1), (1, 0)], [(1, 1)]),
    ("6. min(A, B C)", [(0, 0)], [(0, 1), (1, 0)]),
]
for axes, (title, written, read) in zip(bottom.subplots(1, 6), steps, strict=True):
    draw(axes, title, 2, written, read, names)
save(figure, __file__)
