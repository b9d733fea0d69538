"""Draws predecessors-tight.svg: the tight edges of a graph of five vertices."""

from style import draw_arrow, draw_vertex, plt, save, write_weight

PLACES = {0: (0, 1), 1: (1.5, 2), 2: (3, 1), 3: (4.5, 2), 4: (6, 1)}
TIGHT = {(0, 1): 1, (1, 2): 2, (2, 3): 1, (3, 4): 2}
OTHERS = {(0, 2): 4, (1, 3): 5, (2, 4): 4, (0, 4): 9}
# How far an edge is bent, and how far its label is from the straight line.
BENT = {(1, 3): (-0.25, 0.5), (0, 4): (0.35, -1.35)}
DISTANCES = {0: 0, 1: 1, 2: 3, 3: 4, 4: 6}

figure, axes = plt.subplots(figsize=(8, 3.6))
for edges, colour, style in ((TIGHT, "#1f4e9c", "-"), (OTHERS, "#888888", (0, (4, 3)))):
    for (source, target), weight in edges.items():
        (x0, y0), (x1, y1) = PLACES[source], PLACES[target]
        bend, shift = BENT.get((source, target), (0, 0))
        line = {"linestyle": style, "linewidth": 2 if style == "-" else 1.4}
        curve = f"arc3,rad={bend}"
        draw_arrow(axes, (x0, y0), (x1, y1), colour, connectionstyle=curve, **line)
        write_weight(axes, ((x0 + x1) / 2, (y0 + y1) / 2 + shift), weight, colour)
for vertex, (x, y) in PLACES.items():
    draw_vertex(axes, (x, y), vertex)
    above = y > 1.5
    axes.text(
        x,
        y + (0.36 if above else -0.36),
        f"d = {DISTANCES[vertex]}",
        ha="center",
        va="center",
        fontsize=11,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        zorder=4,
    )
axes.text(0, 2.75, "blue: tight, w[k, j] = d[k, j]", color="#1f4e9c", va="center")
axes.text(3.4, 2.75, "grey: longer than another path", color="#666666", va="center")
axes.set(xlim=(-0.5, 6.5), ylim=(-0.35, 3))
axes.axis("off")
figure.suptitle("Four of eight edges are tight; d is the distance from vertex 0")
figure.tight_layout()
save(figure, __file__)
