"""How many devices one matrix is worth: a small one is solved sooner by fewer."""

import torch

from tri_apsp import engines
from tri_apsp.dense.exponents import do_values_decide, solve_threshold
from tri_apsp.memory import fits_memory
from tri_apsp.semirings import no_edge

# Rows of a GPU from which one more makes a solve faster: of direct products, and of products by
# exponents, which leave more of the time to the hosts and the links. On one and two H200, ms:
#
#     n        float32       int16 by exponents
#     8192       36,   46      8.5,  28
#     12288     116,   68     18,    44
#     16384     268,  148     30,    56
#     24576     894,  468     80,    75
#     32768    2106, 1087    165,   128
_LEAST_ROWS, _LEAST_ROWS_BY_EXPONENTS = 5120, 12288
# Of a sample that says whether products go by exponents.
_SAMPLED_ROWS = 2048


def helpful(weights: torch.Tensor, devices: tuple[torch.device, ...]) -> tuple[torch.device, ...]:
    """Return the first of some devices: as many as make the solve of one matrix faster, or all, if
    one cannot hold it.

    Cost: reads at most 2048 rows, where the values decide.
    """
    device, n = devices[0], len(weights)
    size = 3 * n * n * weights.itemsize  # of the weights, the distances and a workspace
    if device.type == "cpu" or not n or not fits_memory(size, device):
        return devices
    least = _LEAST_ROWS
    like = torch.empty(0, dtype=weights.dtype, device=device)
    engine = engines.choose_unconfigured(device, weights.dtype)
    if n < _LEAST_ROWS_BY_EXPONENTS * len(devices) and do_values_decide(engine, n, like):
        rows = weights[:: -(-n // _SAMPLED_ROWS) | 1].to(device)
        edges = rows[rows < no_edge(rows.dtype)]
        if edges.numel() and bool((edges.floor() == edges).all()) and bool(edges.amin() >= 0):
            per_row = edges.numel() / len(rows)
            if solve_threshold(per_row, edges.amax().item()) is not None:
                least = _LEAST_ROWS_BY_EXPONENTS
    return devices[: max(1, n // least)]
