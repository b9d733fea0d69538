"""python -m tri_apsp path"""

import argparse
from itertools import islice

import torch

from tri_apsp.api import shortest_paths, shortest_simple_paths
from tri_apsp.cli.graph import (
    AnyGraph,
    add_graph,
    add_solver,
    as_number,
    labelled,
    read,
    sparse_of,
    weights_of,
)
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import print_result
from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.graphs.labels import vertex_of
from tri_apsp.graphs.write import quoted

_KEYS = (
    "source, target, distance and edges (null where there is no path), path (a list of vertices, "
    "as the file numbers them); with --count in place of the last three, paths, a list of them"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `path`."""
    add_graph(parser)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the vertex where the path begins, by its number or name in the file",
    )
    parser.add_argument("target", metavar="TARGET", help="the vertex where it ends")
    parser.add_argument(
        "--count",
        type=int,
        metavar="K",
        help="print the K shortest paths without a repeated vertex, the lightest first",
    )
    add_solver(parser)
    add_device(parser)
    add_json(parser, _KEYS)
    parser.epilog = (
        "A graph of few edges is solved from the source alone, any other whole, with n^3 "
        "operations; in Python, one Result answers many queries."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, and print one shortest path."""
    device = resolve(args.device)
    graph = read(args)
    source, target = (
        vertex_of(graph.labels, getattr(args, name), name.upper()) for name in ("source", "target")
    )
    ends: dict[str, object] = {"source": graph.labels[source], "target": graph.labels[target]}
    none = [("path", f"there is none from {args.source} to {args.target}")]
    if args.count is not None:
        _print_several(graph, args, device, (source, target), ends, none)
        return
    with labelled(graph.labels):
        result = shortest_paths(
            weights_of(graph, args, device),
            sources=source,
            method=args.method,
            config=Config(engine=args.engine),
            predecessors=True,
        )
    path = [graph.labels[vertex] for vertex in result.path(source, target)]
    found = result.distances[0, target]
    distance = as_number(found.item(), found.dtype) if path else None
    edges = len(path) - 1 if path else None
    facts: dict[str, object] = {**ends, "distance": distance}
    fields = [
        ("distance", str(distance)),
        ("path", " ".join(map(quoted, path))),
        ("edges", f"{edges}"),
    ]
    print_result(args.json, facts | {"path": path, "edges": edges}, fields if path else none)


def _print_several(
    graph: AnyGraph,
    args: argparse.Namespace,
    device: torch.device,
    vertices: tuple[int, int],
    ends: dict[str, object],
    none: list[tuple[str, str]],
) -> None:
    """Print the shortest paths of --count."""
    if args.count < 1:
        raise InputError(f"--count must be at least 1, but is {args.count}; raise it.")
    if args.method != "auto" or args.engine is not None:
        raise InputError(
            "--count has a method of its own, but --method or --engine names another; leave them "
            "out."
        )
    with labelled(graph.labels):
        given = sparse_of(graph, args, device)
        paths = list(islice(shortest_simple_paths(given, *vertices), args.count))
    facts, fields = list[dict[str, object]](), list[tuple[str, str]]()
    for weight, path in paths:
        names = [graph.labels[vertex] for vertex in path]
        distance = as_number(weight, given.dtype)
        facts.append({"distance": distance, "path": names, "edges": len(path) - 1})
        fields += [("distance", str(distance)), ("path", " ".join(map(quoted, names)))]
    print_result(args.json, ends | {"paths": facts}, fields or none)
