"""What a solve returns, and what it would run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tri_apsp.configs import AnyMethodName, CompleteConfig

__all__ = ["Result", "Selection"]


@dataclass(frozen=True)
class Selection:
    """What a solve would run, and why: see tri_apsp.select.

    Attributes:
        method: one of tri_apsp.methods.METHODS or SYSTEMS, never "auto".
        engine: one of tri_apsp.engines.ENGINES.
        config: the complete configuration of the engine, with its source.
        reason: why the method was chosen.
    """

    method: AnyMethodName
    engine: str
    config: CompleteConfig
    reason: str


@dataclass(frozen=True, eq=False)
class Result:
    """All shortest distances, and how they were computed. Two results are equal only if they are the same object.

    Attributes:
        distances: same shape, dtype and device as the weights; no_edge (inf) where there is no path.
        method: the method that ran, never "auto".
        engine: the engine that ran.
        config: its tile sizes and cutoffs, with their source.
    """

    distances: torch.Tensor
    method: AnyMethodName
    engine: str
    config: CompleteConfig
