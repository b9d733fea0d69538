"""The product of two matrices over a semiring."""

import torch

from tri_apsp import engines, tuned
from tri_apsp.arguments import check_operands
from tri_apsp.dense.exponents import by_exponents, product_threshold
from tri_apsp.device import current
from tri_apsp.engines import Engine, MatrixSpec, Update
from tri_apsp.engines.log_product import log_product
from tri_apsp.errors import DistanceRangeError, InputError
from tri_apsp.memory import memory_for
from tri_apsp.semirings import MIN_PLUS, Semiring, dtype_name, floor, missing, no_edge
from tri_apsp.value_checks import check_values, raise_out_of_range
from tri_apsp.value_range import ValueRange


def product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    semiring: Semiring = MIN_PLUS,
    *,
    arguments: bool = False,
    check: bool = True,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the product over a semiring and, if they are wanted, its arguments; see
    tri_apsp.semiring_product.
    """
    if semiring is not MIN_PLUS and any(getattr(x, "dtype", None) == torch.bool for x in (a, b, c)):
        raise InputError(
            f"operands of the semiring {semiring.name!r} must be numbers, but are bool; give "
            "torch.where(x, one, zero) of the numbers that you mean."
        )
    left, right, initial, batched = check_operands(a, b, c)
    given, operation = left.dtype, semiring.operation
    if operation in ("times", "log") and not given.is_floating_point:
        raise InputError(
            f"operands of the semiring {semiring.name!r} must be floats, but are "
            f"{dtype_name(given)}; convert them to float32 or float64."
        )
    if check and operation != "plus" and given.is_floating_point:  # all integers are allowed
        named = {"a": left, "b": right} | ({} if initial is None else {"c": initial})
        for what, tensor in named.items():
            _check_range(tensor, what, *semiring.allowed(given), semiring)
    if operation == "log":
        if arguments:
            raise InputError(
                "`return_arguments` does not go with the semiring 'log', of which no one term "
                "gives a value, but is given; leave it out."
            )
        size = 8 * (
            left.numel() + right.numel() + 3 * left.shape[0] * left.shape[1] * right.shape[2]
        )
        with memory_for("a product", size, left.device, "multiply fewer rows of `a` at a time"):
            result = log_product(left, right, initial)
        if check and bool(result.isposinf().any()):
            raise_out_of_range(given, "a sum is larger than the largest float")
        return result if batched else result[0], None
    left, right = semiring.encode(left), semiring.encode(right, is_right=True)
    initial = None if initial is None else semiring.encode(initial)
    device, dtype, columns = left.device, left.dtype, right.shape[2]
    ranges: list[ValueRange] | None = None
    name = engines.choose_unconfigured(device, dtype)
    if check and operation == "plus":
        ranges = _ranges(name, left, right, initial, semiring)
    nonnegative = ranges is not None and all(each.lowest >= 0 for each in ranges)

    batch, rows, depth = left.shape
    size = round((rows * depth * columns) ** (1 / 3))
    # The tiles of a product of floats are those of sums of the same sign.
    sign = nonnegative or operation == "times"
    call = tuned.call_of(name, device, dtype, n=size, batch=batch, nonnegative=sign, product=True)
    config = tuned.config_for_call(call)
    remedy = "multiply fewer rows of `a` at a time, use a narrower dtype, or a larger device"
    needed = batch * rows * columns * (dtype.itemsize + 12 * arguments)
    chosen: torch.Tensor | None = None
    with memory_for("a product", needed, device, remedy), current(device):
        spec = MatrixSpec(depth, dtype, device, nonnegative, operation=operation)
        engine = engines.make(spec, config)
        if arguments:
            result, chosen = _with_arguments(left, right, initial, engine)
        else:
            left, right, initial = engines.type_of(name).operands(left, right, initial, operation)
            if ranges is not None:
                engine = by_exponents(engine, product_threshold(name, left, right, ranges))
            if initial is None:
                result = left.new_empty((batch, rows, right.shape[2]))
            else:
                result = initial.clone(memory_format=torch.contiguous_format)
            engine.product(Update(result, left, right, fresh=initial is None))
        if ranges is not None:
            try:
                _verify(result, left, right, initial, engine, ranges)
            except DistanceRangeError:
                if semiring is MIN_PLUS:
                    raise
                raise_out_of_range(given, "a sum is too far from 0")  # which is negated there
        elif operation == "plus" and not given.is_floating_point and depth and result.numel():
            least = torch.minimum(left.amin(), right.amin()).clamp(max=0)
            _restore_missing(result, no_edge(dtype) + least, initial)
        result = semiring.decode(result[:, :, :columns], given).contiguous()
        if not depth and initial is None:
            result.fill_(semiring.zero(given))
        if operation == "times" and check and bool(result.isinf().any()):
            raise_out_of_range(given, "a product is larger than the largest float")
        if chosen is not None:
            chosen = chosen.long().masked_fill_(result == semiring.zero(given), -1)
            chosen = chosen if batched else chosen[0]
    return result if batched else result[0], chosen


def _with_arguments(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    engine: Engine,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the product of encoded operands, and its arguments; -1 where `c` is no more."""
    if a.dtype == torch.int16:  # of which the kernels have no search
        spec = engine.spec._replace(dtype=torch.int32)
        engine = engines.make(spec, tuned.find(engine.name, spec.device, spec.dtype))
        wide, chosen = engine.argmin(a.int().contiguous(), b.int().contiguous())
        result = wide.clamp(max=missing(a.dtype, spec.operation)).to(a.dtype)
    else:
        result, chosen = engine.argmin(a.contiguous(), b.contiguous())
    if c is not None:
        chosen.masked_fill_(c <= result, -1)
        result = torch.minimum(c, result)
    return result, chosen


def _check_range(
    tensor: torch.Tensor, name: str, least: float, most: float, semiring: Semiring
) -> None:
    """Refuse values outside [least, most], and NaN."""
    if not tensor.numel():
        return
    lowest, highest = tensor.aminmax()  # NaN if any value is; one pass, without masks
    if not bool((lowest >= least) & (highest <= most)):
        wrong = ~((tensor >= least) & (tensor <= most))
        value, zero = tensor[wrong][0].item(), semiring.zero(tensor.dtype)
        shown = "{:g}".format if tensor.is_floating_point() else str
        raise InputError(
            f"`{name}` must be in [{shown(least)}, {shown(most)}] in the semiring "
            f"{semiring.name!r}, but has {shown(value)}; replace it, by {shown(zero)} for none."
        )


def tries_exponents(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether product(a, b, None) tries to multiply by exponents; reads the values, for
    which the host blocks.
    """
    left, right, _, _ = check_operands(a, b, None)
    name = engines.choose_unconfigured(left.device, left.dtype)
    ranges = _ranges(name, left, right, None, MIN_PLUS)
    left, right, _ = engines.type_of(name).operands(left, right, None)
    return product_threshold(name, left, right, ranges) is not None


def _ranges(
    engine: str,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    semiring: Semiring,
) -> list[ValueRange]:
    """Return the value ranges below no_edge of encoded a, b and, if given, c, whose values are
    checked.
    """
    named = {"a": a, "b": b} | ({} if c is None else {"c": c})
    ranges = engines.type_of(engine).value_ranges(list(named.values()), no_edge(a.dtype))
    if semiring is not MIN_PLUS:
        for (name, tensor), found in zip(named.items(), ranges, strict=True):
            least, most = MIN_PLUS.allowed(a.dtype)
            if not (found.lowest >= least and found.highest <= most):
                _check_range(semiring.decode(tensor, a.dtype), name, -most, -least, semiring)
    return [
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
        _restore_missing(result, beyond, c)


def _restore_missing(
    result: torch.Tensor, beyond: float | torch.Tensor, c: torch.Tensor | None
) -> None:
    """Set every integer from `beyond` on, a sum that involves a missing edge, to no_edge or `c`."""
    is_missing = result >= beyond
    result.masked_fill_(is_missing, no_edge(result.dtype))
    if c is not None:
        result.copy_(torch.where(is_missing, c, result))
