"""Every kernel, compiled once for GPUs that need not be here: registers, spills, shared memory, and
the instructions of the main loops.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need Triton")

from kernels.sass import Compiled, Variant, needs_disassembler
from kernels.variants import LARGE_EXPONENTS, TYPES, VARIANTS, name_of

from tri_apsp.configs import default_config, exponents_bytes
from tri_apsp.engines.boolean.triton_base import _PACK_TILE, _UNPACK_TILE
from tri_apsp.engines.nvidia_constants import strategy
from tri_apsp.engines.triton_base import _COPIED
from tri_apsp.gpu.value_range import _PROGRAMS_PER_UNIT
from tri_apsp.kernels.nvidia.gluon_names import OVERSIZED_VIEWS

pytestmark = needs_disassembler

# Programs that must fit the 65536 registers of a multiprocessor, by the beginning of a variant's
# name; of other kernels, one.
PROGRAMS = {
    "portable product": 2,
    "nvidia product": 2,
    "elimination table float32": 2,
    "elimination table float32 100": 1,
    "shared value_range": _PROGRAMS_PER_UNIT,
    "shared initial_matrix": _PROGRAMS_PER_UNIT,
    "shared bellman_ford": 4,
    "shared sparse": 4,
    "shared hops": 4,
    "shared packed": 4,
    "shared predecessors": 2,
    "shared predecessors _search_kernel": 1,
    "gradients check_terms": 4,
    "gradients": 2,
    "boolean product nvidia": 3,
    "boolean product by counting": 1,
    "exponents product": 2,
    "exponents product int16 90 True": 1,
    "exponents count_edges": 3,
}
# Loads and stores of local memory that loops may hold; of other kernels, none.
SPILLS = {
    "nvidia closure": 80,  # addresses, outside of the loops that CHECKS has
    "nvidia of one vertex": 80,
    "nvidia product int16 False 90 product 128": 8,
    "shared predecessors": 4,
    "shared predecessors _search_rest_kernel": 24,
    "shared predecessors _fewest_edges_kernel": 24,
    "shared sparse _push_kernel": 2,
    "gradients argmin": 64,  # addresses of a last slice that k cuts short
    "gradients argmin float32 True False 80": 300,  # the same, under Triton 3.9
    "gradients edge_sums": 2,
    "small gradients": 160,  # mostly outside of the loops that CHECKS has
    "small graphs": 32,  # Triton 3.9 spills a few registers of the widest groups
    "small graphs 32 float32": 0,
    "exponents product": 4,
    "exponents count_edges": 3,
}


def of(limits: dict[str, int], name: str, other: int) -> int:
    """Return the limit with the longest key that `name` begins with."""
    return max(
        ((len(key), limits[key]) for key in limits if name.startswith(key)), default=(0, other)
    )[1]


Case = tuple[Any, ...]
Check = Callable[[Case, Variant, Compiled], None]
CHECKS: dict[str, Check] = {}
"""What holds for the instructions of the variants of a kernel."""


def checks(kernel: str) -> Callable[[Check], Check]:
    """Register a function as the check of a kernel."""

    def register(check: Check) -> Check:
        CHECKS[kernel] = check
        return check

    return register


CASES = [(kernel, case) for kernel, (_, cases) in VARIANTS.items() for case in cases]


def kind_of(kernel: str, case: Case) -> tuple[str, str]:
    """Return what another release of Triton may compile otherwise: the kernel with its name, size
    or tile, and with its dtype in Gluon, where each has instructions of its own.
    """
    is_plain = isinstance(case[0], torch.dtype) and not kernel.startswith("nvidia")
    return kernel, "" if is_plain else str(case[0])


FIRST = {kind_of(*each): each for each in reversed(CASES)}


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        pytest.param(
            *each,
            id=name_of(*each),
            marks=pytest.mark.releases if FIRST[kind_of(*each)] is each else (),
        )
        for each in CASES
    ],
)
def test_machine_code(kernel: str, case: Case) -> None:
    name, variant = name_of(kernel, case), VARIANTS[kernel][0](*case)
    compiled = variant.compile()
    assert compiled.instructions
    assert compiled.spills <= of(SPILLS, name, 0), compiled.loops
    assert compiled.registers * 32 * variant.num_warps * of(PROGRAMS, name, 1) <= 65536
    assert compiled.shared <= (200 if name.startswith(("exponents", "boolean")) else 81) * 1024
    if kernel in CHECKS:
        CHECKS[kernel](case, variant, compiled)


def values_of(variant: Variant, *names: str) -> int:
    """Return the product of constants, per thread."""
    return math.prod(variant.constants[name] for name in names) // (32 * variant.num_warps)


@checks("portable product")
def _portable_product(case: Case, variant: Variant, compiled: Compiled) -> None:
    pairs = values_of(variant, "BLOCK_M", "BLOCK_N", "BLOCK_K")
    # The most instructions of the loop per pair of add and min; int64 needs six for the pair alone.
    most = {"fp32": 2.45, "i32": 2.45, "i16": 2.6, "fp64": 5.2, "i64": 7.0}[TYPES[case[0]]]
    assert pairs <= compiled.main_loop().total() <= most * pairs


@checks("portable panels")
def _portable_panels(case: Case, variant: Variant, compiled: Compiled) -> None:
    """All threads of a program read a strip before one of them writes: after the loops."""
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
    "max_int32": 1.74,
    "max_int32 80": 2.24,
    "max_int32 100": 1.74,
    "max_int16x2": 0.83,
    "max_i64": 8.8,
    "times": 1.74,
    "times 80": 2.24,
    "times 100": 1.74,
    "times_fp64": 4.8,
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
    "max_int32": ("VIMNMX3", 2),
    "max_int32 80": ("IMNMX", 0.5),
    "max_int16x2": ("VIMNMX3", 4),
    "max_i64": ("ISETP", 0.25),
    "times": ("VIMNMX3", 2),
    "times 80": ("IMNMX", 1),
    "times_fp64": ("DMUL", 1),
}
"""The instruction that takes a minimum, or adds, and for how many pairs."""


@checks("nvidia product")
def _nvidia_product(case: Case, variant: Variant, compiled: Compiled) -> None:
    """An add and a min in two instructions, or fewer where the GPU has them; few others."""
    dtype, nonnegative, capability, field = case[:4]
    operation = case[5] if len(case) > 5 else "plus"
    loop = compiled.main_loop()
    pairs = values_of(variant, "BLOCK_M", "BLOCK_N", "BLOCK_K")
    name = strategy(dtype, nonnegative, operation)
    if dtype.itemsize == 8:
        name = TYPES[dtype] if operation == "plus" else f"{operation}_{TYPES[dtype]}"
    if field == "small_product":
        name += " small"
    elif capability != 90:
        name += f" {capability}"
    opcode, pairs_each = USEFUL.get(name, USEFUL[name.split()[0]])
    assert loop[opcode] >= pairs / pairs_each, loop
    assert loop.total() <= 1.02 * MOST[name] * pairs, f"{loop.total() / pairs:.3f} per pair: {loop}"


@checks("nvidia closure")
def _nvidia_closure(case: Case, variant: Variant, compiled: Compiled) -> None:
    """By several programs per graph, which divide tiles, or by one; alone, or in a solve."""
    kind, dtype, nonnegative, capability, *operation = case
    config = default_config("nvidia", dtype)
    values = config.closure_tile**2 // (32 * config.closure_warps)  # of a tile, per thread
    products, closing = _closure_loops(compiled, values)
    assert kind == "one tile" or len(products) >= 2
    assert len(closing) == 1
    # A few addresses spill outside these loops, so that three programs fit a multiprocessor; Triton
    # 3.9 spills up to two more in them.
    few = {100: 2, 90: 0 if OVERSIZED_VIEWS else 2}.get(capability, 0)
    for loop in (*products, *closing) if dtype.itemsize < 8 else ():
        assert loop["STL"] + loop["LDL"] <= few, loop
    if capability == 90 and dtype == torch.int32 and operation == ["max"]:
        for loop in products:  # three for two pairs
            assert loop["VIMNMX"] + loop["VIMNMX3"] >= 12 * values, loop
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


@checks("shared value_range")
def _value_range(case: Case, variant: Variant, compiled: Compiled) -> None:
    """All loads of a tile are in flight at once, and memory does not wait for instructions."""
    loop, values = compiled.main_loop(), values_of(variant, "ROWS", "BLOCK")
    assert loop["LDG"] == values
    if case[2] == 1:
        assert loop.total() <= {torch.float64: 75, torch.int64: 45}.get(case[0], 26) * values, loop


@checks("shared initial_matrix")
def _initial_matrix(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Values are loaded and stored 16 bytes at a time, but loaded one by one where sizes may end
    rows anywhere.
    """
    dtype, _, padding = case
    loop, values = compiled.main_loop(), values_of(variant, "ROWS", "BLOCK")
    wide = values * dtype.itemsize // 16
    assert loop["STG"] == wide
    assert loop["LDG"] == (values + wide if padding == "SIZES" else wide)  # and a size for each row
    assert loop.total() <= {torch.float64: 90, torch.int64: 60}.get(dtype, 27) * values, loop


@checks("exponents count_edges")
def _count_edges(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Where 16 divides n, loads take 16 bytes, and memory does not wait for instructions."""
    loop, values = compiled.main_loop(), values_of(variant, "BLOCK")
    assert loop["LDG"] == values * case[0].itemsize // 16
    assert loop.total() <= 16 * values, loop


@checks("shared copy")
def _copy(case: Case, variant: Variant, compiled: Compiled) -> None:
    """16 bytes at a time."""
    wide = math.prod(_COPIED) * case[0].itemsize // (128 * 16)
    assert compiled.instructions["LDG"] == 2 * wide  # for either pair
    assert compiled.instructions["STG"] == 2 * wide


@checks("shared bellman_ford")
def _bellman_ford(case: Case, variant: Variant, compiled: Compiled) -> None:
    """For each vertex k, one load per weight, and four more: k, its label and its potential."""
    if case == (torch.float32, 90):
        assert compiled.main_loop()["LDG"] == values_of(variant, "BLOCK") + 4


@checks("shared argmin")
def _argmin(case: Case, variant: Variant, compiled: Compiled) -> None:
    """For each term an addition, a comparison and a selection, from registers."""
    if case == (torch.float32, 90):
        loop = compiled.main_loop()
        terms = 8 * 64 * 64 // 128
        assert loop["FSETP"] == loop["FADD"] == terms
        assert loop.total() <= 4.4 * terms


@checks("gradients argmin")
def _argmin_in_gluon(case: Case, variant: Variant, compiled: Compiled) -> None:
    """For each term a pair of add and min from registers, and of 16 terms one comparison and one
    selection.
    """
    dtype, nonnegative, small, capability = case[:4]
    loop = max(compiled.loops, key=lambda loop: loop["LDS"])
    assert loop["STL"] + loop["LDL"] <= 1, loop
    if (dtype, nonnegative, capability) == (torch.float32, True, 90):
        elements = values_of(variant, "BLOCK_M", "BLOCK_N")
        assert loop["FADD"] == 16 * elements
        assert loop["FSETP"] == elements
        assert loop["LDGSTS"] == (2 if small else 4)  # 16 bytes each
        assert loop.total() <= (2.85 if small else 2.15) * 16 * elements


# The minimum of a step of a small graph, and the most of some instructions.
SMALL_STEPS = {
    (32, torch.float32, False, 90): ("VIMNMX3", {"SHFL": 112, "total": 660}),
    (32, torch.int16, False, 90): ("VIADDMNMX", {"SHFL": 64, "total": 300}),
    (64, torch.float32, False, 90): (
        "VIMNMX3",
        {"SHFL": 64, "STS": 16, "LDS": 28, "BAR": 5, "total": 1100},
    ),
}


@checks("small graphs")
def _small_graphs(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Of graphs without negative weights, for eight k: one minimum for each two sums, and few
    shuffles.

    For each pair of k, two warps exchange columns by 16-byte stores and loads with one barrier.
    """
    if case in SMALL_STEPS:
        minimum, most = SMALL_STEPS[case]
        size = case[0]
        values = size * size // (32 if size == 32 else 64)  # of a thread
        steps = [loop for loop in compiled.loops if 4 * values <= loop[minimum] <= 5 * values]
        loop = min(steps, key=lambda loop: loop.total())
        found = loop | {"total": loop.total()}
        assert {name: found[name] for name in most if found[name] > most[name]} == {}


@checks("small gradients")
def _small_gradients(case: Case, variant: Variant, compiled: Compiled) -> None:
    """For eight k, a thread adds, compares and selects twice for each of its values; then it
    selects twice, and adds twice.

    Besides, a thread adds once per row to bring column k + 1 up to date. Triton 3.6 takes 5
    instructions per value and k in the first loop; later ones combine the comparisons of k and
    k + 1.
    """
    size, dtype, capability = case
    if size >= 32 and (dtype, capability) == (torch.float32, 90):
        inner = [loop for loop in compiled.loops if loop["LDG"] == 0]
        forward, backward, _ = sorted(inner, key=lambda loop: loop.total())[-3:]
        # Triton 3.6 spills nothing here.
        assert sum(loop["LDL"] + loop["STL"] for loop in (forward, backward)) <= 48
        assert 256 < forward["FADD"] <= 1.13 * 256
        assert forward.total() <= 8 * 256
        assert backward.total() <= 11 * 256


@checks("shared sparse")
def _sparse(case: Case, variant: Variant, compiled: Compiled) -> None:
    """A step gathers once for each edge: two loads of the lists and one of the distance, and no
    division.
    """
    if case == ("_pull_kernel", (32, 8), torch.float32, 90):
        loop = compiled.main_loop()
        assert loop["LDG"] == 3 * loop["FADD"] > 0
        assert loop["MUFU"] == 0


@checks("elimination")
def _table(case: Case, variant: Variant, compiled: Compiled) -> None:
    """A sum of a table takes an add, a minimum, and a share of the loads and paths of its tile."""
    if case == ("table", torch.float32, 90):
        sums, loop = values_of(variant, "BLOCK_M", "BLOCK_N", "DEPTHS"), compiled.main_loop()
        assert loop["FADD"] == loop["FMNMX"] == sums
        assert loop.total() <= 3.7 * sums


@checks("nvidia sweep")
def _sweep(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Its values lie where PTX expects them: there is no other shared memory. A record of float32
    takes at most 64 instructions: 18 for its edges, about 25 at the end of a position, and 20 at an
    ancestor of a lane.
    """
    mode, dtype, capability = case
    assert compiled.shared == 4 * sum(variant.constants["C"].ALLOCATIONS)
    assert compiled.registers <= 64
    unroll, loop = variant.constants["UNROLL"], compiled.main_loop()
    assert loop["LDGSTS"] + loop["LDS"] >= 3 * unroll
    if (mode, dtype, capability) == ("rows", torch.float32, 90):
        steps = [loop for loop in compiled.loops if loop["FADD"]]
        assert min(loop.total() for loop in steps) <= 64 * unroll


@checks("nvidia flows")
def _flows(case: Case, variant: Variant, compiled: Compiled) -> None:
    """As of the sweep. A record has three cases, of 70 to 90 instructions without what is seldom,
    and there is one sum of the table per iteration. Threads of a warp are known to stay together.
    """
    assert compiled.shared == 4 * sum(variant.constants["C"].ALLOCATIONS)
    assert compiled.registers <= 128
    loop = min(compiled.loops, key=lambda loop: loop.total())
    assert loop.total() <= 390
    assert loop["VOTE"] == 2  # none is repeated for threads that are apart
    assert compiled.instructions["WARPSYNC"] == 0


@checks("shared spanning tree")
def _spanning_tree(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Rows are written 16 bytes at a time, four rows in a turn; threads exchange nothing."""
    if case == (torch.float32, 90):
        loop, values = compiled.main_loop(), 4 * values_of(variant, "BLOCK")
        assert loop["STG"] == values / 4
        assert loop.total() <= 6.5 * values, loop
        assert sum(loop[name] for name in ("STS", "LDS", "SHFL", "BAR")) == 0


@checks("shared hops")
def _hops(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Hops are written in words: four neighbouring values of a thread are one store; threads
    exchange nothing.
    """
    if case == ("unpack", 255, 4, 90):
        assert compiled.main_loop()["STG"] == 1
        assert sum(compiled.instructions[name] for name in ("STS", "LDS", "SHFL")) == 0


@checks("shared predecessors")
def _predecessors(case: Case, variant: Variant, compiled: Compiled) -> None:
    """Instructions of a step for each sum: add, compare, two selections, and its share of loads,
    addresses and the test for the end.
    """
    name, dtype, capability = case
    most = {"_search_lists_kernel": 9.5, "_search_kernel": 7.0}.get(name)
    if most is not None and (dtype, capability) == (torch.float32, 90):
        tile = ("LANES",) if name == "_search_lists_kernel" else ("ROWS", "COLUMNS")
        sums = values_of(variant, "UNROLL", *tile)
        loop = min(compiled.loops, key=lambda loop: loop.total())
        assert loop["FADD"] == sums
        assert loop.total() <= most * sums, loop


# The most instructions of the main loop per LOP3 that "or" and "and" need: for large tiles, and for
# small ones. In plain Triton a thread owns a few columns of many rows, so that it expands a mask
# for nearly every word.
BOOLEAN_MOST = {"nvidia": (1.2, 1.36), "portable": (3.6, 4.5)}


@checks("boolean product")
def _boolean_product(case: Case, variant: Variant, compiled: Compiled) -> None:
    """One LOP3 per word and row of B, and copies of 16 bytes."""
    engine, tile, capability = case
    if capability == 90:
        loop, words = compiled.main_loop(), values_of(variant, "BLOCK_M", "BLOCK_N")
        assert 32 * words <= loop["LOP3"]
        assert loop.total() <= BOOLEAN_MOST[engine][tile] * 32 * words, loop
    if capability == 90 and engine == "nvidia":
        assert loop["LOP3"] <= 1.02 * 32 * words, loop
        copied = 32 * variant.constants["BLOCK_N"] * 4
        assert loop["LDGSTS"] * 16 * 32 * variant.num_warps == copied


@checks("boolean pack")
def _boolean_pack(case: Case, variant: Variant, compiled: Compiled) -> None:
    """16 bytes at a time."""
    wide = math.prod(_PACK_TILE.values()) * 32 * case[0].itemsize // (128 * 16)
    assert compiled.instructions["LDG"] == wide


@checks("boolean unpack")
def _boolean_unpack(case: Case, variant: Variant, compiled: Compiled) -> None:
    """16 bytes at a time."""
    assert compiled.instructions["STG"] == math.prod(_UNPACK_TILE.values()) * 32 // (128 * 16)


@checks("boolean product by counting")
def _counting(case: Case, variant: Variant, compiled: Compiled) -> None:
    """A step of k has instructions for 64 rows, 128 columns and 32 values of k by groups of four
    warps, and wide copies.
    """
    columns = variant.constants["BLOCK_N"]
    programs = 1 if columns == 256 else 2
    assert compiled.registers * 32 * variant.num_warps * programs <= 65536
    assert (compiled.shared + 1024) * programs <= 228 * 1024
    loop = max(compiled.loops, key=lambda loop: loop["IGMMA"])
    assert loop["IGMMA"] == columns // 32
    assert loop["LDGSTS"] == (128 + columns) * 128 // (256 * 16)
    assert loop.total() <= 140


@checks("exponents product")
def _exponent_product(case: Case, variant: Variant, compiled: Compiled) -> None:
    """A slice is 128 x 128 x 128 terms: eight instructions of a warp group, and three to decode two
    results. The shared memory is what `exponents_bytes` counts.
    """
    dtype, _, large = case
    tiles = default_config("nvidia", dtype).exponents
    if large:
        tiles = dataclasses.replace(tiles, **LARGE_EXPONENTS)
    assert 0 <= compiled.shared - exponents_bytes(tiles) <= 16
    if not large:
        loop = max(compiled.loops, key=lambda loop: loop["HGMMA"])
        results = 128 * 128 // 256  # of a thread
        assert loop["HGMMA"] == 8
        assert results // 2 <= loop["PRMT"] <= results // 2 + 2
        assert loop["VIADDMNMX"] == results // 2
        assert loop["LDGSTS"] == 16  # 16 bytes each
        # A part starts and ends one; the compiler does not wait for each instruction.
        assert loop["WARPGROUP"] <= 8
        assert loop.total() <= 6 * results


@checks("exponents encode")
def _encode_exponents(case: Case, variant: Variant, compiled: Compiled) -> None:
    """No sum is formed in pairs of 16 bits, of which ptxas of CUDA 12.8 leaves out some."""
    assert not compiled.instructions["STL"] + compiled.instructions["LDL"]
    assert not [line for line in compiled.code if "VIADD.16x2" in line]


@checks("exponents sample")
def _sample_exponents(case: Case, variant: Variant, compiled: Compiled) -> None:
    """A thread forms 64 sums and their minima in each iteration, while later values are copied to
    shared memory: 256 values of k, three iterations ahead.
    """
    size, loop = case[0].itemsize, compiled.main_loop()
    assert loop["LDG"] == 0
    assert loop["LDGSTS"] == size  # 16 bytes each: of a thread 8 values of A, and 8 of B
    assert loop.total() <= 7.5 * 64
    assert compiled.shared == 3 * (8 + 8) * 256 * size
