"""Closures over other semirings than min_plus: paths of the greatest sum or product, and those
whose least or greatest weight is best.

Weights are encoded so that less is better and `no_edge` is no edge. Of sums and products the
closure is then one of shortest paths, whose distances are decoded; see tri_apsp.bottleneck for the
others.
"""

import dataclasses
import os
from typing import Any

import torch

from tri_apsp import bottleneck, calls
from tri_apsp.arguments import as_tensor, check_tensor, check_weights
from tri_apsp.device import resolve
from tri_apsp.dispatch import has_functorch_wrapper, operation_error
from tri_apsp.errors import DistanceRangeError, InputError, InputTypeError, NegativeCycleError
from tri_apsp.graphs import DenseGraph, SparseGraph, cast_weights, is_sparse, sparse_graph
from tri_apsp.memory import memory_for_matrices
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.semirings import SEMIRINGS, Semiring, dtype_name, no_edge
from tri_apsp.value_checks import check_values, raise_out_of_range
from tri_apsp.value_range import value_range

# Weights that are encoded at a time, which limits what that takes besides the result.
_VALUES_PER_BLOCK = 1 << 26


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
    over = SEMIRINGS[semiring]
    encode = _Encoding(over)
    encoded = _encoded(graph, encode, dtype)
    if over.operation == "times":
        # The rounding of a weight, and that of its logarithm.
        error = torch.finfo(encode.dtype).eps + 2.0**-52 * encode.farthest
        options["weight_error"] = error
    request = Request.of(encoded, device=None if device is None else resolve(device), **options)
    del encoded
    try:
        result = bottleneck.solve(request) if over.operation == "max" else calls.solve(request)
    except NegativeCycleError as error:
        raise error.of_semiring(over.name, _decoded_weight(error.weight, over)) from None
    except DistanceRangeError:
        raise_out_of_range(encode.dtype, "a weight or a path is too far from 0")
    distances = encode.decoded(result.distances, in_place=over.operation == "max")
    if over.operation == "times" and bool(distances.detach().isinf().any()):
        raise_out_of_range(encode.dtype, "a product is larger than the largest float")
    lists = result.edge_lists
    if lists is not None and isinstance(graph, SparseGraph):
        lists = graph.by_source  # also with edges that are none here
    elif lists is not None:
        lists = dataclasses.replace(lists, weights=encode.decoded(lists.weights))
    return dataclasses.replace(result, distances=distances, edge_lists=lists, semiring=over.name)


def _decoded_weight(weight: float | None, semiring: Semiring) -> float | None:
    """Return the weight of a cycle in a semiring."""
    if weight is None:
        return None
    if semiring.operation == "plus":
        return -weight
    return torch.tensor(-weight, dtype=torch.float64).exp().item()  # inf where it overflows


class _Encoding:
    """Returns the weights of shortest paths for those of a semiring.

    Attributes:
        semiring: the semiring.
        dtype: of the weights that were encoded.
        farthest: the largest magnitude of their logarithms.
    """

    def __init__(self, semiring: Semiring) -> None:
        self.semiring, self.dtype, self.farthest = semiring, torch.float32, 0.0

    def __call__(self, weights: torch.Tensor, missing: torch.Tensor | None = None) -> torch.Tensor:
        """Encode weights; `missing` are those that are no edge, None: find them."""
        self.dtype = weights.dtype
        missing = self.missing(weights) if missing is None else missing
        found = weights
        if self.semiring.operation == "times":
            found = self._logarithms(weights, missing)
        elif self.semiring.operation == "plus":
            found = self.semiring.encode(weights)
        elif self.semiring.is_reversed:
            found = bottleneck.reverse(weights)
        return found.masked_fill(missing, no_edge(found.dtype))

    def decoded(self, values: torch.Tensor, *, in_place: bool = False) -> torch.Tensor:
        """Return what encoded values stand for; `in_place`: in their memory where that suffices."""
        if self.semiring.operation == "times":
            return (-values).exp().to(self.dtype)
        if self.semiring.operation == "plus":
            return self.semiring.decode(values, values.dtype)
        if self.semiring.is_reversed:
            return bottleneck.reverse(values, values if in_place else None)
        return values

    def missing(self, weights: torch.Tensor) -> torch.Tensor:
        """Return which weights are no edge: no_edge, and zero of the semiring."""
        zero = self.semiring.zero(weights.dtype)
        return (weights == no_edge(weights.dtype)) | (weights == zero)

    def _logarithms(self, weights: torch.Tensor, missing: torch.Tensor) -> torch.Tensor:
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
        found = -weights.masked_fill(missing, 1).double().log()
        if found.numel():
            self.farthest = max(self.farthest, found.detach().abs().max().item())
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
    tensor = check_tensor(as_tensor(graph, "graph"), "graph")
    if torch.compiler.is_compiling() or has_functorch_wrapper(tensor):
        raise InputError(
            "this function must not be called under torch.compile or a transform of torch.func, "
            "but is; call it outside, for many graphs with a batch."
        )
    batch = check_weights(tensor)
    given, changes_dtype = batch.weights, dtype is not None and dtype != tensor.dtype
    wants_gradient = given.requires_grad and torch.is_grad_enabled()
    if wants_gradient and (encode.semiring.operation == "max" or changes_dtype):
        if changes_dtype:
            raise operation_error("dtype", "convert the weights with .to().")
        raise InputError(
            "`graph` must not require a gradient, which paths of the greatest or least weight do "
            "not have; give graph.detach()."
        )
    kind = torch.float64 if encode.semiring.operation == "times" else dtype
    with memory_for_matrices(given, 3, kind):
        missing = encode.missing(given)
        if encode.semiring.operation == "max":  # a loop changes no path
            missing.diagonal(dim1=1, dim2=2).fill_(True)
        values = given.masked_fill(missing, 1)
        if changes_dtype:
            assert dtype is not None
            values = cast_weights(values, dtype)
        found = value_range(values.detach(), no_edge(values.dtype))
        check_values(values.detach(), "graph", found)
        rows = max(1, _VALUES_PER_BLOCK // max(1, batch.count * batch.n))
        parts = zip(torch.split(values, rows, 1), torch.split(missing, rows, 1), strict=True)
        encoded = [encode(*part) for part in parts]
        weights = encoded[0] if len(encoded) == 1 else torch.cat(encoded, 1)
    weights = weights if batch.batched else weights[0]
    return weights if labels is None else DenseGraph(weights, labels)
