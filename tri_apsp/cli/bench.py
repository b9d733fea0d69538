"""python -m tri_apsp bench"""

import argparse
from dataclasses import asdict

import torch

from tri_apsp import engines
from tri_apsp.bench import latency
from tri_apsp.bench.cases import HEAVIEST, SIZES, Case, cases_of, runs_scipy, scipy_bytes
from tri_apsp.bench.measure import (
    BOUND,
    RATES,
    TITLES,
    bound_clock_hz,
    line,
    measure,
)
from tri_apsp.configs import Config, current_method
from tri_apsp.console.machine import device_facts, device_line, versions, versions_line
from tri_apsp.console.options import (
    BATCH,
    DEVICE,
    DTYPES,
    ENGINE,
    add_options,
    at_least,
    counts_for,
    json_of,
    option,
)
from tri_apsp.console.output import command_line, print_fields, print_json
from tri_apsp.dense_reachability import matrices_of_closure
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.memory import check_memory, require_memory
from tri_apsp.methods import METHODS
from tri_apsp.papers import SYSTEMS, require_runnable
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS

_SCIPY_UP_TO = 2048
_METHODS = ["auto", "kleene", "floyd_warshall"]
_EVERY_SYSTEM = "all"
_REACHABILITY = "reachability"
# The options of the command that repeats a run.
_REPEATED = (
    *("n", "batch", "dtype", "sign", "method", "system"),
    *("device", "engine", "repeat", "scipy_up_to"),
)
_SCIPY = "scipy.sparse.csgraph.floyd_warshall in float64, one run"
_DESCRIPTION = (
    "Measure min-plus operations per second (batch n^3 / median seconds) of the product min_plus "
    "and of each method, through the public calls, on complete graphs of integer weights "
    f"1..{HEAVIEST} from a fixed seed, beside SciPy's Floyd-Warshall; and, for --method "
    f"{_REACHABILITY}, Boolean operations per second of the transitive closure of random graphs of "
    "two edges per vertex. Each call is timed only after its result was checked for correctness. "
    f"Column bound: the fraction reached of {BOUND}; operations per clock: {RATES}. It is empty "
    "where large products run on tensor cores (by exponents, or in a closure by counting paths), "
    "and where it does not apply."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench`."""
    parser.description = _DESCRIPTION
    sizes = "; ".join(f"{kind}: {' '.join(map(str, sizes))}" for kind, sizes in SIZES.items())
    add_options(
        parser,
        option("--n", type=at_least(1), nargs="+", help=f"vertices; default on {sizes}"),
        BATCH,
        DTYPES,
        option(
            "--sign",
            choices=SIGNS,
            nargs="+",
            default=list(SIGNS[:1]),
            metavar="SIGN",
            help="nonnegative (default), or any: about a quarter of the weights are negative, but "
            "no cycle is",
        ),
        option(
            "--method",
            type=current_method,
            choices=["auto", *METHODS, _REACHABILITY],
            nargs="+",
            default=_METHODS,
            metavar="METHOD",
            help=f"auto, {', '.join(METHODS)}; or {_REACHABILITY}, for which --dtype, --sign and "
            f"--scipy-up-to do not matter; default: {' '.join(_METHODS)}. min_plus is measured "
            f"too, except by --method {_REACHABILITY} alone",
        ),
        option(
            "--system",
            choices=[_EVERY_SYSTEM, *SYSTEMS],
            nargs="+",
            default=[],
            metavar="SYSTEM",
            help=f"systems of papers to measure beside --method, on a GPU: {_EVERY_SYSTEM} that "
            f"take the dtype, or some of {', '.join(SYSTEMS)}; default: none",
        ),
        DEVICE,
        ENGINE,
        option(
            "--repeat",
            type=at_least(3),
            default=5,
            metavar="R",
            help="timed runs, at least 3, after a warm-up of half a second on a GPU; default: 5",
        ),
        option(
            "--scipy-up-to",
            type=at_least(0),
            default=_SCIPY_UP_TO,
            metavar="N",
            help="largest n that SciPy runs, once (a batch counts by its operations); default: "
            f"{_SCIPY_UP_TO}",
        ),
        option(
            "--latency",
            action="store_true",
            help="show instead what users wait for besides kernels. First calls in new processes "
            "with empty caches: seconds, those of the whole process, and how many functions Numba "
            "and kernels Triton compiled; it takes minutes. Small calls: microseconds, those of "
            "the kernels on a GPU, and the rest in units of torch's addition to four numbers. Of "
            "the other options, --device and --json count",
        ),
        json_of(
            "machine, versions, command, rows: operation, dtype, sign, n, batch, engine, "
            "p20_seconds, p50_seconds, p80_seconds, ops_per_second, bound_fraction, scipy_seconds, "
            "ratio (to SciPy); null: not known or not applicable; with --latency, in place of "
            "rows, first_calls: name, seconds, process_seconds, functions, kernels, and "
            "small_calls: name, microseconds, kernel_microseconds, units"
        ),
    )


def run(args: argparse.Namespace) -> None:
    """Measure, and print a table row by row below the machine, or one JSON object at the end."""
    if args.latency:
        _run_latency(resolve(args.device), as_json=args.json)
        return
    if "any" in args.sign and 1 in (args.n or ()):
        raise InputError(
            "--n must be at least 2 for --sign any, but is 1, which has no edge to be negative; "
            "leave it out."
        )
    device, config = resolve(args.device), Config(engine=args.engine)
    sizes = args.n or SIZES[device.type]
    counts = counts_for(args.batch, sizes)
    cases = cases_of(sizes, counts, [DTYPES_BY_NAME[name] for name in args.dtype], args.sign)
    distances = [name for name in dict.fromkeys(args.method) if name != _REACHABILITY]
    runs = [(case, [*distances, *_systems(args, case)]) for case in cases]
    for case, names in runs:
        _check(case, names, device, config, scipy_up_to=args.scipy_up_to)
    facts = describe(device)
    clock_hz = bound_clock_hz(facts)
    fields = [
        ("figures", f"median, and 20th and 80th percentile, of {args.repeat} runs"),
        ("bound", "none for this device" if clock_hz is None else BOUND),
        ("", "" if clock_hz is None else f"operations at {clock_hz / 1e9:.3g} GHz: {RATES}"),
        ("scipy", f"{_SCIPY}; ratio: its seconds / median s" if distances or args.system else ""),
    ]
    given = vars(args) | {"n": sizes, "batch": args.batch or [1], "device": device}
    command = command_line("tri_apsp", "bench", **{name: given[name] for name in _REPEATED})
    rows = measure(
        runs,
        device,
        config=config,
        repeat=args.repeat,
        scipy_up_to=args.scipy_up_to,
        closures=_REACHABILITY in args.method,
    )
    if args.json:
        print_json(_run_facts(device, command) | {"rows": [asdict(row) for row in rows]})
        return
    _print_run(device, command, fields)
    print(f"\n{TITLES}")
    for row in rows:
        print(line(row), flush=True)


def _run_latency(device: torch.device, *, as_json: bool) -> None:
    command = command_line("tri_apsp", "bench", "--latency", device=device)
    first, small = latency.first_calls(device), latency.small_calls(device)
    if as_json:
        found = {"first_calls": [*map(asdict, first)], "small_calls": [*map(asdict, small)]}
        print_json(_run_facts(device, command) | found)
        return
    _print_run(device, command, [])
    print(f"\n{latency.FIRST_TITLES}")
    for each in first:
        print(latency.first_line(each), flush=True)
    print(f"\n{latency.SMALL_TITLES}")
    for call in small:
        print(latency.small_line(call), flush=True)


def _run_facts(device: torch.device, command: str) -> dict[str, object]:
    machine = {str(place): device_facts(place) for place in (torch.device("cpu"), device)}
    return {"machine": machine, "versions": versions(), "command": command}


def _print_run(device: torch.device, command: str, fields: list[tuple[str, str]]) -> None:
    cpu = torch.device("cpu")
    places = {"cpu": cpu} if device.type == "cpu" else {"cpu": cpu, "device": device}
    lines = [(name, device_line(place)) for name, place in places.items()]
    print_fields([*lines, ("versions", versions_line()), ("command", command), *fields])


def _systems(args: argparse.Namespace, case: Case) -> list[str]:
    """Return the systems of papers to measure: those asked for, or all that take the dtype."""
    if _EVERY_SYSTEM in args.system:
        return [name for name, system in SYSTEMS.items() if case.dtype in system.dtypes]
    return list(dict.fromkeys(args.system))


def _check(
    case: Case, names: list[str], device: torch.device, config: Config, *, scipy_up_to: int
) -> None:
    """Check before the work that a case can be measured: engine, systems and memory."""
    engines.choose(device, config, case.dtype)
    for name in (name for name in names if name in SYSTEMS):
        require_runnable(name, device, case.dtype)
    if not names:
        matrices = 1 + matrices_of_closure(case.n)  # the edges, and what the closure allocates
        check_memory(case.n, case.batch, torch.bool, device, matrices=matrices)
        return
    # The weights, the result, the expected result, and one matrix of workspace.
    check_memory(case.n, case.batch, case.dtype, device, matrices=4)
    if runs_scipy(case, scipy_up_to):
        remedy = "lower --scipy-up-to, --n or --batch"
        require_memory(f"SciPy's solve of {case}", scipy_bytes(case), torch.device("cpu"), remedy)
