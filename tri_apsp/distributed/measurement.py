"""The rates of this machine that a prediction needs, measured in a part of a second."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from tri_apsp import engines
from tri_apsp.configs import CompleteConfig
from tri_apsp.device import SideStream, mark, synchronize
from tri_apsp.distributed.device_rows import StreamedRows, Visit, unchanged
from tri_apsp.distributed.model import Rates
from tri_apsp.distributed.rows import Rows, TensorRows
from tri_apsp.engines import MatrixSpec, Update
from tri_apsp.methods import METHODS, Observer

# The most columns of the product that is measured, bytes of the copies, and strips that are read.
_COLUMNS, _BYTES, STRIPS = 8192, 1 << 26, 8
# The most calls of each kind, and seconds after which no third one begins.
_CALLS, _LONGEST = 5, 0.05


def measure_rates(
    devices: Sequence[torch.device],
    weights: Rows,
    config: CompleteConfig,
    *,
    block: int,
    strip: int,
) -> Rates:
    """Return the rates of a solve, but for that of the host.

    Args:
        devices: of the ranks; the first is measured.
        weights: of the first rank.
        config: of the engine.
        block: vertices of a pivot block.
        strip: rows that are streamed at a time; 0: all stay on the device.

    Cost: three to six products, closures and copies of 64 MiB.
    """
    device, dtype, n = devices[0], weights.dtype, weights.shape[1]
    columns, rows = min(n, _COLUMNS), max(1, strip or weights.shape[0])
    engine = engines.make(MatrixSpec(columns, dtype, device, nonnegative=True), config)

    def block_of(height: int, width: int) -> torch.Tensor:
        return torch.ones((1, height, width), dtype=dtype, device=device)

    update = Update(block_of(rows, columns), block_of(rows, block), block_of(block, columns))
    product = _seconds(lambda: engine.product(update), device)
    diagonal = block_of(block, block)
    closing = engines.make(MatrixSpec(block, dtype, device, nonnegative=True), config)
    closure = _seconds(lambda: METHODS["kleene"].solve(diagonal, closing, Observer()), device)
    copy = broadcast = float("inf")
    height = max(1, min(weights.shape[0], _BYTES // max(1, n * dtype.itemsize)))
    moved = height * n * dtype.itemsize
    if device.type == "cuda" and weights.are_on_host:
        near = [block_of(height, n) for _ in range(2)]
        far = [torch.empty((height, n), dtype=dtype, pin_memory=True) for _ in range(2)]
        streams = SideStream(device), SideStream(device)

        def both_ways() -> None:
            queued = mark(device)
            streams[0].run(lambda: near[0][0].copy_(far[0], non_blocking=True), queued)
            streams[1].run(lambda: far[1].copy_(near[1][0], non_blocking=True), queued)

        copy = moved / _seconds(both_ways, device)
    if len(devices) > 1 and device.type == "cuda":
        given, taken = block_of(height, n), torch.empty((1, height, n), dtype=dtype)
        taken = taken.to(devices[1])
        broadcast = moved / _seconds(lambda: taken.copy_(given), device)
    rate, closing_rate = rows * columns * block / product, block**3 / closure
    return Rates(rate, closing_rate, copy=copy, broadcast=broadcast)


def measure_host(
    devices: Sequence[torch.device], weights: Rows, strip: int, *, in_memory: bool = False
) -> float:
    """Return the bytes of rows per second that a rank reads and writes on the host while all ranks
    do: they, and the copies of their devices, share the bandwidth of its memory.

    Args:
        devices, weights, strip: as in measure_rates.
        in_memory: see BlockRowPlan.

    Cost: 8 strips for each device, read and written three to six times, and memory for them.
    """
    n, dtype = weights.shape[1], weights.dtype
    visit = Visit(0, min(weights.shape[0], STRIPS * strip), is_first=True)

    def streamed(device: torch.device) -> StreamedRows:
        own = TensorRows(torch.ones((visit.end, n), dtype=dtype))
        source = own if in_memory or isinstance(weights, TensorRows) else weights
        like = torch.empty((1, 0, n), dtype=dtype, device=device)
        return StreamedRows(source, own, unchanged, like, strip=strip)

    def visit_all(rows: StreamedRows) -> None:
        rows.announce([visit])
        for _ in rows.visit(visit):
            pass
        rows.finish()

    ranks = [streamed(device) for device in devices]
    try:
        with ThreadPoolExecutor(len(ranks)) as pool:
            seconds = _seconds(lambda: list(pool.map(visit_all, ranks)), devices[0])
    finally:
        for rows in ranks:
            rows.close()
    return visit.end * n * dtype.itemsize / seconds


def _seconds(call: Callable[[], object], device: torch.device) -> float:
    """Return the least time of some calls after the first."""
    call()
    synchronize(device)
    found, ends = list[float](), time.perf_counter() + _LONGEST
    while len(found) < 2 or (len(found) < _CALLS and time.perf_counter() < ends):
        begun = time.perf_counter()
        call()
        synchronize(device)
        found.append(time.perf_counter() - begun)
    return max(1e-9, min(found))
