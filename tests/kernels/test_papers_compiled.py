"""The systems of the papers, compiled for GPUs that need not be here: what sits in registers and
what in shared memory.
"""

from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.sass import Compiled, Variant, needs_disassembler
from kernels.variants import CAPABILITIES, TYPES
from papers.substitutes import Engine

from tri_apsp.gpu import launcher
from tri_apsp.methods import Observer
from tri_apsp.papers import SYSTEMS

pytestmark = needs_disassembler

N = 80
"""Vertices: not one tile of any system."""


class Recorder:
    """Takes the place of the launcher: it notes kernels and constants."""

    launched: dict[str, tuple[Any, dict[str, Any]]]

    def __init__(self, kernel: Any, constants: dict[str, Any]) -> None:
        self.launched[kernel.fn.__name__] = kernel, constants

    def __call__(self, grid: tuple[int, int, int], *args: Any) -> None:
        pass


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that compiles every kernel that a system launches, by the kernel's name."""

    def compile_all(
        name: str,
        dtype: torch.dtype,
        parameter: int | None = None,
        *,
        capability: int = CAPABILITIES[0],
        nonnegative: bool = True,
    ) -> dict[str, Compiled]:
        launched: dict[str, tuple[Any, dict[str, Any]]] = {}
        monkeypatch.setattr(Recorder, "launched", launched, raising=False)
        monkeypatch.setattr(launcher, "Launcher", Recorder)
        launcher.cached_launcher.cache_clear()
        matrix = torch.empty((1, N, N), dtype=dtype, device="meta")
        method = SYSTEMS[name].method(parameter)
        method.solve(matrix, Engine(dtype, nonnegative=nonnegative), Observer())
        launcher.cached_launcher.cache_clear()
        return {
            kernel: _variant(*each, dtype, capability).compile()
            for kernel, each in launched.items()
        }

    return compile_all


def _variant(
    kernel: Any, constants: dict[str, Any], dtype: torch.dtype, capability: int
) -> Variant:
    constants = dict(constants)
    num_warps = constants.pop("num_warps")
    signature = {
        name: f"*{TYPES[dtype]}"
        if name.endswith("_ptr")
        else "i64"
        if name[-2:] in ("db", "cb", "ab", "bb")
        else "i32"
        for name in kernel.arg_names
        if name not in constants
    }
    return Variant(kernel, signature, constants, capability, num_warps)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(
    ("capability", "nonnegative"),
    [
        pytest.param(90, True, marks=pytest.mark.releases),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((80, True), (100, True))),
        pytest.param(90, False, marks=pytest.mark.slow),
    ],
)
def test_no_register_spills(compiled: Any, name: str, capability: int, nonnegative: bool) -> None:
    dtype = SYSTEMS[name].dtypes[0]
    found_all = compiled(name, dtype, capability=capability, nonnegative=nonnegative)
    for kernel, found in found_all.items():
        assert found.spills == 0, kernel
        assert found.registers <= (88 if dtype.itemsize <= 4 else 128), kernel


def _stores(counts: Any) -> int:
    return counts["STS"] + counts["STSM"]


def test_katz_kider_keeps_three_tiles_in_shared_memory(compiled: Any) -> None:
    kernels = compiled("katz_kider", torch.float32)
    found = kernels["_three_tiles_kernel"]
    assert found.shared == 3 * 32 * 32 * 4
    loop = found.main_loop()
    assert _stores(loop) > 0, "the tile is written in each step"
    assert loop["BAR"] > 0
    assert (
        kernels["_independent_kernel"].shared
        == kernels["_singly_dependent_kernel"].shared
        == 2 * 32 * 32 * 4
    )


def test_optimised_blocked_is_unrolled(compiled: Any) -> None:
    found = compiled("optimised_blocked", torch.float32)["_unrolled_kernel"]
    assert found.shared == 3 * 32 * 32 * 4
    assert not found.loops
    assert found.instructions["FADD"] == 32 * 32 * 32 // 256, (
        "each thread has four values, and 32 steps"
    )
    assert found.instructions["BAR"] == 1


@pytest.mark.parametrize("m", [1, 4, 32])
def test_staged_load_keeps_the_tile_in_registers(compiled: Any, m: int) -> None:
    found = compiled("staged_load", torch.float32, m)["_staged_kernel"]
    assert found.shared == 2 * 32 * m * 4
    steps = found.main_loop() if m < 32 else found.instructions
    assert steps["FADD"] == steps["FMNMX"] == 16 * m, "each thread has 16 values"
    assert _stores(steps) <= max(2, m), "slices are stored, but no tile"


@pytest.mark.parametrize(
    "edge", [pytest.param(8, marks=pytest.mark.slow), 16, pytest.param(32, marks=pytest.mark.slow)]
)
def test_blocked_int16_keeps_three_blocks_in_shared_memory(compiled: Any, edge: int) -> None:
    for name in ("blocked_int16", "blocked_vectorised_int16"):
        assert (
            compiled(name, torch.int16, edge)["_three_tiles_kernel"].shared == 3 * edge * edge * 2
        )


def test_a_plain_product_keeps_its_tile_in_registers(compiled: Any) -> None:
    found = compiled("recursive_plain", torch.float32)["_plain_product_kernel"]
    assert found.shared == 2 * 16 * 16 * 4
    assert found.main_loop()["FADD"] == 16, "one value per thread, and slices of 16"


@pytest.mark.parametrize("name", ["harish_narayanan", "simple", "vectorised", "pseudo_blocked"])
def test_one_launch_per_vertex_needs_no_shared_memory(compiled: Any, name: str) -> None:
    (found,) = compiled(name, torch.float32).values()
    assert found.shared == 0
    wide = [line for line in found.code if "LDG.E.128" in line]
    assert bool(wide) == (name == "vectorised")
