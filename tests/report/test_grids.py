"""Grids: every combination is a point or counted; the default comes first."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from report.fake import CPU, H200
from tri_apsp.tune.space.task import Task

from tri_apsp.configs import default_config, is_valid
from tri_apsp.report.grids import Grid, axis, format_config, with_points


def test_every_combination_is_accounted_for():
    pytest.importorskip("triton")
    task = Task("nvidia", "closure", "float32", "nonnegative", 1024)
    base = default_config("nvidia", torch.float32)
    parameters = {"closure_warps": (1, 2, 4, 8, 16, 32), "closure_tile": (32, 64, 128)}
    grid = with_points(
        Grid("closure", "base case", task, ()),
        H200,
        base,
        parameters,
        {"closure_programs": (3, 2, 1)},
    )
    assert len(grid.points) + grid.skipped == 18
    assert all(point.values["closure_warps"] <= 16 for point in grid.points)
    assert all(is_valid(point.config, H200) for point in grid.points)
    assert {point.values["closure_warps"] for point in grid.points} >= {1, 2, 4, 8}
    assert grid.default == {"closure_warps": 4, "closure_tile": 64}
    assert grid.points[0].config == dataclasses.replace(base, method=grid.points[0].config.method)
    # A secondary field stays as in the default where it can.
    same = [
        point for point in grid.points if point.values == {"closure_warps": 2, "closure_tile": 64}
    ]
    assert [point.config.closure_programs for point in same] == [base.closure_programs]


def test_configurations_near_the_default_come_first():
    task = Task("cpu", "product", "float32", "nonnegative", 2048)
    base = default_config("cpu", torch.float32)
    edges = (96, 192, 384, 768, 1024, 1536)
    parameters = {"product.block_m": edges, "product.block_n": (128, 256, 512)}
    grid = with_points(Grid("product", "tile", task, ()), CPU, base, parameters)
    assert (
        grid.points[0].values == grid.default == {"product.block_m": 1024, "product.block_n": 512}
    )
    different = [
        sum(point.values[name] != grid.default[name] for name in grid.default)
        for point in grid.points
    ]
    assert different == sorted(different)
    assert len(grid.points) == 18


def test_a_configuration_is_formatted_with_the_fields_that_matter():
    config = default_config("nvidia", torch.float32)
    product = format_config(Task("nvidia", "product", "float32", "any", 1024), config)
    assert product.startswith("product.block_m=64 product.block_n=128 ")
    assert "closure" not in product
    assert "cutoff=1024" in format_config(Task("nvidia", "solve", "float32", "any", 1024), config)
    assert "panel=32" in format_config(
        Task("portable", "closure", "float32", "any", 1024),
        default_config("portable", torch.float32),
    )


def test_the_x_of_a_curve():
    values = {"warps": 4, "tile": 64}
    assert axis("warps", factor=32)(values) == 128
    assert axis("warps", only={"tile": 64})(values) == 4
    assert axis("warps", only={"tile": 32})(values) is None
