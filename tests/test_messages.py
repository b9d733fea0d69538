"""The wording of counts, the line that a warning names, and copies of an error."""

import pickle

import pytest

from tri_apsp.errors import ApspWarning, InputError, NegativeCycleError, TooLargeError
from tri_apsp.messages import counted, one_line, parsing, reason_of, warn_caller


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0, "vertex", "vertices"), "0 vertices"),
        ((1, "vertex", "vertices"), "1 vertex"),
        ((2, "vertex", "vertices"), "2 vertices"),
        ((10**20, "vertex", "vertices"), f"{10**20} vertices"),
        ((1, "core"), "1 core"),
        ((3, "core"), "3 cores"),
    ],
)
def test_counted(words, text):
    assert counted(*words) == text


def test_a_warning_names_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="words") as caught:
        warn_caller("words", UserWarning)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('Zürich, "a\\b"', 'Zürich, "a\\b"'),
        ("a\tb\nc\x1b\x85\ud800", r"a\tb\nc\x1b\x85\ud800"),
        ("rule " + 400 * "x" + " remedy.", "rule " + 142 * "x" + " ... " + 139 * "x" + " remedy."),
    ],
)
def test_one_line(text, line):
    assert one_line(text) == line
    assert len(line) <= 300


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError("no number. Try another.\nMore"), "no number"),
        (ValueError("x" * 500), "x" * 47 + " ... " + "x" * 47),
        (StopIteration(), "StopIteration"),
    ],
)
def test_the_reason_of_an_error(error, reason):
    assert reason_of(error) == reason


def test_errors_of_parsers():
    for raised, expected in (
        (RecursionError("too deep"), InputError("g.gml cannot be read (too deep); copy it.")),
        (MemoryError(), TooLargeError("g.gml cannot be read (MemoryError); copy it.")),
        (InputError("a\nb."), InputError(r"a\nb.")),
    ):
        with (
            pytest.raises(type(expected)) as caught,
            parsing("g", "g.gml cannot be read", "copy it"),
        ):
            raise raised
        assert str(caught.value) == str(expected)
    for other in (KeyboardInterrupt, ApspWarning):
        with pytest.raises(other), parsing("g", "", ""):
            raise other


def test_copies_of_the_error_of_a_negative_cycle():
    error = NegativeCycleError([1, 2], 3, ["a", "b", "c"], -1, [3, 5], "--mark", overwritten=True)
    assert "restore them before you look for the cycle" in str(error)
    for copy in (pickle.loads(pickle.dumps(error)), error.reworded("--mark")):
        assert (vars(copy), str(copy)) == (vars(error), str(error))
    assert error.of_graphs(0, [0]).graphs == (0,)
    assert error.reworded("x", [7, 8, 9]).labels == [7, 8, 9]
