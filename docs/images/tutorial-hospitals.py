"""Draws tutorial-hospitals.svg: minutes from the nearest hospital, in the city of the tutorial."""

import numpy as np
from city import BRIDGES, RIVER, SIDE, city
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from style import plt, save

from tri_apsp import nearest

places = np.array([(12, 15), (20, 48), (45, 10), (50, 40)])
hospitals = (places @ [SIDE, 1]).tolist()
result = nearest(city, hospitals, predecessors=True)
distances = result.distances.reshape(SIDE, SIDE)
hospital = result.nearest.reshape(SIDE, SIDE)

figure, axes = plt.subplots(figsize=(7.6, 6.2), layout="constrained")
image = axes.imshow(distances, cmap="YlOrRd", interpolation="nearest")
borders = [
    ((column + 0.5, row - 0.5), (column + 0.5, row + 0.5))
    for row, column in np.argwhere(np.diff(hospital, axis=1) != 0)
] + [
    ((column - 0.5, row + 0.5), (column + 0.5, row + 0.5))
    for row, column in np.argwhere(np.diff(hospital, axis=0) != 0)
]
axes.add_collection(LineCollection(borders, colors="black", linewidths=1.2))
banks = [-0.5, *(edge for bridge in BRIDGES for edge in (bridge - 0.5, bridge + 0.5)), SIDE - 0.5]
water = [
    ((left, RIVER + 0.5), (right, RIVER + 0.5))
    for left, right in zip(banks[::2], banks[1::2], strict=True)
]
axes.add_collection(LineCollection(water, colors="#3b78c2", linewidths=5, capstyle="butt"))
for name, (row, column) in zip("ABCD", places, strict=True):
    axes.plot(column, row, "o", color="white", markeredgecolor="black", markersize=17)
    axes.text(column, row, name, ha="center", va="center_baseline", weight="bold")
name = axes.text(19, RIVER - 0.8, "river", color="#1f4e8c", ha="center", weight="bold")
name.set_path_effects([withStroke(linewidth=3, foreground="white")])
figure.colorbar(image, label="minutes")
axes.set_title("Minutes from the nearest hospital, and where each is nearest")
axes.set(xlabel="column", ylabel="row")
save(figure, __file__)
