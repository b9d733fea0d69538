"""The page of the study of energy: time against energy of each configuration, and MFLOP per joule beside Table 8 of Buluç."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from tri_apsp.messages import counted
from tri_apsp.report import markdown, plots
from tri_apsp.report.calls_page import then_now_why
from tri_apsp.report.markdown import environment_block, figure, paragraph, section, table
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.missing import missing_block, missing_sentence
from tri_apsp.report.pages import failures_section
from tri_apsp.report.papers import BULUC_MFLOP_PER_JOULE
from tri_apsp.report.plots import Mark, Scatter
from tri_apsp.report.study import Study, Target
from tri_apsp.tuned.records import Values

__all__ = ["FIGURES", "PRODUCT", "SOLVE", "tile_of", "write_page"]

FIGURES = ("joules", "watts", "idle_watts", "mflop_per_joule", "p20_joules", "p80_joules")
"""The columns of a row besides times: energy and power of a run, power of the idle GPU, 2 n^3 operations over the energy."""

PRODUCT, SOLVE = "product", "solve"

_THEIR_GPU = next(iter(BULUC_MFLOP_PER_JOULE))
_PROTOCOL = paragraph(
    "Before a configuration is measured, its results are verified bit for bit. The time is the median of runs by CUDA events, "
    "with the L2 cache flushed before each. The energy is that of the whole GPU, without the host: what NVML's counter gains "
    "between two of its steps, over a second of runs without a pause. After each product was measured once, all are measured "
    "again in interleaved rounds; the table then shows their medians, and in brackets the range from p20 to p80. A product or "
    "solve has 2 n³ operations."
)


def tile_of(values: Values) -> str:
    """Return the tile of a configuration in words, different for each configuration of the study."""
    rows, columns, depth, warps, stages = (
        values[f"product.{name}"] for name in ("block_m", "block_n", "block_k", "num_warps", "num_stages")
    )
    return f"{rows} x {columns} x {depth}, {counted(int(warps), 'warp')}, {stages} stages"


def write_page(study: Study, target: Target, results: Sequence[GridResult], folder: Path, name: str, command: str) -> Path:
    """Write the page and the plot of the study, and return the path of the page; see pages.write_study."""
    products = [result for result in results if result.grid.name == PRODUCT and result.timed]
    solves = {
        result.grid.task.n: result.timed[0]
        for result in sorted(results, key=lambda result: result.grid.task.n)
        if result.grid.name == SOLVE and result.timed
    }
    missing = missing_block(results, command)
    lead, tables = [], []
    if products:
        product = products[0]
        plots.save(_drawn(product), folder / name)
        lead = ["Not every product was measured, so there is no result yet."] if product.missing else _lead(product, solves)
        tables = [figure(name, _caption(product)), _products(product)]
    tables += [f"### Whole solves\n\n{_solves(solves)}"] if solves else []
    nothing = "" if tables else "Nothing was measured yet."
    opening = paragraph(missing_sentence(results), nothing, *lead)
    rows = [one.row for result in results for one in (*result.screened, *result.finals)]
    details = [section("Measurement", _PROTOCOL), failures_section(results), environment_block(rows, f"{name}.csv")]
    blocks = {
        "result": "\n\n".join(filter(None, [opening, *tables, *missing])),
        "details": "\n\n".join(filter(None, details)) if rows else "",
    }
    title = f"{study.question} {target.device.name}"
    return markdown.write_page(folder / f"{name}.md", title, blocks, study.remark(folder))


def _figure(measured: Measured, name: str) -> float:
    return float(measured.row[name])


def _above_idle(measured: Measured) -> float:
    """Return MFLOP per joule beyond what the idle GPU takes in the same time."""
    share = 1 - _figure(measured, "idle_watts") / _figure(measured, "watts")
    return _figure(measured, "mflop_per_joule") / share if share > 0 else float("inf")


def _most_efficient(result: GridResult) -> Measured:
    return min(result.timed, key=lambda one: _figure(one, "joules"))


def _fastest(result: GridResult) -> Measured:
    return min(result.timed, key=lambda one: one.ms)


def _drawn(result: GridResult) -> Figure:
    least, shortest = _figure(_most_efficient(result), "joules"), _fastest(result).ms
    marks = [Mark(_label(result, one), one.ms / shortest, _figure(one, "joules") / least) for one in result.timed]
    panel = Scatter("time, relative to the fastest", marks)
    made, _ = plots.scatter(result.grid.heading, [panel], y_label="energy, relative to the least")
    return made


def _label(result: GridResult, measured: Measured) -> str:
    return tile_of(measured.point.values) + (" (default)" if measured is result.default else "")


def _caption(result: GridResult) -> str:
    final = "" if result.finals else " Each was measured once, not yet in interleaved rounds."
    return f"{result.grid.heading}: each configuration of the product, lower left is better.{final}"


def _lead(result: GridResult, solves: Mapping[int, Measured]) -> list[str]:
    fastest, best, theirs = _fastest(result), _most_efficient(result), BULUC_MFLOP_PER_JOULE[_THEIR_GPU]
    n = max((n for n in solves if n in theirs), default=None)
    solved = ""
    if n is not None:
        here = _figure(solves[n], "mflop_per_joule")
        solved = f"a solve of {n} vertices does {here:,.0f} MFLOP per joule, {here / theirs[n]:.0f} times as many; "
    which = f"the fastest product, {tile_of(fastest.point.values)}"
    if _figure(best, "p80_joules") >= _figure(fastest, "p20_joules"):
        compared = f"{which}, is also the most efficient, or as efficient within the noise."
    else:
        energy = 1 - _figure(best, "joules") / _figure(fastest, "joules")
        once = "" if result.finals else "by one measurement each, whose noise is unknown, "
        compared = (
            f"{once}{which}, is not the most efficient: {tile_of(best.point.values)} takes "
            f"{energy:.0%} less energy and {best.ms / fastest.ms - 1:.0%} more time. "
            "`python -m tri_apsp.tune --objective energy` searches for the most efficient."
        )
    power = [_figure(one, "watts") for one in result.timed]
    cpus = max(values[4096] for label, values in BULUC_MFLOP_PER_JOULE.items() if label != _THEIR_GPU)
    return then_now_why(
        f"from the power that makers state, Buluç, Gilbert and Budak counted {theirs[4096]:g} MFLOP per joule at n = 4096 on a "
        f"{_THEIR_GPU}, and at most {cpus:g} on CPUs.",
        f"{solved}{compared}",
        f"energy is power times time, and the power depends on the tile: {min(power):.0f} to {max(power):.0f} W here, of which "
        f"the idle GPU takes {_figure(fastest, 'idle_watts'):.0f} W.",
    )


def _products(result: GridResult) -> str:
    fastest, best = _fastest(result), _most_efficient(result)
    rows = [
        [
            _label(result, one),
            f"{one.ms:.4g}",
            f"{_figure(one, 'watts'):.0f}",
            f"{_figure(one, 'joules'):.3g}{_range(one) if result.finals else ''}",
            f"{_figure(one, 'mflop_per_joule'):,.0f}",
            f"{_above_idle(one):,.0f}",
            f"{one.ms / fastest.ms:.2f}",
            f"{_figure(one, 'joules') / _figure(best, 'joules'):.2f}",
        ]
        for one in sorted(result.timed, key=lambda one: _figure(one, "joules"))
    ]
    head = ["tile", "ms", "W", "J", "MFLOP/J", "MFLOP/J above idle", "relative time", "relative energy"]
    idle = f"The idle GPU takes {_figure(fastest, 'idle_watts'):.0f} W, whose energy is left out of MFLOP/J above idle."
    return "\n\n".join([table(head, rows), paragraph(idle)])


def _range(measured: Measured) -> str:
    return f" ({_figure(measured, 'p20_joules'):.3g} to {_figure(measured, 'p80_joules'):.3g})"


def _solves(solves: Mapping[int, Measured]) -> str:
    """Return the table of whole solves beside Table 8."""
    rows = [
        [
            n,
            f"{one.ms:.4g}",
            f"{_figure(one, 'watts'):.0f}",
            f"{_figure(one, 'joules'):.3g}",
            f"{_figure(one, 'mflop_per_joule'):,.0f}",
            f"{_above_idle(one):,.0f}",
            *(f"{values[n]:g}" if n in values else None for values in BULUC_MFLOP_PER_JOULE.values()),
        ]
        for n, one in solves.items()
    ]
    head = ["n", "ms", "W", "J", "MFLOP/J", "MFLOP/J above idle", *BULUC_MFLOP_PER_JOULE]
    sources = (
        "The last five columns are MFLOP per joule of Buluç, Gilbert and Budak (Table 8), from power that the makers state: "
        "222.5 W for the GPU with a core of a CPU."
    )
    return "\n\n".join([table(head, rows), paragraph(sources)])
