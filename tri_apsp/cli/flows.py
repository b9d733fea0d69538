"""python -m tri_apsp flows"""

import argparse
from functools import partial

import numpy as np

from tri_apsp.api import edge_flows
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.files import demand_in
from tri_apsp.cli.graph import Problem
from tri_apsp.cli.options import ENDINGS, FILE, NAMED, NETWORK, OUT, SPARSE_DTYPE
from tri_apsp.console.options import DEVICES, add_options, json_of, option
from tri_apsp.device import resolve_all
from tri_apsp.graphs import write_vertex_values
from tri_apsp.graphs.write import edge_lines


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `flows`."""
    add_options(
        parser,
        *NETWORK,
        option(
            "--demand",
            **FILE,
            help="file of what travels: a source, a target, by their numbers or names in GRAPH, "
            f"and a number per line, {NAMED}; those of one pair add up; default: 1 from each "
            "vertex to each other, whose loads are the betweenness without normalization",
        ),
        option(
            "--through",
            **FILE,
            help=f"write what passes through each vertex, without what starts or ends there; "
            f"{ENDINGS}",
        ),
        DEVICES,
        SPARSE_DTYPE,
        OUT.but(
            help=f"write the load of each edge; {ENDINGS}; default: as .csv to standard output, "
            "without a summary"
        ),
        json_of(
            "n, edges, device, dtype, demand, unserved (the demand without a path), largest (load; "
            f"null without an edge), seconds ({SECONDS})"
        ),
    )
    parser.epilog = (
        "Weights must be positive; equal paths share demand evenly. A .csv has the columns source, "
        "target and load; other files hold the loads (edges,), by source and target."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and a demand, and write the load of each edge."""
    devices = resolve_all(args.device)
    problem = Problem(args, "--out", "--through", inputs=["--demand"], devices=devices)
    graph, text = problem.network, problem.texts.get("--demand")
    if text is None:
        ends, total = (range(graph.n), range(graph.n), 1.0), float(graph.n * (graph.n - 1))
        call = partial(edge_flows, graph, *ends, device=devices)
    else:
        with np.errstate(over="ignore"):  # which edge_flows refuses
            sources, targets, demand = demand_in(text, problem.labels, "--demand")
            total = float(demand.sum())
        call = partial(edge_flows, graph, sources, targets, demand, device=devices)
    found, seconds = problem.timed(call, first=partial(call, progress=not args.json))
    if args.through is not None:
        write_vertex_values(found.through, args.through, "through", problem.labels)
    lines = partial(edge_lines, found.loads, "load", graph.by_source, problem.labels)
    if not problem.write_or_print(found.loads, "load", lines):
        return
    unserved = float(found.unserved.sum())
    largest = found.loads.max().item() if graph.edges else None
    facts = {"demand": total, "unserved": unserved, "largest": largest, "seconds": seconds}
    problem.show(
        {**problem.place, **facts},
        [
            ("demand", f"{total:g}, of which {unserved:g} has no path"),
            ("largest load", "" if largest is None else f"{largest:g}"),
            ("time", f"{seconds:.4g} s"),
        ],
    )
