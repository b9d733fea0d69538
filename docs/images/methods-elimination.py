"""Draws methods-elimination.svg: the order of elimination of a grid of 3 x 3, its fill-in, and its
elimination tree.
"""

from matplotlib.patches import FancyArrowPatch
from style import plt, save

PLACE = {v: (v % 3, 2 - v // 3) for v in range(9)}
GRID = [(v, v + 1) for v in range(9) if v % 3 < 2] + [(v, v + 3) for v in range(6)]
TREE = {5: (1, 2.3), 4: (1, 1.65), 3: (1, 1), 1: (0.25, 0.35), 7: (1.75, 0.35)}
TREE |= {0: (-0.2, -0.3), 2: (0.65, -0.3), 6: (1.35, -0.3), 8: (2.2, -0.3)}


def eliminate(edges):
    """Return the order, by smallest degree in rounds of vertices that are not adjacent, and of each
    vertex the fill-in and the parent.
    """
    near = {v: set() for v in PLACE}
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    order, fill, ancestors = [], [], {}
    while near:
        least, touched = min(map(len, near.values())), set()
        for v in [v for v in near if len(near[v]) == least]:
            if v in touched:
                continue
            around = sorted(near.pop(v))
            for u in around:
                near[u].discard(v)
            new = [(u, w) for u in around for w in around if u < w and w not in near[u]]
            for u, w in new:
                near[u].add(w)
                near[w].add(u)
            touched |= {*around}
            order.append(v)
            fill.append(new)
            ancestors[v] = around
    return order, fill, {v: min(ancestors[v], key=order.index, default=None) for v in order}


def line(axes, u, v, **style):
    (x0, y0), (x1, y1) = PLACE[u], PLACE[v]
    # Edges over the middle are bent, so that they do not cover vertices.
    bend = 0.28 if abs(x0 - x1) == 2 or abs(y0 - y1) == 2 else 0
    arrow = {"arrowstyle": "-", "connectionstyle": f"arc3,rad={bend}", "shrinkA": 12, "shrinkB": 12}
    axes.add_patch(FancyArrowPatch((x0, y0), (x1, y1), **(arrow | style)))


order, fill, parents = eliminate(GRID)
figure, panels = plt.subplots(1, 4, figsize=(12, 3.9), layout="constrained")
titles = [
    "1. The graph: 12 edges",
    f"2. After {order[0]}, {order[1]}, {order[2]}, {order[3]}",
    "3. Order, edges and fill-in",
]
for axes, title, done in zip(panels[:3], titles, (0, 4, 9), strict=True):
    gone = set(order[:done]) if done < 9 else set()
    for u, v in GRID:
        if not {u, v} & gone:
            line(axes, u, v, color="#555555", lw=2)
    for new in fill[:done]:
        for u, w in new:
            if not {u, w} & gone:
                line(axes, u, w, color="#d62728", lw=2, linestyle="--")
    for v, (x, y) in PLACE.items():
        label = str(v) if done < 9 else f"{order.index(v) + 1}."
        hue = "#dddddd" if v in gone else "#4c78a8"
        axes.plot(x, y, "o", ms=24, color=hue)
        axes.text(x, y, label, ha="center", va="center", color="black" if v in gone else "white")
    axes.set(xlim=(-0.6, 2.6), ylim=(-0.6, 2.6), aspect="equal")
    axes.set_title(title)
    axes.axis("off")
axes = panels[3]
for v, (x, y) in TREE.items():
    if parents[v] is not None:
        axes.plot(*zip((x, y), TREE[parents[v]], strict=True), color="#555555", lw=2, zorder=1)
    axes.plot(x, y, "o", ms=24, color="#4c78a8")
    axes.text(x, y, str(v), ha="center", va="center", color="white")
axes.set(xlim=(-0.6, 2.6), ylim=(-0.6, 2.6), aspect="equal", title="4. The elimination tree")
axes.axis("off")
figure.suptitle("Elimination of a grid of 3 x 3: fill-in is dashed and red", fontsize=12)
save(figure, __file__)
