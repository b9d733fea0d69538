"""What is tuned separately, and which fields of a Config each of it sets."""

from __future__ import annotations

from collections.abc import Mapping

from tri_apsp.configs import Config
from tri_apsp.errors import InputError

__all__ = ["FIELDS", "KERNELS", "SIGNS", "allowed_fields", "check_kernel", "size_in_solve"]

# Products too small to fill a GPU come up inside larger solves; from so many rows on, a product takes the other tiles.
_LARGEST_SMALL_PRODUCT = 1024

KERNELS: dict[str, tuple[str, ...]] = {
    "cpu": ("product", "solve"),
    "nvidia": ("product", "small_product", "closure", "batch", "solve"),
    "portable": ("product", "closure", "panels", "solve"),
}
"""The kernels of an engine, in the order in which they are tuned: a solve runs with what was found for the others."""

_SOLVE = ("method", "block_size", "cutoff")

FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("cpu", "product"): ("product",),
    ("cpu", "solve"): _SOLVE,
    ("nvidia", "product"): ("product",),
    ("nvidia", "small_product"): ("small_product",),
    ("nvidia", "closure"): ("closure_tile", "closure_warps", "closure_programs"),
    ("nvidia", "batch"): ("closure_tile", "closure_warps", "batch_programs"),
    ("nvidia", "solve"): (*_SOLVE, "small_product"),
    ("portable", "product"): ("product",),
    ("portable", "closure"): ("block_size", "closure_warps"),
    ("portable", "panels"): ("panel", "panel_warps"),
    ("portable", "solve"): _SOLVE,
}
"""The fields of a Config that a kernel (of an engine) sets; where two set the same, "solve" has the last word."""

SIGNS = ("any", "nonnegative")
"""The signs of weights for which configurations are tuned apart."""


def allowed_fields(engine: str, kernel: str) -> tuple[str, ...]:
    """Return the fields that an entry of a kernel may have: those of a solve may have all of its engine.

    Where defaults throughout are faster than what was found for the kernels by themselves, a solve keeps them by that.
    """
    if kernel != "solve":
        return FIELDS[engine, kernel]
    return tuple(dict.fromkeys(name for other in reversed(KERNELS[engine]) for name in FIELDS[engine, other]))


def size_in_solve(kernel: str, n: int, config: Config) -> int:
    """Return the n for which a solve, or a product, of `n` under a whole `config` looks for a kernel: mostly its own."""
    if kernel == "small_product":
        return min(n, _LARGEST_SMALL_PRODUCT)
    if (config.engine, kernel) != ("nvidia", "closure"):
        return n
    assert config.block_size is not None
    assert config.cutoff is not None
    largest = config.block_size
    if n > largest and config.method != "floyd_warshall":
        largest = min(largest, config.cutoff)
    return min(n, largest)


def check_kernel(engine: str, kernel: str) -> None:
    """Refuse what is no kernel of an engine.

    Raises:
        InputError: with the valid names.
    """
    if engine not in KERNELS:
        raise InputError(f"engine must be one of {', '.join(KERNELS)}, but is {engine!r}; choose one of these.")
    if kernel not in KERNELS[engine]:
        names = ", ".join(KERNELS[engine])
        raise InputError(f"kernel must be one of {names} for the {engine} engine, but is {kernel!r}; choose one of these.")
