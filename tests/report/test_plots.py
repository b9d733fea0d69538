"""Plots: both files, the same bytes each time, and small."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from tri_apsp.report.plots import Line, figure, heat_map, lines, save


def draw(folder: Path) -> list[Path]:
    made, (left, right) = figure(["curves", "map"])
    ours = Line("ours", [16, 32, 64], [0.5, 1.0, math.nan], [0.4, 0.9, math.nan], [0.6, 1.0, math.nan])
    lines(left, [ours, Line("paper", [16], [1.0], paper=True)], x_label="edge", y_label="rate")
    heat_map(right, [[1, math.nan], [0.25, 0.5]], rows=[1, 2], columns=[4, 8], row_label="r", column_label="c", value_label="v")
    return save(made, folder / "deep" / "plot")


def test_the_same_rows_give_the_same_bytes(tmp_path):
    first, second = draw(tmp_path / "a"), draw(tmp_path / "b")
    assert [path.suffix for path in first] == [".png", ".svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    png, svg = first
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size < 200_000
    assert svg.stat().st_size < 200_000
    assert ">paper<" in svg.read_text()


def test_what_is_drawn():
    made, (axes,) = figure(["one"])
    lines(axes, [Line("ours", [1, 4], [2.0, 3.0]), Line("paper", [2], [1.0], paper=True)], x_label="x", y_label="y")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert axes.get_legend() is not None
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "paper"]
    assert axes.get_ylim()[0] == 0
    assert len(made.axes) == 1
