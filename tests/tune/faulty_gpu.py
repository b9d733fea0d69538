"""Configurations that are faulty on a GPU, each recognized by its group_m, in engines that workers
make.
"""

import dataclasses

import torch
import triton
import triton.language as tl

from tri_apsp.configs import CompleteConfig, default_config
from tri_apsp.engines import Engine, MatrixSpec, Update, make
from tri_apsp.tune.measurement import Measurement
from tri_apsp.tune.tasks import TuningTask

_CODES = {"assertion": 101, "stray access": 102, "hang": 103, "wrong result": 104}
_TILES = {
    "too large": {"block_m": 256, "block_n": 256, "block_k": 32, "num_warps": 16, "num_stages": 4},
    "no slices": {"block_k": 2},
}


@triton.jit
def _stray(x_ptr):
    tl.store(x_ptr + (1 << 40), 1.0)


def bad(act: str) -> CompleteConfig:
    """Return the configuration that does `act`."""
    config = default_config("nvidia", torch.float32)
    changes = _TILES.get(act) or {"group_m": _CODES[act]}
    return dataclasses.replace(config, product=dataclasses.replace(config.product, **changes))


def make_faulty(spec: MatrixSpec, config: CompleteConfig) -> Engine:
    engine = make(spec, config)
    code = config.product.group_m
    product = engine.product

    def faulty(*updates: Update) -> None:
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

    engine.product = faulty  # type: ignore[method-assign]
    return engine


def prepare(task: TuningTask, device: torch.device) -> Measurement:
    return Measurement(task, device, make_faulty)
