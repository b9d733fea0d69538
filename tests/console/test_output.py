"""Output: aligned fields, strict JSON, rates, commands, and integers in options."""

import argparse

import pytest

from tri_apsp.console.options import at_least
from tri_apsp.console.output import (
    amount,
    command_line,
    duration,
    flat_fields,
    print_fields,
    print_result,
)


def test_results(capsys):
    print_result(False, {}, [("a", "1"), ("left out", ""), ("long", "3")])
    print_fields([("a", "1"), ("", "2")])
    assert capsys.readouterr().out == "a     1\nlong  3\na  1\n   2\n"
    print_result(True, {"a": [1, None]}, [])
    assert capsys.readouterr().out == '{"a": [1, null]}\n'
    with pytest.raises(ValueError, match="JSON"):
        print_result(True, {"a": float("inf")}, [])


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 k"),
        (31.44e9, "31.4 G"),
        (16.64e12, "16.6 T"),
        (1.51e16, "15.1 P"),
        (2e6, "2 M"),
    ],
)
def test_amount(rate, text):
    assert amount(rate) == text


def test_the_fields_of_tiles_come_after_their_name():
    fields = flat_fields({"panel": 32, "product": {"block_m": 64}})
    assert fields == {"panel": 32, "product.block_m": 64}


def test_a_command_is_quoted_for_a_shell():
    options = {"n": [64, 128], "engine": None, "sign": [], "scipy_up_to": 0, "budget": 20.0}
    command = command_line("tri_apsp", "bench", "two words", **options)
    expected = "bench 'two words' --n 64 128 --scipy-up-to 0 --budget 20"
    assert command == f"python -m tri_apsp {expected}"


def test_at_least():
    assert (at_least(3)("3"), at_least(0)("17")) == (3, 17)
    for text in ("2", "-3", "3.0", "x", ""):
        with pytest.raises(argparse.ArgumentTypeError, match=f"integer from 3, but is '{text}'"):
            at_least(3)(text)


def test_a_time_has_three_digits():
    assert [duration(seconds) for seconds in (0.0012345, 0.9, 1.234, 4321.0)] == [
        "1.23 ms",
        "900 ms",
        "1.23 s",
        "4,321 s",
    ]
