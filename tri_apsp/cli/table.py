"""python -m tri_apsp table"""

import argparse
from functools import partial
from typing import Any

from tri_apsp.api import paired_distances, shortest_paths
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
from tri_apsp.cli.vertices import pairs_in, read_texts, vertices_in
from tri_apsp.console.options import add_json
from tri_apsp.console.output import print_lines, print_result
from tri_apsp.device import resolve
from tri_apsp.errors import InputError
from tri_apsp.graphs import DISTANCE_FORMATS
from tri_apsp.graphs.write import pair_lines, table_lines, write_values
from tri_apsp.semirings import dtype_name

_KEYS = (
    "n, edges, shape (of the distances), device, dtype, method and engine (null for pairs), "
    "seconds (without compilation), reachable_pairs, max_distance, sum_distances (these two null "
    "if there is no value)"
)
_INPUTS = "--sources", "--targets", "--pairs"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `table`."""
    add_graph(parser)
    wanted = parser.add_mutually_exclusive_group(required=True)
    add_file(
        wanted,
        "--sources",
        summary="the vertices of the rows, as the file calls them, one per line",
    )
    add_file(
        wanted,
        "--pairs",
        summary="in place of a table, distances of pairs: a source and a target per line, between "
        "them a comma, a tab or blanks, in all lines the same",
    )
    add_file(parser, "--targets", summary="the vertices of the columns, one per line; default: all")
    add_rows(parser)
    add_file(
        parser,
        "-o",
        "--out",
        summary=f"write the distances; ends in one of {', '.join(DISTANCE_FORMATS)}; default: as "
        ".csv to standard output, without a summary",
    )
    add_json(parser, _KEYS)
    parser.epilog = (
        "One of these files may be - for standard input. Lines that begin with # are comments. A "
        ".csv has the labels of targets in its first row and those of sources in its first column, "
        "or one line source,target,distance per pair; inf: there is no path."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and vertices, solve it, and write the distances."""
    if args.pairs is not None and args.targets is not None:
        raise InputError("--pairs names targets too, but --targets is given; leave it out.")
    device, written = resolve(args.device), check_outputs(args, "--out", inputs=_INPUTS)
    texts = read_texts(args, *_INPUTS)
    given = read(args)
    labels = given.labels
    graph = sparse_of(given, args, device)
    ran: dict[str, Any] = {"method": None, "engine": None}
    if args.pairs is not None:
        sources, targets = pairs_in(texts["--pairs"], labels, "--pairs")
        solve = partial(paired_distances, graph, sources, targets, limit=args.limit)
        with labelled(labels):
            distances, seconds = timed_once(solve, device)
        lines = pair_lines(
            distances,
            [labels[vertex] for vertex in sources],
            [labels[vertex] for vertex in targets],
        )
    else:
        sources = vertices_in(texts["--sources"], labels, "--sources")
        chosen, columns = None, labels
        if "--targets" in texts:
            chosen = vertices_in(texts["--targets"], labels, "--targets")
            columns = [labels[vertex] for vertex in chosen]
        with labelled(labels):
            solve_table = partial(
                shortest_paths, graph, sources=sources, targets=chosen, limit=args.limit
            )
            result, seconds = timed_once(solve_table, device)
        ran, distances = {"method": result.method, "engine": result.engine}, result.distances
        lines = table_lines(distances, [labels[vertex] for vertex in sources], columns)
    if args.out is not None:
        write_values(distances, args.out, "distances", lines)
    elif not args.json:
        print_lines(lines)
        return
    summary = summarise(distances.view(len(sources), -1))
    dtype = dtype_name(graph.dtype)
    print_result(
        args.json,
        {
            "n": graph.n,
            "edges": graph.edges,
            "shape": list(distances.shape),
            "device": str(device),
            "dtype": dtype,
            **ran,
            "seconds": seconds,
            "reachable_pairs": summary["reachable_pairs"],
            "max_distance": summary["max_distance"],
            "sum_distances": summary["sum_distances"],
        },
        [
            ("graph", describe_graph(args, graph.n, graph.edges)),
            ("device", f"{describe_device(device)}, {dtype}"),
            (ran["method"] or "pairs", f"{seconds:.4g} s"),
            *describe_distances(summary, distances.numel()),
            ("written", written),
        ],
    )
