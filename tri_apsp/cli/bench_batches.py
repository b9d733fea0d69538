"""python -m tri_apsp bench --batches"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TypeVar

import torch

from tri_apsp import engines
from tri_apsp.bench import batches
from tri_apsp.bench.batches import BATCHES, SIZES, BatchRow, batch_cases, measure_batches
from tri_apsp.bench.cases import cases_of
from tri_apsp.bench.measure import BenchRow
from tri_apsp.configs import Config
from tri_apsp.console.machine import device_facts, device_line, versions, versions_line
from tri_apsp.console.output import command_line, print_fields, print_json
from tri_apsp.console.progress import activity
from tri_apsp.device import check_memory, resolve
from tri_apsp.semirings import DTYPES_BY_NAME

AnyRow = TypeVar("AnyRow", BenchRow, BatchRow)

# The weights, two results, the copy, and what a loop of torch operations takes.
_MATRICES = 6
_LEGEND = (
    (
        "median ms",
        "of whole checked calls of shortest_paths on complete graphs; graphs/s: batch / median",
    ),
    ("/ copy", "median ms / that of a copy of the weights, on the same device"),
    ("sizes %", "how much longer a call with `sizes` takes"),
    (
        "torch ms",
        "a loop of n operations torch.minimum over the whole batch, with the same checks; ratio: "
        "to median ms",
    ),
    (
        "scipy ms",
        "a loop of scipy.sparse.csgraph.floyd_warshall over the graphs, dense, in float64; in "
        "proportion to 256 of them",
    ),
)


def run_batches(args: argparse.Namespace) -> None:
    """Measure, and print a table row by row, or one JSON object at the end."""
    device, config = resolve(args.device), Config(engine=args.engine)
    sizes, counts = args.n or list(SIZES), args.batch or list(BATCHES[device.type])
    dtypes = [DTYPES_BY_NAME[name] for name in args.dtype]
    cases = batch_cases(cases_of(sizes, [1] * len(sizes), dtypes, args.sign), counts)
    for case in cases:
        engines.choose(device, config, case.dtype)
        check_memory(case.n, case.batch, case.dtype, device, matrices=_MATRICES)
    given = {"n": sizes, "batch": counts, "device": device}
    names = ("dtype", "sign", "engine", "repeat")
    command = command_line(
        "tri_apsp", "bench", "--batches", **given, **{name: getattr(args, name) for name in names}
    )
    with activity() as show:
        rows = measure_batches(cases, device, config=config, repeat=args.repeat, show=show)
        fields = [("figures", f"medians of {args.repeat} runs"), *_LEGEND]
        print_rows(rows, command, device, fields, batches.titles(), batches.line, json=args.json)


def print_rows(
    rows: Iterable[AnyRow],
    command: str,
    device: torch.device,
    fields: Sequence[tuple[str, str]],
    titles: str,
    line: Callable[[AnyRow], str],
    *,
    json: bool,
) -> None:
    """Print a table row by row, below the machine and `fields`, or one JSON object at the end."""
    cpu = torch.device("cpu")
    if json:
        machine = {str(place): device_facts(place) for place in (cpu, device)}
        found = [asdict(row) for row in rows]
        print_json({"machine": machine, "versions": versions(), "command": command, "rows": found})
        return
    places: list[tuple[str, str]] = [("cpu", device_line(cpu))]
    if device.type != "cpu":
        places.append(("device", device_line(device)))
    print_fields([*places, ("versions", versions_line()), ("command", command), *fields])
    print()
    print(titles)
    for row in rows:
        print(line(row), flush=True)
