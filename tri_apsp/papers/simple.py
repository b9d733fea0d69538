"""One launch per vertex, in blocks of 16 x 16 threads that write only where a path gets shorter
(2023).

    for k from 0 to n - 1:                                   # on the host, one launch each
        for all (i, j) in parallel:                          # one thread each
            ij, ik, kj <- graph[i][j], graph[i][k], graph[k][j]
            if ik + kj < ij:
                graph[i][j] <- ik + kj

Few pairs improve in a step, so that most of the writes of harish_narayanan are saved. The 16 rows
of a block share row k, its 16 columns share column k, which the caches serve. The paper's weights
are of type short, and 256 threads were best.

Source: Catinello, Parallel Floyd-Warshall, section 2.1.
"""

from typing import Any

import triton
import triton.language as tl

from tri_apsp.papers.rank_one import EDGE, RankOneMethod, relax_block


@triton.jit(do_not_specialize=["k"])
def _simple_kernel(
    d_ptr,  # D (batch, n, n), unit column stride
    n,
    k,
    stride_db,
    stride_dm,
    FLOOR: tl.constexpr,
    EDGE: tl.constexpr,
):
    """Update a block [EDGE, EDGE], one value by each thread. Axis 0 of the grid is the blocks, axis
    1 the graph.
    """
    blocks = tl.cdiv(n, EDGE)
    offs_m = tl.program_id(0) // blocks * EDGE + tl.arange(0, EDGE)
    offs_n = tl.program_id(0) % blocks * EDGE + tl.arange(0, EDGE)
    d_ptr += tl.program_id(1).to(tl.int64) * stride_db
    ptrs, mask, d_ij, shorter = relax_block(d_ptr, offs_m, offs_n, k, n, stride_dm, FLOOR)
    tl.store(ptrs, shorter, mask=mask & (shorter < d_ij))


class Simple(RankOneMethod):
    """n launches, each reads the whole matrix and writes what has improved; no workspace."""

    def _kernel(self, n: int) -> tuple[Any, dict[str, int], int]:
        return _simple_kernel, {"EDGE": EDGE}, (-(-n // EDGE)) ** 2
