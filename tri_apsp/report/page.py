"""Writing the page of a study: lead, plots and tables, what is missing, failures, and what it was
measured with.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tri_apsp.report import plots
from tri_apsp.report.markdown import (
    environment_block,
    figure,
    paragraph,
    section,
    table,
    write_page,
)
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.missing import how_to_continue, missing_section
from tri_apsp.report.study import Study, Target

__all__ = ["write_study"]

_MAX_FAILURES = 12


def write_study(
    study: Study,
    target: Target,
    results: Sequence[GridResult],
    folder: Path,
    name: str,
    commands: Sequence[str] = (),
) -> Path:
    """Write the plots and the generated blocks of a study's page, and return the path of the page.

    The page has two generated blocks: `result` at its beginning and `details` at its end. Text
    outside these blocks is written by hand, and stays.

    Args:
        study: the study.
        target: the device and engine that were measured.
        results: one result per grid.
        folder: the folder of the page, plots and rows.
        name: the name of the files, without suffix.
        commands: the commands that measure what is missing.

    Raises:
        InputError: a file cannot be written, or the page lacks the markers of a block.
    """
    page = study.page(target, results, name)
    for file, drawn in page.plots.items():
        plots.save(drawn, folder / file)
    tried = any(result.screened for result in results)
    nothing = (
        "No configuration that was tried could be timed." if tried else "Nothing was measured yet."
    )
    first = next(iter(page.plots), None)
    opening = [paragraph(page.lead or nothing)] + ([figure(first, page.caption)] if first else [])
    rows = [one.row for result in results for one in (*result.screened, *result.finals)]
    details = (
        [
            *page.details,
            missing_section(results),
            _failures(results),
            environment_block(rows, f"{name}.csv"),
        ]
        if tried
        else []
    )
    blocks = {
        "result": "\n\n".join(
            filter(None, [*opening, *page.results, *how_to_continue(results, commands)])
        ),
        "details": "\n\n".join(filter(None, details)),
    }
    return write_page(folder / f"{name}.md", study.title(target), blocks, study.remark(folder))


def _failures(results: Sequence[GridResult]) -> str:
    """Return the section of configurations that failed."""
    failed = [
        [result.grid.heading, _named(bad), bad.row["outcome"], bad.row["message"]]
        for result in results
        for bad in result.failed
    ]
    if not failed:
        return section(
            "Failures", "None: the results of every configuration that was tried were right."
        )
    more = (
        f"{len(failed) - _MAX_FAILURES} more are in the raw rows."
        if len(failed) > _MAX_FAILURES
        else ""
    )
    return section(
        "Failures", table(["", "configuration", "class", "message"], failed[:_MAX_FAILURES]), more
    )


def _named(measured: Measured) -> str:
    """Return what was measured: the configuration of a kernel, or the values that name a call."""
    return measured.row["config"] or " ".join(
        str(value) for value in measured.point.values.values() if value != ""
    )
