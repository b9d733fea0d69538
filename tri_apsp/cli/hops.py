"""python -m tri_apsp hops"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path

import torch

from tri_apsp.api import closeness, diameter, eccentricities, hops, mean_distance
from tri_apsp.bench.timing import timed
from tri_apsp.cli.graph import add_dtype, add_graph, describe_graph, dtype_of, read, vertex_of
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_fields, print_json
from tri_apsp.device import describe, resolve
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import DISTANCE_FORMATS, VERTEX_FORMATS, check_output, write_distances, write_vertex_values
from tri_apsp.sparse.graph import sparse_graph

__all__ = ["configure", "run"]

_KEYS = "n, edges, device, weighted, diameter and mean_distance (null if infinite, or not a number), seconds of each result"
_MEASURES = {"eccentricities": eccentricities, "closeness": closeness}
_NUMBERS = {"diameter": diameter, "mean_distance": mean_distance}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `hops`."""
    add_graph(parser)
    parser.add_argument("--diameter", action="store_true", help="the largest distance; inf if some pair has no path")
    parser.add_argument("--mean-distance", action="store_true", help="the mean distance of the pairs that have a path")
    endings = f"ends in one of {', '.join(VERTEX_FORMATS)}"
    parser.add_argument(
        "--closeness", type=Path, metavar="FILE", help=f"write how close each vertex is to those that reach it; {endings}"
    )
    parser.add_argument(
        "--eccentricities", type=Path, metavar="FILE", help="write the distance from each vertex to the farthest one"
    )
    parser.add_argument("--weighted", action="store_true", help="measure paths by their weight, not by their edges")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"write all hops in int16; ends in one of {', '.join(DISTANCE_FORMATS)}",
    )
    parser.add_argument(
        "--source", dest="sources", metavar="S", type=int, nargs="+", help="write only the rows of these vertices to --output"
    )
    parser.add_argument("--device", default="auto", help="auto (default: CUDA if there is one), cpu, cuda or cuda:N")
    add_dtype(parser)
    add_json(parser, _KEYS)
    parser.epilog = "Without an option: the diameter and the mean distance. No result but --output takes n^2 memory."
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, and print and write what is asked for."""
    device = resolve(args.device)
    if args.weighted and args.output is not None:
        raise InputError("--output writes numbers of edges, but --weighted is given; write distances with solve -o.")
    if args.sources is not None and args.output is None:
        raise InputError("--source names rows of --output, which is missing; add it, or leave --source out.")
    for name, formats in (("output", DISTANCE_FORMATS), ("closeness", VERTEX_FORMATS), ("eccentricities", VERTEX_FORMATS)):
        if getattr(args, name) is not None:
            check_output(getattr(args, name), formats)
    given = read(args)
    sources = None if args.sources is None else [vertex_of(given, number, "--source") for number in args.sources]
    graph = sparse_graph(given, dtype=dtype_of(given, args), device=device)
    fields, facts, seconds = [("graph", describe_graph(args, graph.n, given.edges))], dict[str, object](), dict[str, float]()
    written = list[Path]()
    wanted = [name for name in (*_NUMBERS, *_MEASURES, "output") if getattr(args, name)] or list(_NUMBERS)
    try:
        for name in wanted:
            if name in _NUMBERS:
                value, seconds[name] = timed(partial(_NUMBERS[name], graph, weighted=args.weighted), device)
                fields.append((name.replace("_", " "), f"{value:g} ({seconds[name]:.4g} s)"))
                facts[name] = value if math.isfinite(value) else None
            elif name in _MEASURES:
                values, seconds[name] = timed(partial(_MEASURES[name], graph, weighted=args.weighted), device)
                write_vertex_values(values, getattr(args, name), name, given.base)
                written.append(getattr(args, name))
            else:
                rows, seconds["hops"] = timed(partial(hops, graph, sources, dtype=torch.int16), device)
                write_distances(rows, args.output)
                written.append(args.output)
    except NegativeCycleError as error:
        raise error.numbered_from(given.base) from None
    if args.json:
        head = {"n": graph.n, "edges": given.edges, "device": str(device), "weighted": args.weighted}
        print_json(head | facts | {"seconds": seconds})
        return
    fields.insert(1, ("device", f"{describe(device).name} ({device})"))
    if written:
        fields.append(("written", ", ".join(map(str, written))))
    print_fields(fields)
