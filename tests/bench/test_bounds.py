"""The nominal bound of min-plus operations per second."""

import dataclasses

import pytest
import torch

from tri_apsp.bench.measure import bound
from tri_apsp.device import Device

H200 = Device(
    kind="cuda",
    name="NVIDIA H200",
    slug="nvidia-h200",
    units=132,
    memory=141 << 30,
    capability=(9, 0),
    clock_hz=1.98e9,
)


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
    assert round(bound(H200, dtype, nonnegative) / 1e12, 1) == tera
    if dtype != torch.float32:
        assert bound(H200, dtype, True) == bound(H200, dtype, False)


def test_an_unknown_clock_has_no_bound():
    assert bound(dataclasses.replace(H200, clock_hz=None), torch.int32, True) is None


@pytest.mark.parametrize("capability", [None, (8, 0), (8, 9), (10, 0)])
def test_other_gpus_have_no_bound(capability):
    other = dataclasses.replace(H200, capability=capability)
    assert bound(other, torch.int32, True) is None
