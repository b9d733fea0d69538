"""Plots: the same bytes each time, small, with ticks that do not overlap."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from tri_apsp.report.plots import (
    Line,
    Mark,
    Plot,
    Scatter,
    figure,
    heat_map,
    line_plots,
    save,
    scatter,
)


def draw(folder: Path) -> Path:
    ours = Line(
        "ours", [16, 32, 64], [0.5, 1.0, math.nan], [0.4, 0.9, math.nan], [0.6, 1.0, math.nan]
    )
    paper = Line("paper", [16], [1.0], paper=True)
    made, (_, right) = line_plots("title", [Plot("edge", [ours, paper])], y_label="rate", others=1)
    names = {"row_label": "r", "column_label": "c", "value_label": "v"}
    heat_map(right, {(1, 4): 1.0, (1, 8): math.nan, (2, 4): 0.25}, **names)
    return save(made, folder / "deep" / "plot")


def test_the_same_rows_give_the_same_bytes(tmp_path):
    first, second = draw(tmp_path / "a"), draw(tmp_path / "b")
    assert first.name == "plot.svg"
    assert [path.name for path in first.parent.iterdir()] == ["plot.svg"]
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 200_000
    assert ">paper<" in first.read_text()


def test_the_content_of_a_plot():
    curves = [Line("ours", [1, 4], [2.0, 3.0]), Line("paper", [2], [1.0], paper=True)]
    made, (axes,) = line_plots("one", [Plot("x", curves)], y_label="y")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert axes.get_legend() is not None
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "paper"]
    assert len(made.axes) == 1


def overlaps(made: Figure, axes: Axes) -> list[tuple[str, str]]:
    """Return the pairs of neighbouring tick labels on the x axis that overlap."""
    canvas = FigureCanvasAgg(made)
    canvas.draw()
    labels = axes.get_xticklabels()
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
    upright = all(label.get_rotation() == 0 for label in labels)
    # Turned by 45 degrees, labels are apart if their ends are further apart than they are high.
    high = labels[0].get_fontsize() * made.dpi / 72 * math.sqrt(2)
    ends = [(box.x0, box.x1) if upright else (box.x1 - high, box.x1) for box in boxes]
    names = [label.get_text() for label in labels]
    return [(names[i], names[i + 1]) for i in range(len(names) - 1) if ends[i][1] > ends[i + 1][0]]


@pytest.mark.parametrize(
    "places",
    [
        [256, 512, 1024, 1536, 1920, 2048, 4096, 8192, 16384, 32768],
        [4, 16, 32, 64, 128, 256, 512, 1024, 2048],
        [16, 32, 64, 96, 128, 192, 256],
        [96, 192, 384, 768, 1536],
        [32768],
    ],
)
@pytest.mark.parametrize("panels", [1, 2])
def test_tick_labels_do_not_overlap(places, panels):
    plot = Plot("x", [Line("ours", places, [1.0] * len(places))])
    made, (axes, *_) = line_plots("title", [plot] * panels, y_label="y")
    assert overlaps(made, axes) == []
    made, (axes, *_) = figure("title", panels, width=4.6, height=3.5)
    names = {"row_label": "r", "column_label": "c", "value_label": "v"}
    heat_map(axes, {("some_row", x): 1.0 for x in places}, **names)
    assert overlaps(made, axes) == []


def test_limits_show_the_data():
    def limits(*curves: Line) -> tuple[float, float]:
        _, axes = line_plots("title", [Plot("x", [curve]) for curve in curves], y_label="y")
        (found,) = {panel.get_ylim() for panel in axes}
        return found

    close = Line("ours", [1, 2], [0.9, 1.0], [0.88, 0.99], [0.91, 1.01])
    low, high = limits(close)
    assert 0.8 < low < 0.88
    assert 1.01 < high < 1.1
    far = Line("ours", [1, 2, 4], [0.1, 1.0, math.nan])
    low, high = limits(close, far)
    assert low == 0
    assert high > 1.01


POINTS = [
    ("a system", 1, 1),
    ("another one", 1, 1),
    ("a third", 1.02, 1.01),
    ("far left", 0.01, 3),
    ("far right", 100, 3),
    ("low", 3, 0.1),
]


@pytest.mark.parametrize("log", [False, True])
def test_the_labels_of_points_overlap_neither_each_other_nor_points(log):
    marks = [Mark(*point) for point in POINTS]
    panels = [
        Scatter("x", marks, [Line("ceiling", [0.01, 100], [3, 3])], title)
        for title in ("one", "two")
    ]
    made, axes = scatter("title", panels, y_label="y", log=log)
    canvas = FigureCanvasAgg(made)
    canvas.draw()
    for one in axes:
        assert one.get_xscale() == one.get_yscale() == ("log" if log else "linear")
        assert [text.get_text() for text in one.get_legend().get_texts()] == ["ceiling"]
        assert sorted(text.get_text() for text in one.texts) == sorted(
            label for label, *_ in POINTS
        )
        # The extent of a moved label includes the line to its point.
        boxes = [Text.get_window_extent(text, canvas.get_renderer()) for text in one.texts]
        inside = one.get_window_extent(canvas.get_renderer())
        places = one.transData.transform([(mark.x, mark.y) for mark in marks])
        for index, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:index]), one.texts[
                index
            ].get_text()
            assert not any(box.contains(*place) for place in places), one.texts[index].get_text()
            assert inside.x0 <= box.x0 < box.x1 <= inside.x1
            assert inside.y0 <= box.y0 < box.y1 <= inside.y1


def test_a_scatter_without_lines_has_no_legend(tmp_path):
    def draw_again(folder: Path) -> bytes:
        made, (axes,) = scatter(
            "title", [Scatter("x", [Mark("one", 1, 2), Mark("two", 2, 1)])], y_label="y"
        )
        assert axes.get_legend() is None
        return save(made, folder / "plot").read_bytes()

    assert draw_again(tmp_path / "a") == draw_again(tmp_path / "b")


def test_more_curves_of_papers_than_there_are_styles():
    curves = [Line(str(index), [1, 2], [1, index], paper=True) for index in range(9)]
    _, (axes,) = line_plots("title", [Plot("x", curves)], y_label="y")
    assert len(axes.get_lines()) == 9
