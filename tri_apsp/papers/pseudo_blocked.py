"""One launch per vertex, a square of values per thread, one after another (2023).

    for k from 0 to n - 1:                                   # on the host, one launch each
        for all squares of b x b values in parallel:         # one thread each
            for h from 0 to b - 1:  for w from 0 to b - 1:
                i, j <- row h and column w of the square
                if graph[i][k] + graph[k][j] < graph[i][j]:
                    graph[i][j] <- graph[i][k] + graph[k][j]

Blocks without shared memory: a thread reads row k once for its b rows, where the caches keep it.
But neighbouring threads are b columns apart, so that a warp touches b times as many cache lines
with each access. The paper found b = 4 best of 1 to 32.

Source: Catinello, Parallel Floyd-Warshall, sections 2.3 and 3.3.
"""

from typing import Any

import triton
import triton.language as tl

from tri_apsp.papers.rank_one import EDGE, RankOneMethod, relax_block


@triton.jit(do_not_specialize=["k"])
def _pseudo_blocked_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    k,
    stride_db,
    stride_dm,
    FLOOR: tl.constexpr,
    EDGE: tl.constexpr,
    SQUARE: tl.constexpr,
):
    """Update EDGE x EDGE squares, one by each thread. Axis 0 of the grid is blocks of these
    squares, axis 1 the graph.
    """
    blocks = tl.cdiv(n, EDGE * SQUARE)
    first_m = (tl.program_id(0) // blocks * EDGE + tl.arange(0, EDGE)) * SQUARE
    first_n = (tl.program_id(0) % blocks * EDGE + tl.arange(0, EDGE)) * SQUARE
    d_ptr += tl.program_id(1).to(tl.int64) * stride_db
    for h in range(SQUARE):
        for w in tl.static_range(SQUARE):
            ptrs, mask, d_ij, shorter = relax_block(
                d_ptr, first_m + h, first_n + w, k, n, stride_dm, FLOOR
            )
            tl.store(ptrs, shorter, mask=mask & (shorter < d_ij))


class PseudoBlocked(RankOneMethod):
    """n launches, each reads the whole matrix and writes what has improved; no workspace. The
    parameter is b.
    """

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        square = self.parameter
        programs = (-(-n // (EDGE * square))) ** 2
        return _pseudo_blocked_kernel, {"EDGE": EDGE, "SQUARE": square}, programs
