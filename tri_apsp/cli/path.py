"""python -m tri_apsp path"""

import argparse

from tri_apsp.api import shortest_paths
from tri_apsp.cli.graph import (
    add_graph,
    add_solver,
    as_number,
    labelled,
    read,
    weights_of,
)
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import print_result
from tri_apsp.device import resolve
from tri_apsp.graphs.labels import vertex_of

_KEYS = (
    "source, target, distance and edges (null where there is no path), path (a list of vertices, "
    "as the file numbers them)"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `path`."""
    add_graph(parser)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the vertex where the path begins, as the file numbers it",
    )
    parser.add_argument("target", metavar="TARGET", help="the vertex where it ends")
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
    ends = {"source": graph.labels[source], "target": graph.labels[target]}
    facts: dict[str, object] = {**ends, "distance": distance}
    fields = [
        ("distance", str(distance)),
        ("path", " ".join(map(str, path))),
        ("edges", f"{edges}"),
    ]
    none = [("path", f"there is none from {args.source} to {args.target}")]
    print_result(args.json, facts | {"path": path, "edges": edges}, fields if path else none)
