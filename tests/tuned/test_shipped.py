"""Every file in tuning/: it lies where the lookup looks, parses, can run on its GPU, and is of the
present kernels.
"""

import dataclasses
from pathlib import Path

import pytest
import torch

from tri_apsp import tuned
from tri_apsp.configs import default_config, from_fields, invalid_because

ROOT = Path(__file__).resolve().parents[2] / "tuning"
FILES = sorted(ROOT.rglob("*.json"))
# The most shared memory of a program by compute capability, which the files do not state.
SHARED = {
    None: 0,
    (8, 0): 163,
    (8, 6): 99,
    (8, 7): 163,
    (8, 9): 99,
    (9, 0): 227,
    (10, 0): 227,
    (12, 0): 99,
}

pytestmark = pytest.mark.skipif(not FILES, reason="no file is shipped")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_shipped_file_is_used(path):
    file = tuned.load(path)
    device = dataclasses.replace(file.device, shared_memory=SHARED[file.capability] << 10)
    assert tuned.unused_because(path, file, device) is None
    for entry in file.entries:
        config = from_fields(file.engine, entry.config).over(
            default_config(file.engine, getattr(torch, file.dtype))
        )
        assert invalid_because(config, device) is None
        assert entry.p20_ms <= entry.p50_ms <= entry.p80_ms
        assert entry.speedup == pytest.approx(entry.default_ms / entry.p50_ms, rel=0.01)
