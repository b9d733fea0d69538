"""The transitive closure of graphs: arguments, packed bits, the recursion of distances over them,
and the result.
"""

from __future__ import annotations

import torch

from tri_apsp import engines, tuned
from tri_apsp.device import current
from tri_apsp.engines import boolean
from tri_apsp.errors import InputError
from tri_apsp.methods import Observer
from tri_apsp.methods.kleene import Kleene
from tri_apsp.semirings import DTYPES, no_edge
from tri_apsp.solver.arguments import check_adjacency
from tri_apsp.solver.memory import memory_for_reachability
from tri_apsp.solver.values import check_values

__all__ = ["closure", "transitive_closure"]


def closure(adjacency: torch.Tensor, weights: bool) -> torch.Tensor:
    """Return which vertices a path leads to; see tri_apsp.reachability."""
    problem = check_adjacency(adjacency, weights=weights)
    graphs, device = problem.weights, problem.weights.device
    with memory_for_reachability(problem), current(device):
        missing = None if graphs.dtype == torch.bool or not weights else no_edge(graphs.dtype)
        if graphs.dtype in DTYPES and graphs.numel():
            (found,) = engines.type_of(_engine(device)).value_ranges(
                [graphs], no_edge(graphs.dtype)
            )
            if missing is not None:
                check_values(graphs, "adjacency", found)
            elif found.highest == no_edge(graphs.dtype):
                raise InputError(
                    f"`adjacency` must have 0 where there is no edge, but holds {found.highest}, which means no edge in "
                    "weights; give weights=True."
                )
        result = transitive_closure(graphs, missing)
    return result if problem.batched else result[0]


def transitive_closure(graphs: torch.Tensor, missing: float | int | None) -> torch.Tensor:
    """Return the closure (batch, n, n) of checked graphs, in which `missing` is no edge; None: 0 or
    False is.
    """
    if graphs.numel() == 0:
        return graphs.new_empty(graphs.shape, dtype=torch.bool)
    engine = boolean.make(_engine(graphs.device), graphs.shape[-1], graphs.device)
    matrix = engine.pack(graphs, missing)
    Kleene().solve(matrix, engine, Observer())
    return engine.unpack(matrix)


def _engine(device: torch.device) -> str:
    return engines.choose(device, tuned.with_forced(None))
