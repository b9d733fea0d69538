"""Configurations that misbehave on a GPU, each told by its group_m, in engines that a worker makes in its own process."""

from __future__ import annotations

import dataclasses

import torch
import triton
import triton.language as tl

from tri_apsp.configs import Config, GpuTiles, default_config
from tri_apsp.engines import Engine, Update, Weights, make
from tri_apsp.tune.measure.measurement import Measurement
from tri_apsp.tune.space.task import Task

_CODES = {"assertion": 101, "stray access": 102, "hang": 103, "wrong result": 104}
_TILES = {
    "too large": {"block_m": 256, "block_n": 256, "block_k": 32, "num_warps": 16, "num_stages": 4},
    "no slices": {"block_k": 2},
}


@triton.jit
def _stray(x_ptr):
    tl.store(x_ptr + (1 << 40), 1.0)


def bad(act: str) -> Config:
    """Return the configuration that does `act`."""
    config = default_config("nvidia", torch.float32)
    assert isinstance(config.product, GpuTiles)
    changes = _TILES.get(act) or {"group_m": _CODES[act]}
    return dataclasses.replace(config, product=dataclasses.replace(config.product, **changes))


def planted(name: str, weights: Weights, config: Config) -> Engine:
    engine = make(name, weights, config)
    assert isinstance(config.product, GpuTiles)
    code = config.product.group_m
    product = engine.product

    def spoiled(*updates: Update) -> None:
        product(*updates)
        c = updates[0].c
        if code == 101:
            c.flatten()[torch.full((1,), 1 << 40, device=c.device)]
        if code == 102:
            _stray[(1,)](c)
        if code == 103:
            torch.cuda._sleep(1 << 50)
        if code == 104:
            c[..., -1, -1] = -1

    engine.product = spoiled  # type: ignore[method-assign]
    return engine


def prepare(task: Task, device: torch.device) -> Measurement:
    return Measurement(task, device, planted)
