"""The configurations that a search has to beat."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from tri_apsp import tuned
from tri_apsp.configs import default_config
from tri_apsp.device import Device
from tri_apsp.tune.decision import baselines_of
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.schema import Entry

GPU = Device("cuda", "A GPU", "a-gpu", 100, 1 << 34, 227 << 10, (9, 0))
OTHER = dataclasses.replace(GPU, name="B GPU", slug="b-gpu", units=90)
TASK = TuningTask("nvidia", "product", "float32", "any", 1024)


@pytest.fixture
def file(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tuned file of another GPU of the architecture of this machine's GPU."""
    monkeypatch.setattr("tri_apsp.device._describe", lambda kind, index: GPU)
    tiles = {"block_m": 64, "block_n": 128, "block_k": 8, "num_warps": 4, "num_stages": 2}
    times = dict.fromkeys(("p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup"), 1.0)
    entry = Entry(sign="any", n=1024, config={"product": tiles}, evaluated=1, **times)
    header = {"space_hash": "", "protocol": "", "seed": 0, "complete": True}
    return tuned.save(tuned.new_file("nvidia", "product", "float32", OTHER, [entry], **header))


def test_a_gpu_without_files_starts_from_those_of_the_nearest(file: Path) -> None:
    """The tuner then keeps that configuration, or writes the default if it is faster: the next
    solve finds an entry.
    """
    baselines = baselines_of(TASK, torch.device("cuda", 0))
    assert baselines.default.product == default_config("nvidia", torch.float32).product
    assert (baselines.incumbent.product.block_m, baselines.incumbent.product.block_n) == (64, 128)
