"""python -m tri_apsp hops"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tri_apsp.api import hops
from tri_apsp.bench.timing import SECONDS, timed, timed_warm
from tri_apsp.cli.graph import (
    add_dtype,
    add_file,
    add_graph,
    check_outputs,
    describe_device,
    describe_graph,
    labelled,
    read,
    sparse_of,
)
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import print_result
from tri_apsp.device import resolve
from tri_apsp.elimination.base import Totals
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    SPARSE_DTYPES,
    SparseGraph,
    write_distances,
    write_rows_of_sources,
    write_vertex_values,
)
from tri_apsp.graphs.labels import vertex_of
from tri_apsp.progress import progress_bar
from tri_apsp.sparse.measures import (
    closeness_of,
    diameter_of,
    eccentricities_of,
    has_infinite_diameter,
    mean_distance_of,
    totals,
)

_KEYS = (
    "n, edges, device, weighted, diameter and mean_distance (null if infinite, or if there is no "
    f"pair), seconds of each result ({SECONDS}; one time for all that follow from the same "
    "distances)"
)
# Each measure by the totals of the distances: eccentricities by those from each vertex, closeness
# by those to it, the others by either.
_MEASURES: dict[str, Callable[[Totals], Any]] = {
    "diameter": diameter_of,
    "eccentricities": eccentricities_of,
    "mean_distance": mean_distance_of,
    "closeness": closeness_of,
}
_FILES = "--eccentricities", "--closeness"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `hops`."""
    add_graph(parser)
    parser.add_argument(
        "--diameter", action="store_true", help="the largest distance; inf if some pair has no path"
    )
    parser.add_argument(
        "--mean-distance",
        action="store_true",
        help="the mean distance of the pairs that have a path",
    )
    endings = f"ends in one of {', '.join(DISTANCE_FORMATS)}"
    add_file(
        parser,
        "--closeness",
        summary=f"write how close each vertex is to those that reach it; {endings}",
    )
    add_file(
        parser,
        "--eccentricities",
        summary="write the distance from each vertex to the farthest one",
    )
    parser.add_argument(
        "--weighted", action="store_true", help="measure paths by their weight, not by their edges"
    )
    add_file(
        parser,
        "-o",
        "--out",
        summary=f"write all hops in int16, or in int32 if one is longer; {endings}",
    )
    parser.add_argument(
        "--source",
        dest="sources",
        metavar="S",
        nargs="+",
        help="write only the rows of these vertices to --out",
    )
    add_device(parser, engine=False)
    add_dtype(parser, SPARSE_DTYPES)
    add_json(parser, _KEYS)
    parser.epilog = (
        "Without an option: the diameter and the mean distance. No result but --out takes n^2 "
        "memory."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, and print and write what is asked for."""
    device = resolve(args.device)
    if args.weighted and args.out is not None:
        raise InputError(
            "--out writes numbers of edges, but --weighted is given; write distances with solve -o."
        )
    if args.sources is not None and args.out is None:
        raise InputError(
            "--source names rows of --out, which is missing; add it, or leave --source out."
        )
    written = check_outputs(args, *_FILES, "--out")
    given = read(args)
    sources = (
        None
        if args.sources is None
        else [vertex_of(given.labels, number, "--source") for number in args.sources]
    )
    graph = sparse_of(given, args, device)
    asked = [name for name in _MEASURES if getattr(args, name)]
    if not asked and args.out is None:
        asked = ["diameter", "mean_distance"]
    values, seconds = dict[str, Any](), dict[str, float]()
    found = dict[bool, tuple[Totals, float]]()
    with labelled(given.labels):
        if asked == ["diameter"]:
            is_known = partial(has_infinite_diameter, graph, weighted=args.weighted)
            is_infinite, seconds["diameter"] = timed(is_known, device)
            if is_infinite:
                values["diameter"], asked = math.inf, []
        for name in asked:
            from_source = "eccentricities" in asked and name != "closeness"
            if from_source not in found:
                call = partial(totals, graph, weighted=args.weighted, from_source=from_source)
                with progress_bar(not args.json) as report:
                    first = partial(call, report=report)
                    found[from_source] = timed_warm(call, device, graph.n, first=first)[:2]
            of_all, seconds[name] = found[from_source]
            values[name] = _MEASURES[name](of_all)
        if args.out is not None:
            rows, seconds["hops"], _ = timed_warm(partial(_hops, graph, sources), device, graph.n)
            if sources is None:
                write_distances(rows, args.out, given.labels)
            else:
                shown = [given.labels[source] for source in sources]
                write_rows_of_sources(rows, args.out, shown, given.labels)
    for option in _FILES:
        name = option.removeprefix("--")
        if name in values:
            write_vertex_values(values.pop(name), getattr(args, name), name, given.labels)
    facts = {"n": graph.n, "edges": graph.edges, "device": str(device), "weighted": args.weighted}
    numbers = {name: value if math.isfinite(value) else None for name, value in values.items()}
    print_result(
        args.json,
        facts | numbers | {"seconds": seconds},
        [
            ("graph", describe_graph(args, graph.n, graph.edges)),
            ("device", describe_device(device)),
            *(
                (name.replace("_", " "), f"{_shown(value)} ({seconds[name]:.4g} s)")
                for name, value in values.items()
            ),
            ("written", written),
        ],
    )


def _hops(graph: SparseGraph, sources: list[int] | None) -> torch.Tensor:
    try:
        return hops(graph, sources, dtype=torch.int16)
    except DistanceRangeError:
        return hops(graph, sources, dtype=torch.int32)


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:g}"
