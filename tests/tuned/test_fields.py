"""Configurations as the fields of a file, and the names that the kernels, the methods and the
configurations share.
"""

import dataclasses
import re

import pytest
import torch
from tuned.conftest import GPU

from tri_apsp import Config, CpuTiles, GpuTiles, InputError
from tri_apsp.configs import (
    METHOD_NAMES,
    default_config,
    from_fields,
    invalid_because,
    to_fields,
)
from tri_apsp.engines import ENGINES
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES
from tri_apsp.tuned import KERNELS
from tri_apsp.tuned.records import RECORDS, records_of

CPU_TILES = {"block_m": 1, "block_n": 1, "block_k": 1}


def test_the_names_are_those_of_the_tables():
    assert tuple(METHODS) == METHOD_NAMES
    assert set(KERNELS) == set(ENGINES)
    fields = {field.name for field in dataclasses.fields(Config)}
    assert {name for record in RECORDS.values() for name in record.fields} <= fields
    assert all(kernels[-1] == "solve" for kernels in KERNELS.values()), (
        "a solve is tuned after the kernels that it runs"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_every_field_of_a_default_is_tuned_by_some_kernel(engine):
    tuned = {name for record in records_of(engine) for name in record.fields}
    for dtype in DTYPES:
        assert {*to_fields(default_config(engine, dtype)), "method"} == tuned


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_are_written_and_read_back(engine):
    for dtype in DTYPES:
        default = default_config(engine, dtype)
        fields = to_fields(default)
        assert not {"engine", "source"} & fields.keys()
        found = from_fields(engine, fields)
        assert to_fields(found) == fields
        assert dataclasses.replace(found.over(default), source="default") == default


@pytest.mark.parametrize(
    ("engine", "fields", "message"),
    [
        ("cpu", {"block": 3}, "unexpected keyword argument 'block'"),
        ("cpu", {"engine": "cpu"}, "keyword argument 'engine'"),
        ("cpu", {"product": {"block_m": 1, "block_n": 1}}, "CpuTiles.*'block_k'"),
        ("cpu", {"product": {**CPU_TILES, "num_warps": 1}}, "CpuTiles.*'num_warps'"),
        ("nvidia", {"small_product": 7}, "GpuTiles.*not int"),
    ],
)
def test_bad_fields_are_refused(engine, fields, message):
    with pytest.raises(InputError, match=message):
        from_fields(engine, fields)


def tiles_of(m, n, k, warps, stages, thread_n=None):
    given = {} if thread_n is None else {"thread_n": thread_n}
    return GpuTiles(m, n, k, num_warps=warps, num_stages=stages, **given)


@pytest.mark.parametrize(
    ("name", "value", "capability", "message"),
    [
        *(
            ("product", tiles_of(*tiles), (9, 0), message)
            for *tiles, message in [
                (64, 128, 16, 4, 2, 6, "product.thread_n must be a power of two, but is 6"),
                (64, 128, 16, 4, 2, 2, "product.thread_n must be at least 4"),
                (64, 64, 16, 4, 2, 16, "product.block_n must be at least 128 for 4 warps, but is"),
                (8, 128, 16, 4, 2, 16, "product.block_m must be at least 16"),
                (64, 128, 16, 4, 2, 0, "product.thread_n must be a positive integer"),
                (64, 32, 16, 4, 2, None),  # the default serves tiles that are narrower, too
                (8, 128, 16, 4, 2, 8, None),
                (8, 64, 16, 4, 2, 4, None),
                (64, 128, 16, 4, 2, 16, None),
            ]
        ),
        *(
            ("exponents", tiles_of(*tiles), capability, message)
            for *tiles, capability, message in [
                (128, 256, 512, 8, 8, (9, 0), None),
                (128, 256, 512, 8, 16, (8, 0), None),  # which has none
                (128, 256, 512, 8, 16, (9, 0), "exponents must fit the .* of shared memory"),
                (100, 128, 128, 8, 6, (9, 0), "exponents.block_m must be 128, but is 100"),
                (
                    128,
                    128,
                    128,
                    8,
                    2,
                    (9, 0),
                    r"exponents.num_stages must lie in 3\.\.16, but is 2",
                ),
            ]
        ),
        ("exponents", CpuTiles(128, 128, 128), (9, 0), "exponents must be GpuTiles for the nvidia"),
        ("method", "dijkstra", (9, 0), "method must be one of .*, but is 'dijkstra'"),
    ],
)
def test_values_that_do_not_fit(name, value, capability, message):
    device = dataclasses.replace(GPU, capability=capability)
    reason = invalid_because(Config(engine="nvidia", **{name: value}), device)
    assert reason is None if message is None else re.match(message, reason), reason


def test_the_source_says_what_came_over_what():
    base = default_config("cpu", torch.float32)
    file = dataclasses.replace(base, source="a.json")
    given = Config(cutoff=3)
    assert Config().over(base).source == "default"
    assert Config(engine="cpu").over(file).source == "a.json"
    assert given.over(base).source == "given"
    assert given.over(file).source == "given, a.json"
    assert Config(product=CpuTiles(1, 1, 1)).over(given.over(file)).source == "given, a.json"
