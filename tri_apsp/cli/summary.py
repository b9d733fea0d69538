"""A summary of distances in a few numbers, computed on their device by blocks of rows."""

import argparse
import math
from typing import Any

import torch

from tri_apsp.api import Result
from tri_apsp.graphs import write_distances, write_predecessors
from tri_apsp.messages import counted
from tri_apsp.semirings import no_edge

# Values per block, which limits temporaries to a few times 8 MiB for a matrix of any size.
_BLOCK = 1 << 20

# A float64 below holds every integer exactly.
_EXACT_END = 2.0**53


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
        "max_distance": _as_integer(max(largest)) if pairs else None,
        "sum_distances": _as_integer(total) if pairs and math.isfinite(total) else None,
        "unbounded_pairs": unbounded,
    }


def _sum(values: torch.Tensor) -> Any:
    if values.is_floating_point():
        return values.sum(dtype=torch.float64).item()
    # The upper and lower 32 bits are summed apart, since the sum of a block of int64 may not fit
    # int64.
    values = values.to(torch.int64)
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _as_integer(value: int | float) -> int | float:
    """Return a float as an int if it is an integer that no other was rounded to."""
    return int(value) if value % 1 == 0 and abs(value) < _EXACT_END else value


def write_result(
    result: Result, args: argparse.Namespace, base: int, written: str
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Write the files of --out and --predecessors, and summarise the result.

    Args:
        base: the number of the first vertex in the file of the graph.
        written: the files, for the last line.

    Returns:
        What --json prints, and the lines of text; those that say nothing are empty.
    """
    if args.out is not None:
        write_distances(result.distances, args.out)
    if result.predecessors is not None:
        write_predecessors(result.predecessors, args.predecessors)
    summary, cycle, marked = summarise(result.distances), None, ""
    if result.negative_cycle is not None:
        cycle = [base + vertex for vertex in result.negative_cycle.vertices]
        shown = ", ".join(map(str, cycle[:8])) + (", ..." if len(cycle) > 8 else "")
        marked = (
            f"{counted(summary['unbounded_pairs'], 'pair')} through a negative cycle, such as that "
            f"of weight {result.negative_cycle.weight:g} through {shown}"
        )
    longest = f"longest {summary['max_distance']}, sum {summary['sum_distances']}"
    reachable = summary["reachable_pairs"]
    fields = [
        ("reachable", f"{reachable} of {counted(result.distances.numel(), 'pair')}"),
        ("distances", longest if reachable else ""),
        ("marked", marked),
        ("written", written),
    ]
    return summary | {"negative_cycle": cycle}, fields
