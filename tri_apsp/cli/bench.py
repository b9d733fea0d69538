"""python -m tri_apsp bench"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.bench.bounds import BOUND, RATES, has_bound
from tri_apsp.bench.cases import HEAVIEST, SIGNS, Case
from tri_apsp.bench.measure import Row, measure
from tri_apsp.configs import Config
from tri_apsp.console.machine import device_facts, device_line, versions, versions_line
from tri_apsp.console.options import DTYPE_NAMES, add_device, add_json, at_least, dtype_of
from tri_apsp.console.output import amount, print_fields, print_json
from tri_apsp.device import check_memory, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.methods import METHODS

__all__ = ["configure", "run"]

_SIZES = {"cpu": [256, 512, 1024, 2048], "cuda": [1024, 2048, 4096, 8192]}
_METHODS = ["auto", "kleene", "floyd_warshall"]
_OUTSIDE = "of the median, outside engine.product: closures, panels (but for products they call), copies, checks, launches"
_SCIPY = "scipy.sparse.csgraph.floyd_warshall in float64, one run"
_LAYOUT = "{:14}  {:7}  {:11}  {:>6}  {:>5}  {:8}  {:>8}  {:>8}  {:>8}  {:>7}  {:>6}  {:>9}  {:>7}  {:>6}"
_TITLES = ["operation", "dtype", "sign", "n", "batch", "engine", "median s", "p20 s", "p80 s", "ops/s", "bound", "outside s"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench`."""
    parser.description = (
        "Measure min-plus operations per second (batch n^3 / median seconds) of the product min_plus and of each method, "
        f"through the public calls, on complete graphs of whole weights 1..{HEAVIEST} from a fixed seed, beside SciPy's "
        "Floyd-Warshall. A row appears only after its result was found right. "
        f"Column bound: the fraction reached of {BOUND}; operations per clock: {RATES}. Column outside s: seconds {_OUTSIDE}."
    )
    sizes = "; ".join(f"{kind}: {' '.join(map(str, sizes))}" for kind, sizes in _SIZES.items())
    parser.add_argument("--n", type=at_least(1), nargs="+", help=f"vertices; default on {sizes}")
    parser.add_argument(
        "--batch",
        type=at_least(1),
        nargs="+",
        metavar="B",
        help="graphs solved in one call: one count for all of --n, or one for each; default: 1",
    )
    parser.add_argument("--dtype", choices=DTYPE_NAMES, nargs="+", default=["float32"], help="default: float32")
    parser.add_argument(
        "--sign",
        choices=SIGNS,
        nargs="+",
        default=SIGNS[:1],
        help="signs of the weights; any: about a quarter are negative, but no cycle; default: nonnegative",
    )
    parser.add_argument(
        "--method",
        choices=["auto", *METHODS],
        nargs="+",
        default=_METHODS,
        help=f"default: {' '.join(_METHODS)}; min_plus always",
    )
    add_device(parser)
    parser.add_argument(
        "--clock-mhz", type=at_least(1), metavar="F", help="clock behind the bound; default: the highest of the GPU, if known"
    )
    parser.add_argument(
        "--repeat", type=at_least(3), default=5, metavar="R", help="runs after a warm-up, half a second on a GPU; default: 5"
    )
    parser.add_argument(
        "--scipy-up-to",
        type=at_least(0),
        default=2048,
        metavar="N",
        help="largest n that SciPy runs, once (a batch counts by its operations); default: 2048",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="FILE",
        help="also add each row to FILE as it comes, as a line of JSON: a run that is cut short then loses none",
    )
    add_json(
        parser,
        "machine, versions, command, rows: operation, dtype, sign, n, batch, engine, p20_seconds, p50_seconds, p80_seconds, "
        "ops_per_second, bound_fraction, outside_seconds (of p50_seconds), scipy_seconds, ratio (to SciPy); null: not known "
        "or not meant",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Measure, and print a table row by row, or everything at the end."""
    device, config = resolve(args.device), Config(engine=args.engine)
    cases, dtypes = _cases(args, device), [dtype_of(name) for name in args.dtype]
    clock_hz = _clock(args, device)
    for dtype in dtypes:
        engines.choose(device, config, dtype)
        for case in cases:
            # The weights, the result, what it is compared with, and one of workspace.
            check_memory(case.n, case.batch, dtype, device, matrices=4)
    if args.rows is not None:
        _add_rows(args.rows, [])
    measured = measure(
        dtypes,
        cases,
        args.method,
        device,
        config=config,
        repeat=args.repeat,
        scipy_up_to=args.scipy_up_to,
        clock_hz=clock_hz,
    )
    rows = measured if args.rows is None else _kept(measured, args.rows)
    command = _command(args, device)
    if args.json:
        machine = {str(place): device_facts(place) for place in (torch.device("cpu"), device)}
        found = [asdict(row) for row in rows]
        print_json({"machine": machine, "versions": versions(), "command": command, "rows": found})
        return
    print_fields(
        [
            ("cpu", device_line(torch.device("cpu"))),
            *([("device", device_line(device))] if device.type != "cpu" else []),
            ("versions", versions_line()),
            ("command", command),
            ("figures", f"median, p20 and p80 of {args.repeat} runs; ops/s are batch n^3 / median seconds"),
            *_bound_lines(device, clock_hz),
            ("outside s", _OUTSIDE),
            ("scipy", f"{_SCIPY}, up to n = {args.scipy_up_to}; ratio: its seconds / median s"),
        ]
    )
    print()
    print(_LAYOUT.format(*_TITLES, "scipy", "ratio"))
    for row in rows:
        print(_line(row), flush=True)


def _kept(rows: Iterable[Row], path: Path) -> Iterator[Row]:
    """Yield the rows, each once it is in the file at `path`."""
    for row in rows:
        _add_rows(path, [row])
        yield row


def _add_rows(path: Path, rows: Iterable[Row]) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)
    except OSError as error:
        raise InputError(
            f"--rows must name a file that can be written, but {path} cannot be ({error.strerror}); name another."
        ) from None


def _sizes(args: argparse.Namespace, device: torch.device) -> list[int]:
    sizes: list[int] = args.n or _SIZES[device.type]
    return sizes


def _cases(args: argparse.Namespace, device: torch.device) -> list[Case]:
    """Return the graphs to measure, or raise InputError for arguments that do not fit each other."""
    sizes, batches = _sizes(args, device), args.batch or [1]
    if args.batch and not args.n:
        raise InputError("--batch must come with --n, but that is missing; give the vertices of a graph.")
    if len(batches) not in (1, len(sizes)):
        raise InputError(
            f"--batch must give one count, or one for each of the {len(sizes)} sizes of --n, but gives {len(batches)}; "
            "give as many."
        )
    if "any" in args.sign and min(sizes) < 2:
        raise InputError("--n must be at least 2 for --sign any, but is 1, which has no edge to be negative; leave it out.")
    batches = batches * len(sizes) if len(batches) == 1 else batches
    return [Case(n, batch, sign) for sign in args.sign for n, batch in zip(sizes, batches, strict=True)]


def _clock(args: argparse.Namespace, device: torch.device) -> float | None:
    """Return the clock of the multiprocessors in Hz that the bound takes; None where it has none, or nobody knows it."""
    facts = describe(device)
    if args.clock_mhz is None:
        return getattr(facts, "clock_hz", None) if has_bound(facts) else None
    if not has_bound(facts):
        raise InputError(
            f"--clock-mhz must come with a GPU of compute capability 9, which has a bound, but {device} is {facts.name}; "
            "leave it out."
        )
    return float(args.clock_mhz * 1e6)


def _bound_lines(device: torch.device, clock_hz: float | None) -> list[tuple[str, str]]:
    if not has_bound(describe(device)):
        return [("bound", "none for this device")]
    clock = "its clock is unknown; --clock-mhz gives it" if clock_hz is None else f"at {clock_hz / 1e9:.3g} GHz"
    return [("bound", BOUND), ("", f"operations per clock and multiprocessor, {clock}: {RATES}")]


def _line(row: Row) -> str:
    seconds = (f"{value:.3g}" for value in (row.p50_seconds, row.p20_seconds, row.p80_seconds))
    bound = "-" if row.bound_fraction is None else f"{row.bound_fraction:.1%}"
    outside = "-" if row.outside_seconds is None else f"{row.outside_seconds:.3g}"
    scipy = "-" if row.scipy_seconds is None else amount(row.batch * row.n**3 / row.scipy_seconds)
    ratio = "-" if row.ratio is None else f"{row.ratio:.1f}"
    names = (row.operation, row.dtype, row.sign, row.n, row.batch, row.engine)
    return _LAYOUT.format(*names, *seconds, amount(row.ops_per_second), bound, outside, scipy, ratio)


def _command(args: argparse.Namespace, device: torch.device) -> str:
    """Return the command that repeats this run, with every default spelled out."""
    words = ["python", "-m", "tri_apsp", "bench", "--n", *_sizes(args, device), "--batch", *(args.batch or [1])]
    words += ["--dtype", *args.dtype, "--sign", *args.sign, "--method", *args.method]
    words += ["--device", device, *(["--engine", args.engine] if args.engine else [])]
    words += ["--clock-mhz", args.clock_mhz] if args.clock_mhz else []
    words += ["--repeat", args.repeat, "--scipy-up-to", args.scipy_up_to]
    return shlex.join(map(str, words))
