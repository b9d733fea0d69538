"""python -m tri_apsp path"""

import argparse
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from tri_apsp.api import shortest_paths, shortest_simple_paths
from tri_apsp.cli.graph import Problem, as_number
from tri_apsp.cli.options import DTYPE, METHOD, NETWORK
from tri_apsp.configs import Config
from tri_apsp.console.options import DEVICE, ENGINE, add_options, at_least, json_of, option
from tri_apsp.console.output import print_result
from tri_apsp.errors import InputError
from tri_apsp.graphs import DenseGraph, EdgeList, sparse_graph
from tri_apsp.graphs.labels import vertex_of
from tri_apsp.graphs.write import quoted
from tri_apsp.paths.following import Paths

_ENDS = "source", "target"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `path`."""
    add_options(
        parser,
        *NETWORK,
        option(
            "source",
            metavar="SOURCE",
            help="the vertex where the path begins, by its number or name in GRAPH",
        ),
        option("target", metavar="TARGET", help="the vertex where it ends"),
        option(
            "--count",
            type=at_least(1),
            metavar="K",
            help="print the K shortest paths without a repeated vertex, the lightest first",
        ),
        METHOD,
        DTYPE,
        DEVICE,
        ENGINE,
        json_of(
            "source, target, distance and edges (null where there is no path), path (a list of "
            "vertices, as GRAPH names them), rows (the place of each edge in the list of GRAPH, "
            "from 0; null for a matrix); with --count in place of the last four, paths, a list of "
            "them"
        ),
    )
    parser.epilog = (
        "A sparse graph is solved from the source alone, a dense one whole, with n^3 operations. "
        "In Python, one Result answers many queries."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, and print its shortest path, or several."""
    if args.count is not None and (args.method != "auto" or args.engine is not None):
        raise InputError(
            "--count has a method of its own, but --method or --engine names another; leave them "
            "out."
        )
    problem = Problem(args)
    if args.count is not None:
        problem.refuse_restrictions("--count")
    ends = [vertex_of(problem.labels, getattr(args, name), name.upper()) for name in _ENDS]
    with problem.labelled():
        if args.count is None:
            result = shortest_paths(
                problem.weights(),
                sources=ends[0],
                method=args.method,
                config=Config(engine=args.engine),
                predecessors=True,
            )
            distance, path = result.distances[0, ends[1]], result.path(*ends)
            dtype, paths = distance.dtype, [(distance.item(), path)] if path else []
        else:
            found = shortest_simple_paths(problem.graph, *ends)
            dtype, paths = problem.graph.dtype, list(islice(found, args.count))
    rows = _rows_of(problem, [path for _, path in paths])
    shown: list[dict[str, Any]] = [
        {
            "distance": as_number(weight, dtype),
            "path": problem.names(path),
            "edges": len(path) - 1,
            "rows": own,
        }
        for (weight, path), own in zip(paths, rows, strict=True)
    ]
    fields = [("path", "" if shown else f"there is none from {args.source} to {args.target}")]
    for each in shown:
        fields += [
            ("distance", str(each["distance"])),
            ("path", " ".join(map(quoted, each["path"]))),
            ("edges", str(each["edges"]) if args.count is None else ""),
            ("rows", " ".join(map(str, each["rows"] or ()))),
        ]
    one = shown[0] if shown else {"distance": None, "path": [], "edges": None, "rows": []}
    facts = one if args.count is None else {"paths": shown}
    source, target = problem.names(ends)
    print_result(args.json, {"source": source, "target": target, **facts}, fields)


def _rows_of(problem: Problem, paths: list[list[int]]) -> list[list[int] | None]:
    """Return the places of the edges of each path in the file; None of a matrix."""
    given = problem.given
    if isinstance(given, EdgeList):
        given = replace(given, through=None)  # which counts no edge
    lists = None if isinstance(given, DenseGraph) else sparse_graph(given).by_source
    if lists is None or lists.rows is None:
        return [None for _ in paths]
    vertices = torch.tensor([vertex for path in paths for vertex in path], dtype=torch.int64)
    offsets = torch.tensor([0, *map(len, paths)]).cumsum(0)
    found = Paths(vertices, offsets, lists)
    return [x.tolist() for x in torch.split(found.rows, found.edge_offsets.diff().tolist())]
