"""Draws the pictures of the gallery, gallery-NAME.png, from graphs that are made here:
`python docs/images/gallery.py`, with names to draw only some.
"""

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from matplotlib.collections import LineCollection
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay
from style import plt

from tri_apsp import (
    accessibility,
    criticality,
    edge_betweenness,
    edge_flows,
    from_edge_index,
    paired_paths,
    prepare,
    shortest_paths,
)

COLORS = 128  # of a picture, which then takes half the bytes
Axes = plt.Axes
Array = np.ndarray


def river(x: Array) -> Array:
    """Return the height of the river at x."""
    return 0.35 * np.sin(2.2 * x) - 0.25


class Town:
    """Crossings, dense in the centre, and streets between neighbours; a river has three bridges."""

    def __init__(self, crossings: int) -> None:
        rng = np.random.default_rng(0)
        angle, radius = 2 * np.pi * rng.random(crossings), rng.random(crossings) ** 0.75
        places = np.stack([1.6 * radius * np.cos(angle), radius * np.sin(angle)], 1)
        triangles = Delaunay(places).simplices
        ends = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), 1), axis=0)
        length = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
        north = places[:, 1] > river(places[:, 0])
        wet = north[ends[:, 0]] != north[ends[:, 1]]
        middle = places[ends].mean(1)[:, 0]
        kept = ~wet & (length < 6 * np.median(length)) & (rng.random(len(ends)) < 0.75)
        kept[[np.where(wet, abs(middle - x), 9).argmin() for x in (-0.9, 0.05, 0.8)]] = True
        ends, length = ends[kept], length[kept]
        streets = coo_array((length, ends.T), shape=(crossings, crossings))
        part = connected_components(streets, directed=False)[1]
        inside = part == np.bincount(part).argmax()
        number, kept = inside.cumsum() - 1, inside[ends[:, 0]]
        minutes = 25 * length[kept] * rng.uniform(1, 1.3, kept.sum())
        self.places, self.ends, self.n = places[inside], number[ends[kept]], int(inside.sum())
        streets = coo_array((minutes, self.ends.T), shape=(self.n, self.n))
        self.graph = prepare(streets, directed=False, dtype=torch.float64)

    def at(self, *places: tuple[float, float]) -> list[int]:
        """Return the crossings that are nearest to some places."""
        return [int(np.linalg.norm(self.places - place, axis=1).argmin()) for place in places]

    def draw(self, axes: Axes, color: str = "#c4c4c4") -> None:
        x = np.linspace(-1.53, 1.53, 200)
        axes.plot(x, river(x), color="#9ecae1", linewidth=5, zorder=0, solid_capstyle="round")
        axes.add_collection(LineCollection(self.places[self.ends], colors=color, linewidths=0.5))
        axes.set(xlim=(-1.64, 1.64), ylim=(-1.03, 1.03), aspect="equal")

    def draw_values(self, axes: Axes, values: Array, label: str, **style: object) -> None:
        """Draw areas by the values of their crossings."""
        self.draw(axes, "#00000030")
        bands = axes.tricontourf(*self.places.T, values, zorder=0.5, **style)
        axes.figure.colorbar(bands, label=label)

    def draw_streets(self, axes: Axes, values: Array, label: str) -> None:
        """Draw streets, wide and dark where their values are large."""
        self.draw(axes)
        order = values.argsort()
        widths = 5 * np.sqrt(values[order] / values.max())
        lines = self.places[self.ends[order]]
        drawn = LineCollection(lines, cmap="inferno_r", linewidths=widths, capstyle="round")
        drawn.set_array(values[order])
        axes.add_collection(drawn)
        axes.figure.colorbar(drawn, label=label)

    def of_streets(self, loads: torch.Tensor) -> Array:
        """Return the loads of streets, of both directions together, from those of edges."""
        edges = self.graph.by_source.owners(), self.graph.by_source.vertices
        loads = coo_array((loads, tuple(map(torch.Tensor.numpy, edges))), (self.n, self.n))
        return np.asarray((loads + loads.T).tocsr()[tuple(self.ends.T)]).ravel()


def isochrones(axes: Axes) -> None:
    town = Town(2500)
    source = town.at((0.2, 0.3))
    minutes = shortest_paths(town.graph, sources=source).distances[0].numpy()
    style = {"levels": range(0, 61, 10), "cmap": "viridis_r", "extend": "max"}
    town.draw_values(axes, minutes, "minutes", **style)
    axes.plot(*town.places[source].T, "o", color="white", markeredgecolor="black")


def jobs(axes: Axes) -> None:
    town = Town(2500)
    work = torch.from_numpy(np.exp(-4 * np.linalg.norm(town.places - (0.3, 0.1), axis=1)))
    share = accessibility(town.graph, [15.0], work)[0].numpy() / work.sum().item()
    town.draw_values(axes, 100 * share, "% of jobs in 15 min", levels=10, cmap="YlGnBu")


def betweenness(axes: Axes) -> None:
    town = Town(1600)
    shares = edge_betweenness(town.graph, weighted=True)
    town.draw_streets(axes, 100 * town.of_streets(shares) / 2, "% of shortest paths")


def loads(axes: Axes) -> None:
    town = Town(1600)
    offices = town.at((-0.5, 0.35), (0.6, -0.3))
    found = edge_flows(town.graph, range(town.n), offices, torch.ones(town.n, 2)).loads
    town.draw_streets(axes, town.of_streets(found), "trips to two offices")
    axes.plot(*town.places[offices].T, "s", color="white", markeredgecolor="black")


def critical(axes: Axes) -> None:
    town = Town(1000)
    result = shortest_paths(town.graph)
    found = criticality(result, town.graph, torch.from_numpy(town.ends), directed=False)
    seconds = 60 * found.increase.numpy() / (town.n * (town.n - 1))
    town.draw_streets(axes, seconds, "s per trip, if closed")


def mesh(axes: Axes) -> None:
    side = 90
    x, y = np.meshgrid(np.linspace(-3, 3, side), np.linspace(-3, 3, side))
    z = 3 * np.exp(-(x**2) - (y - 0.3) ** 2) + 1.5 * np.exp(-((x - 1.4) ** 2) - (y - 2) ** 2)
    points, vertex = np.stack([x, y, z], -1).reshape(-1, 3), np.arange(side**2)
    row, column = np.divmod(vertex, side)
    ends = []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1)):
        inside = (row + down < side) & (column + right >= 0) & (column + right < side)
        ends.append(np.stack([vertex[inside], vertex[inside] + side * down + right]))
    start, end = np.concatenate(ends, 1)
    lengths = np.linalg.norm(points[start] - points[end], axis=1)
    edges = coo_array((lengths, (start, end)), shape=(side**2, side**2))
    surface = prepare(edges, directed=False)
    source, target = 46 * side + 4, 48 * side + 86
    far = shortest_paths(surface, sources=[source]).distances.reshape(side, side).numpy()
    path = points[paired_paths(surface, [source], [target])[0]]
    path[:, 2] += 0.08  # above the surface
    colors = plt.cm.viridis(far / far.max())
    axes.plot_surface(x, y, z, facecolors=colors, rcount=side, ccount=side)
    axes.plot(*path.T, color="crimson", linewidth=2.5, zorder=5)
    axes.view_init(45, -80)
    axes.set_box_aspect((1, 1, 0.4), zoom=1.35)


def maze(axes: Axes) -> None:
    side, rng = 41, np.random.default_rng(3)
    is_open = np.zeros((side, side), bool)
    is_open[1, 1], stack = True, [(1, 1)]
    while stack:  # a depth-first search in a random order
        row, column = stack[-1]
        for down, right in rng.permutation([(2, 0), (-2, 0), (0, 2), (0, -2)]):
            to = row + down, column + right
            if min(to) > 0 and max(to) < side and not is_open[to]:
                is_open[row + down // 2, column + right // 2] = is_open[to] = True
                stack.append(to)
                break
        else:
            stack.pop()
    is_open[1:-1, 1:-1] |= rng.random((side - 2, side - 2)) < 0.03  # more ways than one
    cell = np.where(is_open, is_open.cumsum().reshape(side, side) - 1, -1)
    pairs = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
    start, end = np.concatenate([np.stack(pair).reshape(2, -1) for pair in pairs], 1)
    is_edge, n = (start >= 0) & (end >= 0), int(is_open.sum())
    steps = coo_array((np.ones(is_edge.sum()), (start[is_edge], end[is_edge])), shape=(n, n))
    result = shortest_paths(steps, sources=[0], directed=False, predecessors=True)
    far = np.full((side, side), np.nan)
    far[is_open] = result.distances[0]
    axes.set_facecolor("#333333")
    image = axes.imshow(far, cmap="YlGnBu")
    rows, columns = np.argwhere(is_open)[result.path(0, n - 1)].T
    axes.plot(columns, rows, color="crimson", linewidth=2)
    axes.figure.colorbar(image, label="steps from the corner")


def molecules(axes: Axes) -> None:
    ring = [(i, (i + 1) % 10) for i in range(10)]
    caffeine = "0-1 1-2 2-3 3-4 4-5 5-1 5-6 6-7 6-8 8-9 9-10 9-11 11-4 11-12 8-13"
    ibuprofen = "0-1 1-2 1-3 3-4 4-5 5-6 6-7 7-8 8-9 9-4 7-10 10-11 10-12 12-13 12-14"
    read = [[tuple(map(int, bond.split("-"))) for bond in m.split()] for m in (caffeine, ibuprofen)]
    names, bonds = ("naphthalene", "caffeine", "ibuprofen"), [[*ring, (3, 8)], *read]
    sizes = [1 + max(map(max, each)) for each in bonds]
    first = np.cumsum([0, *sizes])
    edges = torch.cat([torch.tensor(each).T + f for each, f in zip(bonds, first, strict=False)], 1)
    atoms = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    weights, padded = from_edge_index(torch.cat([edges, edges.flip(0)], 1), batch=atoms)
    distances = shortest_paths(weights, sizes=padded).distances
    left = 0
    for name, size, matrix in zip(names, sizes, distances, strict=True):
        extent = (left, left + size, size, 0)
        image = axes.imshow(matrix[:size, :size], cmap="viridis_r", extent=extent, vmin=0, vmax=10)
        axes.text(left + size / 2, -0.4, name, ha="center", va="bottom")
        left += size + 2
    axes.set(xlim=(0, left - 2), ylim=(15, -2))
    axes.figure.colorbar(image, label="bonds", shrink=0.7)


PICTURES = (isochrones, jobs, betweenness, loads, critical, mesh, maze, molecules)

for draw in PICTURES:
    name = draw.__name__
    if name not in (sys.argv[1:] or name):
        continue
    figure = plt.figure(figsize=(4.6, 2.8), layout="constrained")
    axes = figure.add_subplot(projection="3d" if draw is mesh else None)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    if draw is mesh:
        axes.axis("off")
    draw(axes)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=125)
    picture = Image.open(drawn).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    picture.save(Path(__file__).with_name(f"gallery-{name}.png"), optimize=True)
