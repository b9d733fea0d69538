"""python -m tri_apsp.bench.scipy_process: SciPy's Floyd-Warshall on the graphs from stdin.

It runs in a process of its own because its loop in C handles no Ctrl-C. It imports no torch, and so
starts quickly.
"""

import pickle
import sys
import time

import numpy as np


def main() -> None:
    """Read weights (graphs, n, n) as a pickle; write their distances and the seconds of all
    solves.
    """
    from scipy.sparse.csgraph import floyd_warshall

    distances = pickle.load(sys.stdin.buffer)
    seconds = 0.0
    for graph in distances:
        dense = graph.astype(np.float64)
        start = time.perf_counter()
        solved = floyd_warshall(dense)
        seconds += time.perf_counter() - start
        graph[:] = solved
    pickle.dump((distances, seconds), sys.stdout.buffer, protocol=5)


if __name__ == "__main__":
    main()
