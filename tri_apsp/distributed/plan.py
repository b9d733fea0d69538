"""The plan of a solve of block rows: pivot blocks, and whether rows stay on their devices or are
streamed through them.

Let n be the vertices, b those of a pivot block, s the bytes of a value, R the operations per second
of a product and W the bytes per second of a copy to a device. Each pivot block of streamed rows
takes n^2 b / R of products, and n^2 s / W of copies in each direction beside them: products bound
the solve if b >= s R / W, which is 1200 for float32 on an H100. A larger pivot block takes memory,
b n s for each of two panels, those of the current and of the next pivot block, and leaves other
ranks without work while the first one is closed. So it is as large as fits, up to an eighth of the
matrix: the memory of the host, or a file, may be much slower than the link to the device.
"""

import bisect
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from tri_apsp import engines, tuned
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.dense.exponents import are_supported
from tri_apsp.device import free_memory
from tri_apsp.distributed.device_rows import SLOTS
from tri_apsp.distributed.layout import ROW_MULTIPLE
from tri_apsp.distributed.model import Prediction
from tri_apsp.distributed.rows import FileRows, Rows
from tri_apsp.distributed.target import OutFile, Target
from tri_apsp.errors import InputError, TooLargeError
from tri_apsp.gpu.padding import aligned
from tri_apsp.memory import byte_size
from tri_apsp.plan import Options, Plan
from tri_apsp.request import Request

# Of a pivot block of rows that stay on a device: its share of the rows of a rank, the least and the
# most rows. On two H200 in float32, 32768 vertices take 1.12 s by 2048, 1.16 by 1024 and 1.21 by
# 4096; 16384 vertices gain nothing by more than 1024. With more ranks, the others wait longer for a
# block to be closed. On two cores 4096 vertices take 0.93 s by 512, 1.07 by 256.
_GPU_BLOCK, _CPU_BLOCK = (1 / 8, 512, 2048), (1 / 4, 64, 512)
# The same for products by exponents, whose rate rises more with the width of a block. In int16 on
# one, two and four H100, 65536 vertices take 1.65, 0.86 and 0.47 s by 2048, and 1.41, 0.76 and 0.42
# by 4096; on two H200 0.75 by 4096 and 0.78 by 8192. On four H100, 16384 vertices take 30 ms by
# 1024, 24.6 by 2048 and 32 by 4096.
_EXPONENTS_BLOCK = (1 / 4, 2048, 4096)
# The largest pivot block of streamed rows, and the least number of them.
_LARGEST, _PARTS = 16384, 8
# Bytes of a strip of streamed rows.
_STRIP = 1 << 27
# The share of the free memory of a device that a solve may take.
_SHARE = 0.95
# The share of a small memory that a strip may take.
_OF_MEMORY = 1 / 10
# A resident pivot block and a strip are multiples of this many rows: the tiles of products.
_UNIT = 64
# Bytes for each value of an operand of a product by exponents.
_ENCODED = 2
# Values of a pivot block that are closed at a time.
_CLOSED = 1 << 25


class RowSpec(NamedTuple):
    """What a plan of block rows is made from, besides the values of the weights.

    Attributes:
        counts: the rows of each rank.
        dtype: of the weights.
        device: that of a rank.
        memory: the bytes that the solve may take on each device.
        source, target: where the rows are and go: "device", "memory" (of the host) or "file".
        options: as for shortest_paths.
        config: fields that replace those of tri_apsp.tuned.
        sharers: the ranks that share the memory of the host.
        checkpoints: whether they are written.
        reason: why the rows are in blocks.
    """

    counts: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    memory: int
    source: str = "memory"
    target: str = "memory"
    options: Options = Options()
    config: Config | None = None
    sharers: int = 1
    checkpoints: bool = False
    reason: str = "rows in blocks"

    @classmethod
    def of(
        cls,
        counts: tuple[int, ...],
        weights: Rows,
        target: Target | None,
        request: Request,
        device: torch.device,
        *,
        memory: int,
        sharers: int,
    ) -> "RowSpec":
        """Return that of a request, for the rows of one rank; see the attributes."""
        source = "memory" if weights.are_on_host else "device"
        to = "memory" if target is not None else "device"
        return cls(
            counts,
            weights.dtype,
            device,
            memory,
            "file" if isinstance(weights, FileRows) else source,
            "file" if isinstance(target, OutFile) else to,
            request.options,
            tuned.with_forced(request.config),
            sharers,
            request.checkpoint is not None,
            request.block_rows_because,
        )

    def plan(
        self,
        config: CompleteConfig | None = None,
        *,
        nonnegative: bool = True,
        threshold: int | None = None,
    ) -> "BlockRowPlan":
        """Return the plan for weights of which none is negative, or for any; see BlockRowSolver.

        Args:
            config: of the engine, which supports products by exponents; None: the engine is chosen.

        Raises:
            TooLargeError: the memory is too small.
            InputError: predecessors of rows that are streamed.
        """
        n, rows = sum(self.counts), max(self.counts)
        if config is None:
            engine = engines.choose(self.device, self.config, self.dtype)
            call = tuned.call_of(engine, self.device, self.dtype, n=n, nonnegative=nonnegative)
            config = tuned.config_for_call(call, self.config)
            if not are_supported(engine, torch.empty(0, dtype=self.dtype, device=self.device)):
                threshold = None
        columns = columns_of(n, self.device)
        row = max(1, columns * self.dtype.itemsize)
        side = 0 if threshold is None else _least_side(threshold, rows, n)
        of_gpu = _EXPONENTS_BLOCK if side else _GPU_BLOCK
        share, least, most = _CPU_BLOCK if self.device.type == "cpu" else of_gpu
        block = max(least, side, min(most, int(share * rows)))
        block = max(1, min(block // _UNIT * _UNIT or block, rows))

        def needed(width: int, strip: int, slots: int) -> int:
            """Return the bytes of two panels, of what a block is closed by, of the strips and of
            the column of one, and of the operands of a product by exponents.
            """
            closed = width + closed_columns(width, strip, columns)
            encoded = _ENCODED * (columns + strip) * width if side else 0
            own = (closed + strip) * width * self.dtype.itemsize
            return (2 * width + slots * strip) * row + own + encoded

        memory, strip = self.memory, 0
        may_stream = self.source != "device" and self.target != "device"
        # Rows that stay with narrower pivot blocks need no copies, which streamed rows need for
        # each.
        kept, narrowest = not (self._is_overwritten and columns == n), side or least
        reserved = self._reserved(nonnegative)
        while (total := needed(block, rows, kept) + reserved) > memory and block > narrowest:
            block = max(narrowest, block // 2 // _UNIT * _UNIT)
        if total > memory and may_stream:
            strip = min(max(side, _STRIP // row), int(_OF_MEMORY * memory) // row)
            strip = max(1, min(rows, strip // _UNIT * _UNIT or strip))
            most = min(_LARGEST, max(ROW_MULTIPLE, n // _PARTS), rows)
            block = bisect.bisect_right(
                range(1, most + 1), memory, key=lambda width: needed(width, strip, SLOTS)
            )
            whole = block // ROW_MULTIPLE * ROW_MULTIPLE
            # Fewer vertices may need more memory, since their columns are closed in wider parts.
            if whole and needed(whole, strip, SLOTS) <= memory:
                block = whole
            block = max(1, block)
            total = needed(block, strip, SLOTS)
        if total > memory:
            fewest = min(ROW_MULTIPLE, rows)
            enough = byte_size(needed(fewest, fewest, SLOTS))
            what = "a solve in strips of rows"
            remedy = (
                f"raise `memory`: {enough} have room for {fewest} rows, of which products are fast"
            )
            if not may_stream:
                what = f"a solve of {rows} rows"
                remedy = (
                    "raise `memory`, use more devices, or stream them: give `out`, and weights as "
                    "one tensor on the CPU or as a file"
                )
            raise TooLargeError(
                f"{what} of {n} vertices must fit the memory of a device, but needs "
                f"{byte_size(total)} and may take {byte_size(memory)}; {remedy}."
            )
        if strip and self.options.predecessors:
            raise InputError(
                f"`predecessors` needs rows that stay on their devices, but {rows} rows of {n} "
                "vertices are streamed; raise `memory`, use more devices, or leave predecessors "
                "out."
            )
        if not 0 < side <= min(block, strip or rows):  # no product is large enough
            threshold = None
        spare = spare_memory(self.device, self.sharers) if strip and self.target == "file" else -1
        where = "streamed from the host" if strip else "rows stay on their devices"
        return BlockRowPlan(
            way="block rows",
            method="block_rows",
            engine=config.engine,
            config=config,
            reason=f"{self.reason}; {where}",
            memory=total,
            exponents=threshold is not None,
            block=block,
            strip=strip,
            in_memory=rows * n * self.dtype.itemsize <= spare,
            nonnegative=nonnegative,
            threshold=threshold,
            spec=self,
        )

    @property
    def _is_overwritten(self) -> bool:
        """Whether rows on a device are solved in their memory."""
        return self.options.overwrite and self.target == "device"

    def _reserved(self, nonnegative: bool) -> int:
        """Return the bytes that each device needs besides those of rows that stay there."""
        n, on_cpu, paths = sum(self.counts), self.device.type == "cpu", self.options.predecessors
        is_padded = columns_of(n, self.device) != n
        is_there = self.source != "file" if on_cpu else self.source == "device"
        # With negative weights, predecessors may be searched in a copy: without the vertices of
        # negative cycles, or with potentials.
        copies = int(paths and not (is_there and nonnegative))
        copies += is_padded and (paths or not (self.target != "device" or self._is_overwritten))
        copies += self.checkpoints and on_cpu
        return (copies * self.dtype.itemsize + paths * torch.int32.itemsize) * max(self.counts) * n


@dataclass(frozen=True, kw_only=True)
class BlockRowPlan(Plan):
    """How a matrix is solved in blocks of rows. `tri_apsp.select` returns it for several
    devices, with `memory` or `checkpoint`, and for files.

    Attributes:
        block: the most vertices of a pivot block.
        strip: rows that are streamed through a device at a time; 0: all rows stay there.
        in_memory: whether streamed rows that go to a file stay in the memory of the host until they
            are solved.
        expected: the time of the solve by direct products, and what bounds it; None unless `select`
            measured them, and for no vertices.
        nonnegative: whether no weight is negative.
        threshold: of products by exponents, None: there are none.
        spec: what it was made from.
        parts: the rows of each device, and where their distances go, until they are solved.
        resumed: how many vertices had been pivots in the checkpoint from which the solve went on.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> plan = tri_apsp.select(torch.ones(300, 300), device=["cpu", "cpu"])
        >>> plan.way, plan.block, plan.is_streamed
        ('block rows', 64, False)
    """

    config: CompleteConfig
    block: int
    strip: int = 0
    in_memory: bool = False
    expected: Prediction | None = None
    resumed: int = 0
    nonnegative: bool = field(default=True, repr=False)
    threshold: int | None = field(default=None, repr=False)
    spec: RowSpec | None = field(default=None, repr=False)
    parts: tuple[tuple[Rows, Target | None], ...] = field(default=(), repr=False, compare=False)

    @property
    def is_streamed(self) -> bool:
        """Whether rows are streamed."""
        return self.strip > 0


def columns_of(n: int, device: torch.device) -> int:
    """Return the columns of a block of rows on a device, n of which are those of the matrix."""
    return n if device.type == "cpu" else aligned(n)


def closed_columns(block: int, rows_per_strip: int, columns: int) -> int:
    """Return the columns of a pivot block that are closed at a time.

    Args:
        block: vertices of the pivot block.
        rows_per_strip: rows of a rank that are on its device at a time.
        columns: of a row.
    """
    width = min(_CLOSED, rows_per_strip * columns) // max(1, block) // ROW_MULTIPLE * ROW_MULTIPLE
    return max(1, min(columns, max(ROW_MULTIPLE, width)))


def usable_memory(memory: int | None, device: torch.device, ranks: int) -> int:
    """Return the bytes that a solve may take on a device: `memory`, or if that is None most of what
    is free. The ranks of a machine share that of its CPU.
    """
    return memory or int(_SHARE * free_memory(device) / (ranks if device.type == "cpu" else 1))


def spare_memory(device: torch.device, ranks: int) -> int:
    """Return the bytes of the host that rows of a rank may take while they are streamed through its
    device: half of what is free, divided by the ranks of the machine; 0 if the device is the CPU.
    """
    if device.type == "cpu":
        return 0
    return usable_memory(None, torch.device("cpu"), ranks) // 2


def _least_side(threshold: int, rows: int, n: int) -> int:
    """Return the shortest side of a product by exponents, in whole units; 0 if no product of the
    rows of a rank is large enough for ByExponents.
    """
    side = -(-threshold // 2 // _UNIT) * _UNIT
    return side if side <= rows and rows * side * n >= threshold**3 else 0
