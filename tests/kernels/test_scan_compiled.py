"""Kernels that read and copy, compiled for GPUs that need not be here: enough programs fit a multiprocessor, nothing spills."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the kernel needs Triton")

from kernels.sass import TOOLS, Compiled, compile_kernel

from tri_apsp.engines.triton_base import _COPIED
from tri_apsp.gpu.value_range import _PROGRAMS_A_UNIT, _constants, _tile
from tri_apsp.kernels.shared.copy import _copy_kernel
from tri_apsp.kernels.shared.initial_matrix import _start_kernel
from tri_apsp.kernels.shared.value_range import _scan_kernel
from tri_apsp.semirings import distance_range, no_edge

pytestmark = pytest.mark.skipif(not (TOOLS / "nvdisasm").exists(), reason="this Triton carries no disassembler")

TYPES = {torch.float32: "fp32", torch.float64: "fp64", torch.int32: "i32", torch.int64: "i64", torch.int16: "i16"}
types = pytest.mark.parametrize("dtype", TYPES, ids=str)


def compiled(dtype: torch.dtype, capability: int, *, rows: int, unit: bool) -> tuple[Compiled, int]:
    """Compile for `rows` rows of 1000 values, with the largest sizes and strides; return that, and values a thread."""
    constants = {
        **_constants(dtype, *_tile(dtype, rows, 1000)),
        "BELOW": distance_range(dtype, negative=True).beyond,
        "DIAGONAL": True,
    }
    if unit:
        constants["stride_xn"] = 1
    return _in_flight(_scan_kernel, dtype, capability, constants, {"n": "i64"})


def _in_flight(
    kernel: Any, dtype: torch.dtype, capability: int, constants: dict[str, Any], wide: dict[str, str]
) -> tuple[Compiled, int]:
    """Compile so that as many programs fit a multiprocessor as are launched for each; return that, and values a thread."""
    num_warps = constants.pop("num_warps")
    constants.pop("num_stages")  # as compile_kernel has it
    signature = {
        name: f"*{TYPES[dtype]}" if name.endswith("_ptr") else "i64" if "stride" in name else "i32"
        for name in kernel.arg_names
        if name not in constants
    }
    found = compile_kernel(kernel, signature | wide, constants, capability=capability, num_warps=num_warps)
    assert found.registers * 32 * num_warps * _PROGRAMS_A_UNIT <= 65536, f"{found.registers} registers are too many"
    assert found.spills == 0, "registers spill"
    assert found.shared <= 4096
    return found, constants["ROWS"] * constants["BLOCK"] // (32 * num_warps)


@pytest.mark.parametrize("capability", [80, 90, 100])
@types
def test_one_row(dtype: torch.dtype, capability: int) -> None:
    """A dense tensor: all loads of a tile are in flight at once, and the memory waits for no instruction."""
    found, values = compiled(dtype, capability, rows=1, unit=True)
    loop = found.main_loop()
    assert loop["LDG"] == values
    assert loop.total() <= {torch.float64: 75, torch.int64: 45}.get(dtype, 26) * values, loop


@types
def test_rows_of_any_stride(dtype: torch.dtype) -> None:
    found, values = compiled(dtype, 90, rows=2, unit=False)
    assert found.main_loop()["LDG"] == values


@pytest.mark.parametrize(("padding", "capability"), [("SIZES", 90), ("PADDED", 90), *(("", c) for c in (80, 90, 100))])
@types
def test_start(dtype: torch.dtype, padding: str, capability: int) -> None:
    """Values are loaded and stored 16 bytes at a time, but loaded alone where sizes may cut rows anywhere."""
    constants = {
        **_constants(dtype, *_tile(dtype, 1000, 1000)),
        **dict.fromkeys(("NO_EDGE", "BELOW"), no_edge(dtype)),
        **{name: name == padding for name in ("SIZES", "PADDED")},
        "stride_wn": 1,
    }
    found, values = _in_flight(_start_kernel, dtype, capability, constants, {"sizes_ptr": "*i64"})
    loop = found.main_loop()
    wide = values * dtype.itemsize // 16
    assert loop["STG"] == wide
    assert loop["LDG"] == (values + wide if padding == "SIZES" else wide)  # and a size for each row
    assert loop.total() <= {torch.float64: 90, torch.int64: 60}.get(dtype, 27) * values, loop


@pytest.mark.parametrize("capability", [80, 90, 100])
@types
def test_copies_go_16_bytes_at_a_time(dtype: torch.dtype, capability: int) -> None:
    constants = dict(zip(("ROWS", "BLOCK"), _COPIED, strict=True))
    names = [name for name in _copy_kernel.arg_names if name not in constants]
    signature = {name: f"*{TYPES[dtype]}" if name.endswith("_ptr") else "i32" for name in names}
    found = compile_kernel(_copy_kernel, signature, constants, capability=capability, num_warps=4)
    wide = _COPIED[0] * _COPIED[1] * dtype.itemsize // (128 * 16)
    assert found.instructions["LDG"] == 2 * wide  # either pair
    assert found.instructions["STG"] == 2 * wide
    assert found.instructions["LDL"] == 0
