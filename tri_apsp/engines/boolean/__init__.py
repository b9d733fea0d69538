"""The engines of Boolean matrices, one per engine of distances. An engine is imported when it is
first used.
"""

from importlib import import_module

import torch

from tri_apsp.engines.boolean.base import BooleanEngine, packed_size

__all__ = ["BooleanEngine", "make", "packed_size"]

_CLASSES = {
    "cpu": "CpuBooleanEngine",
    "nvidia": "NvidiaBooleanEngine",
    "portable": "PortableBooleanEngine",
}


def make(name: str, n: int, device: torch.device) -> BooleanEngine:
    """Return the Boolean engine beside engine `name` of tri_apsp.engines.ENGINES, for graphs of `n`
    vertices on `device`.
    """
    engine: type[BooleanEngine] = getattr(import_module(f"{__name__}.{name}"), _CLASSES[name])
    return engine(n, device)
