"""Marks of the tests that compile kernels, and their parameters."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kernels.sass import TOOLS

needs_disassembler = [
    pytest.mark.compiled,
    pytest.mark.skipif(
        not (TOOLS / "nvdisasm").exists(), reason="this Triton contains no disassembler"
    ),
]


def cases(
    names: str, values: Sequence[tuple[Any, ...]], *, quick: Callable[..., bool]
) -> pytest.MarkDecorator:
    """Parametrize a test over `values` of `names`; those for which `quick` is false are marked
    slow, for .ci/run alone.
    """
    params = [
        pytest.param(
            *value, marks=() if quick(*value) else pytest.mark.slow, id="-".join(map(str, value))
        )
        for value in values
    ]
    return pytest.mark.parametrize(names.split(", "), params)
