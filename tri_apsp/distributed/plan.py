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
import dataclasses
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from tri_apsp import engines, tuned
from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.dense.exponents import are_supported
from tri_apsp.device import free_memory
from tri_apsp.distributed.layout import ROW_MULTIPLE
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
# Bytes of a strip of streamed rows, and strips at a time: one is read, one is copied to the device,
# one is changed, one is copied back and written.
_STRIP, SLOTS = 1 << 27, 4
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
        source, target: where the rows are and go: "device", "memory" (of the host) or "file".
        options: as for shortest_paths.
        config: fields that replace those of tri_apsp.tuned.
        memory: the bytes that the solve may take on each device.
        sharers: the ranks that share the memory of the host.
        checkpoints: whether they are written.
        reason: why the rows are in blocks.
    """

    counts: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    source: str
    target: str
    options: Options
    config: Config | None
    memory: int
    sharers: int
    checkpoints: bool
    reason: str

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
            "file" if isinstance(weights, FileRows) else source,
            "file" if isinstance(target, OutFile) else to,
            request.options,
            tuned.with_forced(request.config),
            memory,
            sharers,
            request.checkpoint is not None,
            request.in_rows,
        )

    def plan(self, *, nonnegative: bool = True, threshold: int | None = None) -> "BlockRowPlan":
        """Return the plan for weights of which none is negative, or for any; see BlockRowSolver.

        Raises:
            TooLargeError: the memory is too small.
            InputError: predecessors of rows that are streamed.
        """
        n, rows, options, on_cpu = (
            sum(self.counts),
            max(self.counts),
            self.options,
            self.device.type == "cpu",
        )
        on_host, has_target = self.source != "device", self.target != "device"
        is_padded, is_overwritten = (
            columns_of(n, self.device) != n,
            options.overwrite and not has_target,
        )
        copies = 0  # of the rows of a rank, besides those that are solved
        if options.predecessors:
            is_there = self.source != "file" if on_cpu else not on_host
            # With negative weights, they may be searched in a copy: without the vertices of
            # negative cycles, or with potentials.
            copies += not (is_there and nonnegative)
        if is_padded and (options.predecessors or not (has_target or is_overwritten)):
            copies += 1
        if self.checkpoints and on_cpu:
            copies += 1
        reserved = copies * self.dtype.itemsize + options.predecessors * torch.int32.itemsize
        engine = engines.choose(self.device, self.config, self.dtype)
        like = torch.empty(0, dtype=self.dtype, device=self.device)
        if threshold is not None and not are_supported(engine, like):
            threshold = None
        call = tuned.call_of(engine, self.device, self.dtype, n=n, nonnegative=nonnegative)
        plan = plan_block_rows(
            self.counts,
            self.dtype,
            self.device,
            tuned.config_for_call(call, self.config),
            memory=self.memory,
            may_stream=on_host and has_target,
            in_place=is_overwritten and not is_padded,
            reserved=reserved * rows * n,
            nonnegative=nonnegative,
            threshold=threshold,
        )
        if plan.is_streamed and options.predecessors:
            raise InputError(
                f"`predecessors` needs rows that stay on their devices, but {rows} rows of {n} "
                "vertices are streamed; raise `memory`, use more devices, or leave predecessors "
                "out."
            )
        in_memory = plan.is_streamed and self.target == "file"
        in_memory &= rows * n * self.dtype.itemsize <= spare_memory(self.device, self.sharers)
        reason = f"{self.reason}; {plan.reason}"
        return dataclasses.replace(plan, reason=reason, in_memory=in_memory, spec=self)


@dataclass(frozen=True, kw_only=True)
class BlockRowPlan(Plan):
    """How a matrix is solved in blocks of rows. `tri_apsp.select` returns it for several
    devices, with `memory` or `checkpoint`, and for files.

    Attributes:
        block: the most vertices of a pivot block.
        strip: rows that are streamed through a device at a time; 0: all rows stay there.
        slots: strips at a time.
        in_memory: whether streamed rows that go to a file stay in the memory of the host until they
            are solved.
        nonnegative: whether no weight is negative.
        threshold: of products by exponents, None: there are none.
        spec: what it was made from.
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
    slots: int = 0
    in_memory: bool = False
    resumed: int = 0
    nonnegative: bool = field(default=True, repr=False)
    threshold: int | None = field(default=None, repr=False)
    spec: RowSpec | None = field(default=None, repr=False)

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


def plan_block_rows(
    counts: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    config: CompleteConfig,
    *,
    memory: int,
    may_stream: bool,
    in_place: bool = False,
    reserved: int = 0,
    nonnegative: bool = True,
    threshold: int | None = None,
) -> BlockRowPlan:
    """Return how rows are solved.

    Args:
        counts: the rows of each rank.
        dtype: of the weights.
        device: that of a rank.
        config: of the engine.
        memory: the bytes that a solve may take on each device.
        may_stream: whether the rows are on the host, before and after the solve.
        in_place: whether the rows are on the device already, in memory of their own.
        reserved: bytes that each device needs for what follows the solve.
        nonnegative, threshold: see BlockRowSolver.

    Raises:
        TooLargeError: the memory is too small.
    """
    n, rows = sum(counts), max(counts)
    columns = columns_of(n, device)
    row = max(1, columns * dtype.itemsize)
    side = 0 if threshold is None else _least_side(threshold, rows, n)
    of_gpu = _EXPONENTS_BLOCK if side else _GPU_BLOCK
    share, least, most = _CPU_BLOCK if device.type == "cpu" else of_gpu
    resident = max(least, side, min(most, int(share * rows)))
    resident = max(1, min(resident // _UNIT * _UNIT or resident, rows))

    def needed(width: int, strip: int, slots: int) -> int:
        """Return the bytes of two panels, of what a block is closed by, of the strips and of the
        column of one, and of the operands of a product by exponents.
        """
        closed = width + closed_columns(width, strip, columns)
        encoded = _ENCODED * (columns + strip) * width if side else 0
        total = (2 * width + slots * strip) * row + (closed + strip) * width * dtype.itemsize
        return total + encoded

    chosen, streamed, slots = resident, 0, 0
    # Rows that stay with narrower pivot blocks need no copies, which streamed rows need for each.
    kept, narrowest = 0 if in_place else 1, side or least
    while (total := needed(chosen, rows, kept) + reserved) > memory and chosen > narrowest:
        chosen = max(narrowest, chosen // 2 // _UNIT * _UNIT)
    if total > memory and may_stream:
        slots = SLOTS
        highest = int(_OF_MEMORY * memory) // row
        streamed = min(max(side, _STRIP // row), highest)
        streamed = max(1, min(rows, streamed // _UNIT * _UNIT or streamed))
        most = min(_LARGEST, max(ROW_MULTIPLE, n // _PARTS), rows)
        chosen = bisect.bisect_right(
            range(1, most + 1), memory, key=lambda width: needed(width, streamed, slots)
        )
        whole = chosen // ROW_MULTIPLE * ROW_MULTIPLE
        # Fewer vertices may need more memory, since their columns are closed in wider parts.
        if whole and needed(whole, streamed, slots) <= memory:
            chosen = whole
        chosen = max(1, chosen)
        total = needed(chosen, streamed, slots)
    if total > memory:
        fewest = min(ROW_MULTIPLE, rows)
        enough = byte_size(needed(fewest, fewest, SLOTS))
        what = "a solve in strips of rows"
        remedy = f"raise `memory`: {enough} have room for {fewest} rows, of which products are fast"
        if not may_stream:
            what = f"a solve of {rows} rows"
            remedy = (
                "raise `memory`, use more devices, or stream them: give `out`, and weights as one "
                "tensor on the CPU or as a file"
            )
        raise TooLargeError(
            f"{what} of {n} vertices must fit the memory of a device, but needs "
            f"{byte_size(total)} and may take {byte_size(memory)}; {remedy}."
        )
    if not 0 < side <= min(chosen, streamed or rows):  # no product is large enough
        threshold = None
    return BlockRowPlan(
        way="block rows",
        method="block_rows",
        engine=config.engine,
        config=config,
        reason="streamed from the host" if streamed else "rows stay on their devices",
        memory=total,
        exponents=threshold is not None,
        block=chosen,
        strip=streamed,
        slots=slots,
        nonnegative=nonnegative,
        threshold=threshold,
    )
