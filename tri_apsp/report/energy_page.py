"""The page of the study of energy: time against energy of each configuration, and MFLOP per joule beside Table 8 of Buluç."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tri_apsp.messages import counted
from tri_apsp.report import plots
from tri_apsp.report.markdown import paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.papers import BULUC_MFLOP_PER_JOULE
from tri_apsp.report.plots import Mark, Scatter
from tri_apsp.report.study import Page, Target
from tri_apsp.tuned.records import Values

__all__ = ["FIGURES", "PRODUCT", "SOLVE", "page", "tile_of"]

FIGURES = ("joules", "watts", "idle_watts", "mflop_per_joule", "p20_joules", "p80_joules")
"""The columns of a row besides times: energy and power of a run, power of the idle GPU, 2 n^3 operations over the energy."""

PRODUCT, SOLVE = "product", "solve"

_AT = 4096
"""The size at which the paper states its best."""
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


def page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    """Return the page of the study; its plot is called `name`."""
    product = next((result for result in results if result.grid.name == PRODUCT and result.timed), None)
    solves = {
        result.grid.task.n: result.timed[0]
        for result in sorted(results, key=lambda result: result.grid.task.n)
        if result.grid.name == SOLVE and result.timed
    }
    tables = [] if product is None else [_products(product)]
    tables += [f"### Whole solves\n\n{_solves(solves)}"] if solves else []
    return Page(
        lead="" if product is None and not solves else _lead(product, solves),
        plots={} if product is None else {name: _drawn(product)},
        caption="" if product is None else _caption(product),
        results=tables,
        details=[section("Measurement", _PROTOCOL)],
    )


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


def _lead(product: GridResult | None, solves: Mapping[int, Measured]) -> str:
    theirs = BULUC_MFLOP_PER_JOULE[_THEIR_GPU]
    cpus = max(values[_AT] for label, values in BULUC_MFLOP_PER_JOULE.items() if label != _THEIR_GPU)
    n = max((n for n in solves if n in theirs), default=None)
    solved = "" if n is None else f"a solve of {n} vertices does {_figure(solves[n], 'mflop_per_joule'):,.0f}"
    compared, why = "", ""
    if product is not None and not product.missing:
        compared, differs = _compared(product)
        power = [_figure(one, "watts") for one in product.timed]
        why = f"the power depends on the tile ({min(power):.0f} to {max(power):.0f} W)" if differs else ""
    return then_now_why(
        f"a {_THEIR_GPU} did {theirs[_AT]:g} MFLOP per joule at n = {_AT}, and a CPU at most {cpus:g} (Buluç, Gilbert, Budak)",
        ", and ".join(filter(None, [solved, compared])) or "not every product was measured, so there is no result yet",
        why,
    )


def _compared(result: GridResult) -> tuple[str, bool]:
    """Return how the energy of the fastest product compares with the least, as part of a sentence, and whether they differ."""
    fastest, best = _fastest(result), _most_efficient(result)
    if _figure(best, "p80_joules") >= _figure(fastest, "p20_joules"):
        return "the fastest product is also the most efficient, or as efficient within the noise", False
    energy = 1 - _figure(best, "joules") / _figure(fastest, "joules")
    once = "" if result.finals else ", by one measurement each,"
    return (
        f"the most efficient product takes {energy:.0%} less energy{once} and {best.ms / fastest.ms - 1:.0%} more time "
        "than the fastest",
        True,
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
    names = (
        "Tiles are rows x columns x slice of k. The fastest is "
        f"{tile_of(fastest.point.values)}; the most efficient is {tile_of(best.point.values)}."
    )
    search = "`python -m tri_apsp.tune --objective energy` searches for the most efficient."
    return "\n\n".join([table(head, rows), paragraph(names, idle, search)])


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
