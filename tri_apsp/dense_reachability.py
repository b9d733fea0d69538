"""Reachability in dense graphs: arguments, packed bits, the recursion of distances over them,
and the result.
"""

import torch

from tri_apsp import engines
from tri_apsp.arguments import check_adjacency
from tri_apsp.device import current
from tri_apsp.engines import boolean
from tri_apsp.errors import InputError
from tri_apsp.memory import memory_for_matrices
from tri_apsp.methods import Observer
from tri_apsp.methods.kleene import Kleene
from tri_apsp.semirings import DTYPES, no_edge


def reachability_of(adjacency: object) -> torch.Tensor:
    """Return which vertices a path leads to; see tri_apsp.reachability."""
    batch = check_adjacency(adjacency)
    graphs, device = batch.weights, batch.weights.device
    with (
        memory_for_matrices(graphs, matrices_of_closure(batch.n), torch.bool),
        current(device),
    ):
        check_values(graphs)
        result = closure_of(graphs, None)
    return result if batch.batched else result[0]


def check_values(graphs: torch.Tensor) -> None:
    """Refuse integers that seem to be weights."""
    if graphs.dtype not in DTYPES or not graphs.numel():
        return
    infinity = no_edge(graphs.dtype)
    engine = engines.type_of(engines.choose_unconfigured(graphs.device))
    (found,) = engine.value_ranges([graphs], infinity)
    if found.highest == infinity:
        raise InputError(
            f"`adjacency` must have 0 where there is no edge, but holds {infinity}, which means no "
            "edge in weights; give `adjacency != no_edge`."
        )


def matrices_of_closure(n: int) -> float:
    """Return how many matrices of bool a closure allocates: the result, and packed_size(n)**2 bits
    per graph.
    """
    return 1 + boolean.packed_size(n) ** 2 / (8 * max(1, n) ** 2)


def closure_of(graphs: torch.Tensor, missing: float | int | None) -> torch.Tensor:
    """Return the closure (batch, n, n) of checked graphs, in which `missing` is no edge; None: 0 or
    False is.
    """
    if graphs.numel() == 0:
        return graphs.new_empty(graphs.shape, dtype=torch.bool)
    device = graphs.device
    engine = boolean.make(engines.choose_unconfigured(device), graphs.shape[-1], device)
    matrix = engine.pack(graphs, missing)
    Kleene().solve(matrix, engine, Observer())
    return engine.unpack(matrix)
