"""generate: every kind, every format, and the same graph from the same seed."""

from __future__ import annotations

import re

import pytest

from tri_apsp.console.exit_status import BAD_INPUT, FAILED
from tri_apsp.graphs import GENERATORS, GRAPH_FORMATS, load_graph


@pytest.mark.parametrize("kind", GENERATORS)
def test_kinds_and_seeds(cli, tmp_path, kind):
    options = ["--p", "0.3"] if kind == "erdos_renyi" else []
    contents = []
    for name, seed in (("a.gr", 3), ("b.gr", 3), ("c.gr", 4)):
        outcome = cli("generate", kind, "--n", 20, *options, "--seed", seed, "-o", tmp_path / name)
        assert (outcome.status, outcome.err) == (0, "")
        assert "20 vertices" in outcome.out
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize("extension", GRAPH_FORMATS)
def test_formats(cli, tmp_path, extension):
    path = tmp_path / f"g{extension}"
    outcome = cli("generate", "sparse_rows", "--n", 12, "-o", path)
    assert outcome.out == f"{path}: 12 vertices, 36 edges\n"
    graph = load_graph(path)
    assert (graph.n, graph.edges) == (12, 36)


def test_the_help_explains_each_kind(cli):
    out = cli("generate", "--help").out
    for kind in GENERATORS:
        assert re.search(rf"^  {kind} +\S.* edges$", out, re.MULTILINE)


@pytest.mark.parametrize("n", [10**10, 10**12, 10**20, 10**400])
@pytest.mark.parametrize("kind", GENERATORS)
def test_too_many_vertices(cli, tmp_path, kind, n):
    """Refused at once in one sentence, before anything is allocated."""
    options = ["--p", "0.5"] if kind == "erdos_renyi" else []
    outcome = cli("generate", kind, "--n", n, *options, "-o", tmp_path / "g.gr")
    assert (outcome.status, outcome.out) == (BAD_INPUT if n > 2**62 else FAILED, "")
    assert re.fullmatch(
        r"error: [^\n]*(must fit the memory|must be at most 2\*\*62)[^\n]*\.\n", outcome.err
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--p", "1.5"], "must be a probability in [0, 1], but is 1.5"),
        (["--p", "-0.1"], "but is -0.1"),
        (["--p", "nan"], "but is nan"),
        (["--p", "0.5", "--seed", "-1"], "`seed` must not be negative, but is -1"),
        (["--p", "half"], "invalid float value: 'half'"),
    ],
)
def test_arguments_out_of_range(cli, tmp_path, options, part):
    outcome = cli("generate", "erdos_renyi", "--n", 5, *options, "-o", tmp_path / "g.gr")
    assert (outcome.status, outcome.out) == (BAD_INPUT, "")
    assert re.fullmatch(r"error: [^\n]*\.\n", outcome.err)
    assert part in outcome.err


def test_the_output_is_checked_first(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "tri_apsp.cli.generate.generate", lambda *_, **__: pytest.fail("the graph was generated")
    )
    outcome = cli("generate", "chain", "--n", 5, "-o", tmp_path / "none" / "g.gr")
    assert outcome.status == BAD_INPUT
    assert "none does not; create it" in outcome.err


def test_one_vertex(cli, tmp_path):
    path = tmp_path / "g.gr"
    assert cli("generate", "chain", "--n", 1, "-o", path).out == f"{path}: 1 vertex, 0 edges\n"
    assert cli("generate", "chain", "--n", 2, "-o", path).out == f"{path}: 2 vertices, 1 edge\n"
    assert cli("solve", path, "--undirected").out.startswith(
        f"graph      {path}: 2 vertices, 2 edges\n"
    )
