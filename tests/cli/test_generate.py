"""generate: every kind, every format, and the same graph from the same seed."""

from __future__ import annotations

import pytest

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
    assert f" {kind} {GENERATORS[kind][1]} " in " ".join(cli("generate", "--help").out.split())


@pytest.mark.parametrize("extension", GRAPH_FORMATS)
def test_formats(cli, tmp_path, extension):
    path = tmp_path / f"g{extension}"
    assert cli("generate", "chain", "--n", 2, "-o", path).out == f"{path}: 2 vertices, 1 edge\n"
    assert (load_graph(path).n, load_graph(path).edges) == (2, 1)
