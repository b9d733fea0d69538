"""python -m tri_apsp accessibility"""

import argparse
import math
from functools import partial

import torch

from tri_apsp.api import accessibility
from tri_apsp.bench.timing import SECONDS
from tri_apsp.cli.files import values_in
from tri_apsp.cli.graph import Problem, as_number
from tri_apsp.cli.options import ENDINGS, FILE, NAMED, NETWORK, OUT, SPARSE_DTYPE
from tri_apsp.console.options import DEVICES, add_options, json_of, option
from tri_apsp.device import resolve_all
from tri_apsp.graphs.write import vertex_lines


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `accessibility`."""
    add_options(
        parser,
        *NETWORK,
        option(
            "--limits",
            metavar="D",
            nargs="+",
            type=float,
            required=True,
            help="the farthest distances that count, by weight; one column for each",
        ),
        option(
            "--values",
            **FILE,
            help="file of what is reached, such as jobs: a vertex, by its number or name in GRAPH, "
            f"and a number per line, {NAMED}; those of one vertex add up, others count 0; "
            "default: 1 for each vertex",
        ),
        option(
            "--to-vertex",
            action="store_true",
            help="sum over the vertices that reach each vertex; default: over those it reaches",
        ),
        DEVICES,
        SPARSE_DTYPE,
        OUT.but(
            help=f"write the sums; {ENDINGS}; default: as .csv to standard output, without a "
            "summary"
        ),
        json_of(
            "n, edges, limits (null for inf), to_vertex, device, dtype, mean and largest (of the "
            f"sums of each limit; null without a vertex), seconds ({SECONDS})"
        ),
    )
    parser.epilog = (
        "A .csv has the column vertex and a column for each limit; other files hold the matrix "
        "(limits, n)."
    )


def run(args: argparse.Namespace) -> None:
    """Read a graph and values, and write how much each vertex reaches."""
    problem = Problem(args, "--out", inputs=["--values"], devices=resolve_all(args.device))
    text = problem.texts.get("--values")
    values = None if text is None else values_in(text, problem.labels, "--values")
    call = partial(
        accessibility,
        problem.network,
        args.limits,
        values,
        to_vertex=args.to_vertex,
        device=problem.devices,
    )
    sums, seconds = problem.timed(call)
    limits = [as_number(limit, torch.float64) for limit in args.limits]
    lines = partial(vertex_lines, sums, list(map(str, limits)), problem.labels)
    if not problem.write_or_print(sums, "accessibility", lines):
        return
    is_empty = not sums.numel()
    mean = [None if is_empty else row.mean().item() for row in sums]
    largest = [None if is_empty else row.max().item() for row in sums]
    problem.show(
        {
            "limits": [limit if math.isfinite(limit) else None for limit in limits],
            "to_vertex": args.to_vertex,
            **problem.place,
            "mean": mean,
            "largest": largest,
            "seconds": seconds,
        },
        [
            *(
                (f"limit {limit}", "" if is_empty else f"mean {average:g}, largest {most:g}")
                for limit, average, most in zip(limits, mean, largest, strict=True)
            ),
            ("time", f"{seconds:.4g} s"),
        ],
    )
