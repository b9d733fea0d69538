"""Runs the walk of flows in Gluon by one thread of Python for each thread of a warp: it is written
thread by thread, and PTX addresses its memory. Shared memory holds NaN until it is written.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from kernels.gluon_stand_in import NAMES, Tensor, import_kernels

KERNELS = import_kernels("kernels.nvidia.flows")
WARP = 32
STATE = threading.local()
"""The number of the thread in its warp."""


def value(x: Any, dtype: Any) -> Tensor:
    return np.full(1, x, dtype).view(Tensor)


class Memory:
    """A pointer to elements of a flat array."""

    def __init__(self, array: np.ndarray, offset: Any = 0) -> None:
        self.array, self.offset = array, offset

    def __add__(self, offset: Any) -> "Memory":
        return Memory(self.array, self.offset + offset)

    def __sub__(self, offset: Any) -> "Memory":
        return self + -offset

    def to(self, dtype: Any) -> "Memory":
        return self

    @property
    def place(self) -> int:
        place = int(np.asarray(self.offset).ravel()[0])
        assert 0 <= place < len(self.array), "an address lies outside its array"
        return place


class Warp:
    """Shared memory, and what its threads exchange."""

    def __init__(self, words: int, program: int) -> None:
        self.shared, self.program = np.full(words, np.nan, np.float32).view(np.int32), program
        self.barrier, self.lock = threading.Barrier(WARP), threading.Lock()
        self.numbers = [0] * WARP

    def names(self) -> dict[str, Any]:
        """Return the functions of the kernel that PTX carries out."""

        def load(count: int, dtype: Any) -> Any:
            def words(address: Any, *_: Any) -> Any:
                first, odd = divmod(int(address[0]), 4)
                assert not odd
                found = self.shared[first : first + count].view(dtype)
                many = [value(x, dtype) for x in found]
                return many if count > 1 else many[0]

            return words

        def store(address: Any, *values: Any) -> None:
            for i, x in enumerate(values):
                self.shared[int(address[0]) // 4 + i] = x.view(np.int32)[0]

        def reduce(combine: Any) -> Any:
            def reduced(x: Any) -> Any:
                self.numbers[STATE.thread] = int(x[0])
                self.barrier.wait()
                found = combine(self.numbers)
                self.barrier.wait()
                return value(found, np.int32)

            return reduced

        def start_copy(target: Any, source: Memory, thread: Any, constants: Any) -> None:
            for word in range(4 * STATE.thread, 4 * constants.CHUNK, 4 * WARP):
                part = source.array[source.place + word : source.place + word + 4]
                first = int(target[0]) // 4 + word
                self.shared[first : first + 4] = part.view(np.int32)

        def load_if(condition: Any, pointer: Memory, before: Any, *_: Any) -> Any:
            return value(pointer.array[pointer.place], before.dtype) if condition[0] else before

        def store_global(pointer: Memory, x: Any, *_: Any) -> None:
            pointer.array[pointer.place] = x[0]

        def add_if(condition: Any, pointer: Memory, x: Any) -> None:
            if condition[0]:
                with self.lock:
                    pointer.array[pointer.place] += x[0]

        def set_if(condition: Any, pointer: Memory) -> None:
            if condition[0]:
                pointer.array[pointer.place] = 1

        def assembly(code: str, constraints: str, args: list[Any], *_: Any) -> Any:
            assert code.startswith("mad.lo.s32")
            number = args[1] if len(args) == 3 else int(code.split(",")[2])
            return args[0] * number + args[-1]

        return {
            "_thread_index": lambda: value(STATE.thread, np.int32),
            "_shared_memory_address": lambda: value(0, np.int32),
            "_start_chunk_copy": start_copy,
            "_wait_for_chunk_copy": lambda: None,
            "_warp_barrier": self.barrier.wait,
            "_any": lambda condition: reduce(any)(condition)[0] != 0,
            "_least": reduce(min),
            "_greatest": reduce(max),
            "_load_words": load(4, np.int32),
            "_load_values": load(4, np.float32),
            "_load_value": load(1, np.float32),
            "_load_slot": load(2, np.float32),
            "_store_slot": lambda address, x, c, _: store(address, x, c),
            "_store_value": store,
            "_store_zero_word": lambda address: store(address, value(0, np.int32)),
            "_load_global": lambda pointer, *_: value(
                pointer.array[pointer.place], pointer.array.dtype
            ),
            "_load_global_if": load_if,
            "_store_global": store_global,
            "_add_global_if": add_if,
            "_set_if": set_if,
            "_demand_if": lambda condition, pointer, row, stride, before, _: load_if(
                condition, pointer + row * stride, before
            ),
            "_unpack_slots": lambda a, b, _: (a & 0xFFFF, a >> 16 & 0xFFFF),
            "_inverse": lambda x: value(1, np.float32) / x,
            "gl": SimpleNamespace(
                **{
                    **vars(NAMES["gl"]),
                    "program_id": lambda axis: value(self.program, np.int32),
                    "inline_asm_elementwise": assembly,
                    "allocate_shared_memory": lambda *_: SimpleNamespace(
                        slice=lambda *_: SimpleNamespace(store=lambda words: None)
                    ),
                    "cdiv": lambda x, y: int(-(-x // y)),
                    "static_range": range,
                }
            ),
        }


def _memory(x: torch.Tensor) -> Memory:
    """Return a pointer to what a tensor spans: rows of demand may have strides."""
    span = sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return Memory(np.lib.stride_tricks.as_strided(x.numpy(), (1 + span,), (x.element_size(),)))


def launch(grid: tuple[int, int, int], *arguments: torch.Tensor | int, **constants: Any) -> None:
    """Run the walk on tensors and integers, one program after the other."""
    names = "ENTERS", "LAST", "LEAVES", "FIRST", "TABLE_WORDS"
    numbers = {name: getattr(KERNELS, name).value for name in names}
    given = [_memory(x) if isinstance(x, torch.Tensor) else x for x in arguments]

    def run(warp: Warp, thread: int) -> None:
        STATE.thread = thread
        try:
            KERNELS._walk_kernel(*given, constants["C"])
        except BaseException:
            warp.barrier.abort()
            raise

    for program in range(grid[0]):
        warp = Warp(sum(constants["C"].ALLOCATIONS), program)
        with patch.dict(vars(KERNELS), numbers | warp.names()), ThreadPoolExecutor(WARP) as pool:
            for future in [pool.submit(run, warp, thread) for thread in range(WARP)]:
                future.result()
