"""The city of the tutorial, which several figures draw: a grid of crossings, and streets of 1 to 3
minutes. A river, below row RIVER, has three bridges.
"""

import numpy as np
import torch
from scipy.sparse import coo_array

from tri_apsp import prepare

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
