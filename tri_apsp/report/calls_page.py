"""What the pages of studies of whole calls share: times, rates and speed-ups against n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from tri_apsp.report import plots
from tri_apsp.report.markdown import environment_block, figure, paragraph, section, table, write_page
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.missing import missing_block, missing_sentence
from tri_apsp.report.plots import Line
from tri_apsp.report.study import Study, Target
from tri_apsp.tune.progress import milliseconds

__all__ = [
    "ByN",
    "Curves",
    "curves_of",
    "dtypes_of",
    "exponent",
    "rate_lines",
    "seconds",
    "table_over_n",
    "then_now_why",
    "write_call_page",
]

_PROTOCOL = paragraph(
    "Times are medians of whole calls. Before a call is timed, its distances are compared with the definition on small sparse "
    "graphs, and with those of this project on the timed graph. A cell is empty where the call would have taken longer than "
    "its share of the budget."
)

ByN = Mapping[int, Measured]
"""The measurements of one call by n, ascending."""

Curves = dict[str, dict[int, Measured]]
"""These by the label of the call."""


def curves_of(results: Sequence[GridResult], dtype: str, label: Callable[[Measured], str]) -> Curves:
    """Return the correct measurements of a dtype, by label and n."""
    curves: Curves = {}
    for result in sorted(results, key=lambda result: result.grid.task.n):
        if result.grid.task.dtype == dtype:
            for measured in result.timed:
                curves.setdefault(label(measured), {})[result.grid.task.n] = measured
    return curves


def dtypes_of(results: Sequence[GridResult]) -> list[str]:
    """Return the dtypes that were measured, float32 first, as the papers' numbers are of floats; at least one."""
    measured = dict.fromkeys(result.grid.task.dtype for result in results if result.timed)
    return sorted(measured, key=lambda dtype: dtype != "float32") or ["float32"]


def seconds(measured: Measured) -> float:
    """Return the median."""
    return measured.ms / 1000


def rate_lines(curves: Mapping[str, ByN]) -> list[Line]:
    """Return lines of 10^9 operations per second against n."""
    return [Line(label, list(known), [one.rate / 1e9 for one in known.values()]) for label, known in curves.items()]


def table_over_n(curves: Mapping[str, ByN], cell: Callable[[str, int, Measured], str] | None = None) -> str:
    """Return a table with a row for each label and a column for each n; by default of times."""
    cell = cell or (lambda label, n, one: milliseconds(one.ms))
    sizes = sorted({n for known in curves.values() for n in known})
    rows = [[label, *(cell(label, n, known[n]) if n in known else "" for n in sizes)] for label, known in curves.items()]
    return table(["", *(f"n = {n}" for n in sizes)], rows)


def exponent(known: Mapping[int, float]) -> tuple[float, float] | None:
    """Return e and c of t = c n^e by least squares on the logarithms, for seconds by n; None for fewer than three sizes."""
    if len(known) < 3:
        return None
    e, log_c = np.polyfit(np.log(list(known)), np.log(list(known.values())), 1)
    return float(e), float(np.exp(log_c))


def _failures(results: Sequence[GridResult]) -> str:
    """Return the section of configurations that failed."""
    rows = [
        [result.grid.heading, " ".join(str(value) for value in bad.point.values.values() if value != ""), bad.kind.value,
         bad.row["message"]]
        for result in results for bad in result.failed
    ]  # fmt: skip
    if not rows:
        return section("Failures", "None: the distances of every call that was tried were right.")
    return section("Failures", table(["", "call", "class", "message"], rows))


def write_call_page(
    study: Study,
    target: Target,
    results: Sequence[GridResult],
    path: Path,
    command: str,
    *,
    drawn: Figure | None,
    caption: str,
    lead: Sequence[str],
    tables: Sequence[str],
    details: Sequence[str],
) -> Path:
    """Write the page and the plot of a study of whole calls, and return the path of the page; see pages.write_study.

    Args:
        study: the study.
        target: the device and engine that were measured.
        results: one result per grid.
        path: of the page, without suffix.
        command: the command that measures what is missing.
        drawn: the plot; None if nothing was measured.
        caption: of the plot.
        lead: the sentences that open the page: then, now, why.
        tables: what follows the plot.
        details: the sections after the first block, before failures and environment.
    """
    missing = missing_block(results, command)
    if drawn is None:
        result = [paragraph(missing_sentence(results), "Nothing was measured yet."), *missing]
    else:
        plots.save(drawn, path)
        result = [paragraph(missing_sentence(results), *lead), figure(path.name, caption), *tables, *missing]
    rows = [one.row for grid in results for one in grid.screened]
    last = [_PROTOCOL, *details, _failures(results), environment_block(rows, f"{path.name}.csv")] if rows else []
    blocks = {"result": "\n\n".join(filter(None, result)), "details": "\n\n".join(filter(None, last))}
    return write_page(path.with_suffix(".md"), f"{study.question} {target.device.name}", blocks, study.remark(path.parent))


def then_now_why(then: str, now: str, why: str) -> list[str]:
    """Return the sentences that open a page."""
    return [f"Then: {then}", f"Now: {now}", f"Why: {why}"]
