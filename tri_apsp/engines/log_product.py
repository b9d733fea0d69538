"""The product over the semiring "log", whose addition is log(exp(x) + exp(y)): by a matrix product
of float64, on tensor cores where those have float64.

    c[i, j] = r[i] + s[j] + log sum over k of exp(a[i, k] - r[i]) exp(b[k, j] - s[j])

with the maxima r of the rows of a and s of the columns of b. Where a sum is so small that terms may
have underflowed, it is computed again, from its own maximum.

Source: Blanchard, Higham, Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, 2021.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch

# A sum of at least this many terms of at most 2^-1074 each would not show in a larger one.
_LEAST = 2.0**-960
# Terms of sums that are computed again, at a time.
_TERMS = 1 << 24


class _Shifted(NamedTuple):
    """The factors in float64, less their maxima, which are no variables of a derivative."""

    a: torch.Tensor
    b: torch.Tensor
    shift: torch.Tensor  # (batch, m, n), r + s


def _shifted(a: torch.Tensor, b: torch.Tensor) -> _Shifted:
    a, b = a.double(), b.double()
    r, s = (
        x.detach().amax(dim, keepdim=True).clamp(min=torch.finfo(x.dtype).min)
        for x, dim in ((a, 2), (b, 1))
    )
    return _Shifted((a - r).exp(), (b - s).exp(), r + s)


def log_product(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None) -> torch.Tensor:
    """Return the product of (batch, m, k) and (batch, k, n), and `c` added if it is given."""
    if not a.shape[2] or not a.numel() or not b.numel():
        empty = a.new_full((*a.shape[:2], b.shape[2]), -torch.inf)
        return empty if c is None else c.clone()
    given, (x, y, shift) = a.dtype, _shifted(a, b)
    sums = x @ y
    result = sums.log() + shift
    for cells in _small_sums(a, b, sums):
        result[cells] = _terms(a, b, cells).logsumexp(1)
    if c is not None:
        result = torch.logaddexp(result, c.double())
    return result.to(given)


def log_gradients(
    gradient: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None,
    result: torch.Tensor,
) -> list[torch.Tensor]:
    """Return the gradients of the operands of log_product by that of its result: each term has its
    share of the sum. They can be differentiated again.
    """
    given, gradient, total = a.dtype, gradient.double(), result.double()
    of_c = list[torch.Tensor]()
    if c is not None:
        share = (c.double() - total).exp().masked_fill(total == -torch.inf, 0)
        of_c.append((gradient * share).to(given))
    if not a.shape[2] or not a.numel() or not b.numel():
        return [torch.zeros_like(a), torch.zeros_like(b), *of_c]
    x, y, shift = _shifted(a, b)
    sums = (x @ y).detach()
    share = (shift - total.masked_fill(sums < _LEAST, torch.inf)).exp()
    of_a, of_b = x * ((gradient * share) @ y.mT), y * (x.mT @ (gradient * share))
    for cells in _small_sums(a, b, sums):
        batch, i, j = cells
        of_terms = (_terms(a, b, cells) - total[cells][:, None]).exp() * gradient[cells][:, None]
        of_a = of_a.index_put((batch, i), of_terms, accumulate=True)
        of_b = of_b.mT.index_put((batch, j), of_terms, accumulate=True).mT
    return [of_a.to(given), of_b.to(given), *of_c]


def _small_sums(
    a: torch.Tensor, b: torch.Tensor, sums: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yield the places of sums that are not certain although there is a term, some at a time."""
    is_small = sums < _LEAST
    if not bool(is_small.any()):
        return
    reached = (a > -torch.inf).float() @ (b > -torch.inf).float() > 0
    step = max(1, _TERMS // a.shape[2])
    cells = (is_small & reached).nonzero()
    for first in range(0, len(cells), step):
        batch, i, j = cells[first : first + step].unbind(1)
        yield batch, i, j


def _terms(
    a: torch.Tensor, b: torch.Tensor, cells: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Return the terms of some sums, (cells, k) of float64."""
    batch, i, j = cells
    return a[batch, i].double() + b.mT[batch, j].double()
