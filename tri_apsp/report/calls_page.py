"""What the pages of studies of whole calls share: times, rates and speed-ups against n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tri_apsp.report.markdown import paragraph, section, table
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.plots import Line
from tri_apsp.tune.progress import milliseconds

__all__ = [
    "LARGE",
    "PROTOCOL",
    "ByN",
    "Curves",
    "alike",
    "curves_by_dtype",
    "curves_of",
    "dtypes_of",
    "exponent",
    "merged",
    "rate_lines",
    "table_over_n",
    "times_section",
]

PROTOCOL = paragraph(
    "Times are medians of whole calls. Before a call is timed, its distances are compared with those of a plain Floyd-Warshall "
    "in float64 on small sparse graphs, and with those of this project on the timed graph. A cell is empty where a call failed "
    "or was not measured: there was no time left, or the call would have taken longer than the time left for this size."
)
"""How calls are measured, for the first of a page's details."""

# Times of whole calls that differ by less are alike.
_NOISE = 0.05

LARGE = 512
"""From so many vertices on, a matrix of float32 no longer fits the caches of one core, and a solve
uses several cores.
"""

ByN = Mapping[int, Measured]
"""The measurements of one call by n, ascending."""

Curves = dict[str, dict[int, Measured]]
"""These by the label of the call."""


def curves_of(
    results: Sequence[GridResult], dtype: str, label: Callable[[Measured], str | None]
) -> Curves:
    """Return the correct measurements of a dtype, by label and n; without those of which the label
    is None.
    """
    curves: Curves = {}
    for result in sorted(results, key=lambda result: result.grid.task.n):
        for measured in result.timed if result.grid.task.dtype == dtype else ():
            if (name := label(measured)) is not None:
                curves.setdefault(name, {})[result.grid.task.n] = measured
    return curves


def curves_by_dtype(
    results: Sequence[GridResult], label: Callable[[Measured], str | None]
) -> dict[str, Curves]:
    """Return curves_of() for each dtype that was measured, float32 first."""
    return {
        dtype: curves
        for dtype in dtypes_of(results)
        if (curves := curves_of(results, dtype, label))
    }


def merged(by_dtype: Mapping[str, Curves]) -> Curves:
    """Return the curves of all dtypes; the labels of all but the first dtype name it."""
    first = next(iter(by_dtype))
    return {
        label if dtype == first else f"{label}, {dtype}": by_n
        for dtype, curves in by_dtype.items()
        for label, by_n in curves.items()
    }


def dtypes_of(results: Sequence[GridResult]) -> list[str]:
    """Return the dtypes that were measured, float32 first, as the papers' numbers are of floats; at
    least one.
    """
    measured = dict.fromkeys(result.grid.task.dtype for result in results if result.timed)
    return sorted(measured, key=lambda dtype: dtype != "float32") or ["float32"]


def rate_lines(curves: Mapping[str, ByN]) -> list[Line]:
    """Return lines of 10^9 operations per second against n."""
    return [
        Line(label, list(known), [one.rate / 1e9 for one in known.values()])
        for label, known in curves.items()
    ]


def table_over_n(
    curves: Mapping[str, ByN], cell: Callable[[str, int, Measured], str] | None = None
) -> str:
    """Return a table with a row for each label and a column for each n; by default of times."""
    cell = cell or (lambda label, n, one: milliseconds(one.ms))
    sizes = sorted({n for known in curves.values() for n in known})
    rows = [
        [label, *(cell(label, n, known[n]) if n in known else "" for n in sizes)]
        for label, known in curves.items()
    ]
    return table(["", *(f"n = {n}" for n in sizes)], rows)


def times_section(by_dtype: Mapping[str, Curves], *more: Callable[[Curves], str]) -> str:
    """Return the section of the times of each dtype, each followed by what `more` returns for its
    curves.
    """
    parts = []
    for dtype, curves in by_dtype.items():
        parts += [f"### {dtype}", table_over_n(curves), *(part(curves) for part in more)]
    return section("Times", *parts)


def alike(first: float, second: float) -> bool:
    """Return whether two times differ by less than the noise of whole calls."""
    return abs(first / second - 1) < _NOISE


def exponent(known: Mapping[int, float]) -> tuple[float, float] | None:
    """Return e and c of t = c n^e by least squares on the logarithms, for seconds by n; None for
    fewer than three sizes.
    """
    if len(known) < 3:
        return None
    e, log_c = np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)
    return float(e), float(np.exp(log_c))
