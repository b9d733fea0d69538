"""Runs the source of the Gluon kernels on NumPy arrays, to test indices and masks on any CPU: Gluon
has no interpreter.

Layouts and barriers do nothing, and integers wrap. The stand-in is stricter than a GPU: a pointer
reaches only the elements of its own array, and shared memory that was not written, or to which a
copy may still be under way, holds the least value, which no minimum hides. It does not test
barriers between the threads of a program, nor quotients of negative numbers, which a GPU rounds
towards zero.
"""

from __future__ import annotations

import functools
import importlib
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import tri_apsp.engines.nvidia  # noqa: F401  imported before the stand-in, so that it keeps Gluon
from tri_apsp import kernels, papers

program = threading.local()
"""State of the program that runs in this thread: ids, grid, groups of copies, the token of the
launch, and polls so far.
"""

STRATEGIES = [
    ("nonnegative", torch.float32),
    ("float", torch.float32),
    ("int32", torch.int32),
    ("int16x2", torch.int16),
    ("compare", torch.float64),
    ("compare", torch.int64),
]
STRIDES = [(2**33 + 2**20 * i, 2**26 + 2**12 * i) for i in range(6)]
"""Strides of a graph and of a row: the third tile of rows begins past 2**31, rows do not overlap,
and operands differ.
"""


class Tensor(np.ndarray):
    type = SimpleNamespace(layout=None)
    # `x -= 1` makes a new tensor: other names may stand for the old one.
    __iadd__, __isub__, __imul__ = np.ndarray.__add__, np.ndarray.__sub__, np.ndarray.__mul__
    to = np.ndarray.astype


def _tensor(values: Any, dtype: Any = None) -> Tensor:
    return np.asarray(values, dtype).view(Tensor)


def _unwritten(shape: Sequence[int], dtype: Any) -> Tensor:
    return _tensor(
        np.full(
            shape, -math.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min, dtype
        )
    )


class Pointer:
    """Addresses in `array`, as if its elements lay `strides` apart: gaps between them take no
    memory.
    """

    def __init__(self, array: np.ndarray, strides: Sequence[int], offsets: Any = 0) -> None:
        self.array, self.strides, self.offsets = array, strides, np.asarray(offsets, np.int64)
        self.dtype = SimpleNamespace(element_ty=array.dtype)

    def __add__(self, offsets: Any) -> Pointer:
        return Pointer(self.array, self.strides, self.offsets + offsets)

    def to(self, dtype: Any) -> Pointer:
        return self

    def _locate(self, mask: Any) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Return the mask in the shape of the pointers, and the indices in the array where it
        holds.
        """
        mask = np.broadcast_to(mask, self.offsets.shape)
        rest, indices = self.offsets[mask], []
        for size, stride in zip(self.array.shape, self.strides, strict=True):
            index, rest = np.divmod(rest, stride)
            assert ((index >= 0) & (index < size)).all(), (
                f"an address lies outside its array {self.array.shape}"
            )
            indices.append(index)
        return mask, tuple(indices)

    def load(self, mask: Any = True, other: Any = None) -> Tensor:
        mask, indices = self._locate(mask)
        values = _unwritten(mask.shape, self.array.dtype)
        if other is not None:
            values[...] = other
        values[mask] = self.array[indices]
        return values

    def store(self, values: Any, mask: Any = True) -> None:
        mask, indices = self._locate(mask)
        self.array[indices] = np.broadcast_to(values, mask.shape)[mask]


class Shared:
    """A view of shared memory, as the address of each value. It may extend past the end, where
    loads and stores fail.
    """

    def __init__(self, memory: np.ndarray, dtype: Any, addresses: np.ndarray) -> None:
        self.memory, self.dtype, self.addresses = (
            memory.view(dtype),
            np.dtype(dtype),
            addresses,
        )  # addresses count bytes
        self.shape, self.numel = list(addresses.shape), addresses.size

    def load(self, layout: Any) -> Tensor:
        return _tensor(self.memory[self.addresses // self.dtype.itemsize])

    def store(self, values: Tensor) -> None:
        assert (values.dtype, list(values.shape)) == (self.dtype, self.shape)
        self.memory[self.addresses // self.dtype.itemsize] = values

    def index(self, index: int) -> Shared:
        assert 0 <= index < self.shape[0]
        return Shared(self.memory, self.dtype, self.addresses[index])

    def slice(self, start: int, length: int, dim: int) -> Shared:
        return Shared(
            self.memory, self.dtype, self.addresses.take(range(start, start + length), dim)
        )

    def reinterpret(self, dtype: Any, shape: Sequence[int], layout: Any) -> Shared:
        addresses = self.addresses.flat[0] + np.arange(math.prod(shape)) * np.dtype(dtype).itemsize
        return Shared(self.memory, dtype, addresses.reshape(shape))


def run_other_programs(seconds: float = 1e-4) -> None:
    """Pause this program: of the programs of a launch, only the one that holds the token runs."""
    program.polls += 1
    assert program.polls < 20_000, "the programs wait for each other forever"
    program.token.release()
    time.sleep(seconds)
    program.token.acquire()


def _assembly(
    code: str, constraints: str, args: list[Any], dtype: Any, is_pure: bool, pack: int
) -> Tensor:
    """Run PTX: statements on 32-bit registers, or one load with acquire, before which other
    programs run.
    """
    if code.startswith("ld.acquire"):
        run_other_programs()
        return args[0].load()
    if pack == 2:  # broadcast_int16x2 is the only assembly on two values at a time
        return _tensor((args[0].view(np.uint16) * np.uint32(65537)).view(np.int32))
    args = np.broadcast_arrays(*[np.int32(arg) if isinstance(arg, int) else arg for arg in args])
    registers = {f"${i}": np.ascontiguousarray(arg) for i, arg in enumerate(args, start=1)}
    if "vote" in code:  # all threads hold the same value
        return _tensor(args[0] != 0)
    functions = {
        "add": np.add,
        "sub": np.subtract,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "shr": np.right_shift,
        "mov": None,
    }
    kinds = {
        "f32": np.float32,
        "s32": np.int32,
        "u32": np.uint32,
        "b32": np.int32,
        "s16x2": np.int16,
    }

    def read(operand: str, kind: Any) -> np.ndarray:
        return (
            np.array([int(operand, 0)], kind)
            if operand[0].isdigit()
            else registers[operand].view(kind)
        )

    for statement in code.strip("{} ").split(";"):
        operation, _, operands = statement.strip().partition(" ")
        if operation not in ("", ".reg"):
            (name, kind), (target, *sources) = (
                operation.split("."),
                operands.replace(" ", "").split(","),
            )
            values = [read(source, kinds[kind]) for source in sources]
            found = (
                _permute_bytes(*values)
                if name == "prmt"
                else functools.reduce(functions[name], values)
            )
            registers[target] = np.ascontiguousarray(found)
    return _tensor(registers["$0"].view(dtype))


def _permute_bytes(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Return words of four of the eight bytes of x and y, or of their signs, that the digits of
    `selector` name.
    """
    both = np.concatenate([part.view(np.uint8).reshape(*part.shape, 4) for part in (x, y)], -1)
    digits = [int(selector[0]) >> 4 * place & 15 for place in range(4)]
    found = [
        np.where(both[..., digit & 7] > 127, 255, 0) if digit > 7 else both[..., digit]
        for digit in digits
    ]
    return np.stack(found, -1).astype(np.uint8).view(np.int32)[..., 0]


def _add_product(
    a: Shared, b: Shared, sums: Any, use_acc: bool = True, is_async: bool = False
) -> Tensor:
    product = _tensor(np.matmul(a.load(None), b.load(None), dtype=np.float32))
    return sums + product if use_acc else product


def _reduce(inputs: Any, axis: int, combine: Callable[..., Any]) -> Any:
    if isinstance(inputs, tuple):
        return functools.reduce(lambda x, y: combine(*x, *y), zip(*inputs, strict=True))
    return functools.reduce(combine, inputs)


def _allocate(dtype: Any, shape: Sequence[int], layout: Any) -> Shared:
    return Shared(_unwritten([math.prod(shape)], dtype), dtype, np.zeros(1, np.int64)).reinterpret(
        dtype, shape, layout
    )


def _copy_async(target: Shared, pointer: Pointer, mask: Any) -> None:
    program.groups[-1].append((target, pointer.load(mask, other=0)))
    target.store(_unwritten(target.shape, target.dtype))


def _wait_group(pending: int) -> None:
    while len(program.groups) > pending + 1:  # the last group is still open
        for target, values in program.groups.pop(0):
            target.store(values)


def _atomic(
    operation: Callable[[Any, Any], Any],
    pointer: Pointer,
    value: Any,
    mask: Any = True,
    sem: str = "",
    scope: str = "",
) -> Tensor:
    before = pointer.load(mask)
    pointer.store(operation(before, value), mask)
    return before


NAMES = {
    "PROPAGATE_NAN": True,
    "barrier": lambda: None,
    "gluon": SimpleNamespace(
        jit=lambda function=None, **options: function or (lambda function: function)
    ),
    "copy_async": _copy_async,
    "commit_group": lambda: program.groups.append([]),
    "wait_group": _wait_group,
    "fence_async_shared": lambda: None,
    "warpgroup_mma": _add_product,
    "warpgroup_mma_wait": lambda pending, deps: deps[0],
    "gl": SimpleNamespace(
        **{name: getattr(np, name) for name in ("int16", "int32", "int64", "float32", "float64")},
        **{
            name: getattr(np, name)
            for name in ("maximum", "min", "max", "sum", "ravel", "reshape", "expand_dims")
        },
        minimum=lambda x, y, propagate_nan=None: _tensor(
            (np.minimum if propagate_nan else np.fmin)(x, y)
        ),
        **dict.fromkeys(
            [
                "BlockedLayout",
                "SliceLayout",
                "SwizzledSharedLayout",
                "NVMMADistributedLayout",
                "NVMMASharedLayout",
            ],
            lambda *args: None,
        ),
        constexpr=None,  # an annotation
        static_range=range,
        static_assert=lambda condition: None,
        program_id=lambda axis: _tensor(program.ids[axis], np.int32),
        num_programs=lambda axis: _tensor(program.grid[axis], np.int32),
        cdiv=lambda x, y: (x + y - 1) // y,
        arange=lambda start, stop, layout: _tensor(range(start, stop), np.int32),
        full=lambda shape, value, dtype, layout: _tensor(np.full(shape, value, dtype)),
        where=lambda condition, x, y: _tensor(np.where(condition, x, y)),
        join=lambda x, y: _tensor(np.stack([x, y], -1)),
        split=lambda x: (x[..., 0], x[..., 1]),
        permute=np.transpose,
        num_warps=lambda: 4,
        reduce=_reduce,
        gather=lambda x, index, axis: _tensor(np.take_along_axis(x, index, axis)),
        to_tensor=_tensor,
        convert_layout=lambda x, layout, assert_trivial=False: x,
        allocate_shared_memory=_allocate,
        load=Pointer.load,
        store=Pointer.store,
        atomic_add=functools.partial(_atomic, np.add),
        atomic_or=functools.partial(_atomic, np.bitwise_or),
        inline_asm_elementwise=_assembly,
    ),
}


def import_kernels(name: str) -> ModuleType:
    """Import a copy of tri_apsp.<name> that uses this stand-in; modules imported elsewhere keep
    Gluon.
    """
    with patch.dict(sys.modules), patch.dict(vars(kernels)), patch.dict(vars(papers)):
        for module in tuple(sys.modules):
            if module.startswith(("tri_apsp.kernels.", "tri_apsp.papers.")):
                del sys.modules[module]
        sys.modules["tri_apsp.kernels.nvidia.gluon_names"] = names = ModuleType("gluon_names")
        vars(names).update(NAMES)
        return importlib.import_module(f"tri_apsp.{name}")


def launch(
    kernel: Callable[..., None], grid: tuple[int, int], *arguments: Any, **constants: Any
) -> None:
    """Run the kernel on pointers and integers for each program of the grid; a program runs until it
    waits for others.
    """
    values = [
        _tensor(x, np.int32 if abs(x) < 2**31 else np.int64) if isinstance(x, int) else x
        for x in arguments
    ]
    token = threading.Lock()

    def run(ids: tuple[int, int]) -> None:
        vars(program).update(ids=ids, grid=grid, groups=[[]], token=token, polls=0)
        with token:
            kernel(*values, **constants)

    with ThreadPoolExecutor(grid[0] * grid[1]) as pool:
        for future in as_completed(
            [pool.submit(run, (x, y)) for y in range(grid[1]) for x in range(grid[0])]
        ):
            future.result()  # raises the first failure
