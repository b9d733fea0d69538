"""The nominal bound of min-plus operations per second."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.bench.bounds import bound, has_bound, operations_per_clock
from tri_apsp.device import Device

H200 = Device(
    kind="cuda",
    name="NVIDIA H200",
    slug="nvidia-h200",
    units=132,
    memory=141 << 30,
    capability=(9, 0),
)
CLOCK_HZ = 1.98e9


@pytest.mark.parametrize(
    ("dtype", "nonnegative", "tera"),
    [
        (torch.float32, False, 16.7),
        (torch.float32, True, 22.3),
        (torch.int32, False, 16.7),
        (torch.int16, False, 33.5),
        (torch.float64, False, 8.4),
        (torch.int64, False, 4.2),
        (torch.bool, False, 535.3),
    ],
)
def test_bounds_of_an_h200(dtype, nonnegative, tera):
    assert round(bound(H200, dtype, nonnegative, CLOCK_HZ) / 1e12, 1) == tera
    if dtype != torch.float32:
        assert operations_per_clock(dtype, True) == operations_per_clock(dtype, False)


def test_an_unknown_clock_has_no_bound():
    assert bound(H200, torch.int32, True, None) is None


@pytest.mark.parametrize("capability", [None, (8, 0), (8, 9), (10, 0)])
def test_other_gpus_have_no_bound(capability):
    other = Device(kind="cuda", name="", slug="", units=1, memory=0, capability=capability)
    assert not has_bound(other)
    assert bound(other, torch.int32, True, CLOCK_HZ) is None
