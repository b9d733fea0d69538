"""Draws flows-loads.svg: the loads of streets by trips between all crossings, in the city of the
tutorial.
"""

import numpy as np
import torch
from matplotlib.collections import LineCollection
from scipy.sparse import coo_array
from style import plt, save

from tri_apsp import edge_betweenness, prepare

SIDE, RIVER, BRIDGES = 60, 29, [8, 30, 51]
vertex = np.arange(SIDE * SIDE)
rows, columns = np.divmod(vertex, SIDE)
east = vertex[columns < SIDE - 1]
south = vertex[(rows < SIDE - 1) & ((rows != RIVER) | np.isin(columns, BRIDGES))]
starts = np.concatenate([east, south])
ends = np.concatenate([east + 1, south + SIDE])
minutes = np.random.default_rng(0).integers(1, 4, len(starts))
streets = coo_array((minutes, (starts, ends)), shape=(SIDE * SIDE, SIDE * SIDE))
city = prepare(streets, directed=False, dtype=torch.int32)
loads = edge_betweenness(city, weighted=True, normalized=False).numpy() / 1000

start, end = city.by_source.owners().numpy(), city.by_source.vertices.numpy()
drawn = np.flatnonzero(start < end)
drawn = drawn[np.argsort(loads[drawn])]
places = np.stack([vertex % SIDE, vertex // SIDE], 1)
lines = np.stack([places[start[drawn]], places[end[drawn]]], 1)

figure, axes = plt.subplots(figsize=(7.6, 6.2), layout="constrained")
shares = np.sqrt(loads[drawn] / loads.max())
drawing = LineCollection(lines, cmap="YlOrRd", linewidths=0.4 + 6 * shares, capstyle="round")
drawing.set_rasterized(True)  # thousands of paths would take a megabyte
drawing.set_array(loads[drawn])
axes.add_collection(drawing)
axes.set(xlim=(-1, SIDE), ylim=(SIDE, -1), aspect="equal", xlabel="column", ylabel="row")
axes.set_title("Trips on each street, one between each two crossings")
figure.colorbar(drawing, label="thousands of trips")
save(figure, __file__)
