"""The two parsers of edges: which one runs, and that they agree."""

from __future__ import annotations

import pytest

from tri_apsp.graphs import erdos_renyi, load_graph, text, write_graph

FILES = {
    "g.gr": "c x\np sp 4 3\nc y\na 1 2 5\na 4 3 -1\nc z\n\na 2 2 0\n",
    "g.txt": "# base 1 vertices 4\n1 2 5\n\n# z\n 4\t3 inf\n2 2 0\n",
    "g.csv": "# base 0\nsource,target\n0,1\n3, 2\n#\n1,1",
    "g.tsv": "# base 0\n0\t1\t+2\n3\t2\t.5\n1\t1\t7.\n",
}


def columns(graph):
    return graph.n, graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist()


@pytest.mark.parametrize("name", FILES)
def test_both_parsers_agree(save, monkeypatch, name):
    path = save(name, FILES[name])
    both = columns(load_graph(path))
    monkeypatch.setattr(text, "_parse_fast", lambda *arguments: None)
    assert columns(load_graph(path)) == both
    assert both[:3] == (4, [0, 3, 1], [1, 2, 1])


@pytest.mark.parametrize("extension", [".gr", ".txt", ".csv", ".tsv"])
def test_written_files_are_parsed_fast(tmp_path, monkeypatch, extension):
    graph = erdos_renyi(30, 0.2, 1)
    write_graph(graph, tmp_path / f"g{extension}")

    def fail(*arguments):
        raise AssertionError("the slow parser ran")

    monkeypatch.setattr(text, "_parse_slowly", fail)
    assert columns(load_graph(tmp_path / f"g{extension}")) == columns(graph)


def test_comments_between_edges_are_parsed_fast(save, monkeypatch):
    monkeypatch.setattr(text, "_parse_slowly", None)
    assert load_graph(save("g.txt", "# base 0\n0 1 1\n# here\n1 0 1\n")).edges == 2
    assert load_graph(save("g.gr", "p sp 2 2\na 1 2 1\nc here\na 2 1 1\n")).edges == 2
