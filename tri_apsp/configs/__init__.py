"""Tile sizes and cut-offs: what a caller may give, what an engine gets, the defaults, and which of
them can run.
"""

from tri_apsp.configs.defaults import default_config
from tri_apsp.configs.types import (
    METHOD_NAMES,
    TILE_FIELDS,
    USED_FIELDS,
    CompleteConfig,
    Config,
    CpuConfig,
    CpuTiles,
    GpuConfig,
    GpuTiles,
    MethodName,
    NvidiaConfig,
    PortableConfig,
    from_fields,
    to_fields,
)
from tri_apsp.configs.validity import (
    EXPONENT_DTYPES,
    EXPONENTS_PART,
    SMALL_GRAPHS,
    Exponents,
    closure_bytes,
    exponents_bytes,
    exponents_of,
    invalid_because,
    is_valid,
    max_registers,
    product_registers,
)

__all__ = [
    "EXPONENTS_PART",
    "EXPONENT_DTYPES",
    "METHOD_NAMES",
    "SMALL_GRAPHS",
    "TILE_FIELDS",
    "USED_FIELDS",
    "CompleteConfig",
    "Config",
    "CpuConfig",
    "CpuTiles",
    "Exponents",
    "GpuConfig",
    "GpuTiles",
    "MethodName",
    "NvidiaConfig",
    "PortableConfig",
    "closure_bytes",
    "default_config",
    "exponents_bytes",
    "exponents_of",
    "from_fields",
    "invalid_because",
    "is_valid",
    "max_registers",
    "product_registers",
    "to_fields",
]
