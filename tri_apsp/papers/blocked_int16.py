"""The blocked algorithm on weights of type short, one or four values per thread (2023).

    blockedUpdateFW(ij, ik, kj):          # tiles of b x b in shared memory, one thread per value
        for k from 0 to b - 1:
            if ik[i][k] + kj[k][j] < ij[i][j]:
                ij[i][j] <- ik[i][k] + kj[k][j]
            synchronise all threads
    for each diagonal tile K:
        phase 1: blockedUpdateFW(KK, KK, KK)
        phase 2: blockedUpdateFW(iK, iK, KK),  blockedUpdateFW(Kj, KK, Kj)     for all other i and j
        phase 3: blockedUpdateFW(ij, iK, Kj)                                   for all other i and j

These are the kernels of katz_kider with one thread per value: b = 8, 16 and 32 are 64, 256 and 1024
threads, of which 256 are best in the paper. Vectorised, a thread owns four neighbouring columns
(short4), so that a block has a quarter of the threads; for n = 16384 that was about 570 times as
fast as one core of an Intel i9-9900K.

Source: Catinello, Parallel Floyd-Warshall, sections 2.4 and 2.5.
"""

from typing import Any, ClassVar

from tri_apsp.papers.blocked import row_layout
from tri_apsp.papers.katz_kider import KatzKider


class BlockedInt16(KatzKider):
    """3 n / b launches; no workspace. The parameter is b."""

    columns: ClassVar[int] = 1

    def _tile(self) -> tuple[int, Any, int]:
        edge = self.parameter
        warps = max(1, edge * edge // (32 * self.columns))
        return edge, row_layout(edge, warps, self.columns), warps


class BlockedVectorisedInt16(BlockedInt16):
    """The same with four columns per thread."""

    columns = 4
