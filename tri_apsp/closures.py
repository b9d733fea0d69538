"""Closures over other semirings than min_plus: paths of the greatest sum or product, and those
whose least or greatest weight is best.

Weights are encoded so that less is better and `no_edge` is no edge. Of sums and products the
closure is then one of shortest paths, whose distances are decoded; see tri_apsp.bottleneck for the
others.
"""

import dataclasses
import math
import os
from typing import Any

import torch

from tri_apsp import bottleneck, calls
from tri_apsp.arguments import as_tensor, check_tensor, check_weights
from tri_apsp.device import resolve
from tri_apsp.errors import InputError, InputTypeError, NegativeCycleError
from tri_apsp.graphs import DenseGraph, SparseGraph, cast_weights, is_sparse, sparse_graph
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import SEMIRINGS, Semiring, dtype_name, no_edge
from tri_apsp.value_checks import check_values
from tri_apsp.value_range import value_range


def closure(
    graph: Any,
    semiring: str,
    *,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    **options: Any,
) -> Result:
    """Return the closure of a graph over "max_plus", "max_times", "max_min" or "min_max"; `options`
    are those of Request.of.
    """
    over, place = SEMIRINGS[semiring], None if device is None else resolve(device)
    encode = _Encoding(over)
    encoded = _encoded(graph, encode, dtype)
    if encode.lowest < 0 and over.operation == "times":
        # Logarithms are rounded, so that a cycle of product 1 may be negative.
        options["weight_error"] = 2.0**-52 * encode.farthest
    request = Request.of(encoded, device=place, **options)
    if over.operation == "max":
        return bottleneck.solve(request, over)
    try:
        result = calls.solve(request)
    except NegativeCycleError as error:
        weight = error.weight
        if weight is not None:
            weight = math.exp(-weight) if over.operation == "times" else -weight
        raise error.of_semiring(over.name, weight) from None
    distances = 0 - result.distances
    if over.operation == "times":
        distances = distances.exp().to(encode.dtype)
    return dataclasses.replace(result, distances=distances, semiring=over.name)


class _Encoding:
    """The weights of shortest paths for those of a semiring.

    Attributes:
        operation: of the semiring.
        dtype: of the weights.
        lowest, farthest: the least logarithm, and the largest of their magnitudes.
    """

    def __init__(self, semiring: Semiring) -> None:
        self._semiring, self.operation = semiring, semiring.operation
        self.dtype = torch.float32
        self.lowest = self.farthest = 0.0

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        self.dtype = weights.dtype
        found = weights
        if self.operation == "times":
            found = self._logarithms(weights)
        elif self.operation == "plus":
            found = 0 - weights
        elif self._semiring.is_reversed:
            found = bottleneck.reverse(weights)
        return found.masked_fill(self.missing(weights), no_edge(found.dtype))

    def missing(self, weights: torch.Tensor) -> torch.Tensor:
        """Return which weights are no edge: no_edge, and zero of the semiring."""
        zero = self._semiring.zero(weights.dtype)
        return (weights == no_edge(weights.dtype)) | (weights == zero)

    def _logarithms(self, weights: torch.Tensor) -> torch.Tensor:
        if not weights.is_floating_point():
            raise InputError(
                "the weights of most reliable paths must be floats, but are "
                f"{dtype_name(weights.dtype)}; convert them to float32 or float64."
            )
        values = weights.detach()
        if bool((values < 0).any()):
            raise InputError(
                "the weights of most reliable paths must not be negative, but one is "
                f"{values[values < 0][0].item():g}; give probabilities."
            )
        found = -weights.double().log()
        finite = found.detach()[~self.missing(values)]
        if finite.numel():
            self.lowest = finite.min().item()
            self.farthest = finite.abs().max().item()
        return found


def _encoded(
    graph: Any, encode: _Encoding, dtype: torch.dtype | None
) -> torch.Tensor | SparseGraph | DenseGraph:
    """Return a graph of encoded weights, whose values are checked."""
    if is_sparse(graph) or hasattr(graph, "restriction"):
        return sparse_graph(graph, dtype=dtype, encode=encode)
    if isinstance(graph, (str, os.PathLike)):
        raise InputTypeError(
            "`graph` must be in memory for this function, but is a path; give "
            f"tri_apsp.read_sparse_graph({str(graph)!r}), or an array that is loaded."
        )
    labels = None
    if isinstance(graph, DenseGraph):
        graph, labels = graph.weights, graph.labels
    graph = as_tensor(graph, "graph")
    if dtype is not None and check_tensor(graph, "graph").dtype != dtype:
        graph = cast_weights(graph, dtype)
    batch = check_weights(graph)
    weights = batch.weights
    if weights.requires_grad and encode.operation == "max":
        raise InputError(
            "`graph` must not require a gradient, which paths of the greatest or least weight do "
            "not have; give graph.detach()."
        )
    values = weights.detach()
    values = values.masked_fill(encode.missing(values), 0)
    check_values(values, "graph", value_range(values, no_edge(values.dtype)))
    weights = encode(weights)
    weights = weights if batch.batched else weights[0]
    return weights if labels is None else DenseGraph(weights, labels)
