"""Which vertices lead to which, for 64 sources at once, in Numba."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def spread(offsets, targets, words):  # type: ignore[no-untyped-def]
    """words[v] <- the OR of words[u] over v and all vertices u that lead to v.

    Args:
        offsets, targets: the edges by source.
        words: [n] of uint64, one bit for each source.
    """
    # A ring of the vertices whose word is still to be passed on.
    n = len(words)
    queued = words != 0
    queue = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        if queued[v]:
            queue[count] = v
            count += 1
    head = 0
    while count:
        u = queue[head]
        head = (head + 1) % n
        count -= 1
        queued[u] = False
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if words[u] & ~words[v]:
                words[v] |= words[u]
                if not queued[v]:
                    queued[v] = True
                    queue[(head + count) % n] = v
                    count += 1
