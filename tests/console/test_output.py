"""Output: aligned fields, strict JSON, rates and sizes."""

from __future__ import annotations

import pytest

from tri_apsp.console.output import amount, command_line, flat_fields, print_fields, print_json


def test_fields_are_aligned(capsys):
    print_fields([("a", "1"), ("", "2"), ("long", "3")])
    assert capsys.readouterr().out == "a     1\n      2\nlong  3\n"


def test_json_is_strict(capsys):
    print_json({"a": [1, None]})
    assert capsys.readouterr().out == '{"a": [1, null]}\n'
    with pytest.raises(ValueError, match="JSON"):
        print_json({"a": float("inf")})


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 k"),
        (31.44e9, "31.4 G"),
        (1e9, "1 G"),
        (999e9, "999 G"),
        (16.64e12, "16.6 T"),
        (2e6, "2 M"),
    ],
)
def test_amount(rate, text):
    assert amount(rate) == text


def test_the_fields_of_tiles_come_after_their_name():
    assert flat_fields({"panel": 32, "product": {"block_m": 64}}) == {
        "panel": 32,
        "product.block_m": 64,
    }


def test_a_command_is_quoted_for_a_shell():
    assert (
        command_line("tri_apsp", "bench", "--n", 64, "two words")
        == "python -m tri_apsp bench --n 64 'two words'"
    )
    options = {"n": [64, 128], "engine": None, "sign": [], "scipy_up_to": 0, "budget": 20.0}
    assert (
        command_line("tri_apsp", "bench", **options)
        == "python -m tri_apsp bench --n 64 128 --scipy-up-to 0 --budget 20"
    )
