"""The variants of the GPU kernels whose machine code is tested, and compared where a source was
rewritten.

Each function returns what the engines launch, with the default configuration of a dtype, for a
compute capability.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from kernels.sass import Variant

from tri_apsp.bottleneck import TREE_CONSTANTS
from tri_apsp.configs import (
    EXPONENT_DTYPES,
    GpuTiles,
    default_config,
    product_registers,
)
from tri_apsp.elimination import gpu as sweeps_on_gpu
from tri_apsp.engines import triton_bellman_ford, triton_gradients, triton_predecessors
from tri_apsp.engines.boolean import nvidia as boolean_nvidia
from tri_apsp.engines.boolean import portable as boolean_portable
from tri_apsp.engines.boolean.triton_base import _PACK_TILE, _UNPACK_TILE
from tri_apsp.engines.exponents import (
    _encode_launcher,
    _product_launcher,
    _sample_launcher,
)
from tri_apsp.engines.nvidia_constants import (
    argmin_constants,
    closure_constants,
    closure_options,
    product_layouts,
    small_gradients_constants,
    small_graphs_constants,
    solve_constants,
    strategy,
)
from tri_apsp.engines.triton_base import _COPIED
from tri_apsp.gpu import edge_count
from tri_apsp.gpu import value_range as reading
from tri_apsp.gpu.launcher import Launcher
from tri_apsp.kernels.nvidia import boolean as nvidia_boolean
from tri_apsp.kernels.nvidia import flows as nvidia_flows
from tri_apsp.kernels.nvidia import sweeps as nvidia_sweeps
from tri_apsp.kernels.nvidia.argmin import _argmin_kernel as _nvidia_argmin_kernel
from tri_apsp.kernels.nvidia.closure import _closure_kernel as _nvidia_closure_kernel
from tri_apsp.kernels.nvidia.counting import _counting_kernel
from tri_apsp.kernels.nvidia.product import _product_kernel as _nvidia_product_kernel
from tri_apsp.kernels.nvidia.small_gradients import _small_gradients_kernel
from tri_apsp.kernels.nvidia.small_graphs import _small_graphs_kernel
from tri_apsp.kernels.nvidia.solve import _solve_kernel
from tri_apsp.kernels.portable import boolean as portable_boolean
from tri_apsp.kernels.portable.closure import _closure_kernel
from tri_apsp.kernels.portable.panels import _panels_kernel
from tri_apsp.kernels.portable.product import _product_kernel
from tri_apsp.kernels.shared import fewest_edges, tight_edges
from tri_apsp.kernels.shared import flows as flow_kernels
from tri_apsp.kernels.shared import gradients as gradient_kernels
from tri_apsp.kernels.shared import hops as hop_kernels
from tri_apsp.kernels.shared import predecessors as predecessor_kernels
from tri_apsp.kernels.shared import sparse as sparse_kernels
from tri_apsp.kernels.shared import sweeps as sweep_kernels
from tri_apsp.kernels.shared import updates as update_kernels
from tri_apsp.kernels.shared.argmin import _argmin_kernel, _first_term_kernel
from tri_apsp.kernels.shared.bellman_ford import _relax_kernel
from tri_apsp.kernels.shared.boolean import _pack_kernel, _unpack_kernel
from tri_apsp.kernels.shared.copy import _copy_kernel
from tri_apsp.kernels.shared.copy_packed import _copy_packed_kernel
from tri_apsp.kernels.shared.edge_count import _count_edges_kernel
from tri_apsp.kernels.shared.initial_matrix import _initial_matrix_kernel
from tri_apsp.kernels.shared.product_predecessors import (
    _check_terms_kernel,
    _small_predecessors_kernel,
)
from tri_apsp.kernels.shared.spanning_tree import _tree_kernel
from tri_apsp.kernels.shared.value_range import _value_range_kernel
from tri_apsp.semirings import Operation, distance_range, floor, missing, no_edge
from tri_apsp.sparse import triton as sparse_engine
from tri_apsp.sparse import triton_hops
from tri_apsp.updates import raises

CAPABILITIES = (90, 80, 100)
"""The compute capabilities, as integers; the first is that of most variants."""
TYPES = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.int16: "i16",
}
SIGNS = [(torch.float32, True), *((dtype, False) for dtype in TYPES)]
"""The pairs (dtype, nonnegative) for which the nvidia engine compiles different products."""

PREDECESSOR_KERNELS = (
    "_nearest_kernel",
    "_bounds_kernel",
    "_count_kernel",
    "_list_kernel",
    "_transpose_kernel",
    "_search_lists_kernel",
    "_search_kernel",
    "_collect_kernel",
    "_check_kernel",
    "_search_rest_kernel",
    "_fewest_edges_kernel",
)

SUM_KERNELS = ("largest", "edge_sums", "factor_sums", "scale")

NVIDIA_CLOSURES = (
    "closure by many",
    "closure by one",
    "solve by many",
    "solve by one",
    "padded by many",
    "padded by one",
    "one tile",
    "unchecked by many",
)
"""How the nvidia engine closes a block or solves a graph: see `nvidia_closure`."""


def _variant(
    kernel: Any, dtype: torch.dtype, capability: int, constants: dict[str, Any], **types: str
) -> Variant:
    """The kernel with `constants`, among which may be options of the compiler.

    Arguments are pointers to `dtype`, 64-bit batch strides (a batch passes 2**31 values), else
    32-bit integers; `types` has exceptions.
    """
    names = ("num_warps", "maxnreg", "num_stages")
    options = {"num_warps": 4} | {name: constants[name] for name in names if name in constants}
    constants = {name: value for name, value in constants.items() if name not in names}
    signature = {
        name: types.get(
            name,
            f"*{TYPES[dtype]}" if name.endswith("_ptr") else "i64" if name.endswith("b") else "i32",
        )
        for name in kernel.arg_names
        if name not in constants
    }
    return Variant(kernel, signature, constants, capability, **options)


def _tile_constants(tiles: GpuTiles) -> dict[str, int]:
    return {
        "BLOCK_M": tiles.block_m,
        "BLOCK_N": tiles.block_n,
        "BLOCK_K": tiles.block_k,
        "GROUP_M": tiles.group_m,
    }


def _portable(
    kernel: Any,
    dtype: torch.dtype,
    capability: int,
    num_warps: int,
    operation: Operation = "plus",
    **constants: Any,
) -> Variant:
    constants |= {"NO_EDGE": missing(dtype, operation), "FLOOR": floor(dtype, operation)}
    constants |= {"OPERATION": operation, "num_warps": num_warps}
    return _variant(kernel, dtype, capability, constants)


def portable_product(dtype: torch.dtype, capability: int, operation: Operation = "plus") -> Variant:
    tiles = default_config("portable", dtype).product
    constants = _tile_constants(tiles)
    return _portable(_product_kernel, dtype, capability, tiles.num_warps, operation, **constants)


def portable_closure(dtype: torch.dtype, capability: int) -> Variant:
    config = default_config("portable", dtype)
    return _portable(
        _closure_kernel, dtype, capability, config.closure_warps, BLOCK=config.block_size
    )


def portable_panels(dtype: torch.dtype, capability: int) -> Variant:
    config = default_config("portable", dtype)
    return _portable(
        _panels_kernel,
        dtype,
        capability,
        config.panel_warps,
        BLOCK=config.block_size,
        BLOCK_K=config.product.block_k,
        PANEL=config.panel,
    )


def nvidia_product(
    dtype: torch.dtype,
    nonnegative: bool,
    capability: int,
    field: str = "product",
    needed_tile: int | None = None,
    operation: Operation = "plus",
) -> Variant:
    """The product by the tiles in `field` of the configuration; with `needed_tile` of those tiles
    that are needed; `operation` of the semiring.
    """
    tiles = getattr(default_config("nvidia", dtype), field)
    constants = {
        "NO_EDGE": missing(dtype, operation),
        "FLOOR": floor(dtype, operation),
        **_tile_constants(tiles),
        "NUM_STAGES": tiles.num_stages,
        "STRATEGY": strategy(dtype, nonnegative, operation),
        "LAYOUTS": product_layouts(tiles, dtype),
        "NEEDED_TILE": needed_tile,
        "num_warps": tiles.num_warps,
        "maxnreg": product_registers((capability // 10, 0), tiles.num_warps),
    }
    pointers = {"locks_ptr": "*i32", "needed_ptr": "*i32"}
    return _variant(_nvidia_product_kernel, dtype, capability, constants, **pointers)


def nvidia_closure(
    kind: str,
    dtype: torch.dtype,
    nonnegative: bool,
    capability: int,
    operation: Operation = "plus",
    **more: Any,
) -> Variant:
    """A closure, by `kind`: by many programs per graph, which divide tiles, or by one; alone, or as
    all of a solve.

    A solve may pad its rows, or have one tile only. `more` are constants.
    """
    config = default_config("nvidia", dtype)
    tile, warps, many = config.closure_tile, config.closure_warps, kind.endswith("many")
    parts, programs = (4, config.closure_programs) if many else (1, config.batch_programs)
    constants: dict[str, Any] = {
        "CLOSURE": closure_constants(
            dtype, nonnegative, operation, tile=tile, warps=warps, parts=parts
        ),
        "SIZES": not many,
        "COOPERATIVE": many,
    }
    pointers = {"sizes_ptr": "*i64", "counter_ptr": "*i64"}
    if kind.startswith("closure"):
        kernel = _nvidia_closure_kernel
    else:
        kernel = _solve_kernel
        constants |= solve_constants(
            dtype,
            tile=tile,
            warps=warps,
            single_tile=kind == "one tile",
            padded=kind.startswith("padded"),
            check=not kind.startswith("unchecked"),
        )
        pointers["finished_ptr"] = "*i64"
        if dtype == torch.int16:
            pointers |= {"partials_ptr": "*i32", "extremes_ptr": "*i32"}
    constants |= closure_options(warps, programs) | more
    return _variant(kernel, dtype, capability, constants, **pointers)


def small_graphs(size: int, dtype: torch.dtype, sizes: bool, capability: int) -> Variant:
    """The kernel for graphs of at most `size` vertices."""
    constants = {"stride_wn": 1, "SIZES": sizes, "CHECK": True}
    pointers = {"sizes_ptr": "*i64", "finished_ptr": "*i64"}
    if dtype == torch.int16:
        pointers |= {"partials_ptr": "*i32", "extremes_ptr": "*i32"}
    constants |= small_graphs_constants(dtype, size)
    return _variant(_small_graphs_kernel, dtype, capability, constants, **pointers)


def small_gradients(size: int, dtype: torch.dtype, capability: int) -> Variant:
    """The kernel for gradients of graphs of at most `size` vertices."""
    constants = small_gradients_constants(dtype, size) | {"stride_wn": 1}
    return _variant(_small_gradients_kernel, dtype, capability, constants)


def _strides(kernel: Any) -> dict[str, str]:
    return {name: "i64" for name in kernel.arg_names if "stride" in name}


def value_range(dtype: torch.dtype, capability: int, rows: int, unit: bool) -> Variant:
    """For `rows` rows of 1000 values, with the largest sizes and strides; of unit stride, if
    `unit`.
    """
    constants = reading._constants(dtype, *reading._tile(dtype, rows, 1000))
    constants |= {"BELOW": distance_range(dtype, negative=True).beyond, "DIAGONAL": True}
    if unit:
        constants["stride_xn"] = 1
    types = _strides(_value_range_kernel) | {"n": "i64"}
    return _variant(_value_range_kernel, dtype, capability, constants, **types)


def initial_matrix(dtype: torch.dtype, capability: int, padding: str = "") -> Variant:
    """`padding` is the constant that states whether there is any: SIZES or PADDED."""
    constants = reading._constants(dtype, *reading._tile(dtype, 1000, 1000))
    constants |= dict.fromkeys(("NO_EDGE", "BELOW"), no_edge(dtype)) | {"stride_wn": 1}
    constants |= {name: name == padding for name in ("SIZES", "PADDED")}
    types = _strides(_initial_matrix_kernel) | {"sizes_ptr": "*i64"}
    return _variant(_initial_matrix_kernel, dtype, capability, constants, **types)


def count_edges(dtype: torch.dtype, capability: int) -> Variant:
    """Of rows of unit stride."""
    constants = {"NO_EDGE": no_edge(dtype), "LOOPS": False, "BLOCK": edge_count._BLOCK}
    constants |= {"stride_xn": 1, "num_warps": edge_count._WARPS}
    types = {"counts_ptr": "*i32", "stride_xm": "i64"}
    return _variant(_count_edges_kernel, dtype, capability, constants, **types)


def copy(dtype: torch.dtype, capability: int) -> Variant:
    constants = dict(zip(("ROWS", "BLOCK"), _COPIED, strict=True))
    return _variant(_copy_kernel, dtype, capability, constants)


def predecessors(name: str, dtype: torch.dtype, capability: int) -> Variant:
    """The kernel of that name, of those that find predecessors."""
    kernel = next(
        getattr(module, name)
        for module in (tight_edges, predecessor_kernels, fewest_edges)
        if hasattr(module, name)
    )
    relative = 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    constants = triton_predecessors.predecessor_constants(kernel, dtype, relative)
    types = dict.fromkeys(
        ("pred_strip_ptr", "pred_ptr", "flags_ptr", "sources_ptr", "targets_ptr"), "*i32"
    )
    types |= dict.fromkeys(("masks_ptr", "counts_ptr", "doubts_ptr", "loops_ptr"), "*i32")
    types |= {"queue_ptr": "*i32", "ends_ptr": "*i64", "capacity": "i64"}
    constants["num_warps"] = triton_predecessors.warps(kernel)
    return _variant(kernel, dtype, capability, constants, **types)


def bellman_ford(dtype: torch.dtype, capability: int) -> Variant:
    """A round of the search for negative cycles."""
    constants = triton_bellman_ford.relax_constants(dtype) | {"stride_wn": 1}
    number = "*fp64" if dtype.is_floating_point else "*i64"
    types = dict.fromkeys(("least_ptr", "least_low_ptr", "high_ptr", "low_ptr"), number)
    types["allowance_ptr"] = "*fp64"
    types |= dict.fromkeys(("parent_ptr", "active_ptr", "labels_ptr"), "*i64")
    return _variant(_relax_kernel, dtype, capability, constants, **types)


SPARSE_KERNELS = {
    "_pull_kernel": [(32, 8), (1, 512)],
    "_tight_kernel": [(32, 8, False), (1, 512, True)],
    "_segments_kernel": [()],
    "_carries_kernel": [()],
    "_push_kernel": [()],
    "_pull_rows_kernel": [(16,), (512,)],
}
"""The kernels of sparse methods, each with its tiles."""


def sparse(name: str, tile: tuple[int, ...], dtype: torch.dtype, capability: int) -> Variant:
    """The kernel of that name, of those of sparse methods."""
    kernel = vars(sparse_kernels)[name]
    constants = sparse_engine.kernel_constants(kernel, dtype, *tile)
    vertices = (
        "lowered",
        "order",
        "sources",
        "targets",
        "queue",
        "count",
        "next_queue",
        "next_count",
        "queued",
        "changed",
        "vertices",
        "others",
        "pred",
        "level",
        "not_closer",
        "found",
    )
    types = {f"{name}_ptr": "*i32" for name in vertices}
    types |= dict.fromkeys(("offsets_ptr", "firsts_ptr", "ends_ptr"), "*i64")
    return _variant(kernel, dtype, capability, constants, **types)


SWEEP_KERNELS = ("climb", "sweep", "rows", "predecessors", "table", "table overlaps", "pairs")
"""The kernels of graphs with an elimination tree, but the sweep in Gluon."""

SWEEP_MODES = ("rows", "totals", "within")
"""What a sweep makes of the values."""

_SWEEP_SLOTS = 43
"""Values of a lane in shared memory, as of a road network of 32 768 vertices."""


def _sweep_types(mode: str, dtype: torch.dtype) -> dict[str, str]:
    vertices = (
        *("path", "positions", "depths", "parents", "vertices", "order", "sources"),
        *("targets", "reached", "records", "tasks", "preloads", "pred", "not_closer"),
        *("ancestor_depths", "up_path", "up_depths", "down_path", "down_depths", "starts", "ends"),
    )
    types = {f"{name}_ptr": "*i32" for name in vertices}
    is_float = mode == "within" or dtype.is_floating_point
    sums = "*fp64" if is_float else "*i64"
    types |= dict.fromkeys(("offsets_ptr", "rows_ptr", "columns_ptr"), "*i64")
    return types | {"sums_ptr": sums, "amounts_ptr": "*fp64"}


def elimination(name: str, dtype: torch.dtype, capability: int) -> Variant:
    """The kernel of that name, of those of graphs with an elimination tree; the sweep of totals,
    and of a table the tiles beside the diagonal, or with "overlaps" those on it.
    """
    name, _, overlaps = name.partition(" ")
    kernel = getattr(sweep_kernels, f"_{name}_kernel")
    constants = sweeps_on_gpu.kernel_constants(name, dtype, wide=dtype.itemsize == 8)
    if name == "sweep":
        constants |= {"MODE": "totals", "CLAMPS": False, "PRELOADS": False}
    if name == "table":
        constants["OVERLAPS"] = bool(overlaps)
    return _variant(kernel, dtype, capability, constants, **_sweep_types("totals", dtype))


_FLOW_TYPES = {
    **dict.fromkeys(("sums_ptr", "lost_ptr", "through_ptr", "over_ptr"), "*fp64"),
    **dict.fromkeys(
        ("exceeded_ptr", "words_ptr", "starts_ptr", "path_ptr", "depths_ptr", "parents_ptr"), "*i32"
    ),
    **{"ancestor_depths_ptr": "*i32", "offsets_ptr": "*i64"},
}
FLOW_KERNELS = ("climb", "walk", "descend")
"""The kernels of flows, but the walk in Gluon."""


def flows(name: str, dtype: torch.dtype, capability: int) -> Variant:
    """The kernel of that name, of those of flows."""
    constants = sweeps_on_gpu.flow_constants(name, is_dense=False)
    kernel = getattr(flow_kernels, f"_{name}_kernel")
    return _variant(kernel, dtype, capability, constants, **_FLOW_TYPES)


def nvidia_flows_walk(dtype: torch.dtype, capability: int) -> Variant:
    """The walk of flows in Gluon, for a tree of 115 levels."""
    constants = sweeps_on_gpu.walk_constants(115)
    return _variant(nvidia_flows._walk_kernel, dtype, capability, constants, **_FLOW_TYPES)


def nvidia_sweep(mode: str, dtype: torch.dtype, capability: int) -> Variant:
    """The sweep in Gluon by the widest program of the default configuration."""
    config, wide = default_config("nvidia", dtype), dtype.itemsize == 8
    shape = sweeps_on_gpu._shapes_of(config, dtype.itemsize)[0]
    constants = sweeps_on_gpu.sweep_constants(
        mode, dtype, shape, _SWEEP_SLOTS, config.sweep_unroll, wide=wide
    )
    constants |= {"CLAMPS": not dtype.is_floating_point, "PRELOADS": mode == "rows"}
    types = _sweep_types(mode, dtype)
    return _variant(nvidia_sweeps._sweep_kernel, dtype, capability, constants, **types)


HOP_KERNELS = {
    "start": [(0, 0)],
    "gather": [(256, 0)],
    "level": [(256, 0), (16, 14)],
    "unpack": [(255, 4), (16383, 14)],
}
"""The kernels of hops, each with its variants."""


def hop_kernel(name: str, number: int, digits: int, capability: int) -> Variant:
    """The kernel of that name, of those of hops."""
    kernel = getattr(hop_kernels, f"_{name}_kernel")
    constants = triton_hops.hop_constants(name, number, digits)
    types = dict.fromkeys(
        ("starts_ptr", "offsets_ptr", "firsts_ptr", "ends_ptr", "total_ptr", "reached_ptr"), "*i64"
    )
    types["out_ptr"] = "*u8" if number == 255 else "*i16"
    return _variant(kernel, torch.int32, capability, constants, **types)


def spanning_tree(dtype: torch.dtype, capability: int) -> Variant:
    """The kernel that writes all rows of a tree."""
    types = dict.fromkeys(("order_ptr", "place_ptr"), "*i32")
    return _variant(_tree_kernel, dtype, capability, dict(TREE_CONSTANTS), **types)


UPDATE_KERNELS = {
    "take": {"DEPTH": 32, "BLOCK": raises._BLOCK},
    "search": {"SWEEPS": raises._SWEEPS, "LANES": raises._LANES, "SLOTS": raises._SLOTS},
}
"""The kernels of updates, each with its constants."""


def updates(name: str, dtype: torch.dtype, predecessors: bool, capability: int) -> Variant:
    """The kernel of that name, of those of edges that rise."""
    constants = UPDATE_KERNELS[name] | {"NONE": no_edge(dtype), "PREDECESSORS": predecessors}
    types = {"pred_ptr": "*i32" if predecessors else "*i64", "sources_ptr": "*i32"}
    types |= dict.fromkeys(("pairs_ptr", "count_ptr", "counts_ptr", "offsets_ptr"), "*i64")
    kernel = getattr(update_kernels, f"_{name}_kernel")
    return _variant(kernel, dtype, capability, constants, **types)


def boolean_product(engine: str, tile: int, capability: int) -> Variant:
    """The Boolean product of an engine by its tiles of that index."""
    if engine == "nvidia":
        engine_type = boolean_nvidia.NvidiaBooleanEngine
        constants = engine_type.product_constants(engine_type.TILES[tile])
        kernel = nvidia_boolean._boolean_product_kernel
    else:
        tiles = boolean_portable.PortableBooleanEngine.TILES[tile]
        kernel = portable_boolean._boolean_product_kernel
        constants = {"BLOCK_M": tiles.block_m, "BLOCK_N": tiles.block_n}
        constants["num_warps"] = tiles.num_warps
    return _variant(kernel, torch.int32, capability, constants)


def nvidia_argmin(
    dtype: torch.dtype,
    nonnegative: bool,
    small: bool,
    capability: int,
    operation: Operation = "plus",
    **more: Any,
) -> Variant:
    """The terms of a product; `small`: in tiles for a few; `more` are constants."""
    _, constants = argmin_constants(dtype, nonnegative, operation, small, (capability // 10, 0))
    return _variant(_nvidia_argmin_kernel, dtype, capability, constants | more, slices_ptr="*i32")


def first_term(dtype: torch.dtype, capability: int) -> Variant:
    """The first term of a slice."""
    constants = {"SLICE": 16, "BLOCK": 256, "NO_EDGE": no_edge(dtype), "OPERATION": "plus"}
    return _variant(_first_term_kernel, dtype, capability, constants, argmin_ptr="*i32")


LARGE_EXPONENTS = {"block_n": 256, "block_k": 512}
"""The largest tiles of products by exponents, and the longest slices."""


def exponent_tiles(dtype: torch.dtype, large: bool) -> GpuTiles:
    tiles = default_config("nvidia", dtype).exponents
    return dataclasses.replace(tiles, **LARGE_EXPONENTS) if large else tiles


def exponent_product(dtype: torch.dtype, capability: int, large: bool) -> Variant:
    """The product by exponents."""
    pointers = {
        "a_ptr": "*bf16",
        "b_ptr": "*bf16",
        "a_scores_ptr": "*i16",
        **dict.fromkeys(("b_scores_ptr", "uncertain_ptr", "counts_ptr"), "*i32"),
        **dict.fromkeys(("a_ranges_ptr", "b_ranges_ptr"), "*i32"),
    }
    launcher = _product_launcher(dtype, exponent_tiles(dtype, large))
    return _launched(launcher, dtype, capability, pointers)


def encode_exponents(dtype: torch.dtype, capability: int, large: bool) -> Variant:
    """The encoding for products by exponents."""
    pointers = dict.fromkeys(("counts_ptr", "sample_ptr", "a_ranges_ptr", "b_ranges_ptr"), "*i32")
    pointers |= {
        "a_powers_ptr": "*bf16",
        "a_scores_ptr": "*i16",
        "b_powers_ptr": "*bf16",
        "b_scores_ptr": "*i16",
    }
    launcher = _encode_launcher(dtype, exponent_tiles(dtype, large))
    return _launched(launcher, dtype, capability, pointers)


def sample_exponents(dtype: torch.dtype, capability: int) -> Variant:
    """The sample of a product by exponents."""
    launcher, pointers = (
        _sample_launcher(dtype, default_config("nvidia", dtype).exponents),
        ("sample_ptr", "zeros_ptr"),
    )
    return _launched(launcher, dtype, capability, dict.fromkeys(pointers, "*i32"))


def _launched(
    launcher: Launcher, dtype: torch.dtype, capability: int, pointers: dict[str, str]
) -> Variant:
    """The kernel of a launcher, with its constants; `pointers` that are not of `dtype`."""
    return _variant(launcher._kernel, dtype, capability, launcher._constants, **pointers)


def check_terms(dtype: torch.dtype, capability: int) -> Variant:
    """The check of predecessors that are terms of a product."""
    relative = 1e-6 if dtype.is_floating_point else 0
    constants = {"RELATIVE": relative, "NO_EDGE": no_edge(dtype), "BLOCK": 1024}
    pointers = {"pred_ptr": "*i32", "failed_ptr": "*i32"}
    return _variant(_check_terms_kernel, dtype, capability, constants, **pointers)


def small_predecessors(dtype: torch.dtype, sizes: bool, capability: int) -> Variant:
    """The predecessors of small graphs."""
    relative = 1e-6 if dtype.is_floating_point else 0
    pointers = {"pred_ptr": "*i32", "failed_ptr": "*i32", "sizes_ptr": "*i64"}
    constants = triton_predecessors.small_constants(dtype, 64, sizes, relative)
    return _variant(_small_predecessors_kernel, dtype, capability, constants, **pointers)


def gradient_sums(name: str, dtype: torch.dtype, capability: int, **more: Any) -> Variant:
    """The kernel of that name, of those of sums of gradients; `more` are constants."""
    integers = dict.fromkeys(
        ("edge_sums_ptr", "a_sums_ptr", "b_sums_ptr", "sums_ptr", "largest_ptr"), "*i64"
    )
    integers |= dict.fromkeys(("ancestors_ptr", "predecessors_ptr", "chosen_ptr"), "*i32")
    kernel = getattr(gradient_kernels, f"_{name}_kernel")
    return _variant(kernel, dtype, capability, {"BLOCK": 1024, **more}, **integers)


def argmin(dtype: torch.dtype, capability: int) -> Variant:
    constants = triton_gradients.ARGMIN | {"NO_EDGE": no_edge(dtype), "OPERATION": "plus"}
    return _variant(_argmin_kernel, dtype, capability, constants, argmin_ptr="*i32")


def packed(pack: bool, wide: bool, capability: int) -> Variant:
    """Of values of 32 bits; `wide` matrices have more than 2**31 of them."""
    constants = {"PACK": pack, "FILL": no_edge(torch.int32), "WIDE": wide, "BLOCK": 1024}
    pointers = {"starts_ptr": "*i64", "sizes_ptr": "*i64"}
    return _variant(_copy_packed_kernel, torch.int32, capability, constants, **pointers)


def boolean_pack(dtype: torch.dtype, capability: int) -> Variant:
    """The packing of rows of unit stride, of uint8 as of bool, of floats as weights."""
    missing = no_edge(dtype) if dtype.is_floating_point else None
    constants = {"NO_EDGE": missing, **_PACK_TILE, "stride_an": 1}
    adjacency = "*u8" if dtype == torch.uint8 else f"*{TYPES[dtype]}"
    return _variant(_pack_kernel, torch.int32, capability, constants, adjacency_ptr=adjacency)


def boolean_unpack(transposed: bool, capability: int) -> Variant:
    constants = {"TRANSPOSED": transposed, **_UNPACK_TILE}
    return _variant(_unpack_kernel, torch.int32, capability, constants, bytes_ptr="*u8")


def counting_product(tiles: dict[str, int]) -> Variant:
    """A Boolean product that counts paths, on compute capability 9.x."""
    return _variant(_counting_kernel, torch.int32, 90, tiles, a_ptr="*i8", b_ptr="*i8")


def star(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the first value of every axis as one case, and all that differ from it in one."""
    first = tuple(axis[0] for axis in axes)
    others = [
        (*first[:i], value, *first[i + 1 :]) for i, axis in enumerate(axes) for value in axis[1:]
    ]
    return [first, *others]


def of_one_vertex(kernel: str) -> Variant:
    """Triton compiles for a size of 1 apart: a constant, which has no dtype."""
    sizes = {"edge_sums": {"n": 1}, "factor_sums": {"m": 1, "n": 1, "depth": 1}}
    if kernel == "closure":
        return nvidia_closure("closure by one", torch.float32, True, 90, SIZES=False, n=1)
    if kernel == "argmin":
        return nvidia_argmin(torch.float32, True, False, 90, m=1, n=1)
    return gradient_sums(kernel, torch.float32, 90, **sizes.get(kernel, {"values": 1}))


# One of each size of a value; one of each class of its arithmetic.
_SIZES = (torch.float32, torch.float64, torch.int16)
_CLASSES = (torch.float32, torch.int64, torch.int16)
_FLOATS = (torch.float32, torch.float64)

OPERATIONS: dict[Operation, list[torch.dtype]] = {
    "max": [torch.int32, torch.int16, torch.int64],
    "times": [torch.float32, torch.float64],
}
"""The dtypes of operations of semirings besides sums."""

VARIANTS: dict[str, tuple[Callable[..., Variant], list[tuple[Any, ...]]]] = {
    "portable product": (
        portable_product,
        [
            *star(_CLASSES, CAPABILITIES),
            *((dtypes[0], 90, operation) for operation, dtypes in OPERATIONS.items()),
        ],
    ),
    "portable closure": (portable_closure, star(_CLASSES, CAPABILITIES)),
    "portable panels": (portable_panels, star(_CLASSES, CAPABILITIES)),
    "nvidia product": (
        nvidia_product,
        [
            *((*sign, 90, "product") for sign in SIGNS),
            *star([torch.float32], [True], CAPABILITIES, ["product", "small_product"])[1:],
            (torch.int16, False, 90, "product", 128),
            *(
                (*case, "product", None, operation)
                for operation, dtypes in OPERATIONS.items()
                for case in star(dtypes, [False], CAPABILITIES)
                if case[0] != torch.int16 or case[2] == 90
            ),
        ],
    ),
    "nvidia closure": (
        nvidia_closure,
        [
            *star(NVIDIA_CLOSURES, [torch.float32], [True, False], CAPABILITIES),
            ("closure by many", torch.int64, False, 90),
            ("solve by many", torch.int16, False, 90),
            *(
                (*case, "max")
                for case in star(
                    ["closure by many", "closure by one"],
                    [torch.int32, torch.int64],
                    [False],
                    CAPABILITIES,
                )
            ),
        ],
    ),
    "shared value_range": (
        value_range,
        [*star(_SIZES, CAPABILITIES, [1], [True]), (torch.float32, 90, 2, False)],
    ),
    "shared initial_matrix": (
        initial_matrix,
        star(_SIZES, CAPABILITIES, ["", "SIZES", "PADDED"]),
    ),
    "shared copy": (copy, star(_SIZES, CAPABILITIES)),
    "shared packed": (packed, star([False, True], [False, True], CAPABILITIES)),
    "shared argmin": (argmin, star(_FLOATS, CAPABILITIES)),
    "shared bellman_ford": (bellman_ford, star([torch.float32, torch.int32], CAPABILITIES)),
    "shared predecessors": (
        predecessors,
        [
            *itertools.product(PREDECESSOR_KERNELS, [torch.float32], CAPABILITIES),
            *(("_search_lists_kernel", dtype, 90) for dtype in _CLASSES[1:]),
        ],
    ),
    "shared sparse": (
        sparse,
        [
            case
            for name, tiles in SPARSE_KERNELS.items()
            for case in star([name], tiles, [torch.float32], CAPABILITIES)
        ],
    ),
    "elimination": (
        elimination,
        [
            case
            for name in SWEEP_KERNELS
            for case in star([name], [torch.float32, torch.int64], CAPABILITIES)
        ],
    ),
    "nvidia sweep": (
        nvidia_sweep,
        [
            *itertools.product(SWEEP_MODES, [torch.float32], CAPABILITIES),
            *(("rows", dtype, 90) for dtype in (torch.float64, torch.int32, torch.int64)),
            ("totals", torch.int64, 90),
        ],
    ),
    "flows": (
        flows,
        [
            case
            for name in FLOW_KERNELS
            for case in star([name], [torch.float32, torch.float64], CAPABILITIES)
        ],
    ),
    "nvidia flows": (nvidia_flows_walk, star([torch.float32], CAPABILITIES)),
    "shared spanning tree": (
        spanning_tree,
        star([torch.float32, torch.float64, torch.int16, torch.int64], CAPABILITIES),
    ),
    "shared hops": (
        hop_kernel,
        [
            (name, *kind, capability)
            for name, kinds in HOP_KERNELS.items()
            for kind, capability in star(kinds, CAPABILITIES)
        ],
    ),
    "shared updates": (
        updates,
        [
            case
            for name in UPDATE_KERNELS
            for case in star([name], [*TYPES], [False, True], CAPABILITIES)
        ],
    ),
    "gradients argmin": (
        nvidia_argmin,
        [
            *star([torch.float32, torch.int64], [True, False], [False, True], CAPABILITIES),
            *((dtypes[0], False, False, 90, name) for name, dtypes in OPERATIONS.items()),
        ],
    ),
    "gradients first_term": (first_term, star(_FLOATS, CAPABILITIES)),
    "gradients check_terms": (check_terms, star([torch.float32, torch.int32], CAPABILITIES)),
    "gradients small_predecessors": (
        small_predecessors,
        star([*TYPES], [False, True], CAPABILITIES),
    ),
    "gradients": (
        gradient_sums,
        [*itertools.product(SUM_KERNELS, [torch.float32], CAPABILITIES)],
    ),
    "small graphs": (
        small_graphs,
        [
            *star([32, 8, 64], [torch.float32, torch.int16], [False, True], CAPABILITIES),
            (32, torch.float64, True, 90),
            (64, torch.int16, True, 90),
        ],
    ),
    "small gradients": (small_gradients, star([32, 8, 64], _FLOATS, CAPABILITIES)),
    "boolean product": (
        boolean_product,
        [(name, *case) for name in ("nvidia", "portable") for case in star([0, 1], CAPABILITIES)],
    ),
    "boolean product by counting": (
        counting_product,
        [
            (tiles,)
            for tiles in (boolean_nvidia.COUNTING_TILES, boolean_nvidia.LARGE_COUNTING_TILES)
        ],
    ),
    "boolean pack": (boolean_pack, star([torch.uint8, torch.float32], CAPABILITIES)),
    "boolean unpack": (boolean_unpack, star([False, True], CAPABILITIES)),
    "exponents product": (exponent_product, star(EXPONENT_DTYPES, [90], [False, True])),
    "exponents encode": (encode_exponents, star(EXPONENT_DTYPES, [90], [False, True])),
    "exponents sample": (sample_exponents, star(EXPONENT_DTYPES, [90])),
    "exponents count_edges": (count_edges, star(EXPONENT_DTYPES, [90])),
    "nvidia of one vertex": (
        of_one_vertex,
        [(kernel,) for kernel in (*SUM_KERNELS, "argmin", "closure")],
    ),
}
"""The variants that tests compile, and compare_compiled.py: how one is made, and its arguments.

Each has its reason: every kernel for each compute capability, and every class of dtypes, way and
tile for the first of them.

A name begins with its engine, or with "shared" if both GPU engines launch it, or with another word
if no tuned file depends on it.
"""


def name_of(kernel: str, case: tuple[Any, ...]) -> str:
    return " ".join([kernel, *(str(word).removeprefix("torch.") for word in case)])


def all_variants() -> dict[str, Callable[[], Variant]]:
    """Return how to make every variant, by name: that of its kernel, and its arguments."""
    return {
        name_of(kernel, case): partial(make, *case)
        for kernel, (make, cases) in VARIANTS.items()
        for case in cases
    }
