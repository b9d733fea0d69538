"""python -m tri_apsp path"""

from __future__ import annotations

import argparse

from tri_apsp.cli.graph import add_graph, add_solver, read
from tri_apsp.configs import Config
from tri_apsp.console.options import add_device, add_json
from tri_apsp.console.output import print_fields, print_json
from tri_apsp.console.progress import progress
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.solver.run import solve

__all__ = ["configure", "run"]

_KEYS = "source, target, distance and edges (null where there is no path), path (a list of vertices, as the file numbers them)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `path`."""
    add_graph(parser)
    parser.add_argument("source", metavar="SOURCE", type=int, help="the vertex where the path begins, as the file numbers it")
    parser.add_argument("target", metavar="TARGET", type=int, help="the vertex where it ends")
    add_solver(parser)
    add_device(parser)
    add_json(parser, _KEYS)
    parser.epilog = "The whole graph is solved for one path, with n^3 operations; in Python, one Result answers many queries."
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Read a graph, solve it, and print one shortest path."""
    device = resolve(args.device)
    graph = read(args)
    base, end = graph.base, graph.base + graph.n
    if not graph.n:
        raise InputError("a path needs a graph with vertices, but this one has none; give another graph.")
    for name in ("source", "target"):
        vertex = getattr(args, name)
        if not base <= vertex < end:
            raise InputError(
                f"{name.upper()} must be a vertex of the graph, {base} to {end - 1}, but is {vertex}; give one of these."
            )
    weights = graph.to_weights(DTYPES_BY_NAME[args.dtype] if args.dtype else graph.natural_dtype, device)
    try:
        with progress(not args.json) as report:
            config = Config(engine=args.engine)
            result = solve(weights, method=args.method, config=config, predecessors=True, report=report)
    except NegativeCycleError as error:
        raise error.numbered_from(base) from None
    source, target = args.source - base, args.target - base
    path = [base + vertex for vertex in result.path(source, target)]
    distance = result.distances[source, target].item() if path else None
    if isinstance(distance, float) and distance.is_integer():
        distance = int(distance)
    edges = len(path) - 1 if path else None
    if args.json:
        print_json(
            {
                "source": args.source,
                "target": args.target,
                "distance": distance,
                "path": path,
                "edges": edges,
            }
        )
        return
    if not path:
        print_fields([("path", f"there is none from {args.source} to {args.target}")])
        return
    print_fields([("distance", str(distance)), ("path", " ".join(map(str, path))), ("edges", str(edges))])
