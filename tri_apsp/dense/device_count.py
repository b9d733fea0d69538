"""How many devices one matrix is worth: a small one is solved sooner by fewer."""

import torch

from tri_apsp import engines, tuned
from tri_apsp.configs import Config
from tri_apsp.dense.exponents import do_values_decide, solve_threshold
from tri_apsp.memory import fits_memory
from tri_apsp.semirings import no_edge, solved_dtype

# The least rows for each GPU for which one more makes a solve faster: by direct products, and by
# exponents, of which the host and the links take a larger share. On one and two H200, ms:
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


def helpful_devices(
    weights: torch.Tensor,
    devices: tuple[torch.device, ...],
    config: Config | None,
    dtype: torch.dtype | None,
    *,
    predecessors: bool,
) -> tuple[torch.device, ...]:
    """Return as many of some devices as make the solve of one matrix faster, or all, if one cannot
    hold it.

    Args:
        config, dtype, predecessors: as for shortest_paths.

    Cost: reads at most 2048 rows, where the values decide.
    """
    home = [weights.device] if weights.device in devices else []
    first = (*home, *(device for device in devices if device not in home))
    device, n, dtype = first[0], len(weights), solved_dtype(dtype or weights.dtype)
    # Of the weights, the distances, a workspace and the predecessors.
    size = (3 * dtype.itemsize + predecessors * torch.int32.itemsize) * n * n
    if device.type == "cpu" or not n or not fits_memory(size, device):
        return devices
    least = _LEAST_ROWS
    like = torch.empty(0, dtype=dtype, device=device)
    engine = engines.choose(device, tuned.with_forced(config), dtype)
    if n < _LEAST_ROWS_BY_EXPONENTS * len(devices) and do_values_decide(engine, n, like):
        rows = weights[:: -(-n // _SAMPLED_ROWS) | 1].to(device)
        edges = rows[rows < no_edge(rows.dtype)]
        if edges.numel() and bool((edges.floor() == edges).all()) and bool(edges.amin() >= 0):
            per_row = edges.numel() / len(rows)
            if solve_threshold(per_row, edges.amax().item()) is not None:
                least = _LEAST_ROWS_BY_EXPONENTS
    count = max(1, n // least)
    return devices[:count] if count > 1 else first[:1]
