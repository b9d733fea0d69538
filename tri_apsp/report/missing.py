"""What a study has not measured."""

from __future__ import annotations

from collections.abc import Sequence

from tri_apsp.report.markdown import bullets, paragraph, section
from tri_apsp.report.measuring import GridResult

__all__ = ["how_to_continue", "missing_section", "missing_sentence"]

# A grid may lack hundreds of configurations, of which a page names the first.
_MAX_NAMED = 8


def missing_sentence(results: Sequence[GridResult]) -> str:
    """Return how much is missing; "" if all was tried, and the fastest timed a second time."""
    missing, every = (
        sum(len(result.missing) for result in results),
        sum(len(result.grid.points) for result in results),
    )
    grids, finals = (
        sum(bool(result.missing) for result in results),
        sum(result.lacks_final for result in results),
    )
    parts = [
        f"{missing} of {every} configurations are not measured, in {grids} of {len(results)} comparisons"
        if missing
        else "",
        f"in {finals} of {len(results)} comparisons the fastest are not timed a second time"
        if finals
        else "",
    ]
    listed = "; ".join(part for part in parts if part)
    return f"Incomplete: {listed}." if listed else ""


def how_to_continue(results: Sequence[GridResult], commands: Sequence[str]) -> list[str]:
    """Return how much is missing, and the commands that measure it; empty if nothing is."""
    missing = missing_sentence(results)
    if not missing:
        return []
    subject = "This command continues:" if len(commands) == 1 else "These commands continue:"
    return [paragraph(missing, subject), "\n".join(f"    {command}" for command in commands)]


def missing_section(results: Sequence[GridResult]) -> str:
    """Return the section of what is missing in each grid; "" if nothing is."""
    lines = [_line(result) for result in results if result.missing or result.lacks_final]
    return section("Not measured", bullets(lines)) if lines else ""


def _line(result: GridResult) -> str:
    if result.lacks_final:
        return f"{result.grid.heading}: the fastest configurations a second time, in turns."
    missing, error = (
        result.missing,
        f" The measurement failed: {result.error}" if result.error else "",
    )
    if not result.screened:
        return f"{result.grid.heading}: all {len(missing)} configurations.{error}"
    named = [
        ", ".join(f"{name} {one}" for name, one in point.values.items() if one != "")
        for point in missing[:_MAX_NAMED]
    ]
    named += [f"{len(missing) - _MAX_NAMED} more"] if len(missing) > _MAX_NAMED else []
    return f"{result.grid.heading}: {len(missing)} of {len(result.grid.points)} configurations: {'; '.join(named)}.{error}"
