"""Edge lists: .txt, .csv, .tsv."""

from __future__ import annotations

import pytest
import torch

from tri_apsp.graphs import load_graph


def listed(graph):
    return list(
        zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    )


@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv", "g.txt.gz", "g.csv.gz", "g.tsv.gz"])
def test_each_format(save, name):
    separator = {"t": "  ", "c": ",", "v": "\t"}[
        "t" if ".txt" in name else "c" if ".csv" in name else "v"
    ]
    graph = load_graph(
        save(name, "# a comment\n0 1 5\n\n# another\n2 0 0.5\n".replace(" ", separator)), base=0
    )
    assert graph.n == 3
    assert listed(graph) == [(0, 1, 5), (2, 0, 0.5)]


def test_base_one(save):
    graph = load_graph(save("g.txt", "1 2 5\n"), base=1)
    assert (graph.n, listed(graph)) == (2, [(0, 1, 5)])


def test_without_weights_every_edge_weighs_one(save):
    assert listed(load_graph(save("g.txt", "0 1\n1 2\n"), base=0)) == [(0, 1, 1), (1, 2, 1)]


def test_vertices_adds_isolated_ones(save):
    assert load_graph(save("g.txt", "0 1\n"), base=0, vertices=7).n == 7
    assert load_graph(save("g.txt", "1 2\n"), base=1, vertices=7).n == 7


def test_undirected(save):
    graph = load_graph(save("g.csv", "0,1,4\n1,1,-2\n"), base=0, directed=False)
    assert graph.to_weights(torch.int32).tolist() == [[0, 4], [4, -2]]


@pytest.mark.parametrize("header", ["source,target,weight", "From, To, Cost", '"u","v","w"'])
def test_names_of_columns(save, header):
    assert listed(load_graph(save("g.csv", f"# x\n{header}\n0,1,4\n"), base=0)) == [(0, 1, 4)]


def test_windows_line_ends_and_byte_order_mark(save):
    text = "\ufeff# base 0 vertices 3\r\nsource,target,weight\r\n0,1,4\r\n"
    graph = load_graph(save("g.csv", text))
    assert (graph.n, listed(graph)) == (3, [(0, 1, 4)])


def test_spaces_around_fields(save):
    assert listed(load_graph(save("g.csv", " 0 , 1 , 4\n"), base=0)) == [(0, 1, 4)]
    assert listed(load_graph(save("g.txt", "  0\t1   4  \n"), base=0)) == [(0, 1, 4)]


class TestDeclarations:
    def test_base_and_vertices(self, save):
        graph = load_graph(save("g.txt", "# anything\n# base 1 vertices 4\n1 2 3\n"))
        assert (graph.n, listed(graph)) == (4, [(0, 1, 3)])

    def test_vertices_in_a_comment_of_their_own(self, save):
        assert load_graph(save("g.txt", "# base 0\n# vertices 5\n0 1 3\n")).n == 5
        assert (
            load_graph(
                save("h.txt", "# vertices of a road network\n# vertices 5\n# base 1\n1 2 3\n")
            ).n
            == 5
        )

    def test_base_alone(self, save):
        assert load_graph(save("g.txt", "#base 0\n0 4\n")).n == 5

    def test_vertices_and_no_edge(self, save):
        assert (
            load_graph(save("g.txt", "# base 0 vertices 4\n"))
            .to_weights(torch.int16)
            .diagonal()
            .tolist()
            == [0] * 4
        )

    def test_a_base_that_is_not_declared(self, save, refuses):
        with refuses("g.txt", "pass --base 0 or --base 1"):
            load_graph(save("g.txt", "1 2 3\n"))

    def test_a_declaration_after_the_first_edge_is_ignored(self, save, refuses):
        with refuses("--base 0"):
            load_graph(save("g.txt", "1 2 3\n# base 1\n"))

    def test_a_base_that_is_neither_0_nor_1(self, save, refuses):
        with refuses("line 2", "'2'"):
            load_graph(save("g.txt", "# x\n# base 2\n2 3\n"))
        with refuses("`base` must be 0 or 1, but is 2"):
            load_graph(save("g.txt", "2 3\n"), base=2)

    def test_arguments_that_contradict(self, save, refuses):
        path = save("g.txt", "# base 1 vertices 3\n1 2\n")
        with refuses("`base`", "is 0 and line 1", "declares 1", "leave it out"):
            load_graph(path, base=0)
        with refuses("`vertices`", "is 5 and line 1", "declares 3"):
            load_graph(path, vertices=5)
        assert load_graph(path, base=1, vertices=3).n == 3

    def test_a_count_that_is_not_a_number(self, save, refuses):
        with refuses("line 1 has 'many'"):
            load_graph(save("g.txt", "# base 0 vertices many\n"))
        with refuses("must be a whole number from 0, but is -1"):
            load_graph(save("g.txt", "0 1\n"), base=0, vertices=-1)


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        (
            "g.csv",
            "source,target,weight\n0,1,2\nsource,target,weight\n",
            ("line 3 holds names", "source target weight", "remove the line"),
        ),
        (
            "g.csv",
            "source,target,weight\nsource,target,weight\n0,1,2\n",
            ("line 2 holds names", "remove the line"),
        ),
        (
            "g.csv",
            "weight,source,target\n2,0,1\n",
            ("in this order", "line 1", "weight, source, target", "reorder"),
        ),
        ("g.csv", "source\n0,1\n", ("line 1", "separate the columns by commas, and name all")),
        (
            "g.txt",
            "0 1 2\n1 2\n",
            ("`source target weight`", "line 2 has 2 fields: '1 2'", "correct or remove"),
        ),
        ("g.txt", "0 1\n1 2 3\n", ("`source target`", "line 2 has 3 fields")),
        ("g.txt", "0\n", ("line 1 has 1 field:",)),
        ("g.txt", "0 1 2 3\n", ("line 1 has 4 fields",)),
        ("g.csv", "0 1 2\n", ("`source,target,weight`", "line 1 has 1 field: '0 1 2'")),
        ("g.csv", "0,1,2\n\n1,2,\n", ("line 3 has ''",)),
        ("g.tsv", "0\t1\t2\n1\t2\t\n", ("line 2 has ''",)),
        ("g.tsv", "0\t1\n\t1\n", ("line 2 has ''",)),
        ("g.txt", "0 1 2\n# c\n1 x 3\n", ("line 3 has 'x'", "correct the line")),
        ("g.txt", "0 1 2\n1 2 x\n", ("line 2 has 'x'",)),
        ("g.txt", "0 1 2 # remark\n", ("line 1 has 5 fields",)),
        ("g.txt", "0 1 2\n0 1 2 # remark\n", ("line 2 has 5 fields",)),
        ("g.txt", "0 1 2\n1 0 NaN\n", ("line 2 has 'NaN'",)),
        ("g.txt", "0 1 2\n1 0 -Infinity\n", ("line 2 has '-Infinity'",)),
        ("g.txt", "0 1 2\n-1 0 2\n", ("from 0 to", "line 2 has '-1'")),
        ("g.txt", "0 1 2\n0 99999999999999999999 2\n", ("line 2 has '99999999999999999999'",)),
        ("g.txt", "# nothing\n", ("an edge or say how many vertices", "# base 0 vertices 10")),
        ("g.csv", "source,target\n", ("an edge or say how many vertices",)),
    ],
)
def test_errors_of_the_format(save, refuses, name, text, parts):
    with refuses(name, *parts):
        load_graph(save(name, text), base=0)


def test_a_vertex_above_the_given_number_of_vertices(save, refuses):
    with refuses("from 0 to 1", "line 2 has '2'", "vertex count"):
        load_graph(save("g.txt", "0 1 5\n1 2 5\n"), base=0, vertices=2)
    with refuses("from 1 to 2", "line 1 has '0'"):
        load_graph(save("g.txt", "0 1 5\n"), base=1, vertices=2)


def test_a_fraction_after_many_integers(save):
    lines = "".join(f"0 1 {weight}\n" for weight in range(1, 1001)) + "0 1 0.25\n"
    graph = load_graph(save("g.txt", lines), base=0)
    assert graph.weights[:3].tolist() == [1, 2, 3]
    assert graph.weights[-1] == 0.25
