"""The min-plus product of two matrices."""

import torch

from tri_apsp import engines, tuned
from tri_apsp.arguments import check_operands
from tri_apsp.dense.exponents import by_exponents, product_threshold
from tri_apsp.device import current
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.memory import memory_for
from tri_apsp.semirings import floor, no_edge
from tri_apsp.value_checks import check_values, raise_out_of_range
from tri_apsp.value_range import ValueRange


def product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None) -> torch.Tensor:
    """Return the min-plus product; see tri_apsp.min_plus."""
    left, right, initial, batched = check_operands(a, b, c)
    device, dtype, columns = left.device, left.dtype, right.shape[2]
    name, ranges = _engine_and_ranges(left, right, initial)
    nonnegative = all(each.lowest >= 0 for each in ranges)

    batch, rows, depth = left.shape
    size = round((rows * depth * columns) ** (1 / 3))
    call = tuned.call_of(
        name, device, dtype, n=size, batch=batch, nonnegative=nonnegative, product=True
    )
    config = tuned.config_for_call(call)
    remedy = "multiply fewer rows of `a` at a time, use a narrower dtype, or a larger device"
    needed = batch * rows * columns * dtype.itemsize
    with memory_for("a product", needed, device, remedy), current(device):
        left, right, initial = engines.type_of(name).operands(left, right, initial)
        engine = by_exponents(
            engines.make(MatrixSpec(depth, dtype, device, nonnegative), config),
            product_threshold(name, left, right, ranges),
        )
        if initial is None:
            result = left.new_empty((batch, rows, right.shape[2]))
        else:
            result = initial.clone(memory_format=torch.contiguous_format)
        engine.product(Update(result, left, right, fresh=initial is None))
        _verify(result, left, right, initial, engine, ranges)
        result = result[:, :, :columns].contiguous()
    return result if batched else result[0]


def tries_exponents(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether product(a, b, None) tries to multiply by exponents; reads the values, for
    which the host blocks.
    """
    left, right, _, _ = check_operands(a, b, None)
    name, ranges = _engine_and_ranges(left, right, None)
    left, right, _ = engines.type_of(name).operands(left, right, None)
    return product_threshold(name, left, right, ranges) is not None


def _engine_and_ranges(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None
) -> tuple[str, list[ValueRange]]:
    """Return the name of the engine, and the value ranges below no_edge of a, b and, if given, c,
    whose values are checked.
    """
    name = engines.choose_unconfigured(a.device, a.dtype)
    named = {"a": a, "b": b} | ({} if c is None else {"c": c})
    ranges = engines.type_of(name).value_ranges(list(named.values()), no_edge(a.dtype))
    return name, [
        check_values(tensor, what, found)
        for (what, tensor), found in zip(named.items(), ranges, strict=True)
    ]


def _verify(
    result: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    engine: Engine,
    ranges: list[ValueRange],
) -> None:
    """Set every integer result that involves a missing edge to no_edge, or to `c`; raise if a sum
    is out of range.

    A sum that involves a missing edge is at least `beyond`; floats also reach that if they
    overflow. `ranges` are those of a, b and, if given, c. Where they exclude that a sum is out of
    range, no value is read.
    """
    dtype, infinity, least = result.dtype, no_edge(result.dtype), floor(result.dtype)
    if not result.numel() or not a.numel():
        return
    lowest_a, lowest_b, *lowest_c = (each.lowest for each in ranges)
    beyond = infinity + min(0, lowest_a, lowest_b)
    largest = [each.highest_below for each in ranges[:2] if each.highest_below is not None]
    limit = torch.finfo(dtype).max if dtype.is_floating_point else beyond - 1
    if len(largest) == 2 and sum(largest) > limit:
        left, right = (torch.zeros_like(t).masked_fill_(t == infinity, infinity) for t in (a, b))
        path = torch.full_like(result, infinity)
        engine.product(Update(path, left, right))
        known = infinity if c is None else c
        unsure = (result >= beyond) & ((result < known) | (result == infinity))
        if bool((unsure & (path == 0)).any()):
            beside = (
                f", which beside {min(lowest_a, lowest_b)} may be a missing edge"
                if beyond < infinity
                else ""
            )
            raise_out_of_range(dtype, f"a sum weighs more than {limit}{beside}")
    if min(lowest_a + lowest_b, *lowest_c, 0) <= least and result.amin().item() <= least:
        raise_out_of_range(dtype, f"a sum weighs {least} or less")
    if beyond < infinity:
        missing = result >= beyond
        result.masked_fill_(missing, infinity)
        if c is not None:
            result.copy_(torch.where(missing, c, result))
