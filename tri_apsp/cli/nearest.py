"""python -m tri_apsp nearest"""

import argparse
from functools import partial

from tri_apsp.api import nearest
from tri_apsp.bench.timing import timed_once
from tri_apsp.cli.graph import (
    add_file,
    add_graph,
    add_rows,
    check_outputs,
    describe_device,
    describe_distances,
    describe_graph,
    labelled,
    read,
    sparse_of,
    summarise,
)
from tri_apsp.cli.vertices import read_texts, vertices_in
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_lines, print_result
from tri_apsp.device import resolve
from tri_apsp.graphs.write import nearest_lines, write_values
from tri_apsp.messages import counted
from tri_apsp.semirings import dtype_name

_FORMATS = (".csv", ".csv.gz")
_KEYS = (
    "n, edges, sources (their number), to_sources, device, dtype, method, engine, seconds "
    "(without compilation), reachable_vertices, max_distance, sum_distances"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `nearest`."""
    add_graph(parser)
    add_file(
        parser,
        "--sources",
        summary="the vertices of which the nearest is wanted, such as facilities, as the file "
        "calls them, one per line; or - for standard input",
        required=True,
    )
    parser.add_argument(
        "--to-sources",
        action="store_true",
        help="measure the distance from each vertex to a source; default: from the source to it",
    )
    add_rows(parser)
    add_file(
        parser,
        "-o",
        "--out",
        summary="write the columns vertex, nearest and distance; ends in one of "
        f"{', '.join(_FORMATS)}; default: to standard output, without a summary",
    )
    add_json(parser, _KEYS)
    parser.epilog = (
        "A vertex without a path has the distance inf, and for its nearest source -1, or nothing "
        "where the file names vertices by names or by numbers with gaps. The work is that of one "
        "row of distances, whatever the number of sources."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and sources, solve it, and write the nearest source of each vertex."""
    device = resolve(args.device)
    written = check_outputs(args, "--out", formats=_FORMATS, inputs=["--sources"])
    texts = read_texts(args, "--sources")
    given = read(args)
    sources = vertices_in(texts["--sources"], given.labels, "--sources")
    graph = sparse_of(given, args, device)
    if args.to_sources:
        graph = graph.reversed()
    with labelled(given.labels):
        solve = partial(nearest, graph, sources, limit=args.limit)
        result, seconds = timed_once(solve, device)
    assert result.nearest is not None
    if args.out is not None or not args.json:
        lines = nearest_lines(result.nearest, result.distances[0], given.labels)
        if args.out is None:
            print_lines(lines)
            return
        write_values(result.distances, args.out, "distances", lines)
    summary, dtype = summarise(result.distances), dtype_name(graph.dtype)
    print_result(
        args.json,
        {
            "n": graph.n,
            "edges": graph.edges,
            "sources": len(set(sources)),
            "to_sources": args.to_sources,
            "device": str(device),
            "dtype": dtype,
            "method": result.method,
            "engine": result.engine,
            "seconds": seconds,
            "reachable_vertices": summary["reachable_pairs"],
            "max_distance": summary["max_distance"],
            "sum_distances": summary["sum_distances"],
        },
        [
            ("graph", describe_graph(args, graph.n, graph.edges)),
            ("device", f"{describe_device(device)}, {dtype}"),
            ("sources", counted(len(set(sources)), "vertex", "vertices")),
            (result.method, f"{seconds:.4g} s on the {result.engine} engine"),
            *describe_distances(summary, graph.n, "vertex", "vertices"),
            ("written", written),
        ],
    )
