"""The process whose bytes ncu counts: python -m tri_apsp.report.counted_calls DEVICE ENGINE N DTYPE
METHOD ...

Each method solves a small graph, so that its kernels are loaded, and then a graph of N vertices
between cudaProfilerStart and cudaProfilerStop. See report.counters.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from tri_apsp.bench.cases import Case
from tri_apsp.bench.solves import direct_products, solve_by_system
from tri_apsp.device import profiled
from tri_apsp.semirings import DTYPES_BY_NAME

__all__ = ["main"]

# Enough vertices that every kernel of a large graph runs.
_SMALL = 2048


def main(argv: Sequence[str]) -> None:
    """Solve by each method of `argv`, on the same graphs as `bench`."""
    name, engine, n, dtype, *methods = argv
    device = torch.device(name)
    small, large = (
        Case(size, DTYPES_BY_NAME[dtype]).weights(device) for size in (min(_SMALL, int(n)), int(n))
    )
    with direct_products():
        for method in methods:
            solve_by_system(small, method, engine)
            with profiled(device):
                solve_by_system(large, method, engine)


if __name__ == "__main__":
    main(sys.argv[1:])
