"""Every mistake of a caller: one sentence on stderr, an exit status, no output and no file."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from cli.five import FIVE

from tri_apsp.cli import solve as module
from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from tri_apsp.graphs import GENERATORS
from tri_apsp.methods import METHODS
from tri_apsp.semirings import DTYPES, dtype_name

HEADER = "p sp 3 2\n"

# File name, content, options, status, and what the message must contain.
TEXTS = {
    "empty": ("g.gr", "", [], BAD_INPUT, ["must not be empty"]),
    "malformed line": ("g.gr", HEADER + "a 1 2 3\na 2 x 1\n", [], BAD_INPUT, ["line 3", "'x'"]),
    "short line": (
        "g.gr",
        HEADER + "a 1 2 3\na 2\n",
        [],
        BAD_INPUT,
        ["line 3", "a source target weight"],
    ),
    "cut short": (
        "g.gr",
        HEADER + "a 1 2 3\n",
        [],
        BAD_INPUT,
        ["ends after 1", "line 2", "cut short"],
    ),
    "too many edges": ("g.gr", HEADER + "a 1 2 3\n" * 3, [], BAD_INPUT, ["line 4 is one more"]),
    "two headers": (
        "g.gr",
        HEADER + HEADER + "a 1 2 3\na 1 2 3\n",
        [],
        BAD_INPUT,
        ["line 2", "'p'"],
    ),
    "vertex out of range": (
        "g.gr",
        HEADER + "a 1 2 3\na 4 1 1\n",
        [],
        BAD_INPUT,
        ["from 1 to 3", "line 3", "'4'"],
    ),
    "NaN": ("g.gr", HEADER + "a 1 2 3\na 2 1 nan\n", [], BAD_INPUT, ["NaN", "line 3"]),
    "minus infinity": ("g.gr", HEADER + "a 1 2 3\na 2 1 -inf\n", [], BAD_INPUT, ["-inf", "line 3"]),
    "no base": ("g.txt", "0 1 2\n", [], BAD_INPUT, ["--base 0 or --base 1"]),
    "semicolons": (
        "g.csv",
        "# base 0\n0;1;2\n",
        [],
        BAD_INPUT,
        ["has 1 field: '0;1;2'; separate the fields by commas"],
    ),
    "names with semicolons": (
        "g.csv",
        "u;v;w\n0;1;2\n",
        ["--base", "0"],
        BAD_INPUT,
        ["separate the columns by commas"],
    ),
    "commas": (
        "g.txt",
        "# base 0\n0,1,2\n",
        [],
        BAD_INPUT,
        ["has 1 field: '0,1,2'; separate the fields by blanks"],
    ),
    "another format": ("g.gr", "0 1 2\n", ["--format", "mtx"], BAD_INPUT, ["MatrixMarket"]),
    "binary format of a text": (
        "g.gr",
        HEADER,
        ["--format", "npy"],
        BAD_INPUT,
        ["it is damaged, or of another format"],
    ),
    "base of a .gr": ("g.gr", FIVE, ["--base", "1"], BAD_INPUT, ["`base` is for edge lists"]),
    "not square": (
        "g.mtx",
        "%%MatrixMarket matrix array real general\n2 3\n",
        [],
        BAD_INPUT,
        ["square", "2 x 3"],
    ),
    "unknown extension": ("g.graph", FIVE, [], BAD_INPUT, [".gr", "ends in .graph"]),
    "unknown method": (
        "g.gr",
        FIVE,
        ["--method", "dijkstra"],
        BAD_INPUT,
        ["dijkstra", "auto", *METHODS],
    ),
    "unknown dtype": (
        "g.gr",
        FIVE,
        ["--dtype", "int8"],
        BAD_INPUT,
        ["int8", *map(dtype_name, DTYPES)],
    ),
    "unknown engine": ("g.gr", FIVE, ["--engine", "fpga"], BAD_INPUT, ["fpga", "cpu", "portable"]),
    "unknown device": (
        "g.gr",
        FIVE,
        ["--device", "tpu"],
        BAD_INPUT,
        ["auto, cpu, cuda or cuda:N", "tpu"],
    ),
    "fraction": (
        "g.gr",
        HEADER + "a 1 2 3\na 2 3 0.5\n",
        ["--dtype", "int32"],
        BAD_INPUT,
        ["integers", "0.5"],
    ),
    "no memory": (
        "g.gr",
        "p sp 10000000 0\n",
        [],
        FAILED,
        ["10000000 vertices", "GiB", "the command sssp"],
    ),
    "long path": (
        "g.gr",
        HEADER + "a 1 2 9000\na 2 3 9000\n",
        ["--dtype", "int16"],
        FAILED,
        ["int16", "int32"],
    ),
    "long edge": (
        "g.gr",
        HEADER + "a 1 2 9000\na 2 3 20000\n",
        ["--dtype", "int16"],
        FAILED,
        ["int16", "20000"],
    ),
    "negative cycle": (
        "g.gr",
        HEADER + "a 1 2 3\na 2 1 -4\n",
        [],
        FAILED,
        ["negative cycle", "through vertices 2, 1;"],
    ),
    "negative cycle in a matrix": (
        "g.mtx",
        "%%MatrixMarket matrix coordinate real general\n3 3 2\n2 3 -5\n3 2 1\n",
        [],
        FAILED,
        ["vertices 3, 2;"],
    ),
    "negative cycle in an array": (
        "g.mtx",
        "%%MatrixMarket matrix array real general\n2 2\n0\n1\n-5\n0\n",
        [],
        FAILED,
        ["vertices 2, 1;"],
    ),
    "negative cycle from 0": (
        "g.txt",
        "# base 0\n0 1 3\n1 0 -4\n",
        [],
        FAILED,
        ["negative cycle", "through vertices 1, 0;"],
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_file(cli, save, tmp_path, case):
    name, content, options, status, parts = TEXTS[case]
    refused(cli, [save(name, content), *options], tmp_path, status, parts)


DENSE = {
    "not square": (np.zeros((3, 4)), [], BAD_INPUT, ["square", "(3, 4)"]),
    "dtype": (np.zeros((3, 3), np.float16), [], BAD_INPUT, ["float16", *map(dtype_name, DTYPES)]),
    "NaN": (np.array([[0, np.nan], [1, 0]]), [], BAD_INPUT, ["NaN", "[0, 1]"]),
    "minus infinity": (np.array([[0, 1], [-np.inf, 0]]), [], BAD_INPUT, ["-inf", "[1, 0]"]),
    "undirected": (
        np.zeros((2, 2)),
        ["--undirected"],
        BAD_INPUT,
        ["both directions", "leave it out (--undirected)"],
    ),
    "negative cycle": (
        np.array([[0, 1], [-2, 0]], np.int16),
        [],
        FAILED,
        ["negative cycle", "through vertices", "0", "1"],
    ),
}


@pytest.mark.parametrize("case", DENSE)
def test_dense_file(cli, tmp_path, case):
    weights, options, status, parts = DENSE[case]
    np.save(tmp_path / "w.npy", weights)
    refused(cli, [tmp_path / "w.npy", *options], tmp_path, status, parts)


def test_no_such_file(cli, tmp_path):
    refused(cli, [tmp_path / "none.gr"], tmp_path, BAD_INPUT, ["none.gr", "check the name"])


def test_engine_that_cannot_run(cli, five, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    refused(
        cli,
        [five, "--engine", "portable", "--device", "cpu"],
        tmp_path,
        FAILED,
        ["portable engine needs"],
    )


def refused(cli, words, folder, status, parts):
    output = folder / "distances.npy"
    before = sorted(folder.iterdir())
    for options in ([], ["--json"]):
        outcome = cli("solve", *words, "-o", output, *options)
        assert outcome.status == status
        assert outcome.out == ""
        assert re.fullmatch(r"error: [^\n]*[^.\n]\.\n", outcome.err)
        for part in parts:
            assert part in outcome.err
    assert sorted(folder.iterdir()) == before


class TestOutput:
    """A path that cannot be written to is refused before the graph is even read."""

    @pytest.fixture(autouse=True)
    def _unread(self, monkeypatch):
        monkeypatch.setattr(module, "read", lambda _: pytest.fail("the graph was read"))

    @pytest.mark.parametrize(
        ("name", "part"),
        [
            ("none/d.npy", "does not; create it"),
            ("d.txt", ".npy, .npz"),
            ("d", ".npy, .npz"),
            ("", "folder"),
        ],
    )
    def test_path(self, cli, five, tmp_path, name, part):
        outcome = cli("solve", five, "-o", tmp_path / name)
        assert (outcome.status, outcome.out) == (BAD_INPUT, "")
        assert part in outcome.err

    def test_folder_without_permission(self, cli, five, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)  # a chmod does not stop root
        outcome = cli("solve", five, "-o", tmp_path / "d.npy")
        assert (outcome.status, outcome.out) == (BAD_INPUT, "")
        assert "must be writable" in outcome.err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), INTERRUPTED, ""),
        (MemoryError(), FAILED, r"error: [^\n]*memory[^\n]*\.\n"),
    ],
)
def test_a_solve_that_is_cut_short_leaves_no_file(
    cli, five, tmp_path, monkeypatch, error, status, message
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(module, "solve", fail)
    outcome = cli("solve", five, "-o", tmp_path / "d.npy")
    assert (outcome.status, outcome.out) == (status, "")
    assert re.fullmatch(message, outcome.err)
    assert not (tmp_path / "d.npy").exists()


class TestOtherCommands:
    @pytest.mark.parametrize(
        ("words", "parts"),
        [
            (["generate", "tree", "--n", "5", "-o", "g.gr"], ["tree", *GENERATORS]),
            (["generate", "erdos_renyi", "--n", "5", "-o", "g.gr"], ["`p` must be given"]),
            (["generate", "chain", "--n", "5", "--p", "0.5", "-o", "g.gr"], ["leave it out"]),
            (["generate", "chain", "--n", "-5", "-o", "g.gr"], ["must not be negative, but is -5"]),
            (["generate", "chain", "--n", "5", "-o", "g.graph"], ["ends in .graph"]),
            (["generate", "chain", "--n", "5"], ["-o"]),
            (["bench", "--n", "0"], ["integer from 1", "'0'"]),
            (["bench", "--repeat", "2"], ["integer from 3", "'2'"]),
            (["bench", "--method", "dijkstra"], ["dijkstra", *METHODS]),
            (["bench", "--dtype", "int8"], ["int8", *map(dtype_name, DTYPES)]),
            (["solve"], ["GRAPH"]),
            (["solv"], ["solv", "solve", "generate", "info", "bench", "tune", "report"]),
        ],
    )
    def test_invalid_arguments(self, cli, tmp_path, monkeypatch, words, parts):
        monkeypatch.chdir(tmp_path)
        outcome = cli(*words)
        assert (outcome.status, outcome.out) == (BAD_INPUT, "")
        assert re.fullmatch(r"error: [^\n]*\.\n", outcome.err)
        for part in parts:
            assert part in outcome.err
        assert not list(tmp_path.iterdir())

    def test_bench_too_large(self, cli):
        outcome = cli("bench", "--n", 10000000, "--device", "cpu")
        assert (outcome.status, outcome.out) == (FAILED, "")
        assert "10000000 vertices" in outcome.err
