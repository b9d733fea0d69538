"""The page of the study of implementations: times, speed-ups, exponents and rates, beside those of
the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from matplotlib.figure import Figure

from tri_apsp.bench.bounds import bound, has_bound
from tri_apsp.console.output import amount
from tri_apsp.messages import counted
from tri_apsp.papers import SYSTEMS
from tri_apsp.report import plots
from tri_apsp.report.calls_page import (
    LARGE,
    PROTOCOL,
    Curves,
    curves_by_dtype,
    curves_of,
    dtypes_of,
    exponent,
    rate_lines,
    table_over_n,
    times_section,
)
from tri_apsp.report.markdown import paragraph, section, table, then_now_why
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.papers import (
    BULUC_16_CORES,
    BULUC_EXPONENTS,
    BULUC_PEAK_SHARE,
    BULUC_SECONDS,
    CATINELLO_SPEED_UP,
    LUND_SMITH_SECONDS,
)
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Page, Target
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.progress import milliseconds

__all__ = ["page"]

_LABELS = {
    "auto": "this project, auto",
    "cpu engine": "this project, auto, on the CPU",
    "scipy": "SciPy, float64, one core",
}
_THEN = {
    "C1060": LUND_SMITH_SECONDS,
    "8800 Ultra": BULUC_SECONDS,
}
_CPUS = {"C1060": "AMD Phenom, one core", "8800 Ultra": "Core 2 Duo, one core"}
_PAPER_CPUS = {
    "C1060": f"Lund & Smith, {_CPUS['C1060']}",
    "8800 Ultra": f"Buluç, Gilbert, Budak, {_CPUS['8800 Ultra']}",
}
# What the papers say of the parameters of their systems.
_FOUND = {
    "staged_load": "m = 4 was used (Lund & Smith, section 4.2)",
    "recursive_tuned": "a larger β, with more threads, was a little slower than 16 (Henriod)",
    "recursive_plain": "a larger β, with more threads, was a little slower than 16 (Henriod)",
    "vectorised": "4 columns, short4, were used (Catinello, section 2.2)",
    "pseudo_blocked": "an edge of 4 was best of 1 to 32 (Catinello, section 3.3)",
    "blocked_int16": "blocks of 16 x 16 were best of 8, 16 and 32 (Catinello, section 3.4)",
    "blocked_vectorised_int16": "blocks of 16 x 16 were best of 8, 16 and 32 (Catinello, section 3.4)",
}
# Why a system may now be faster with less than the paper's parameter.
_WHY_LESS = {
    "pseudo_blocked": "the L1 cache serves the values that the pairs of a square share (the study roofline counts the bytes)"
}
_AT = 8192
"""The size at which the papers state their best."""
_SYSTEMS = paragraph(
    "The names are systems of `tri_apsp.papers`: [README](https://github.com/tri-apsp/tri_apsp#methods) has one line on each."
)
# The lanes of a multiprocessor of compute capability 9, which add once per clock: the papers' peak
# without fused multiply-adds.
_LANES = 128


def page(target: Target, results: Sequence[GridResult], name: str) -> Page:
    """Return the page of the study; its plot is called `name`."""
    by_dtype = curves_by_dtype(results, _label)
    if not by_dtype:
        return Page()
    dtype, curves = next(iter(by_dtype.items()))  # float32 if it was measured
    gpu = target.engine != "cpu"
    return Page(
        lead=_lead(curves) if gpu else _lead_of_cpu(curves, dtype, target.device.units),
        plots={name: _drawn(by_dtype, target)},
        caption="Rates of whole calls, n³ / time, on complete graphs."
        + (" Right: what the papers measured." if gpu else ""),
        results=[_then_and_now(curves), _recursion_note(results, dtype), _SYSTEMS] if gpu else [],
        details=[PROTOCOL, *_details(by_dtype, results, target)],
    )


def _label(measured: Measured) -> str | None:
    """Return the label of a call; None if it is a system with another parameter than the paper's."""
    name, value = _system(measured)
    parameter = SYSTEMS[name].parameter if name in SYSTEMS else None
    return (
        None
        if parameter is not None and value != str(parameter.default)
        else _LABELS.get(name, name)
    )


def _system(measured: Measured) -> tuple[str, str]:
    """Return the name of an implementation and its parameter."""
    name, value = (
        str(measured.point.values[column]) for column in ("implementation", "method_parameter")
    )
    return name, value


def _drawn(curves: Mapping[str, Curves], target: Target) -> Figure:
    every = dict(next(iter(curves.values())))
    own = _LABELS["auto"]
    for dtype, by in list(curves.items())[1:]:
        every |= {f"{label}, {dtype}": known for label, known in by.items() if label == own}
        every |= {
            label: known for label, known in by.items() if label not in every and label != own
        }
    panels = [Plot("n", rate_lines(every), f"Now: {target.device.name}")]
    if target.engine != "cpu":
        then = [
            Line(
                _CPUS[gpu] if name == "cpu" else name,
                list(known),
                [n**3 / t / 1e9 for n, t in known.items()],
            )
            for gpu, systems in _THEN.items()
            for name, known in systems.items()
        ]
        panels.append(Plot("n", then, f"Then: {' and '.join(_THEN)}"))
    made, _ = plots.line_plots(
        "Implementations", panels, y_label="10⁹ operations/s", log_y=True, height=4.5
    )
    return made


def _systems_at(curves: Curves) -> dict[str, Measured]:
    """Return the systems of the papers at the size at which the papers state their best, the
    fastest first.
    """
    systems = {
        name: known[_AT]
        for name, known in curves.items()
        if _AT in known and name not in _LABELS.values()
    }
    return dict(sorted(systems.items(), key=lambda item: item[1].ms))


def _lead(curves: Curves) -> str:
    own, systems = curves.get(_LABELS["auto"], {}).get(_AT), _systems_at(curves)
    if own is None or not systems:
        return f"No system was measured beside this project at n = {_AT}, at which the papers state their best."
    lund_smith, buluc = (
        LUND_SMITH_SECONDS["staged_load"][_AT],
        BULUC_SECONDS["recursive_tuned"][_AT],
    )
    best, fastest = next(iter(systems.items()))
    why = ""
    if best == "staged_load" and own.ms < fastest.ms:
        why = (
            f"this GPU makes staged_load {lund_smith / fastest.seconds:.0f} times as fast, and larger tiles in registers, "
            f"which use each loaded value more often, another {fastest.ms / own.ms:.1f} times"
        )
    return then_now_why(
        f"the papers' best took {lund_smith} s (Lund & Smith) and {buluc} s (Buluç, Gilbert, Budak) for n = {_AT}",
        f"this project takes {milliseconds(own.ms)}, {lund_smith / own.seconds:.0f} and {buluc / own.seconds:.0f} times as "
        "fast",
        why,
    )


def _recursion_note(results: Sequence[GridResult], dtype: str) -> str:
    """Return what limits the recursion with the tuned product, if a larger β than the paper's is
    faster.
    """
    parameter = SYSTEMS["recursive_tuned"].parameter
    assert parameter is not None
    family = curves_of(results, dtype, partial(_parameter, "recursive_tuned"))
    slow, fast = (
        family.get(str(value), {}) for value in (parameter.default, parameter.choices[-1])
    )
    n = max((n for n in slow if n in fast), default=None)
    if n is None or fast[n].ms >= slow[n].ms:
        return ""
    return paragraph(
        f"recursive_tuned is limited by its many small launches: with β = {parameter.choices[-1]} in place of "
        f"{parameter.default} it takes {fast[n].ms / slow[n].ms:.0%} of the time at n = {n}."
    )


def _lead_of_cpu(curves: Curves, dtype: str, cores: int) -> str:
    own, scipy = curves.get(_LABELS["auto"], {}), curves.get(_LABELS["scipy"], {})
    common = [n for n in own if n in scipy]
    if not common:
        return f"No size was measured both with this project and with SciPy in {dtype}, so there is no result yet."
    n = max(common)
    times = milliseconds(own[n].ms), milliseconds(scipy[n].ms)
    then = [
        f"{systems['cpu'][n]:g} s ({_PAPER_CPUS[gpu]})"
        for gpu, systems in _THEN.items()
        if n in systems["cpu"]
    ]
    return then_now_why(
        f"the papers' programs for a CPU took {' and '.join(then)} for n = {n}" if then else "",
        f"for n = {n}, this project takes {times[0]} in {dtype} on {counted(cores, 'core')}, and SciPy {times[1]} in float64 "
        "on one",
        "SciPy passes over the whole matrix for each vertex, and this project over blocks that stay in the caches"
        if own[n].ms < scipy[n].ms and n >= LARGE
        else "",
    )


def _then_and_now(curves: Curves) -> str:
    """Return the table of the systems that a paper measured at the same size."""
    rows = []
    for gpu, systems in _THEN.items():
        for name, known in systems.items():
            if name in curves and _AT in known and _AT in curves[name]:
                now = curves[name][_AT]
                rows.append(
                    [
                        name,
                        f"{known[_AT]:g} s, {gpu}",
                        milliseconds(now.ms),
                        f"{known[_AT] / now.seconds:.0f}",
                    ]
                )
    pairs = [
        ("katz_kider", "staged_load"),
        ("katz_kider", "optimised_blocked"),
        ("optimised_blocked", "staged_load"),
    ]
    for slow, fast in pairs:
        if all(_AT in curves.get(name, {}) for name in (slow, fast)):
            then = LUND_SMITH_SECONDS[slow][_AT] / LUND_SMITH_SECONDS[fast][_AT]
            ratio = curves[slow][_AT].ms / curves[fast][_AT].ms
            rows.append([f"{slow} / {fast}", f"{then:.1f}", f"{ratio:.1f}", ""])
    return table([f"n = {_AT}", "then", "now", "times as fast"], rows) if rows else ""


def _details(
    curves: Mapping[str, Curves], results: Sequence[GridResult], target: Target
) -> list[str]:
    by = next(iter(curves.values()))
    return [
        times_section(curves),
        _parameters(results),
        _speed_ups(by, target),
        _exponents(curves, target),
        _rates(curves, target),
    ]


def _parameters(results: Sequence[GridResult]) -> str:
    """Return the times of each system by its parameter, and which is the fastest at the largest n."""
    parts = []
    for dtype in dtypes_of(results):
        for name, system in SYSTEMS.items():
            of, by = system.parameter, curves_of(results, dtype, partial(_parameter, name))
            if of is None or len(by) < 2:
                continue
            family = {value: by[str(value)] for value in of.choices if str(value) in by}
            parts += [f"### {name}, {dtype}: {of.name}", _best_parameter(name, family, of.default)]
            parts += [
                table_over_n({f"{of.name} = {value}": known for value, known in family.items()})
            ]
    return section("Parameters of the systems", *parts) if parts else ""


def _parameter(name: str, measured: Measured) -> str | None:
    """Return the parameter with which the system `name` was measured; None for another system."""
    found, value = _system(measured)
    return value if found == name else None


def _best_parameter(name: str, family: Mapping[int, Mapping[int, Measured]], default: int) -> str:
    """Return the fastest parameter, beside the paper's, at the largest n that all have."""
    common = set.intersection(*(set(known) for known in family.values()))
    if not common or default not in family:
        return paragraph(f"Then, {_FOUND[name]}.")
    times = {value: known[max(common)].ms for value, known in family.items()}
    best = min(times, key=lambda value: times[value])
    less = (
        ""
        if best == default
        else f", in {times[best] / times[default]:.0%} of the time at {default}"
    )
    why = _WHY_LESS.get(name, "") if best < default else ""
    return paragraph(
        then_now_why(_FOUND[name], f"{best} is fastest for n = {max(common)}{less}", why)
    )


def _speed_ups(curves: Curves, target: Target) -> str:
    parts = []
    for label in (_LABELS["cpu engine"], _LABELS["scipy"]):
        base = curves.get(label, {})
        others = {
            name: {n: one for n, one in known.items() if n in base}
            for name, known in curves.items()
            if name != label
        }
        others = {name: known for name, known in others.items() if known}
        if others:
            parts += [f"Over {label}:", table_over_n(others, partial(_ratio, base))]
    if target.engine != "cpu":
        cpu, tuned = BULUC_SECONDS["cpu"], BULUC_SECONDS["recursive_tuned"]
        rows = [
            [name, *(_over(cpu[n], known[n]) for n in cpu)]
            for name, known in BULUC_SECONDS.items()
            if name != "cpu"
        ]
        rows += [
            [
                "recursive_tuned, over 16 Opteron cores",
                *(_over(BULUC_16_CORES[n], tuned[n]) for n in cpu),
            ]
        ]
        parts += [
            "Then, over one core of a Core 2 Duo, and over 16 cores (Buluç, Gilbert, Budak, Tables 2 and 4):"
        ]
        parts += [table(["", *(f"n = {n}" for n in cpu)], rows)]
        n, times = CATINELLO_SPEED_UP
        parts += [
            f"Then, `blocked_vectorised_int16` over one core of an Intel i9-9900K: {times} at n = {n} (Catinello)."
        ]
    return (
        section("Speed-ups" if target.engine == "cpu" else "Speed-ups over the CPU", *parts)
        if parts
        else ""
    )


def _ratio(base: Mapping[int, Measured], label: str, n: int, one: Measured) -> str:
    return _over(base[n].ms, one.ms)


def _over(slow: float, fast: float) -> str:
    return f"{slow / fast:.3g}"


def _exponents(curves: Mapping[str, Curves], target: Target) -> str:
    rows, gpu = [], target.engine != "cpu"
    for dtype, by in curves.items():
        for name, known in by.items():
            if fitted := exponent({n: one.seconds for n, one in known.items()}):
                then = BULUC_EXPONENTS.get(name)
                sizes = f"{min(known)} to {max(known)}"
                rows.append(
                    [
                        name,
                        dtype,
                        sizes,
                        f"{fitted[0]:.2f}",
                        f"{fitted[1]:.2g}",
                        *([then] if gpu else []),
                    ]
                )
    if not rows:
        return ""
    note = (
        "t = c n^e by least squares on the logarithms, as Buluç, Gilbert and Budak did for n = 512 to 8192 (Table 3; their CPU "
        f"has {BULUC_EXPONENTS['cpu']}, their iterative GPU code {BULUC_EXPONENTS['iterative']}). An exponent below 3 means "
        "that fixed costs, such as launches, weigh less as n grows."
    )
    return section(
        "Exponents",
        paragraph(note),
        table(["", "dtype", "n", "e", "c in s", *(["e then"] if gpu else [])], rows),
    )


def _rates(curves: Mapping[str, Curves], target: Target) -> str:
    device = target.device
    peak = (
        _LANES * device.units * device.clock_hz
        if device.clock_hz is not None and has_bound(device)
        else None
    )
    head = ["", "dtype", "n", "GFLOP/s (2 n³ / t)", "operations/s (n³ / t)"]
    head += ["of their peak", "of our bound"] if peak else []
    rows = []
    for dtype, by in curves.items():
        limit = bound(device, DTYPES_BY_NAME[dtype], True, device.clock_hz) if peak else None
        for name, known in by.items():
            n = max(known, key=lambda n: known[n].rate)
            rate = known[n].rate
            on_gpu = peak is not None and name not in (_LABELS["cpu engine"], _LABELS["scipy"])
            shares = (
                [f"{2 * rate / peak:.1%}", f"{rate / limit:.1%}" if limit else ""]
                if peak and on_gpu
                else ["", ""]
            )
            rows.append(
                [name, dtype, n, _gflops(2 * rate / 1e9), amount(rate), *(shares if peak else [])]
            )
    note = "Each call at its best size."
    if peak:
        note += (
            f" The peak of Buluç, Gilbert and Budak counts one addition or minimum per lane and clock: {peak / 1e12:.3g} "
            f"TFLOP/s here, 0.192 then, of which they reached {BULUC_PEAK_SHARE:.0%} (section 4.5). Our bound is that of "
            "today's instructions, of which one may do several additions and minima ([bench.md](bench.md)); by such "
            "instructions a call can exceed their peak."
        )
    return section("Rates", paragraph(note), table(head, rows))


def _gflops(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
