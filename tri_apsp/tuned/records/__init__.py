"""The tunable kernels: one record each. To make another kernel tunable, add its record to the file
of its engine.
"""

from collections.abc import Mapping
from typing import Any

from tri_apsp.errors import InputError
from tri_apsp.tuned.records import cpu, nvidia, portable
from tri_apsp.tuned.records.base import Choice, Parameter, Space, TunableKernel, Values, tiles_name

__all__ = [
    "KERNELS",
    "RECORDS",
    "Choice",
    "Parameter",
    "Space",
    "TunableKernel",
    "Values",
    "allowed_fields",
    "record_of",
    "records_of",
    "tiles_name",
]

RECORDS: dict[tuple[str, str], TunableKernel[Any]] = {
    (record.engine, record.name): record
    for record in (*cpu.KERNELS, *nvidia.KERNELS, *portable.KERNELS)
}
"""The records by engine and kernel, in the order of tuning: a solve runs with the winners of its
engine's other kernels.
"""

KERNELS: Mapping[str, tuple[str, ...]] = {
    engine: tuple(name for other, name in RECORDS if other == engine)
    for engine in dict.fromkeys(engine for engine, _ in RECORDS)
}
"""The names of the kernels of each engine, in that order."""


def records_of(engine: str) -> list[TunableKernel[Any]]:
    """Return the records of an engine, in the order in which they are tuned."""
    return [record for record in RECORDS.values() if record.engine == engine]


def record_of(engine: str, kernel: str) -> TunableKernel[Any]:
    """Return the record of a kernel.

    Raises:
        InputError: the engine does not exist, or has no such kernel; with the valid names.
    """
    record = RECORDS.get((engine, kernel))
    if record is None:
        known = "; ".join(f"{name}: {', '.join(kernels)}" for name, kernels in KERNELS.items())
        raise InputError(
            f"kernel {kernel!r} must exist for engine {engine!r}, but the engines have these: "
            f"{known}; choose one of these."
        )
    return record


def allowed_fields(engine: str, kernel: str) -> tuple[str, ...]:
    """Return the fields that an entry of a kernel may have: those of a solve may have all that the
    dense calls of its engine look up.

    If a solve is faster with the defaults of all fields than with the winners of its kernels, its
    entry stores all fields.

    Args:
        engine: "cpu", "nvidia" or "portable".
        kernel: one of KERNELS[engine].

    Raises:
        InputError: the engine does not exist, or has no such kernel; with the valid names.

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.KERNELS["cpu"]
        ('product', 'solve')
        >>> tuned.allowed_fields("cpu", "solve")
        ('method', 'block_size', 'cutoff', 'product')
    """
    record = record_of(engine, kernel)
    if not record.is_solve:
        return record.fields
    return tuple(
        dict.fromkeys(
            name
            for other in reversed(records_of(engine))
            if other.calls != ("sweep",)
            for name in other.fields
        )
    )
