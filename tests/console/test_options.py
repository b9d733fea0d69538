"""Argument types."""

from __future__ import annotations

import argparse

import pytest

from tri_apsp.console.options import DTYPE_NAMES, at_least, dtype_of
from tri_apsp.semirings import DTYPES, dtype_name


def test_dtypes_by_name():
    assert [dtype_of(name) for name in DTYPE_NAMES] == list(DTYPES)
    assert all(dtype_name(dtype_of(name)) == name for name in DTYPE_NAMES)


def test_at_least():
    assert (at_least(3)("3"), at_least(0)("17")) == (3, 17)


@pytest.mark.parametrize("text", ["2", "-3", "3.0", "x", ""])
def test_below_the_least(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"whole number from 3, but is '{text}'"):
        at_least(3)(text)
