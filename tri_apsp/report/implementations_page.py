"""The page of the study of implementations: times, speed-ups, exponents and rates, beside those of the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from tri_apsp.bench.bounds import bound
from tri_apsp.console.output import amount
from tri_apsp.methods import PAPERS
from tri_apsp.report import plots
from tri_apsp.report.calls_page import (
    Curves,
    curves_of,
    dtypes_of,
    exponent,
    rate_lines,
    seconds,
    table_over_n,
    then_now_why,
    write_call_page,
)
from tri_apsp.report.markdown import paragraph, section, table
from tri_apsp.report.measuring import GridResult, Measured
from tri_apsp.report.papers import BULUC_EXPONENTS, BULUC_PEAK_SHARE, BULUC_SECONDS, LUND_SMITH_SECONDS
from tri_apsp.report.plots import Line, Plot
from tri_apsp.report.study import Study, Target
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tune.progress import milliseconds

__all__ = ["write_page"]

_LABELS = {"auto": "this project", "cpu engine": "this project on the CPU", "scipy": "SciPy, one core"}
_THEN = {
    "C1060": LUND_SMITH_SECONDS,
    "8800 Ultra": BULUC_SECONDS,
}
_CPUS = {"C1060": "AMD Phenom, one core", "8800 Ultra": "Core 2 Duo, one core"}
# What the papers say of the parameters of their systems.
_FOUND = {
    "staged_load": "m = 4 was used (Lund & Smith, section 4.2)",
    "recursive_tuned": "16 was at least as good as more (Henriod)",
    "recursive_plain": "16 was at least as good as more (Henriod)",
    "vectorised": "4 columns, short4, were used (Catinello, section 2.2)",
    "pseudo_blocked": "an edge of 4 was best of 1 to 32 (Catinello, section 3.3)",
    "blocked_int16": "blocks of 16 x 16 were best of 8, 16 and 32 (Catinello, section 3.4)",
    "blocked_vectorised_int16": "blocks of 16 x 16 were best of 8, 16 and 32 (Catinello, section 3.4)",
}
_AT = 8192
"""The size at which the papers state their best."""
# The lanes of a multiprocessor, of which each adds once per clock: the papers' peak without fused multiply-adds.
_LANES = 128


def write_page(study: Study, target: Target, results: Sequence[GridResult], folder: Path, name: str, command: str) -> Path:
    """Write the plots and the generated blocks of the page, and return its path; as pages.write_study."""
    curves = {dtype: curves_of(results, dtype, _label) for dtype in dtypes_of(results)}
    default = {dtype: {label: known for label, known in by.items() if "=" not in label} for dtype, by in curves.items()}
    first = next(iter(default))  # float32 if it was measured
    gpu = target.engine != "cpu"
    return write_call_page(
        study,
        target,
        results,
        folder / name,
        command,
        drawn=_figure(default, target) if default[first] else None,
        caption="Rates of whole calls, n³ / time, on complete graphs." + (" Right: what the papers measured." if gpu else ""),
        lead=_lead(default[first], target, first),
        tables=[_then_and_now(default[first])] if gpu else [],
        details=_details(curves, default, target),
    )


def _label(measured: Measured) -> str:
    """Return the label of a call: the name of a system, with its parameter if that is not the paper's."""
    name, value = str(measured.point.values["implementation"]), measured.point.values["method_parameter"]
    parameter = PAPERS[name].parameter if name in PAPERS else None
    if parameter is not None and value != parameter.default:
        return f"{name}, {parameter.name} = {value}"
    return _LABELS.get(name, name)


def _figure(default: Mapping[str, Curves], target: Target) -> Figure:
    every = dict(next(iter(default.values())))
    own = _LABELS["auto"]
    for dtype, curves in list(default.items())[1:]:
        every |= {f"{label}, {dtype}": known for label, known in curves.items() if label == own}
        every |= {label: known for label, known in curves.items() if label not in every and label != own}
    panels = [Plot("n", rate_lines(every), f"Now: {target.device.name}")]
    if target.engine != "cpu":
        then = [
            Line(_CPUS[gpu] if name == "cpu" else name, list(known), [n**3 / t / 1e9 for n, t in known.items()])
            for gpu, systems in _THEN.items()
            for name, known in systems.items()
        ]
        panels.append(Plot("n", then, f"Then: {' and '.join(_THEN)}"))
    made, _ = plots.line_plots("Implementations", panels, y_label="10⁹ operations/s", log_y=True, height=4.5)
    return made


def _lead(curves: Curves, target: Target, dtype: str) -> list[str]:
    own = curves.get(_LABELS["auto"], {})
    systems = {name: known[_AT] for name, known in curves.items() if _AT in known and name not in _LABELS.values()}
    if target.engine == "cpu":
        return _lead_of_cpu(own, curves.get(_LABELS["scipy"], {}), dtype)
    if _AT not in own or not systems:
        return [f"No system was measured beside this project at n = {_AT}, at which the papers state their best."]
    best = min(systems, key=lambda name: systems[name].ms)
    staged, buluc = LUND_SMITH_SECONDS["staged_load"][_AT], BULUC_SECONDS["recursive_tuned"][_AT]
    now = seconds(own[_AT])
    exception = ""
    if best != "recursive_tuned" and "recursive_tuned" in systems:
        exception = (
            " recursive_tuned is an exception: its product uses values most often, but with the paper's β it consists of many "
            "small launches."
        )
    return then_now_why(
        f"the best of Lund & Smith took {staged} s for n = {_AT}, and the best of Buluç, Gilbert and Budak {buluc} s.",
        f"the systems of the papers take {_phrase(systems)}, of which {best} is the fastest, and this project takes "
        f"{milliseconds(own[_AT].ms)}: {staged / now:.0f} and {buluc / now:.0f} times as fast as their best then, and "
        f"{systems[best].ms / own[_AT].ms:.1f} times as fast as the best of their systems now.",
        "the more often a value is used once it is loaded, the faster a system is, then as now; registers and shared memory "
        f"have grown, so that today's products use a value more often than a tile of 32 x 32 allows.{exception}",
    )


def _lead_of_cpu(own: Mapping[int, Measured], scipy: Mapping[int, Measured], dtype: str) -> list[str]:
    common = [n for n in own if n in scipy]
    if not common:
        return [f"At n = {max(own)}, this project takes {milliseconds(own[max(own)].ms)}."] if own else []
    n = max(common)
    then = [f"{systems['cpu'][n]:g} s ({_CPUS[gpu]})" for gpu, systems in _THEN.items() if n in systems["cpu"]]
    return then_now_why(
        f"for n = {n}, the papers' programs for a CPU took {' and '.join(then)}." if then else "none of the papers has this n.",
        f"for n = {n} in {dtype}, this project takes {milliseconds(own[n].ms)}, and SciPy on one core "
        f"{milliseconds(scipy[n].ms)}, {scipy[n].ms / own[n].ms:.0f} times as long.",
        "a loop over the whole matrix for each vertex waits for memory; products of blocks stay in caches and registers, use "
        "vector instructions and every core.",
    )


def _phrase(systems: Mapping[str, Measured]) -> str:
    times = [one.ms for one in systems.values()]
    return f"{milliseconds(min(times))} to {milliseconds(max(times))}"


def _then_and_now(curves: Curves) -> str:
    """Return the table of the systems that a paper measured at the same size."""
    rows = []
    for gpu, systems in _THEN.items():
        for name, known in systems.items():
            if name in curves and _AT in known and _AT in curves[name]:
                now = seconds(curves[name][_AT])
                rows.append([name, f"{known[_AT]:g} s, {gpu}", milliseconds(1000 * now), f"{known[_AT] / now:.0f}"])
    pairs = [("katz_kider", "staged_load"), ("katz_kider", "optimised_blocked"), ("optimised_blocked", "staged_load")]
    for slow, fast in pairs:
        if all(_AT in curves.get(name, {}) for name in (slow, fast)):
            then = LUND_SMITH_SECONDS[slow][_AT] / LUND_SMITH_SECONDS[fast][_AT]
            now = curves[slow][_AT].ms / curves[fast][_AT].ms
            rows.append([f"{slow} / {fast}", f"{then:.1f}", f"{now:.1f}", ""])
    return table([f"n = {_AT}", "then", "now", "times as fast"], rows) if rows else ""


def _details(curves: Mapping[str, Curves], default: Mapping[str, Curves], target: Target) -> list[str]:
    parts = [
        section("Times", *(part for dtype, by in default.items() if by for part in (f"### {dtype}", table_over_n(by)))),
        _parameters(curves),
        _speed_ups(next(iter(default.values())), target),
        _exponents(default),
        _rates(default, target),
    ]
    return [part for part in parts if part]


def _parameters(curves: Mapping[str, Curves]) -> str:
    """Return the times of each system by its parameter, and which is the fastest at the largest n."""
    parts = []
    for dtype, by in curves.items():
        for name in dict.fromkeys(label.partition(",")[0] for label in by if "=" in label):
            family = {_parameter(known): known for label, known in by.items() if label.partition(",")[0] == name}
            of = PAPERS[name].parameter
            assert of is not None, "only a system with a parameter has several curves"
            parts += [f"### {name}, {dtype}: {of.name}", _best_parameter(name, family, of.default)]
            parts += [table_over_n({f"{of.name} = {value}": family[value] for value in sorted(family)})]
    return section("Parameters of the systems", *parts) if parts else ""


def _best_parameter(name: str, family: Mapping[int, Mapping[int, Measured]], default: int) -> str:
    """Return the fastest parameter, beside the paper's, at the largest n that all have."""
    common = set.intersection(*(set(known) for known in family.values()))
    if not common or default not in family:
        return f"Then: {_FOUND[name]}."
    times = {value: known[max(common)].ms for value, known in family.items()}
    best = min(times, key=lambda value: times[value])
    less = "" if best == default else f", in {times[best] / times[default]:.0%} of the time at {default}"
    return paragraph(f"Then: {_FOUND[name]}. Now: fastest at {best} for n = {max(common)}{less}.")


def _parameter(known: Mapping[int, Measured]) -> int:
    return int(next(iter(known.values())).point.values["method_parameter"])


def _speed_ups(curves: Curves, target: Target) -> str:
    parts = []
    for label in (_LABELS["cpu engine"], _LABELS["scipy"]):
        base = curves.get(label, {})
        others = {name: {n: one for n, one in known.items() if n in base} for name, known in curves.items() if name != label}
        others = {name: known for name, known in others.items() if known}
        if others:
            parts += [f"Over {label}:", table_over_n(others, partial(_ratio, base))]
    if target.engine != "cpu":
        cpu = BULUC_SECONDS["cpu"]
        rows = [
            [name, *(f"{cpu[n] / t:.3g}" for n, t in known.items())] for name, known in BULUC_SECONDS.items() if name != "cpu"
        ]
        parts += ["Then, over the best CPU implementation (Buluç, Gilbert, Budak, Table 2):"]
        parts += [table(["", *(f"n = {n}" for n in cpu)], rows)]
    return section("Speed-up over the CPU", *parts)


def _ratio(base: Mapping[int, Measured], label: str, n: int, one: Measured) -> str:
    return f"{base[n].ms / one.ms:.3g}"


def _exponents(default: Mapping[str, Curves]) -> str:
    rows = []
    for dtype, curves in default.items():
        for name, known in curves.items():
            if fitted := exponent({n: seconds(one) for n, one in known.items()}):
                then = BULUC_EXPONENTS.get(name)
                sizes = f"{min(known)} to {max(known)}"
                rows.append([name, dtype, sizes, f"{fitted[0]:.2f}", f"{fitted[1]:.2g}", "" if then is None else f"{then}"])
    if not rows:
        return ""
    note = (
        "t = c n^e by least squares on the logarithms, as Buluç, Gilbert and Budak did for n = 512 to 8192 (Table 3; their CPU "
        f"has {BULUC_EXPONENTS['cpu']}, their iterative GPU code {BULUC_EXPONENTS['iterative']}). An exponent below 3 means "
        "that fixed costs, such as launches, weigh less as n grows."
    )
    return section("Exponents", paragraph(note), table(["", "dtype", "n", "e", "c in s", "e then"], rows))


def _rates(default: Mapping[str, Curves], target: Target) -> str:
    device = target.device
    peak = None if device.clock_hz is None or device.kind == "cpu" else _LANES * device.units * device.clock_hz
    head = ["", "dtype", "n", "GFLOP/s (2 n³ / t)", "operations/s (n³ / t)"]
    head += ["of their peak", "of our bound"] if peak else []
    rows = []
    for dtype, curves in default.items():
        limit = bound(device, DTYPES_BY_NAME[dtype], True, device.clock_hz) if peak else None
        for name, known in curves.items():
            n = max(known, key=lambda n: known[n].rate)
            rate = known[n].rate
            on_gpu = peak is not None and name not in (_LABELS["cpu engine"], _LABELS["scipy"])
            shares = [f"{2 * rate / peak:.1%}", f"{rate / limit:.1%}" if limit else ""] if peak and on_gpu else ["", ""]
            rows.append([name, dtype, n, f"{2 * rate / 1e9:.4g}", amount(rate), *(shares if peak else [])])
    note = "Each call at its best size."
    if peak:
        note += (
            f" Their peak counts one addition or minimum per lane and clock: {peak / 1e12:.3g} TFLOP/s here, 0.192 then, of "
            f"which they reached {BULUC_PEAK_SHARE:.0%} (section 4.5). Our bound is that of today's instructions, of which one "
            "may do several additions and minima (see bench.md)."
        )
    return section("Rates", paragraph(note), table(head, rows))
