"""python -m tri_apsp bench"""

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch

from tri_apsp import engines
from tri_apsp.bench import closures, table
from tri_apsp.bench.batches import SIZES as SMALL_SIZES
from tri_apsp.bench.batches import BatchRow
from tri_apsp.bench.bounds import BOUND, RATES, has_bound
from tri_apsp.bench.cases import HEAVIEST, SIZES, Case, cases_of, runs_scipy, scipy_bytes
from tri_apsp.bench.measure import BenchRow, measure
from tri_apsp.cli.bench_batches import AnyRow, print_rows, run_batches
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json, at_least
from tri_apsp.console.output import command_line
from tri_apsp.console.progress import activity
from tri_apsp.device import check_memory, describe, require_memory, resolve
from tri_apsp.errors import InputError
from tri_apsp.messages import counted
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS, require_runnable
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS

_SCIPY_UP_TO = 2048
_SMALL = " ".join(map(str, SMALL_SIZES))
_METHODS = ["auto", "kleene", "floyd_warshall"]
_EVERY_SYSTEM = "all"
_REACHABILITY = "reachability"
_SCIPY = "scipy.sparse.csgraph.floyd_warshall in float64, one run"
_DESCRIPTION = (
    "Measure min-plus operations per second (batch n^3 / median seconds) of the product min_plus "
    "and of each method, "
    f"through the public calls, on complete graphs of integer weights 1..{HEAVIEST} from a fixed "
    f"seed, beside SciPy's "
    f"Floyd-Warshall; and, for --method {_REACHABILITY}, Boolean operations per second of the "
    f"transitive closure of random "
    "graphs of two edges per vertex. Each call is timed only after its result was checked for "
    "correctness. "
    f"Column bound: the fraction reached of {BOUND}; operations per clock: {RATES}. It is empty "
    "where large products run on tensor cores (by exponents, or in a closure by counting paths), "
    "and where it does not apply."
)
_KEYS = (
    "machine, versions, command, rows: operation, dtype, sign, n, batch, engine, p20_seconds, "
    "p50_seconds, p80_seconds, "
    "ops_per_second, bound_fraction, scipy_seconds, ratio (to SciPy); "
    "null: not known or not applicable; with --batches, rows: dtype, sign, n, batch, engine, "
    "p50_seconds, sizes_seconds, "
    "copy_seconds, torch_seconds, scipy_seconds"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench`."""
    parser.description = _DESCRIPTION
    _add_cases(parser)
    parser.add_argument(
        "--method",
        choices=["auto", *METHODS, _REACHABILITY],
        nargs="+",
        default=_METHODS,
        metavar="METHOD",
        help=f"auto, {', '.join(METHODS)}; or {_REACHABILITY}, for which --dtype, --sign and "
        f"--scipy-up-to do not matter; default: {' '.join(_METHODS)}. min_plus is measured too, "
        f"except by --method {_REACHABILITY} alone",
    )
    parser.add_argument(
        "--system",
        choices=[_EVERY_SYSTEM, *SYSTEMS],
        nargs="+",
        default=[],
        metavar="SYSTEM",
        help=f"systems of papers to measure beside --method, on a GPU: {_EVERY_SYSTEM} that take "
        f"the dtype, or some of {', '.join(SYSTEMS)}; default: none",
    )
    parser.add_argument(
        "--batches",
        action="store_true",
        help="measure batches of small graphs instead, each --n with each --batch: whole calls of "
        "shortest_paths, with and "
        f"without sizes, beside a copy, a loop of torch operations and a loop of SciPy; default: "
        f"--n {_SMALL}, and "
        "--batch 256 4096, on a GPU also 65536; takes no --method, --system, --scipy-up-to and "
        "--clock-mhz",
    )
    add_device(parser)
    parser.add_argument(
        "--clock-mhz",
        type=at_least(1),
        metavar="F",
        help="clock behind the bound; default: the highest of the GPU, if known",
    )
    parser.add_argument(
        "--repeat",
        type=at_least(3),
        default=5,
        metavar="R",
        help="runs timed, at least 3, after a warm-up of half a second on a GPU; default: 5",
    )
    parser.add_argument(
        "--scipy-up-to",
        type=at_least(0),
        default=_SCIPY_UP_TO,
        metavar="N",
        help=f"largest n that SciPy runs, once (a batch counts by its operations); default: "
        f"{_SCIPY_UP_TO}",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="FILE",
        help="also append each row to FILE when it is measured, as a line of JSON, so that an "
        "interrupted run loses none",
    )
    add_json(parser, _KEYS)
    parser.set_defaults(run=run)


def _add_cases(parser: argparse.ArgumentParser) -> None:
    """Add the options that select which graphs are measured: --n, --batch, --dtype, --sign."""
    sizes = "; ".join(f"{kind}: {' '.join(map(str, sizes))}" for kind, sizes in SIZES.items())
    parser.add_argument("--n", type=at_least(1), nargs="+", help=f"vertices; default on {sizes}")
    parser.add_argument(
        "--batch",
        type=at_least(1),
        nargs="+",
        metavar="B",
        help="graphs solved in one call: one count for all of --n, or one for each; default: 1",
    )
    parser.add_argument(
        "--dtype", choices=DTYPES_BY_NAME, nargs="+", default=["float32"], help="default: float32"
    )
    parser.add_argument(
        "--sign",
        choices=SIGNS,
        nargs="+",
        default=list(SIGNS[:1]),
        help="signs of the weights; any: about a quarter are negative, but no cycle is; default: "
        "nonnegative",
    )


def run(args: argparse.Namespace) -> None:
    """Measure, and print a table row by row, or one JSON object at the end."""
    if args.batches:
        _run_batches(args)
        return
    device, config = resolve(args.device), Config(engine=args.engine)
    reachability = _REACHABILITY in args.method
    methods = [name for name in dict.fromkeys(args.method) if name != _REACHABILITY]
    runs = [(case, [*methods, *_systems(args, case)]) for case in _cases(args, device)]
    clock_hz = _clock(args, device)
    for case, names in runs:
        engines.choose(device, config, case.dtype)
        for name in (name for name in names if name in SYSTEMS):
            require_runnable(name, device, case.dtype)
        if (
            names or not reachability
        ):  # the weights, the result, the expected result, and one matrix of workspace
            check_memory(case.n, case.batch, case.dtype, device, matrices=4)
        if reachability:
            check_memory(
                case.n, case.batch, torch.bool, device, matrices=closures.matrices_of(case.n)
            )
        if names and runs_scipy(case, args.scipy_up_to):
            remedy = "lower --scipy-up-to, --n or --batch"
            require_memory(
                f"SciPy's solve of {case}", scipy_bytes(case), torch.device("cpu"), remedy
            )
    if args.rows is not None:
        _append([], args.rows)  # refuses a file that cannot be written, before anything is measured
    with activity() as show:
        rows: Iterator[BenchRow] = measure(
            runs,
            device,
            config=config,
            repeat=args.repeat,
            scipy_up_to=args.scipy_up_to,
            clock_hz=clock_hz,
            reachability=reachability,
            show=show,
        )
        rows = rows if args.rows is None else _saved(rows, args.rows)
        fields, command = _fields(args, device, clock_hz), _command(args, device)
        print_rows(rows, command, device, fields, table.titles(), table.line, json=args.json)


def _systems(args: argparse.Namespace, case: Case) -> list[str]:
    """Return the systems of papers to measure: those asked for, or all that take the dtype."""
    if _EVERY_SYSTEM in args.system:
        return [name for name, system in SYSTEMS.items() if case.dtype in system.dtypes]
    return list(dict.fromkeys(args.system))


def _run_batches(args: argparse.Namespace) -> None:
    given = {
        "--method": args.method != _METHODS,
        "--system": bool(args.system),
        "--scipy-up-to": args.scipy_up_to != _SCIPY_UP_TO,
        "--clock-mhz": args.clock_mhz is not None,
    }
    for option in (name for name, is_given in given.items() if is_given):
        raise InputError(
            f"{option} must not be given with --batches, which measures one method without a "
            f"bound; leave it out."
        )
    if args.rows is not None:
        _append([], args.rows)
    run_batches(args, lambda rows: iter(rows) if args.rows is None else _saved(rows, args.rows))


def _fields(
    args: argparse.Namespace, device: torch.device, clock_hz: float | None
) -> list[tuple[str, str]]:
    """Return what the columns of the table mean."""
    scipy = f"{_SCIPY}, up to n = {args.scipy_up_to}; ratio: its seconds / median s"
    figures = (
        f"median, and 20th and 80th percentile, of {args.repeat} runs; ops/s are batch n^3 / "
        "median seconds"
    )
    distances = [*args.method, *args.system] != [_REACHABILITY]
    more = [("scipy", scipy)] if distances else []
    return [("figures", figures), *_bound_fields(device, clock_hz), *more]


def _saved(rows: Iterable[AnyRow], path: Path) -> Iterator[AnyRow]:
    """Yield the rows, each after it was appended to the file at `path`."""
    for row in rows:
        _append([row], path)
        yield row


def _append(rows: Iterable[BenchRow | BatchRow], path: Path) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)
    except OSError as error:
        raise InputError(
            f"--rows must name a file that can be written, but {path} cannot be "
            f"({error.strerror}); name another."
        ) from None


def _cases(args: argparse.Namespace, device: torch.device) -> list[Case]:
    """Return the cases to measure, or raise InputError for arguments that do not fit each other."""
    sizes, batches = _sizes(args, device), args.batch or [1]
    if args.batch and not args.n:
        raise InputError(
            "--batch must come with --n, but that is missing; give the vertices of a graph."
        )
    if len(batches) not in (1, len(sizes)):
        raise InputError(
            f"--batch must give one count, or one for each of the {counted(len(sizes), 'size')} of "
            f"--n, but gives "
            f"{len(batches)}; give as many."
        )
    if "any" in args.sign and min(sizes) < 2:
        raise InputError(
            "--n must be at least 2 for --sign any, but is 1, which has no edge to be negative; "
            "leave it out."
        )
    batches = batches * len(sizes) if len(batches) == 1 else batches
    return list(cases_of(sizes, batches, [DTYPES_BY_NAME[name] for name in args.dtype], args.sign))


def _sizes(args: argparse.Namespace, device: torch.device) -> list[int]:
    sizes: list[int] = args.n or SIZES[device.type]
    return sizes


def _clock(args: argparse.Namespace, device: torch.device) -> float | None:
    """Return the clock of the multiprocessors in Hz behind the bound; None where there is no bound
    or the clock is unknown.
    """
    facts = describe(device)
    if args.clock_mhz is None:
        return facts.clock_hz if has_bound(facts) else None
    if not has_bound(facts):
        raise InputError(
            f"--clock-mhz must come with a GPU of compute capability 9, which has a bound, but "
            f"{device} is {facts.name}; "
            "leave it out."
        )
    return float(args.clock_mhz * 1e6)


def _bound_fields(device: torch.device, clock_hz: float | None) -> list[tuple[str, str]]:
    if not has_bound(describe(device)):
        return [("bound", "none for this device")]
    clock = (
        "its clock is unknown; --clock-mhz gives it"
        if clock_hz is None
        else f"at {clock_hz / 1e9:.3g} GHz"
    )
    return [("bound", BOUND), ("", f"operations per clock and multiprocessor, {clock}: {RATES}")]


def _command(args: argparse.Namespace, device: torch.device) -> str:
    """Return the command that repeats this run, with every default spelled out."""
    given = vars(args) | {"n": _sizes(args, device), "batch": args.batch or [1], "device": device}
    names = (
        "n",
        "batch",
        "dtype",
        "sign",
        "method",
        "system",
        "device",
        "engine",
        "clock_mhz",
        "repeat",
        "scipy_up_to",
    )
    return command_line("tri_apsp", "bench", **{name: given[name] for name in names})
