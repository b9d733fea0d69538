"""The example of reports/lu.md decomposes a matrix that needs no pivoting, and fails where the page
states that it does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = (Path(__file__).parents[2] / "reports" / "lu.md").read_text(encoding="utf-8")


def decomposed(a: torch.Tensor) -> torch.Tensor:
    """L U, by the code of the page."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    factors = a.clone()
    names["lu"](factors)
    lower = factors.tril(-1) + torch.eye(len(a), dtype=a.dtype)
    return lower @ factors.triu()


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100, 257])
def test_a_diagonally_dominant_matrix(n: int) -> None:
    a = torch.rand((n, n), dtype=torch.float64, generator=torch.Generator().manual_seed(n)) - 0.5
    a += n * torch.eye(n, dtype=torch.float64)
    torch.testing.assert_close(decomposed(a), a, rtol=1e-12, atol=1e-12)


def test_the_counterexamples_of_the_page() -> None:
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert not decomposed(swap).isfinite().all()
    small = torch.tensor([[1e-20, 1.0], [1.0, 1.0]], dtype=torch.float64)
    assert decomposed(small).tolist() == [[1e-20, 1], [1, 0]]
    pivots = torch.linalg.lu(small)
    torch.testing.assert_close(pivots.P @ pivots.L @ pivots.U, small)
