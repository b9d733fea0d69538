"""The page of the study of energy: time against energy of each configuration, and MFLOP per joule
beside Table 8 of Buluç.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from tri_apsp.messages import counted
from tri_apsp.report import plots
from tri_apsp.report.markdown import figure, paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.papers import BULUC_MFLOP_PER_JOULE
from tri_apsp.report.plots import Line, Mark, Plot, Scatter
from tri_apsp.report.study import Page, Target
from tri_apsp.tuned.records import Values

__all__ = ["METRICS", "PRODUCT", "SOLVE", "page", "tile_of"]

METRICS = ("joules", "watts", "idle_watts", "mflop_per_joule", "p20_joules", "p80_joules")
"""The columns of a row besides times: energy and power of a run, power of the idle GPU, 2 n^3
operations over the energy.
"""

PRODUCT, SOLVE = "product", "solve"

_AT = 4096
"""The size at which the paper states its best."""
_THEIR_GPU = next(iter(BULUC_MFLOP_PER_JOULE))
_SOLVES = "MFLOP per joule of whole solves, 2 n³ operations each, beside Table 8 of Buluç, Gilbert and Budak."
_PROTOCOL = paragraph(
    "Before a configuration is measured, its results are verified bit for bit. The time is the median of runs by CUDA events, "
    "with the L2 cache flushed before each. The energy is that of the whole GPU, without the host: what NVML's counter gains "
    "between two of its steps, over a second of runs without a pause; these do not flush the cache, so that a run takes less "
    "than the time shown. After each product was measured once, all are measured again in turns; the table then shows their "
    "medians, and in brackets the range from p20 to p80. A product or solve has 2 n³ operations."
)


def tile_of(values: Values) -> str:
    """Return the tile of a configuration in words, different for each configuration of the study."""
    rows, columns, depth, warps, stages = (
        values[f"product.{name}"]
        for name in ("block_m", "block_n", "block_k", "num_warps", "num_stages")
    )
    return f"{rows} x {columns} x {depth}, {counted(int(warps), 'warp')}, {stages} stages"


Solves = Mapping[tuple[str, int], Measured]
"""Whole solves by dtype and n."""


def page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    """Return the page of the study; its plots are named after `name`."""
    ordered = sorted((result for result in results if result.timed), key=_order)
    products = [result for result in ordered if result.grid.name == PRODUCT]
    solves = {
        (result.grid.task.dtype, result.grid.task.n): result.timed[0]
        for result in ordered
        if result.grid.name == SOLVE
    }
    if not ordered:
        return Page()
    files = [name, *(f"{name}-{one.grid.task.dtype}-n{one.grid.task.n}" for one in products[1:])]
    by_file = dict(zip(files, products, strict=False))
    plot = [figure(f"{name}-solves", _SOLVES)] if products else []
    others = [
        part
        for file, one in list(by_file.items())[1:]
        for part in (figure(file, _caption(one)), _products(one))
    ]
    return Page(
        lead=_lead(next(iter(products), None), solves),
        plots={file: _drawn(one) for file, one in by_file.items()}
        | ({f"{name}-solves": _drawn_solves(solves)} if solves else {}),
        caption=_caption(products[0]) if products else _SOLVES,
        results=[_products(one) for one in products[:1]]
        + (["### Whole solves", *plot, _solves(solves)] if solves else []),
        details=[
            section("Measurement", _PROTOCOL),
            section("Other products", *others) if others else "",
        ],
    )


def _order(result: GridResult) -> tuple[bool, bool, str, int]:
    """Sort float32 first, as the papers' numbers are of floats; then what was requested, rather
    than measured earlier.
    """
    task = result.grid.task
    return task.dtype != "float32", not result.requested, task.dtype, task.n


def _metric(measured: Measured, name: str) -> float:
    return float(measured.row[name])


def _above_idle(measured: Measured) -> float:
    """Return MFLOP per joule beyond what the idle GPU takes in the same time."""
    share = 1 - _metric(measured, "idle_watts") / _metric(measured, "watts")
    return _metric(measured, "mflop_per_joule") / share if share > 0 else float("inf")


def _most_efficient(result: GridResult) -> Measured:
    return min(result.timed, key=lambda one: _metric(one, "joules"))


def _drawn(result: GridResult) -> Figure:
    least, shortest = _metric(_most_efficient(result), "joules"), _fastest(result).ms
    marks = [
        Mark(_label(result, one), one.ms / shortest, _metric(one, "joules") / least)
        for one in result.timed
    ]
    panel = Scatter("time, relative to the fastest", marks)
    made, _ = plots.scatter(result.grid.heading, [panel], y_label="energy, relative to the least")
    return made


def _drawn_solves(solves: Solves) -> Figure:
    lines = [
        Line(
            f"now, {dtype}",
            [n for _, n in keys],
            [_metric(solves[key], "mflop_per_joule") for key in keys],
        )
        for dtype in dict.fromkeys(dtype for dtype, _ in solves)
        if (keys := sorted(key for key in solves if key[0] == dtype))
    ]
    lines += [
        Line(label, list(known), list(known.values()), paper=True)
        for label, known in BULUC_MFLOP_PER_JOULE.items()
    ]
    made, _ = plots.line_plots(
        "Whole solves", [Plot("n", lines)], y_label="MFLOP per joule", log_y=True, width=7.0
    )
    return made


def _label(result: GridResult, measured: Measured) -> str:
    return tile_of(measured.point.values) + (" (default)" if measured is result.default else "")


def _caption(result: GridResult) -> str:
    final = "" if result.finals else " Each was measured once, not yet a second time in turns."
    return f"{result.grid.heading}: each configuration of the product, lower left is better.{final}"


def _lead(product: GridResult | None, solves: Solves) -> str:
    theirs = BULUC_MFLOP_PER_JOULE[_THEIR_GPU]
    cpus = max(
        values[_AT] for label, values in BULUC_MFLOP_PER_JOULE.items() if label != _THEIR_GPU
    )
    dtype, n = max(
        ((dtype, n) for dtype, n in solves if n in theirs),
        key=lambda key: (key[0] == "float32", key),
        default=("", 0),
    )
    solved = (
        f"a solve of {n} vertices in {dtype} does {_metric(solves[dtype, n], 'mflop_per_joule'):,.0f}"
        if n
        else ""
    )
    compared = "" if product is None or product.missing else _compared(product)
    return then_now_why(
        f"a {_THEIR_GPU} did {theirs[_AT]:g} MFLOP per joule at n = {_AT}, and a CPU at most {cpus:g} (Buluç, Gilbert, Budak)",
        ", and ".join(filter(None, [solved, compared]))
        or "not every product was measured, so there is no result yet",
    )


def _compared(result: GridResult) -> str:
    """Return how the energy of the fastest product compares with the least, as part of a sentence."""
    fastest, best = _fastest(result), _most_efficient(result)
    if _metric(best, "p80_joules") >= _metric(fastest, "p20_joules"):
        return "the fastest product is also the most efficient, or as efficient within the noise"
    power = [_metric(one, "watts") for one in result.timed]
    energy = 1 - _metric(best, "joules") / _metric(fastest, "joules")
    once = "" if result.finals else "by one measurement of each "
    return (
        f"{once}the fastest product is not the most efficient, because the power depends on the tile ({min(power):.0f} to "
        f"{max(power):.0f} W): another takes {energy:.0%} less energy and {best.ms / fastest.ms - 1:.0%} more time"
    )


def _fastest(result: GridResult) -> Measured:
    assert result.best is not None, "a page shows grids with times"
    return result.best


def _products(result: GridResult) -> str:
    fastest, best = _fastest(result), _most_efficient(result)
    rows = [
        [
            _label(result, one),
            f"{one.ms:.4g}",
            f"{_metric(one, 'watts'):.0f}",
            f"{_metric(one, 'joules'):.3g}{_range(one) if result.finals else ''}",
            f"{_metric(one, 'mflop_per_joule'):,.0f}",
            f"{_above_idle(one):,.0f}",
            f"{one.ms / fastest.ms:.2f}",
            f"{_metric(one, 'joules') / _metric(best, 'joules'):.2f}",
        ]
        for one in sorted(result.timed, key=lambda one: _metric(one, "joules"))
    ]
    head = [
        "tile",
        "ms",
        "W",
        "J",
        "MFLOP/J",
        "MFLOP/J above idle",
        "relative time",
        "relative energy",
    ]
    idle = f"The idle GPU takes {_metric(fastest, 'idle_watts'):.0f} W, whose energy is left out of MFLOP/J above idle."
    names = (
        "Tiles are rows x columns x slice of k. The fastest is "
        f"{tile_of(fastest.point.values)}; the most efficient is {tile_of(best.point.values)}."
    )
    search = "`python -m tri_apsp.tune --objective energy` searches for the most efficient."
    return "\n\n".join([table(head, rows), paragraph(names, idle, search)])


def _range(measured: Measured) -> str:
    return f" ({_metric(measured, 'p20_joules'):.3g} to {_metric(measured, 'p80_joules'):.3g})"


def _solves(solves: Solves) -> str:
    """Return the table of whole solves beside Table 8."""
    rows = [
        [
            dtype,
            n,
            f"{one.ms:.4g}",
            f"{_metric(one, 'watts'):.0f}",
            f"{_metric(one, 'joules'):.3g}",
            f"{_metric(one, 'mflop_per_joule'):,.0f}",
            f"{_above_idle(one):,.0f}",
            *(
                f"{values[n]:g}" if n in values else None
                for values in BULUC_MFLOP_PER_JOULE.values()
            ),
        ]
        for (dtype, n), one in sorted(solves.items())
    ]
    head = ["dtype", "n", "ms", "W", "J", "MFLOP/J", "MFLOP/J above idle", *BULUC_MFLOP_PER_JOULE]
    sources = (
        "The last five columns are MFLOP per joule of Buluç, Gilbert and Budak (Table 8), from power that the makers state: "
        "222.5 W for the GPU with a core of a CPU."
    )
    return "\n\n".join([table(head, rows), paragraph(sources)])
