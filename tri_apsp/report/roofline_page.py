"""The page of the study of rooflines: which ceiling limits each system, then and now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_apsp.console.output import amount
from tri_apsp.report import plots
from tri_apsp.report.calls_page import PROTOCOL
from tri_apsp.report.counters import METRICS
from tri_apsp.report.markdown import paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.papers import (
    BULUC_SLOWDOWNS,
    LUND_SMITH_COPY,
    LUND_SMITH_FLOPS,
    LUND_SMITH_MEMORY,
    LUND_SMITH_PEAK,
    LUND_SMITH_RATE,
)
from tri_apsp.report.plots import Line, Mark, Scatter
from tri_apsp.report.study import Page, Target
from tri_apsp.tune.progress import milliseconds

__all__ = ["ARITHMETIC", "COPY", "page"]

COPY, ARITHMETIC = "copy", "arithmetic"
"""The names of the ceilings among the implementations: bytes/s of memory, operations/s of the
product's inner loop.
"""


@dataclass(frozen=True)
class _Roofline:
    """The measurements of a grid.

    Attributes:
        n: the number of vertices.
        dtype: the dtype of the weights.
        systems: the calls by label.
        copied: bytes per second of a copy; None if it was not measured.
        arithmetic: operations per second of the inner loop of the product; None likewise.
    """

    n: int
    dtype: str
    systems: Mapping[str, Measured]
    copied: float | None
    arithmetic: float | None

    def of_copy(self, label: str) -> float | None:
        """Return the bytes per second from memory of a system as a share of those of a copy."""
        moved = _per_second(self.systems[label], "dram_bytes") if label in self.systems else None
        return moved / self.copied if moved and self.copied else None

    def of_arithmetic(self, label: str) -> float | None:
        """Return the operations per second of a system as a share of those of the inner loop."""
        known = self.systems.get(label)
        return known.rate / self.arithmetic if known and self.arithmetic else None


def page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    """Return the page of the study; its plot is called `name`."""
    rooflines = sorted(
        (_roofline(result) for result in results if result.correct),
        key=lambda one: (one.dtype, one.n),
    )
    if not rooflines:
        return Page()
    floats = [one for one in rooflines if one.dtype == "float32" and one.systems]
    return Page(
        lead=_lead(floats[-1])
        if floats
        else "No system was measured in float32, so there is no result yet.",
        plots={name: _drawn(rooflines)},
        caption="Each system by its operations per byte from memory. What touches the slanted line is limited by memory, what "
        "touches a level one by arithmetic, and what lies below both by latency, launches, or other instructions. No "
        "clock was changed; Buluç, Gilbert and Budak lowered clocks to find which of the two limits a program (Tables 6, 7).",
        results=[_then_and_now(floats[-1])] if floats else [],
        details=[
            PROTOCOL,
            section(
                "Rates and ceilings", _about_bytes(rooflines), _table(rooflines), _squares(floats)
            ),
        ],
    )


def _roofline(result: GridResult) -> _Roofline:
    task = result.grid.task
    known = {str(one.point.values["implementation"]): one for one in result.correct}
    copied, arithmetic = known.pop(COPY, None), known.pop(ARITHMETIC, None)
    return _Roofline(
        task.n,
        task.dtype,
        {"this project" if name == "auto" else name: one for name, one in known.items()},
        None if copied is None else _per_second(copied, "dram_bytes"),
        None if arithmetic is None else arithmetic.rate,
    )


def _number(measured: Measured, metric: str) -> float | None:
    return float(measured.row[metric]) if measured.row[metric] else None


def _per_second(measured: Measured, metric: str) -> float | None:
    count = _number(measured, metric)
    return None if count is None else count / measured.seconds


def _drawn(rooflines: Sequence[_Roofline]) -> Figure:
    sizes = sorted({one.n for one in rooflines})
    panels = [_panel([one for one in rooflines if one.n == n]) for n in sizes] + [
        _panel_of_lund_smith()
    ]
    made, _ = plots.scatter("Rooflines", panels, y_label="operations/s", log=True, width=8.0)
    return made


def _panel(rooflines: Sequence[_Roofline]) -> Scatter:
    """Return the panel of a size: the systems of each dtype, and the ceilings."""
    marks = [
        Mark(_label(label, one.dtype), one.n**3 / moved, known.rate)
        for one in rooflines
        for label, known in one.systems.items()
        if (moved := _number(known, "dram_bytes"))
    ]
    places = [mark.x for mark in marks] or [1.0, 100.0]
    copied = max((one.copied for one in rooflines if one.copied), default=None)
    levels = {one.dtype: one.arithmetic for one in rooflines if one.arithmetic}
    lines = []
    first, last = min(places) / 12, max(places) * 2  # with space for labels on the left
    if copied:
        corner = max(levels.values(), default=copied * last) / copied
        lines.append(
            Line(
                f"memory: a copy moves {amount(copied)}B/s",
                [first, corner],
                [first * copied, corner * copied],
            )
        )
        last = max(last, 2 * corner)
    for dtype, level in levels.items():
        start = level / copied if copied else first
        lines.append(
            Line(
                f"arithmetic, {dtype}: {amount(level)} operations/s", [start, last], [level, level]
            )
        )
    return Scatter("operations per byte from memory", marks, lines, f"n = {rooflines[0].n}")


def _panel_of_lund_smith() -> Scatter:
    """Return the panel of a Tesla C1060: its systems by the bytes of their algorithms, a copy, and
    the data sheet.
    """
    rates = {name: (rate / LUND_SMITH_MEMORY[name], rate) for name, rate in LUND_SMITH_RATE.items()}
    level = LUND_SMITH_PEAK / 2  # an operation is an addition and a minimum
    first, corner = min(x for x, _ in rates.values()) / 12, level / LUND_SMITH_COPY
    memory = f"memory: a copy moves {amount(LUND_SMITH_COPY)}B/s"
    lines = [
        Line(memory, [first, corner], [first * LUND_SMITH_COPY, level]),
        Line(
            f"arithmetic, data sheet: {amount(level)} operations/s",
            [corner, 2 * corner],
            [level, level],
        ),
    ]
    marks = [Mark(name, *place) for name, place in rates.items()]
    return Scatter(
        "operations per byte from memory", marks, lines, "Then: Tesla C1060 (Lund & Smith)"
    )


def _label(label: str, dtype: str) -> str:
    return label if dtype == "float32" or label.endswith(dtype) else f"{label}, {dtype}"


def _lead(one: _Roofline) -> str:
    first, own = "harish_narayanan", "this project"
    of_copy, of_arithmetic = one.of_copy(first), one.of_arithmetic(own)
    now = (
        [] if of_copy is None else [f"{first} reaches {_percent(of_copy)} of the bytes/s of a copy"]
    )
    now += (
        []
        if of_arithmetic is None
        else [f"{own} {_percent(of_arithmetic)} of the operations/s of its product's inner loop"]
    )
    agrees = _nearer(one, first) == "memory" and _nearer(one, own) == "arithmetic"
    return then_now_why(
        "one launch per vertex was limited by memory, at 55% of the bytes/s of a copy, and blocked systems by arithmetic (Lund "
        "& Smith)",
        f"for n = {one.n} in {one.dtype}, {' and '.join(now) or 'neither was measured beside the ceilings'}",
        "one launch per vertex uses a loaded value once, and a product many times"
        if agrees
        else "",
    )


def _then_and_now(one: _Roofline) -> str:
    """Return the table of what the papers measured, beside the same at n = one.n."""
    rows = [
        [
            f"{name}: bytes/s, of a copy's",
            f"{moved / 1e9:.0f} GB/s, {moved / LUND_SMITH_COPY:.0%} (C1060)",
            _bytes_now(one, name),
        ]
        for name, moved in LUND_SMITH_MEMORY.items()
    ]
    for name, flops in LUND_SMITH_FLOPS.items():
        share = one.of_arithmetic(name)
        rows.append(
            [
                f"{name}: FLOPs that one operation takes",
                f"{flops} (C1060)",
                "" if share is None else f"{2 / share:.1f}",
            ]
        )
    for name, (core, memory) in BULUC_SLOWDOWNS.items():
        then = f"half the core clock: {core:.2f} times the time; half the memory clock: {memory:.2f} (8800 Ultra)"
        rows.append([f"{name}: limited by", then, _limit(one, name)])
    note = (
        "FLOPs: the additions and minima that the GPU could have done in the time of one operation, by the data sheet then, "
        "by the inner loop of the product now; two are needed."
    )
    return "\n\n".join(
        [table([f"now: n = {one.n}, {one.dtype}", "then", "now"], rows), paragraph(note)]
    )


def _bytes_now(one: _Roofline, label: str) -> str:
    moved = _per_second(one.systems[label], "dram_bytes") if label in one.systems else None
    share = one.of_copy(label)
    return "" if moved is None or share is None else f"{amount(moved)}B/s, {_percent(share)}"


def _limit(one: _Roofline, label: str) -> str:
    """Return the nearer ceiling if a system reaches half of it, else "neither", and both shares; ""
    if one is unknown.
    """
    memory, arithmetic = one.of_copy(label), one.of_arithmetic(label)
    if memory is None or arithmetic is None:
        return ""
    limit = _nearer(one, label) if max(memory, arithmetic) >= 0.5 else "neither"
    return f"{limit}: {_percent(memory)} of a copy's bytes/s, {_percent(arithmetic)} of the inner loop's operations/s"


def _nearer(one: _Roofline, label: str) -> str:
    """Return the ceiling of which a system reaches the greater share; "" if one is unknown."""
    memory, arithmetic = one.of_copy(label), one.of_arithmetic(label)
    if memory is None or arithmetic is None:
        return ""
    return "memory" if memory > arithmetic else "arithmetic"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _about_bytes(rooflines: Sequence[_Roofline]) -> str:
    """Return how the bytes were found."""
    rows = [known.row for one in rooflines for known in one.systems.values()]
    reasons = dict.fromkeys(row["message"] for row in rows if row["counted"] != "1")
    counted = sum(row["counted"] == "1" for row in rows)
    by_counters = (
        f"The bytes of {counted} calls are those of the GPU's counters, read by ncu: L2 is {METRICS[0]}, memory is "
        f"{METRICS[1]} plus {METRICS[2]}."
    )
    computed = (
        f"The bytes of {len(rows) - counted} calls are computed, not counted, because {'; '.join(reasons)}. Computed bytes "
        "from L2 are those that the programs ask for. Those from memory are the least possible, as if each launch read and "
        "wrote each block of the matrix once; they are unknown where the L2 cache may hold the matrix."
    )
    ceilings = (
        "Ceilings were measured in the same run: a copy of a large buffer, read plus written, and the inner loop of "
        "this project's product alone, on slices that stay in shared memory."
    )
    caches = "Caches serve part of the loads: a system may move more bytes from L2 than memory could, as Catinello saw (Figure 5)."
    return paragraph(ceilings, by_counters if counted else "", computed if reasons else "", caches)


def _table(rooflines: Sequence[_Roofline]) -> str:
    head = [
        "",
        "dtype",
        "n",
        "time",
        "operations/s",
        "of arithmetic",
        "bytes/s, memory",
        "of a copy",
        "bytes/s, L2",
        "bytes are",
    ]
    rows: list[list[object]] = []
    for one in rooflines:
        copied = f"{amount(one.copied)}B/s" if one.copied else ""
        level = amount(one.arithmetic) if one.arithmetic else ""
        rows += [[f"ceiling: {COPY}", one.dtype, one.n, "", "", "", copied, *[""] * 4]]
        rows += [[f"ceiling: {ARITHMETIC}", one.dtype, one.n, "", level, *[""] * 6]]
        rows += [
            _row(one, label, known)
            for label, known in sorted(one.systems.items(), key=lambda item: item[1].ms)
        ]
    return table([*head, "nearer ceiling"], rows)


def _squares(rooflines: Sequence[_Roofline]) -> str:
    """Return whether the squares of pseudo_blocked save bytes, by the counters at the largest n; ""
    if they were not read.
    """
    for one in reversed(rooflines):
        both = [one.systems.get(name) for name in ("pseudo_blocked", "simple")]
        counts = [
            _number(known, "l2_bytes")
            for known in both
            if known is not None and known.row["counted"] == "1"
        ]
        if len(counts) == 2 and counts[0] and counts[1]:
            ratio = counts[0] / counts[1]
            why = ": the L1 cache serves what the pairs of a square share" if ratio > 0.9 else ""
            return paragraph(
                f"At n = {one.n}, pseudo_blocked loads {ratio:.2f} times the bytes of simple from L2, with squares of 4 x 4 "
                f"pairs in place of single ones{why}."
            )
    return ""


def _row(one: _Roofline, label: str, known: Measured) -> list[object]:
    shares = [
        _percent(share) if share is not None else ""
        for share in (one.of_arithmetic(label), one.of_copy(label))
    ]
    memory, l2 = (
        f"{amount(moved)}B/s" if (moved := _per_second(known, metric)) is not None else ""
        for metric in ("dram_bytes", "l2_bytes")
    )
    how = "counted" if known.row["counted"] == "1" else "computed"
    nearer = _nearer(one, label)
    return [
        label,
        one.dtype,
        one.n,
        milliseconds(known.ms),
        amount(known.rate),
        shares[0],
        memory,
        shares[1],
        l2,
        how,
        nearer,
    ]
