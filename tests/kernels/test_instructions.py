"""The instructions of the main loops, of kernels compiled for GPUs that need not be here."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels import variants
from kernels.marks import needs_disassembler
from kernels.sass import Compiled
from kernels.variants import TYPES, VARIANTS

from tri_apsp.configs import default_config
from tri_apsp.engines.boolean import counting
from tri_apsp.engines.boolean.triton_base import _PACK_TILE, _UNPACK_TILE
from tri_apsp.engines.nvidia_constants import strategy
from tri_apsp.engines.triton_base import _COPIED
from tri_apsp.kernels.nvidia.arithmetic import SLICE
from tri_apsp.kernels.nvidia.gluon_names import OVERSIZED_VIEWS

pytestmark = needs_disassembler


def every(kernel: str) -> pytest.MarkDecorator:
    """Parametrize a test over the arguments of all variants of a kernel."""
    cases = VARIANTS[kernel][1]
    return pytest.mark.parametrize("case", cases, ids=lambda case: "-".join(map(str, case)))


def values_of(variant: variants.Variant, *names: str) -> int:
    """Return the product of constants, per thread."""
    return math.prod(variant.constants[name] for name in names) // (32 * variant.num_warps)


@every("portable product")
def test_portable_product(case: tuple[Any, ...]) -> None:
    variant = variants.portable_product(*case)
    pairs = values_of(variant, "BLOCK_M", "BLOCK_N", "BLOCK_K")
    # The most instructions of the loop per pair of add and min; int64 needs six for the pair alone.
    most = {"fp32": 2.45, "i32": 2.45, "i16": 2.6, "fp64": 5.2, "i64": 7.0}[TYPES[case[0]]]
    assert pairs <= variant.compile().main_loop().total() <= most * pairs


def test_portable_panels_have_a_barrier_between_reads_and_writes() -> None:
    """All threads of a program read a strip before one of them writes: after the loops."""
    compiled = variants.portable_panels(torch.float32, 90).compile()
    assert compiled.instructions["BAR"] > sum(loop["BAR"] for loop in compiled.loops)


# The most instructions of the main loop per pair of add and min on capability 90: 2% above the most
# of any release of Triton. The loop also contains the path for the last slice of k, which all other
# steps skip.
MOST = {
    "nonnegative": 1.74,
    "float": 2.27,
    "int32": 1.23,
    "int16x2": 0.58,
    "fp64": 4.85,
    "i64": 6.73,
    "nonnegative 80": 2.26,
    "nonnegative 100": 1.74,
    "nonnegative small": 1.92,  # fewer pairs share moves, loads from shared memory and copies
}
USEFUL = {
    "nonnegative": ("VIMNMX3", 2),
    "float": ("FMNMX", 1),
    "int32": ("VIADDMNMX", 1),
    "int16x2": ("VIADDMNMX", 2),
    "fp64": ("DADD", 1),
    "i64": ("ISETP", 0.5),
    "nonnegative 80": ("IMNMX", 1),
}
"""The instruction that takes a minimum, or adds, and for how many pairs."""


@every("nvidia product")
def test_nvidia_product(case: tuple[Any, ...]) -> None:
    """An add and a min in two instructions, or fewer where the GPU has them; few others."""
    dtype, nonnegative, capability, field = case[:4]
    variant = variants.nvidia_product(*case)
    loop = variant.compile().main_loop()
    pairs = values_of(variant, "BLOCK_M", "BLOCK_N", "BLOCK_K")
    name = strategy(dtype, nonnegative) if dtype.itemsize < 8 else TYPES[dtype]
    if field == "small_product":
        name += " small"
    elif capability != 90:
        name += f" {capability}"
    opcode, pairs_each = USEFUL.get(name, USEFUL[name.split()[0]])
    assert loop[opcode] >= pairs / pairs_each, loop
    assert loop.total() <= 1.02 * MOST[name] * pairs, f"{loop.total() / pairs:.3f} per pair: {loop}"


@every("nvidia closure")
def test_nvidia_closure(case: tuple[Any, ...]) -> None:
    """By several programs per graph, which divide tiles, or by one; alone, or in a solve."""
    kind, dtype, nonnegative, capability = case
    config = default_config("nvidia", dtype)
    values = config.closure_tile**2 // (32 * config.closure_warps)  # of a tile, per thread
    products, closing = _closure_loops(variants.nvidia_closure(*case).compile(), values)
    assert kind == "one tile" or len(products) >= 2
    assert len(closing) == 1
    # A few addresses spill outside these loops, so that three programs fit a multiprocessor; Triton
    # 3.9 spills up to two more in them.
    few = {100: 2, 90: 0 if OVERSIZED_VIEWS else 2}.get(capability, 0)
    for loop in (*products, *closing) if dtype.itemsize < 8 else ():
        assert loop["STL"] + loop["LDL"] <= few, loop
    if capability == 90 and dtype == torch.int16:
        for loop in products:
            assert loop["VIADDMNMX"] == 8 * values
            assert loop.total() <= 1.2 * loop["VIADDMNMX"], loop
        assert closing[0].total() <= 3.3 * 4 * values, closing
    if capability == 90 and dtype == torch.float32:
        for loop in products:
            assert loop["FADD"] == 8 * values
            assert loop.total() <= (1.65 if loop["VIMNMX3"] else 2.15) * loop["FADD"], loop
        # Closing a tile also clamps it, and closes strips of four rows: 24 pairs, and 12 per column
        # of them.
        assert closing[0].total() <= (2.3 if nonnegative else 3.25) * 8 * values, closing


def _closure_loops(
    compiled: Compiled, values: int
) -> tuple[list[Counter[str]], list[Counter[str]]]:
    """Return the loops that multiply two tiles, and those that close one, of `values` per thread.

    A product takes 8 or 16 rows of k at a time, without a barrier; a tile is closed in strips of 4
    rows, two at a time.
    """
    barriers = 4 if OVERSIZED_VIEWS else 6
    products = [
        loop
        for loop in compiled.loops
        if loop["BAR"] == loop["LDG"] == 0 and loop.total() >= 8 * values
    ]
    closing = [
        loop
        for loop in compiled.loops
        if 4 <= loop["BAR"] <= barriers and loop["LDG"] == loop["STG"] == 0
    ]
    return products, closing


@every("shared value_range")
def test_value_range(case: tuple[Any, ...]) -> None:
    """All loads of a tile are in flight at once, and memory does not wait for instructions."""
    variant = variants.value_range(*case)
    loop, values = variant.compile().main_loop(), values_of(variant, "ROWS", "BLOCK")
    assert loop["LDG"] == values
    if case[2] == 1:
        assert loop.total() <= {torch.float64: 75, torch.int64: 45}.get(case[0], 26) * values, loop


@every("shared initial_matrix")
def test_initial_matrix(case: tuple[Any, ...]) -> None:
    """Values are loaded and stored 16 bytes at a time, but loaded one by one where sizes may end
    rows anywhere.
    """
    dtype, _, padding = case
    variant = variants.initial_matrix(*case)
    loop, values = variant.compile().main_loop(), values_of(variant, "ROWS", "BLOCK")
    wide = values * dtype.itemsize // 16
    assert loop["STG"] == wide
    assert loop["LDG"] == (values + wide if padding == "SIZES" else wide)  # and a size for each row
    assert loop.total() <= {torch.float64: 90, torch.int64: 60}.get(dtype, 27) * values, loop


@every("exponents count_edges")
def test_counting_edges(case: tuple[Any, ...]) -> None:
    """Where 16 divides n, loads take 16 bytes, and memory does not wait for instructions."""
    variant = variants.count_edges(*case)
    loop, values = variant.compile().main_loop(), values_of(variant, "BLOCK")
    assert loop["LDG"] == values * case[0].itemsize // 16
    assert loop.total() <= 16 * values, loop


@every("shared copy")
def test_copy_moves_16_bytes_at_a_time(case: tuple[Any, ...]) -> None:
    instructions = variants.copy(*case).compile().instructions
    wide = math.prod(_COPIED) * case[0].itemsize // (128 * 16)
    assert instructions["LDG"] == instructions["STG"] == 2 * wide  # for either pair


def test_a_round_of_bellman_ford() -> None:
    """For each vertex k, one load per weight, and three more: k, its label and its potential."""
    variant = variants.bellman_ford(torch.float32, 90)
    assert variant.compile().main_loop()["LDG"] == values_of(variant, "BLOCK") + 3


def test_argmin_of_a_product() -> None:
    """For each term an addition, a comparison and a selection, from registers."""
    loops = variants.argmin(torch.float32, 90).compile().loops
    loop = max(loops, key=lambda loop: loop.total())
    terms = 8 * 64 * 64 // 128
    assert loop["FSETP"] == loop["FADD"] == terms
    assert loop.total() <= 4.4 * terms


@pytest.mark.parametrize(("small", "most"), [(False, 2.15), (True, 2.85)])
def test_argmin_of_a_product_in_gluon(small: bool, most: float) -> None:
    """For each term a pair of add and min from registers, and of 16 terms one comparison and one
    selection.
    """
    variant = variants.nvidia_argmin(torch.float32, True, small, 90)
    loop = max(variant.compile().loops, key=lambda loop: loop["LDS"])
    elements = values_of(variant, "BLOCK_M", "BLOCK_N")
    assert loop["FADD"] == 16 * elements
    assert loop["FSETP"] == elements
    assert loop["LDGSTS"] == (2 if small else 4)  # 16 bytes each
    assert loop.total() <= most * 16 * elements


@pytest.mark.parametrize(
    ("size", "dtype", "minimum", "most"),
    [
        (32, torch.float32, "VIMNMX3", {"SHFL": 112, "total": 660}),
        (32, torch.int16, "VIADDMNMX", {"SHFL": 64, "total": 300}),
        (64, torch.float32, "VIMNMX3", {"SHFL": 64, "STS": 16, "LDS": 28, "BAR": 5, "total": 1100}),
    ],
    ids=str,
)
def test_a_step_of_small_graphs(
    size: int, dtype: torch.dtype, minimum: str, most: dict[str, int]
) -> None:
    """Of graphs without negative weights, for eight k: one minimum for each two sums, and few
    shuffles.

    For each pair of k, two warps exchange columns by 16-byte stores and loads with one barrier.
    """
    values = size * size // (32 if size == 32 else 64)  # of a thread
    loops = variants.small_graphs(size, dtype, False, 90).compile().loops
    steps = [loop for loop in loops if 4 * values <= loop[minimum] <= 5 * values]
    loop = min(steps, key=lambda loop: loop.total())
    found = loop | {"total": loop.total()}
    assert {name: found[name] for name in most if found[name] > most[name]} == {}


@pytest.mark.parametrize("size", [32, 64])
def test_a_step_of_gradients_of_small_graphs(size: int) -> None:
    """For eight k, a thread adds, compares and selects twice for each of its values; then it
    selects twice, and adds twice.

    Besides, a thread adds once per row to bring column k + 1 up to date. Triton 3.6 takes 5
    instructions per value and k in the first loop; later ones combine the comparisons of k and
    k + 1.
    """
    loops = variants.small_gradients(size, torch.float32, 90).compile().loops
    inner = sorted((loop for loop in loops if loop["LDG"] == 0), key=lambda loop: loop.total())
    forward, backward, _ = inner[-3:]
    assert sum(loop["LDL"] + loop["STL"] for loop in (forward, backward)) <= 48  # 0 in Triton 3.6
    assert 256 < forward["FADD"] <= 1.13 * 256
    assert forward.total() <= 8 * 256
    assert backward.total() <= 11 * 256


def test_a_step_over_edges_gathers_once_for_each() -> None:
    """Two loads of the lists and one of the distance for each edge, and no division."""
    loop = variants.sparse("_pull_kernel", (32, 8), torch.float32, 90).compile().main_loop()
    assert loop["LDG"] == 3 * loop["FADD"] > 0
    assert loop["MUFU"] == 0


def test_hops_are_written_in_whole_words() -> None:
    """Four neighbouring values of a thread are one store; threads exchange nothing."""
    compiled = variants.hop_kernel("unpack", 255, 4, 90).compile()
    assert compiled.main_loop()["STG"] == 1
    assert sum(compiled.instructions[name] for name in ("STS", "LDS", "SHFL")) == 0


# Instructions of a step for each sum: add, compare, two selections, and its share of loads,
# addresses and the test for the end.
@pytest.mark.parametrize(("name", "most"), [("_search_lists_kernel", 9.5), ("_search_kernel", 7)])
def test_a_step_of_the_search_for_predecessors(name: str, most: float) -> None:
    variant = variants.predecessors(name, torch.float32, 90)
    tile = ("LANES",) if name == "_search_lists_kernel" else ("ROWS", "COLUMNS")
    sums = values_of(variant, "UNROLL", *tile)
    loop = min(variant.compile().loops, key=lambda loop: loop.total())
    assert loop["FADD"] == sums
    assert loop.total() <= most * sums, loop


# The most instructions of the main loop per LOP3 that "or" and "and" need: for large tiles, and for
# small ones. In plain Triton a thread owns a few columns of many rows, so that it expands a mask
# for nearly every word.
@pytest.mark.parametrize(("engine", "most"), [("nvidia", (1.2, 1.36)), ("portable", (3.6, 4.5))])
@pytest.mark.parametrize("tile", [0, 1])
def test_boolean_product(engine: str, most: tuple[float, float], tile: int) -> None:
    """One LOP3 per word and row of B, and copies of 16 bytes."""
    variant = variants.boolean_product(engine, tile, 90)
    loop, words = variant.compile().main_loop(), values_of(variant, "BLOCK_M", "BLOCK_N")
    assert 32 * words <= loop["LOP3"]
    assert loop.total() <= most[tile] * 32 * words, loop
    if engine == "nvidia":
        assert loop["LOP3"] <= 1.02 * 32 * words, loop
        assert loop["LDGSTS"] == values_of(variant, "BLOCK_N") * 32 * 4 // 16 or (
            loop["LDGSTS"] * 16 * 32 * variant.num_warps == 32 * variant.constants["BLOCK_N"] * 4
        )


def test_packing_bits_moves_16_bytes_at_a_time() -> None:
    for dtype in (torch.uint8, torch.float32):
        instructions = variants.boolean_pack(dtype, 90).compile().instructions
        assert instructions["LDG"] == math.prod(_PACK_TILE.values()) * 32 * dtype.itemsize // (
            128 * 16
        )
    for transposed in (False, True):
        instructions = variants.boolean_unpack(transposed, 90).compile().instructions
        assert instructions["STG"] == math.prod(_UNPACK_TILE.values()) * 32 // (128 * 16)


@pytest.mark.parametrize(
    ("tiles", "programs"), [(counting.TILES, 2), (counting.LARGE_TILES, 1)], ids=["usual", "large"]
)
def test_counting_multiplies_on_tensor_cores(tiles: dict[str, int], programs: int) -> None:
    """A step of k has instructions for 64 rows, 128 columns and 32 values of k by groups of four
    warps, and wide copies.
    """
    compiled = variants.counting_product(tiles).compile()
    assert compiled.registers * 32 * tiles["num_warps"] * programs <= 65536
    assert (compiled.shared + 1024) * programs <= 228 * 1024
    loop = max(compiled.loops, key=lambda loop: loop["IGMMA"])
    assert loop["IGMMA"] == tiles["BLOCK_N"] // 32
    assert loop["LDGSTS"] == (128 + tiles["BLOCK_N"]) * 128 // (256 * 16)
    assert loop.total() <= 140


@every("exponents product")
def test_products_by_exponents(case: tuple[Any, ...]) -> None:
    """A slice is 128 x 128 x 128 terms: eight instructions of a warp group, and three to decode two
    results.
    """
    compiled = variants.exponent_product(*case).compile()
    loop = max(compiled.loops, key=lambda loop: loop["HGMMA"])
    results = 128 * 128 // 256  # of a thread
    assert loop["HGMMA"] == 8
    assert results // 2 <= loop["PRMT"] <= results // 2 + 2
    assert loop["VIADDMNMX"] == results // 2
    assert loop["LDGSTS"] == 16  # 16 bytes each
    # A part starts and ends one; the compiler does not wait for each instruction.
    assert loop["WARPGROUP"] <= 8
    assert loop.total() <= 6 * results


@every("exponents encode")
def test_encoding_for_products_by_exponents(case: tuple[Any, ...]) -> None:
    """No sum is formed in pairs of 16 bits, of which ptxas of CUDA 12.8 leaves out some."""
    for more in ({}, {"block_n": 256, "block_k": 512}):
        compiled = variants.encode_exponents(*case, **more).compile()
        assert not compiled.instructions["STL"] + compiled.instructions["LDL"]
        assert not [line for line in compiled.code if "VIADD.16x2" in line]


@every("exponents sample")
def test_samples_of_products_by_exponents(case: tuple[Any, ...]) -> None:
    """A thread forms 64 sums and their minima in each iteration, while later values are copied to
    shared memory: 256 values of k, three iterations ahead.
    """
    size = case[0].itemsize
    compiled = variants.sample_exponents(*case).compile()
    loop = max(compiled.loops, key=lambda loop: loop.total())
    assert loop["LDG"] == 0
    assert loop["LDGSTS"] == size  # 16 bytes each: of a thread 8 values of A, and 8 of B
    assert loop.total() <= 7.5 * 64
    assert compiled.shared == 3 * (8 + 8) * 256 * size


@every("arithmetic")
def test_the_arithmetic_ceiling(case: tuple[Any, ...]) -> None:
    """FADD FADD VIMNMX3 for two pairs, and VIADDMNMX for one, or for two of int16: from compute
    capability 9.0 on.

    The rest is 16-byte loads from shared memory: a few for each row and column of a thread.
    """
    dtype, capability = case
    variant = variants.arithmetic(*case)
    loop, pairs = variant.compile().main_loop(), SLICE * values_of(variant, "BLOCK_M", "BLOCK_N")
    useful = {"VIADDMNMX": pairs}
    if dtype == torch.float32:
        useful = {"FADD": pairs} | (
            {"IMNMX": pairs} if capability < 90 else {"VIMNMX3": pairs // 2}
        )
    assert {name: loop[name] for name in useful} == useful, loop
    assert loop.total() <= 1.1 * sum(useful.values()), loop
