"""python -m tri_apsp hops"""

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tri_apsp.api import betweenness, hops
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.files import named
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import ENDINGS, FILE, GRAPH, OUT, SOURCES, SPARSE_DTYPE
from tri_apsp.console.options import DEVICES, add_options, json_of, option
from tri_apsp.device import resolve_all
from tri_apsp.elimination.base import Totals
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.graphs import SparseGraph, write_vertex_values
from tri_apsp.progress import progress_bar
from tri_apsp.sparse.measures import (
    closeness_of,
    diameter_of,
    eccentricities_of,
    has_infinite_diameter,
    mean_distance_of,
    totals,
)

# Each measure by the totals of the distances: eccentricities by those from each vertex, closeness
# by those to it, the others by either.
_MEASURES: dict[str, Callable[[Totals], Any]] = {
    "diameter": diameter_of,
    "eccentricities": eccentricities_of,
    "mean_distance": mean_distance_of,
    "closeness": closeness_of,
}
_FILES = "--eccentricities", "--closeness", "--betweenness"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `hops`."""
    add_options(
        parser,
        *GRAPH,
        option(
            "--diameter",
            action="store_true",
            help="the largest distance; inf if some pair has no path",
        ),
        option(
            "--mean-distance",
            action="store_true",
            help="the mean distance of the pairs that have a path",
        ),
        option(
            "--closeness", **FILE, help=f"write the closeness centrality of each vertex; {ENDINGS}"
        ),
        option(
            "--eccentricities",
            **FILE,
            help="write the eccentricity of each vertex, its distance to the farthest vertex",
        ),
        option(
            "--betweenness",
            **FILE,
            help="write the betweenness centrality of each vertex, the share of all shortest paths "
            "that pass through it",
        ),
        option(
            "--weighted",
            action="store_true",
            help="measure paths by weight, not by number of edges",
        ),
        OUT.but(
            help="write the number of edges of all shortest paths, in int16, or in int32 if one is "
            f"longer; {ENDINGS}"
        ),
        SOURCES.but(help="write only the rows of these vertices to --out"),
        DEVICES,
        SPARSE_DTYPE,
        json_of(
            "n, edges, device, weighted, diameter and mean_distance (null if infinite, or if there "
            f"is no pair), seconds of each result ({SECONDS}; one time for all that follow from "
            "the same distances)"
        ),
    )
    parser.epilog = (
        "Without an option: the diameter and the mean distance. Only --out takes n^2 memory."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, and print and write what is asked for."""
    if args.weighted and args.out is not None:
        raise InputError(
            "--out writes numbers of edges, but --weighted is given; write distances with solve -o."
        )
    if args.sources is not None and args.out is None:
        raise InputError(
            "--sources names rows of --out, which is missing; add it, or leave --sources out."
        )
    problem = Problem(args, *_FILES, "--out", devices=resolve_all(args.device))
    sources, graph = problem.vertices("--sources"), problem.graph
    asked = [name for name in _MEASURES if getattr(args, name)]
    if not asked and args.out is None and args.betweenness is None:
        asked = ["diameter", "mean_distance"]
    values, seconds = dict[str, Any](), dict[str, float]()
    found = dict[bool, tuple[Totals, float]]()
    if asked == ["diameter"]:
        is_known = partial(has_infinite_diameter, graph, weighted=args.weighted)
        is_infinite, seconds["diameter"] = problem.timed(is_known)
        if is_infinite:
            values["diameter"], asked = math.inf, []
    for name in asked:
        from_source = "eccentricities" in asked and name != "closeness"
        if from_source not in found:
            call = partial(
                totals, graph, problem.devices, weighted=args.weighted, from_source=from_source
            )
            with progress_bar(not args.json) as report:
                found[from_source] = problem.timed(call, first=partial(call, report=report))
        of_all, seconds[name] = found[from_source]
        values[name] = _MEASURES[name](of_all)
    if args.betweenness is not None:
        share = partial(betweenness, graph, weighted=args.weighted, device=problem.devices)
        values["betweenness"], seconds["betweenness"] = problem.timed(
            share, first=partial(share, progress=not args.json)
        )
    if args.out is not None:
        rows, seconds["hops"] = problem.timed(partial(_hops, graph, sources))
        problem.write(rows, sources and problem.names(sources))
    for file, path in named(args, _FILES).items():
        name = file.removeprefix("--")
        write_vertex_values(values.pop(name), path, name, problem.labels)
    numbers = {name: value if math.isfinite(value) else None for name, value in values.items()}
    facts = {
        "device": problem.device_names,
        "weighted": args.weighted,
        **numbers,
        "seconds": seconds,
    }
    problem.show(
        facts,
        [
            (name.replace("_", " "), f"{_shown(value)} ({seconds[name]:.4g} s)")
            for name, value in values.items()
        ],
    )


def _hops(graph: SparseGraph, sources: list[int] | None) -> torch.Tensor:
    try:
        return hops(graph, sources, dtype=torch.int16)
    except DistanceRangeError:
        return hops(graph, sources, dtype=torch.int32)


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() else f"{value:g}"
