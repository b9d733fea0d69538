"""Tile sizes and cut-offs: what a caller may give, what an engine gets, the defaults, and which of them can run."""

from tri_apsp.configs.defaults import default_config
from tri_apsp.configs.types import (
    METHOD_NAMES,
    PAPER_METHOD_NAMES,
    AnyMethodName,
    CompleteConfig,
    Config,
    CpuConfig,
    CpuTiles,
    GpuConfig,
    GpuTiles,
    MethodChoice,
    MethodName,
    NvidiaConfig,
    PaperMethodName,
    PortableConfig,
    from_fields,
    to_fields,
)
from tri_apsp.configs.validity import closure_bytes, invalid_because, is_valid, max_registers, product_registers, require_valid

__all__ = [
    "METHOD_NAMES",
    "PAPER_METHOD_NAMES",
    "AnyMethodName",
    "CompleteConfig",
    "Config",
    "CpuConfig",
    "CpuTiles",
    "GpuConfig",
    "GpuTiles",
    "MethodChoice",
    "MethodName",
    "NvidiaConfig",
    "PaperMethodName",
    "PortableConfig",
    "closure_bytes",
    "default_config",
    "from_fields",
    "invalid_because",
    "is_valid",
    "max_registers",
    "product_registers",
    "require_valid",
    "to_fields",
]
