"""What closing each of many edges alone would change: the repair of the affected pairs, which
writes nothing back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs.sparse import changed_edges
from tri_apsp.result import Result
from tri_apsp.semirings import no_edge
from tri_apsp.updates.graphs import Edges, direction_of, held_graphs
from tri_apsp.updates.raises import repair_of


class Criticality(NamedTuple):
    """What closing each edge alone would change, on the CPU.

    Attributes:
        increase: (edges,) of float64, by how much the distances that remain would grow together.
        disconnected: (edges,) of int64, the pairs that would have no path any more.
        affected: (edges,) of int64, the pairs whose distance would grow, with those; of floats,
            also pairs with another path that is as short within rounding.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> weights = torch.tensor([[0, 3, 9], [9, 0, 1], [2, 9, 0]])
        >>> result = tri_apsp.shortest_paths(weights)
        >>> found = tri_apsp.criticality(result, weights, [(2, 0)])
        >>> found.increase.item(), found.disconnected.item(), found.affected.item()
        (26.0, 0, 3)
    """

    increase: torch.Tensor
    disconnected: torch.Tensor
    affected: torch.Tensor


def criticality(result: Result, graph: Any, edges: Any, *, directed: bool | None) -> Criticality:
    """Return what closing each edge would change; see tri_apsp.criticality."""
    held = held_graphs(result, graph)
    directed = direction_of(result, graph, directed)
    if held.batch is not None:
        raise InputError(
            "`graph` must be one graph for this function, but is a batch; call it for each."
        )
    (one,) = held.graphs
    try:
        count = len(edges)
    except TypeError:  # refused below
        count = 0
    tails, heads, _ = changed_edges(
        one.n, edges, torch.ones(count), dtype=torch.float32, directed=directed
    )
    if directed or not count:
        per_edge = 1
    else:  # each edge, and the same the other way
        per_edge = 2
        tails, heads = (x.view(2, -1).T.flatten() for x in (tails, heads))
    weights = one.weights_of(tails, heads)
    is_missing = (weights >= no_edge(one.dtype)).view(-1, per_edge).all(1)
    if len(tails) != count * per_edge or bool(is_missing.any()):
        if len(tails) != count * per_edge:
            wrong = "one leads from a vertex to itself"
        else:
            place = per_edge * int(is_missing.nonzero()[0])
            wrong = f"the graph has no edge {(int(tails[place]), int(heads[place]))}"
        raise InputError(
            f"`edges` must be edges of the graph between two vertices, but {wrong}; leave it out."
        )
    d = result.distances.contiguous()
    if d.is_cuda and d is result.distances:  # which are written, and restored
        d = d.clone()
    repair = repair_of(d, one, Edges(tails, heads, weights, weights))
    found = [repair.closing(slice(i, i + per_edge)) for i in range(0, len(tails), per_edge)]
    return Criticality(
        torch.tensor([x.increase for x in found], dtype=torch.float64),
        torch.tensor([x.disconnected for x in found], dtype=torch.int64),
        torch.tensor([x.affected for x in found], dtype=torch.int64),
    )
