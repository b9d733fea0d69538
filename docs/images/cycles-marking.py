"""Draws cycles-marking.svg: what a negative cycle of a graph of six vertices affects."""

from style import draw_arrow, draw_vertex, plt, save, write_weight

PLACES = {0: (0, 1.1), 1: (2, 1.1), 2: (3.5, 2.1), 3: (5, 1.1), 4: (7, 1.1), 5: (3.5, -0.1)}
EDGES = {
    (0, 1): 2,
    (1, 2): 1,
    (2, 3): -4,
    (3, 1): 2,
    (3, 4): 3,
    (0, 5): 7,
    (5, 4): 1,
}
CYCLE = {1, 2, 3}
RED = "#b3261e"

figure, axes = plt.subplots(figsize=(8.4, 3.7))
for (source, target), weight in EDGES.items():
    (x0, y0), (x1, y1) = PLACES[source], PLACES[target]
    inside = {source, target} <= CYCLE
    colour = RED if inside else "#444444"
    draw_arrow(axes, (x0, y0), (x1, y1), colour, linewidth=2.2 if inside else 1.4)
    write_weight(axes, ((x0 + x1) / 2, (y0 + y1) / 2), weight, colour)
for vertex, place in PLACES.items():
    draw_vertex(axes, place, vertex, RED if vertex in CYCLE else "black")
axes.text(0, 1.62, "leads to the cycle", ha="center", fontsize=11)
axes.text(3.5, 1.42, "weighs \N{MINUS SIGN}1", ha="center", fontsize=11, color=RED)
axes.text(7, 1.62, "reached from it", ha="center", fontsize=11)
axes.text(3.5, -0.62, "neither", ha="center", fontsize=11)
axes.set(xlim=(-1, 8), ylim=(-0.85, 2.55))
axes.axis("off")
figure.suptitle("From {0, 1, 2, 3} to {1, 2, 3, 4}, 16 pairs have no shortest walk")
figure.tight_layout()
save(figure, __file__)
