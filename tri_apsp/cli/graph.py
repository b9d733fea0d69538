"""What the commands on a graph share: the arguments that name it, reading it, and writing and
summarising its distances.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import torch

from tri_apsp.api import PreparedGraph, Result
from tri_apsp.console.options import add_device
from tri_apsp.device import describe
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.graphs import (
    DISTANCE_FORMATS,
    FORMATS,
    READ_FORMATS,
    SPARSE_DTYPES,
    DenseGraph,
    Graph,
    ReadOptions,
    SparseGraph,
    check_output,
    load_graph,
    sparse_graph,
    write_distances,
    write_predecessors,
    write_rows_of_sources,
)
from tri_apsp.graphs.arrays import PreparedFileError
from tri_apsp.graphs.labels import Label, Labels
from tri_apsp.messages import counted
from tri_apsp.request import METHOD_CHOICES
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name, no_edge
from tri_apsp.sparse.plan import JOHNSON, ROW_METHODS

AnyGraph: TypeAlias = Graph | SparseGraph
"""What a command reads; a prepared graph is a SparseGraph."""

STDIN = "-"
"""In place of a file: standard input."""

MARK = "--negative-cycles mark"
"""An option that add_outputs() adds, for messages."""

# Values per block, which limits temporaries to a few times 8 MiB for a matrix of any size.
_BLOCK = 1 << 20

# Below these, a float64 and a float32 hold every integer exactly.
_EXACT_END = 2.0**53
_FLOAT32_EXACT_END = 2.0**24


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add GRAPH, and the options that say how it is read."""
    parser.add_argument(
        "graph",
        metavar="GRAPH",
        help=f"ends in one of {', '.join(READ_FORMATS)}, and may be a .npz that prepare wrote; or "
        f"{STDIN} for standard input, which needs --format. Of parallel edges only the lightest "
        "counts, of loops only negative ones; the number of edges shown follows this",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="format of GRAPH; default: as its name ends"
    )
    parser.add_argument(
        "--vertices",
        type=int,
        metavar="N",
        help="vertices of an edge list, numbered from --base; default: those that it names",
    )
    parser.add_argument(
        "--base", type=int, choices=[0, 1], help="the number of the first of these vertices"
    )
    parser.add_argument(
        "--columns",
        metavar="S,T[,W]",
        help="columns of source, target and weight in a text: names of its first row, or numbers "
        "from 1",
    )
    parser.add_argument(
        "--header",
        action="store_true",
        default=None,
        help="the first row of a text is no edge; above a matrix, it holds labels",
    )
    parser.add_argument(
        "--matrix", action="store_true", default=None, help="a text is a matrix, not an edge list"
    )
    parser.add_argument(
        "--missing",
        metavar="X",
        type=float,
        help="the entry of a matrix as text that means no edge, besides inf",
    )
    parser.add_argument(
        "--undirected", action="store_true", help="count each edge of the file in both directions"
    )


def add_solver(parser: argparse.ArgumentParser) -> None:
    """Add --method and --dtype."""
    parser.add_argument(
        "--method",
        default="auto",
        choices=METHOD_CHOICES,
        metavar="METHOD",
        help=f"auto (default), {', '.join(METHOD_CHOICES[1:])}",
    )
    add_dtype(parser)


def add_dtype(parser: argparse.ArgumentParser, dtypes: Sequence[torch.dtype] = DTYPES) -> None:
    """Add --dtype, one of `dtypes`."""
    parser.add_argument(
        "--dtype",
        choices=[dtype_name(dtype) for dtype in dtypes],
        help="default: float32, or that of the file where it holds a dense matrix or a prepared "
        "graph",
    )


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add --limit, --device and --dtype of a command that solves rows of a sparse graph."""
    parser.add_argument(
        "--limit",
        type=float,
        metavar="D",
        help="the farthest distance of interest; farther ones count as no path",
    )
    add_device(parser, engine=False)
    add_dtype(parser, SPARSE_DTYPES)


def add_file(
    parser: argparse._ActionsContainer, *options: str, summary: str, required: bool = False
) -> None:
    """Add an option that names a file."""
    parser.add_argument(*options, type=Path, metavar="FILE", help=summary, required=required)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add --negative-cycles, --predecessors and --out."""
    parser.add_argument(
        "--negative-cycles",
        default="raise",
        choices=["raise", "mark"],
        help="raise (default): an error; mark: -inf for pairs through a negative cycle, and the "
        "distances of all others",
    )
    add_file(
        parser,
        "--predecessors",
        summary="write, for each source and every vertex, the vertex before the last of the path: "
        "in .csv as the file calls it, else numbered from 0, and -1",
    )
    add_file(
        parser,
        "-o",
        "--out",
        summary=f"write the distances; ends in one of {', '.join(DISTANCE_FORMATS)}",
    )


def check_outputs(
    args: argparse.Namespace,
    *options: str,
    formats: Sequence[str] = DISTANCE_FORMATS,
    inputs: Sequence[str] = (),
) -> str:
    """Check the files that options name, before the work; return them for the result.

    Args:
        formats: the extensions that are allowed.
        inputs: options that name files to read.

    Raises:
        InputError: for a file that cannot be written, is the graph or an input, or is named twice.
    """
    given = {option: getattr(args, option.removeprefix("--")) for option in options}
    paths = {option: path for option, path in given.items() if path is not None}
    read = {option: getattr(args, option.removeprefix("--")) for option in inputs}
    seen = {
        Path(path).resolve(): name
        for name, path in {**read, "the graph": args.graph}.items()
        if path is not None and str(path) != STDIN
    }
    for option, path in paths.items():
        check_output(path, formats)
        first = seen.setdefault(path.resolve(), option)
        if first != option:
            raise InputError(
                f"{first} and {option} must be two files, but both are {path}; change one."
            )
    return ", ".join(map(str, paths.values()))


@contextmanager
def labelled(labels: Labels, mark: str = "") -> Iterator[None]:
    """Raise the error of a negative cycle with the labels of a file, and with options of the
    command line.
    """
    try:
        yield
    except NegativeCycleError as error:
        raise error.reworded(mark, labels) from None


def read(args: argparse.Namespace) -> AnyGraph:
    """Return the graph that the arguments name; one that was prepared has its order."""
    try:
        options: Any = {name: getattr(args, name, None) for name in ReadOptions.__annotations__}
        return load_graph(opened(args.graph), **options | {"directed": not args.undirected})
    except PreparedFileError:
        if Path(args.graph).suffix.lower() != ".npz":  # which load() takes alone
            raise
    graph = PreparedGraph.load(args.graph)
    dtype = dtype_of(args)
    may_be_rounded = max(graph.heaviest, -graph.lowest) >= _FLOAT32_EXACT_END
    if graph.dtype == torch.float32 and (
        dtype == torch.float64 or (dtype in (torch.int32, torch.int64) and may_be_rounded)
    ):
        raise InputError(
            f"--dtype must be float32, to which the weights of {args.graph} were rounded, but is "
            f"{args.dtype}; give --dtype to prepare."
        )
    return graph.both_ways() if args.undirected else graph


def dtype_of(args: argparse.Namespace) -> torch.dtype | None:
    """Return the dtype that the arguments ask for."""
    return DTYPES_BY_NAME[args.dtype] if args.dtype else None


def sparse_of(graph: AnyGraph, args: argparse.Namespace, device: torch.device) -> SparseGraph:
    """Return the sparse graph in the dtype that the arguments ask for, else in its own; int32 for
    int16.
    """
    return sparse_graph(graph, dtype=dtype_of(args), device=device)


def weights_of(
    graph: AnyGraph, args: argparse.Namespace, device: torch.device
) -> torch.Tensor | SparseGraph:
    """Return what the solver takes: a sparse graph if a sparse method may be chosen, else dense
    weights.
    """
    natural = graph.dtype if isinstance(graph, SparseGraph) else graph.natural_dtype
    dtype = dtype_of(args) or natural
    may_be_sparse = args.method in ("auto", JOHNSON, *ROW_METHODS)
    if not isinstance(graph, DenseGraph) and dtype in SPARSE_DTYPES and may_be_sparse:
        return sparse_of(graph, args, device)
    given = DenseGraph(graph.dense()) if isinstance(graph, SparseGraph) else graph
    return given.to_weights(dtype, device)


def edges_of(weights: torch.Tensor | SparseGraph) -> int:
    """Return the number of edges that count: one for each pair, and loops only if they are
    negative.
    """
    return weights.edges if isinstance(weights, SparseGraph) else DenseGraph(weights).edges


def describe_distances(
    summary: Mapping[str, Any], count: int, noun: str = "pair", plural: str = ""
) -> list[tuple[str, str]]:
    """Return the lines for what summarise() returned of `count` distances."""
    longest = f"longest {summary['max_distance']}, sum {summary['sum_distances']}"
    reachable = summary["reachable_pairs"]
    return [
        ("reachable", f"{reachable} of {counted(count, noun, plural)}"),
        ("distances", longest if reachable else ""),
    ]


def describe_device(device: torch.device) -> str:
    """Return the line that names the device."""
    return f"{describe(device).name} ({device})"


def describe_graph(args: argparse.Namespace, n: int, edges: int) -> str:
    """Return the line that names the graph."""
    name = "standard input" if args.graph == STDIN else args.graph
    return f"{name}: {counted(n, 'vertex', 'vertices')}, {counted(edges, 'edge')}"


def opened(name: str, what: str = "a graph") -> str | BinaryIO:
    """Return the name of a file, or standard input if that is named."""
    if name != STDIN:
        return name
    if sys.stdin is None:
        raise InputError(
            f"{what} must be read from an open file, but standard input is closed; redirect a "
            "file to it."
        )
    return sys.stdin.buffer


def summarise(distances: torch.Tensor) -> dict[str, Any]:
    """Return figures of distances (rows, n) of any supported dtype, on any device, over all
    reachable pairs, the diagonal included.

    Returns:
        reachable_pairs: pairs whose distance is not no_edge.
        max_distance: the largest of these distances, an int if it is an integer below 2**53; None
            if no pair is reachable.
        sum_distances: their sum, exact for integers, else rounded as a float64; None if no pair is
            reachable, or if the sum exceeds float64.
        unbounded_pairs: marked pairs, which have a walk through a negative cycle; the other
            figures leave them out.

    Cost: a few passes over the matrix; workspace of a few blocks of 2**20 values.
    """
    missing = no_edge(distances.dtype)
    lowest = -missing if distances.is_floating_point() else torch.iinfo(distances.dtype).min
    pairs, unbounded, largest = 0, 0, list[int | float]()
    total: int | float = 0
    step = max(1, _BLOCK // max(1, distances.shape[-1]))
    for rows in torch.split(distances, step):
        marked = rows == -missing
        unbounded += int(marked.sum())
        absent = marked.logical_or_(rows == missing)
        present = rows.numel() - int(absent.sum())
        pairs += present
        if present:
            largest.append(rows.masked_fill(absent, lowest).amax().item())
            total += _sum(rows.masked_fill(absent, 0))
    return {
        "reachable_pairs": pairs,
        "max_distance": as_number(max(largest), distances.dtype) if pairs else None,
        "sum_distances": (
            as_number(total, distances.dtype) if pairs and math.isfinite(total) else None
        ),
        "unbounded_pairs": unbounded,
    }


def _sum(values: torch.Tensor) -> Any:
    if values.is_floating_point():
        return values.sum(dtype=torch.float64).item()
    # The upper and lower 32 bits are summed apart, since the sum of a block of int64 may not fit
    # int64.
    values = values.to(torch.int64)
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def as_number(value: int | float, dtype: torch.dtype) -> int | float:
    """Return a distance for people: an int if it is an integer that no other was rounded to; a
    float with the fewest digits that tell it from others of its dtype.
    """
    if value % 1 == 0 and abs(value) < _EXACT_END:
        return int(value)
    return float(str(np.float32(value))) if dtype == torch.float32 else value


def write_result(
    result: Result,
    args: argparse.Namespace,
    labels: Labels,
    written: str,
    sources: Sequence[Label] | None = None,
    is_written: bool = False,
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Write the files of --out and --predecessors, and summarise the result.

    Args:
        labels: of the vertices in the file of the graph.
        written: the files, for the last line.
        sources: what the rows are called in a .csv, which then has a line for each vertex.
        is_written: whether the file of --out has the distances already.

    Returns:
        What --json prints, and the lines of text; those that say nothing are empty.
    """
    if is_written or args.out is None:
        pass
    elif sources is not None:
        targets = None if result.targets is None else result.targets.tolist()
        ends = labels if targets is None else [labels[target] for target in targets]
        write_rows_of_sources(result.distances, args.out, sources, ends)
    else:
        write_distances(result.distances, args.out, labels)
    if result.predecessors is not None:
        columns = sources if result.nearest is None else ["predecessor"]
        write_predecessors(result.predecessors, args.predecessors, labels, columns)
    summary, cycle, marked = summarise(result.distances), None, ""
    if result.negative_cycle is not None:
        cycle = [labels[vertex] for vertex in result.negative_cycle.vertices]
        shown = ", ".join(map(str, cycle[:8])) + (", ..." if len(cycle) > 8 else "")
        marked = (
            f"{counted(summary['unbounded_pairs'], 'pair')} through a negative cycle, such as that "
            f"of weight {result.negative_cycle.weight:g} through {shown}"
        )
    is_array = args.predecessors is not None and ".csv" not in args.predecessors.suffixes
    fields = [
        *describe_distances(summary, result.distances.numel()),
        ("marked", marked),
        ("numbers", f"{args.predecessors} counts vertices from 0" if is_array else ""),
        ("written", written),
    ]
    return summary | {"negative_cycle": cycle}, fields
