"""Argument types."""

from __future__ import annotations

import argparse

import pytest

from tri_apsp.console.options import at_least


def test_at_least():
    assert (at_least(3)("3"), at_least(0)("17")) == (3, 17)


@pytest.mark.parametrize("text", ["2", "-3", "3.0", "x", ""])
def test_below_the_least(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"integer from 3, but is '{text}'"):
        at_least(3)(text)
