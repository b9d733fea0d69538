"""python -m tri_apsp bench"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import asdict

import torch

from tri_apsp import engines
from tri_apsp.cli.machine import device_facts, device_line, versions, versions_line
from tri_apsp.cli.measure import HEAVIEST, Row, measure
from tri_apsp.cli.options import DTYPE_NAMES, add_device, add_json, at_least, dtype_of
from tri_apsp.cli.output import amount, print_fields, print_json
from tri_apsp.configs import Config
from tri_apsp.device import check_memory, resolve
from tri_apsp.methods import METHODS

__all__ = ["configure", "run"]

_SIZES = {"cpu": [256, 512, 1024, 2048], "cuda": [1024, 2048, 4096, 8192]}
_METHODS = ["kleene", "floyd_warshall"]
_LAYOUT = "{:14}  {:7}  {:>6}  {:8}  {:>9}  {:>9}  {:>9}  {:>7}  {:>11}  {:>6}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bench`."""
    parser.description = (
        "Measure min-plus operations per second (n^3 / median seconds) of the product min_plus and of each method, through the "
        f"public calls, on complete graphs of whole weights 1..{HEAVIEST} from a fixed seed, beside SciPy's Floyd-Warshall. "
        "A row appears only after its result was found right."
    )
    sizes = "; ".join(f"{kind}: {' '.join(map(str, sizes))}" for kind, sizes in _SIZES.items())
    parser.add_argument("--n", type=at_least(1), nargs="+", help=f"vertices; default on {sizes}")
    parser.add_argument("--dtype", choices=DTYPE_NAMES, nargs="+", default=["float32"], help="default: float32")
    parser.add_argument(
        "--method", choices=list(METHODS), nargs="+", default=_METHODS, help=f"default: {' '.join(_METHODS)}; min_plus always"
    )
    add_device(parser)
    parser.add_argument("--repeat", type=at_least(3), default=5, metavar="R", help="runs after a warm-up; default: 5")
    parser.add_argument(
        "--scipy-up-to", type=at_least(0), default=2048, metavar="N", help="largest n that SciPy runs, once; default: 2048"
    )
    add_json(parser, "machine, versions, command, rows (with p20, p50 and p80 of the seconds)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Measure, and print a table row by row, or everything at the end."""
    device, config = resolve(args.device), Config(engine=args.engine)
    engines.choose(device, config)
    sizes, dtypes = args.n or _SIZES[device.type], [dtype_of(name) for name in args.dtype]
    for dtype in dtypes:
        # The weights, the result, what it is compared with, and one of workspace.
        check_memory(max(sizes), 1, dtype, device, matrices=4)
    rows = measure(dtypes, sizes, args.method, device, config=config, repeat=args.repeat, scipy_up_to=args.scipy_up_to)
    command = _command(args, device, sizes)
    if args.json:
        machine = {str(place): device_facts(place) for place in (torch.device("cpu"), device)}
        measured = [asdict(row) for row in rows]
        print_json({"machine": machine, "versions": versions(), "command": command, "rows": measured})
        return
    print_fields(
        [
            ("cpu", device_line(torch.device("cpu"))),
            *([("device", device_line(device))] if device.type != "cpu" else []),
            ("versions", versions_line()),
            ("command", command),
            ("figures", f"median, p20 and p80 of {args.repeat} runs; ops/s are n^3 / median seconds"),
            ("scipy", f"scipy.sparse.csgraph.floyd_warshall in float64, one run, up to n = {args.scipy_up_to}"),
        ]
    )
    print()
    print(_LAYOUT.format("operation", "dtype", "n", "engine", "median s", "p20 s", "p80 s", "ops/s", "scipy ops/s", "ratio"))
    for row in rows:
        print(_line(row), flush=True)


def _line(row: Row) -> str:
    seconds = (f"{value:.3g}" for value in (row.p50_seconds, row.p20_seconds, row.p80_seconds))
    scipy = "-" if row.scipy_seconds is None else amount(row.n**3 / row.scipy_seconds)
    ratio = "-" if row.ratio is None else f"{row.ratio:.1f}"
    return _LAYOUT.format(row.operation, row.dtype, row.n, row.engine, *seconds, amount(row.ops_per_second), scipy, ratio)


def _command(args: argparse.Namespace, device: torch.device, sizes: list[int]) -> str:
    """Return the command that repeats this run, with every default spelled out."""
    words = ["python", "-m", "tri_apsp", "bench", "--n", *sizes, "--dtype", *args.dtype, "--method", *args.method]
    words += ["--device", device, *(["--engine", args.engine] if args.engine else [])]
    words += ["--repeat", args.repeat, "--scipy-up-to", args.scipy_up_to]
    return shlex.join(map(str, words))
