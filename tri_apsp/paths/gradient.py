"""Gradients of solves and products: they flow to the edges, or the terms, that were chosen as the
minimum.
"""

import torch

from tri_apsp import engines, tuned
from tri_apsp.arguments import DenseBatch, check_operands, check_weights
from tri_apsp.device import current, is_captured
from tri_apsp.engines import Engine, MatrixSpec
from tri_apsp.engines.log_product import log_gradients
from tri_apsp.memory import memory_for, memory_for_matrices
from tri_apsp.paths.predecessors import find_predecessors_of_any_sign
from tri_apsp.semirings import MIN_PLUS, Semiring

# Bytes for each value that an engine takes beside the result: sums of 64 bits, and on a GPU at most
# 24 bytes of workspace.
_WORKSPACE = 32


def weights_gradient(
    gradient: torch.Tensor,
    weights: torch.Tensor,
    distances: torch.Tensor,
    sizes: torch.Tensor | None = None,
    predecessors: torch.Tensor | None = None,
    *,
    check: bool = True,
) -> torch.Tensor:
    """Return the gradient of weights by that of their distances.

    Args:
        gradient: (n, n) or (batch, n, n) of a floating dtype.
        weights, distances: of the same shape and dtype.
        sizes: as for shortest_paths, checked.
        predecessors: of these distances; None: they are found.
        check: whether the host may block until the sign of the distances is computed, without which
            a search for predecessors may take longer.

    Returns:
        The gradient, contiguous, 0 for edges on no path. Of several shortest paths, it belongs to
        one, always the same; to that which `predecessors` name, if they are given.
    """
    batch = check_weights(weights, sizes=sizes, check=False)
    shape = batch.weights.shape
    distances, gradient = (
        distances.reshape(shape).contiguous(),
        gradient.reshape(shape).contiguous(),
    )
    if not gradient.numel():
        return gradient.new_empty(weights.shape)
    engine = _engine(batch)
    if predecessors is None:
        with memory_for_matrices(batch.weights, 1), current(weights.device):
            found = engine.weights_gradient(gradient, batch.weights, distances)
        if found is not None:
            return found.reshape(weights.shape)
    matrices = 1 + max(
        _WORKSPACE / weights.itemsize, 1 + engine.predecessors_workspace(batch.weights)
    )
    with memory_for_matrices(batch.weights, matrices), current(weights.device):
        if predecessors is None:
            predecessors = find_predecessors_of_any_sign(batch, distances, engine, check=check)
        return engine.edge_gradient(gradient, predecessors.reshape(shape).contiguous()).reshape(
            weights.shape
        )


def _engine(batch: DenseBatch) -> Engine:
    weights = batch.weights
    name = engines.choose_unconfigured(weights.device, weights.dtype)
    config = tuned.find(name, weights.device, weights.dtype, n=batch.n, batch=batch.count)
    spec = MatrixSpec(batch.n, weights.dtype, weights.device, False, batch.sizes)
    return engines.make(spec, config)


def product_gradients(
    gradient: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    result: torch.Tensor,
    semiring: Semiring = MIN_PLUS,
) -> list[torch.Tensor]:
    """Return the gradients of `a`, `b` and, if it is given, `c` by that of their product over a
    semiring.

    Args:
        gradient: of the shape of `result`.
        a, b, c: the operands of the product, of a floating dtype.
        result: their product.

    Returns:
        The gradients, contiguous, each of the shape of its operand. That of an element belongs to
        `c` where the result equals it, else to the first term that the result equals, and to
        nothing where the result is zero of the semiring. Of a term it belongs to both values if
        they are added; times the other value if they are multiplied; else to the value that the
        term is, to that of `a` if both are. Of "log" each term has its share of the sum, and the
        gradients can be differentiated again.
    """
    left, right, initial, _ = check_operands(a, b, c)
    shape = (left.shape[0], left.shape[1], right.shape[2])
    gradient, product = gradient.reshape(shape).contiguous(), result.reshape(shape).contiguous()
    depth, device = left.shape[2], left.device
    size = _WORKSPACE * max(left.numel(), right.numel(), product.numel())
    with (
        memory_for("the gradients of a product", size, device, "multiply fewer rows at a time"),
        current(device),
    ):
        if semiring.operation == "log":
            operands = [x for x in (a, b, c) if x is not None]
            shares = log_gradients(gradient, left, right, initial, product)
            return [x.reshape(y.shape) for x, y in zip(shares, operands, strict=True)]
        engine, chosen = _chosen_terms(left, right, initial, product, semiring)
        of_c = list[torch.Tensor]()
        if initial is not None:
            from_c = (product == initial) & (initial != semiring.zero(product.dtype))
            of_c.append(torch.where(from_c, gradient, 0).reshape(result.shape))
        if not product.numel() or not depth:
            return [torch.zeros_like(a), torch.zeros_like(b), *of_c]
        if semiring.operation == "plus":
            of_a, of_b = engine.factor_gradients(gradient, chosen, depth)
        else:
            place = chosen.clamp(min=0).long()
            x, y = left.gather(2, place), right.gather(1, place)
            if semiring.operation == "times":
                to_a, to_b = gradient * y, gradient * x
            else:
                of_x = x <= y if semiring.is_reversed else x >= y
                to_a, to_b = torch.where(of_x, gradient, 0), torch.where(of_x, 0, gradient)
            of_a, _ = engine.factor_gradients(to_a, chosen, depth)
            _, of_b = engine.factor_gradients(to_b, chosen, depth)
    return [of_a.reshape(a.shape), of_b.reshape(b.shape), *of_c]


def _chosen_terms(
    left: torch.Tensor,
    right: torch.Tensor,
    initial: torch.Tensor | None,
    product: torch.Tensor,
    semiring: Semiring,
) -> tuple[Engine, torch.Tensor]:
    """Return the engine of the gradients of a product (batch, m, n), and the first k whose term
    gave each value, of int32; -1 where `initial` did, or where it is zero of the semiring.
    """
    given, zero, depth = product.dtype, semiring.zero(product.dtype), left.shape[2]
    a, b, c = semiring.encode(left), semiring.encode(right, is_right=True), semiring.encode(product)
    dtype, device = a.dtype, a.device
    name = engines.choose_unconfigured(device, dtype)
    config = tuned.find(name, device, dtype)
    # Without negative values, a GPU has less to do for each term; the host blocks until their sign
    # is computed.
    is_plus = semiring.operation == "plus"
    by_sign = is_plus and dtype == torch.float32 and device.type != "cpu"
    nonnegative = (
        by_sign
        and not is_captured(device)
        and all(found.lowest >= 0 for found in engines.type_of(name).value_ranges([a, b], None))
    )
    spec = MatrixSpec(depth, dtype, device, nonnegative, operation=semiring.operation)
    engine = engines.make(spec, config)
    _, chosen = engine.argmin(a.contiguous(), b.contiguous(), c.contiguous())
    none = product == zero
    if initial is not None:
        none |= product == initial
    chosen.masked_fill_(none, -1)
    # Gradients are added up in their own dtype.
    return engines.make(spec._replace(dtype=given, operation="plus"), config), chosen
