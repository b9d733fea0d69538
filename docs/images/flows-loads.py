"""Draws flows-loads.svg: the loads of streets by trips between all crossings, in the city of the
tutorial.
"""

import numpy as np
from city import SIDE, city, columns, rows
from matplotlib.collections import LineCollection
from style import plt, save

from tri_apsp import edge_betweenness

loads = edge_betweenness(city, weighted=True, normalized=False).numpy() / 1000

start, end = city.by_source.owners().numpy(), city.by_source.vertices.numpy()
drawn = np.flatnonzero(start < end)
drawn = drawn[np.argsort(loads[drawn])]
places = np.stack([columns, rows], 1)
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
