"""How fast is it, and how does it compare with other projects? The rates of `python -m tri_apsp
bench` and of other projects: their rows, tables and figure.

`bench` measures whole calls, the tuner kernels alone; the rows of other projects have the
operations that these offer, on the same kind of GPU.
"""

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from reports.studies import plots
from reports.studies.calls import Columns, by_label, rate_lines, table_of
from reports.studies.markdown import figure, section, write_index, write_page, writing
from reports.studies.paper_results import BULUC_SECONDS, LUND_SMITH_SECONDS
from reports.studies.plots import Line, Plot, draw
from reports.studies.rows import ORIGIN, cell, origin_of, origin_section, read_csv
from reports.studies.study import StudyRow, grouped
from tri_apsp import tuned
from tri_apsp.console.output import amount
from tri_apsp.errors import InputError
from tri_apsp.messages import file_errors

_REPORTS = Path(__file__).resolve().parents[1]
_BENCH = _REPORTS / "nvidia-h200" / "bench.csv"
_PEERS = _REPORTS / "peers.csv"
_TUNING = _REPORTS.parent / "tuning"
_KERNELS = ("product", "small_product", "closure")
_KEY = ("operation", "dtype", "sign", "n", "batch", "engine")
_COLUMNS = (
    *ORIGIN,
    *_KEY,
    *("p20_seconds", "p50_seconds", "p80_seconds", "ops_per_second"),
    *("bound_fraction", "outside_seconds", "scipy_seconds"),
)
_OPERATIONS = {"min_plus": "product", "auto": "solve", "reachability": "closure"}
# The best systems of the papers that print times, in the panel of solves.
_PAPERS = {
    "Lund & Smith, Tesla C1060": LUND_SMITH_SECONDS["staged_load"],
    "Buluç et al., GeForce 8800 Ultra": BULUC_SECONDS["recursive_tuned"],
}


def run(args: argparse.Namespace) -> None:
    """Add the rows of the files of `bench --json`, if there are any; draw the figure, and write the
    tables of all rows into their pages.

    Raises:
        InputError: a file cannot be read or written.
    """
    for path in args.add:
        _add(path)
    plots.save(_draw(), _REPORTS / "rate")
    for page, written in blocks().items():
        print(write_page(page, f"How fast is it? {page.parent.name}", written))
    write_index(_REPORTS)


def blocks() -> dict[Path, dict[str, str]]:
    """Return the generated blocks of each page of rates."""
    found = {
        path.with_suffix(".md"): _blocks(path)
        for name in ("bench", "portable")
        for path in sorted(_REPORTS.glob(f"*/{name}.csv"))
    }
    solves = [line for line in _solves() if "int32" in line.label]
    shown = [
        figure("rate", "Min-plus operations per second against n, by project"),
        section("Product, float32", _table_of(_products())),
        section("Whole solve, int32", _table_of(solves)),
    ]
    return found | {_PEERS.with_suffix(".md"): {"result": "\n\n".join(shown)}}


def _add(path: Path) -> None:
    """Append the rows of a file of `bench --json`, which ran on this machine with these versions.

    Raises:
        InputError: the file cannot be read or is none of bench, or rows cannot be written.
    """
    try:
        with file_errors("add", path, "read", "give a file of python -m tri_apsp bench --json"):
            run = json.loads(path.read_text(encoding="utf-8"))
        rows, (place, facts) = run["rows"], [*run["machine"].items()][-1]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"--add must name a file of python -m tri_apsp bench --json, but {path} is none; "
            "give another."
        ) from None
    origin = origin_of(torch.device(place), run["command"])
    into = _REPORTS / facts["slug"] / "bench.csv"
    with writing(into), into.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, _COLUMNS, lineterminator="\n", extrasaction="ignore")
        if not stream.tell():
            writer.writeheader()
        for row in rows:
            writer.writerow({name: cell(value) for name, value in (row | origin).items()})


def _blocks(path: Path) -> dict[str, str]:
    """Return the generated blocks of the page of some rows."""
    rows = [*{tuple(row[name] for name in _KEY): row for row in read_csv(path)}.values()]
    single = [row for row in rows if row["batch"] == "1"]
    bounded, outside = (
        [row for row in single if row[name]] for name in ("bound_fraction", "outside_seconds")
    )
    parts = [
        table_of(by_label(single, _label, value=_rate), lambda rate: f"{amount(rate)}/s"),
        section("Batches", _of_batches([row for row in rows if row["batch"] != "1"])),
    ]
    fractions = by_label(bounded, _label, value=lambda row: float(row["bound_fraction"]))
    times = by_label(outside, _label, value=lambda row: float(row["outside_seconds"]))
    details = [
        section("Fraction of the bound", table_of(fractions, "{:.1%}".format) if bounded else ""),
        section("Time of a solve outside its products", table_of(times) if outside else ""),
        _kernels(path.parent.name) if path.stem == "bench" else "",
        origin_section(rows, path.name),
    ]
    return {
        "result": "\n\n".join(filter(None, parts)),
        "details": "\n\n".join(filter(None, details)),
    }


def _kernels(slug: str) -> str:
    """Return the section of the kernels of a machine that the tuner timed."""
    seconds: Columns = {}
    for path in sorted((_TUNING / slug).glob("*.json")):
        file = tuned.load(path)
        for entry in file.entries if file.kernel in _KERNELS else ():
            sign = ", any sign" if entry.sign == "any" and "float" in file.dtype else ""
            label = f"{file.kernel}, {file.dtype}{sign}".replace("small_", "")
            seconds.setdefault(label, {})[entry.n] = entry.p50_ms / 1000
    return section("Kernels alone", table_of(seconds) if seconds else "")


def _label(row: StudyRow) -> str:
    sign = ", any sign" if row["sign"] == "any" else ""
    return f"{_OPERATIONS.get(row['operation'], row['operation'])}, {row['dtype']}{sign}"


def _rate(row: StudyRow) -> float:
    return float(row["ops_per_second"])


def _of_batches(rows: Sequence[StudyRow]) -> str:
    seconds = by_label(
        rows,
        _label,
        lambda row: f"{row['batch']} of n = {row['n']}",
        lambda row: float(row["p50_seconds"]),
    )
    return table_of(seconds, column="{}") if rows else ""


def _draw() -> Any:
    panels = [
        Plot("n", _products(), "Min-plus product, float32"),
        Plot("n", _solves(), "All-pairs shortest paths, whole call", log_y=True),
    ]
    title = "Min-plus operations per second on one NVIDIA H200"
    return draw(title, panels, y_label="T operations/s")


def _products() -> list[Line]:
    return [
        _of_bench("tri_apsp, whole call", "min_plus", "float32"),
        _of_bench("tri_apsp, whole call, any sign", "min_plus", "float32", "any"),
        _of_kernel("tri_apsp, kernel alone"),
        *_of_others("min_plus"),
    ]


def _solves() -> list[Line]:
    return [
        _of_bench("tri_apsp, float32", "auto", "float32"),
        _of_bench("tri_apsp, int32", "auto", "int32"),
        *_of_others("auto"),
        *_of_papers(),
    ]


def _table_of(lines: Sequence[Line]) -> str:
    rates = {line.label: dict(zip(line.x, line.y, strict=True)) for line in lines}
    return table_of(rates, lambda tera: f"{amount(1e12 * tera)}/s")


def _of_bench(label: str, operation: str, dtype: str, sign: str = "nonnegative") -> Line:
    values = {"operation": operation, "dtype": dtype, "sign": sign, "batch": "1"}
    return _line(label, [row for row in read_csv(_BENCH) if values.items() <= row.items()])


def _line(label: str, rows: Sequence[StudyRow], *, reference: bool = False) -> Line:
    rates = {int(row["n"]): _rate(row) / 1e12 for row in rows}
    return Line(label, sorted(rates), [rates[n] for n in sorted(rates)], reference=reference)


def _of_kernel(label: str) -> Line:
    file = _TUNING / "nvidia-h200" / "nvidia-product-float32.json"
    entries = [entry for entry in tuned.load(file).entries if entry.sign == "nonnegative"]
    return Line(label, [e.n for e in entries], [e.n**3 / e.p50_ms / 1e9 for e in entries])


def _of_others(operation: str) -> list[Line]:
    rows = [row for row in read_csv(_PEERS) if row["operation"] == operation]
    by_project = grouped(rows, "project").items()
    return [_line(project, found, reference=True) for (project,), found in by_project]


def _of_papers() -> list[Line]:
    # At powers of two, as those of the other curves.
    seconds = {
        label: {n: one for n, one in known.items() if n.bit_count() == 1}
        for label, known in _PAPERS.items()
    }
    return rate_lines(seconds, 1e12, reference=True)
