"""python -m tri_apsp.bench.scipy_process: SciPy's Floyd-Warshall on the graphs from stdin.

It runs in a process of its own because its loop in C handles no Ctrl-C. It imports no torch, and so
starts quickly.
"""

import io
import sys
import time

import numpy as np


def main() -> None:
    """Read weights (graphs, n, n) in NumPy's format; write their distances, and then the seconds of
    all solves.
    """
    from scipy.sparse.csgraph import floyd_warshall

    distances = np.load(io.BytesIO(sys.stdin.buffer.read()))
    seconds = 0.0
    for graph in distances:
        dense = graph.astype(np.float64)
        start = time.perf_counter()
        solved = floyd_warshall(dense)
        seconds += time.perf_counter() - start
        graph[:] = solved
    # NumPy writes to a file that can seek, which a pipe cannot.
    output = io.BytesIO()
    np.save(output, distances)
    np.save(output, np.float64(seconds))
    sys.stdout.buffer.write(output.getvalue())


if __name__ == "__main__":
    main()
