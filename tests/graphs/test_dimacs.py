"""DIMACS .gr files."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tri_apsp.errors import TooLargeError
from tri_apsp.graphs import load_graph

GOOD = """c a small graph
p sp 4 3
c arcs follow
a 1 2 5
a 2 4 0

a 4 1 -7
"""


def test_arcs_count_from_one(save):
    graph = load_graph(save("g.gr", GOOD))
    assert (graph.n, graph.edges) == (4, 3)
    assert graph.sources.tolist() == [0, 1, 3]
    assert graph.targets.tolist() == [1, 3, 0]
    assert graph.weights.tolist() == [5, 0, -7]
    assert graph.weights.dtype == np.int64


@pytest.mark.parametrize("name", ["g.gr.gz", "G.GR"])
def test_compressed_and_upper_case(save, name):
    assert load_graph(save(name, GOOD)).edges == 3


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        GOOD.replace(" ", "\t"),
        GOOD.replace("a 2", "  a   2"),
        "\ufeff" + GOOD,
        GOOD + "c\nc end",
        GOOD.replace("5", "5.0"),
    ],
)
def test_variants_of_the_same_file(save, text):
    graph = load_graph(save("g.gr", text))
    assert graph.n == 4
    assert list(zip(graph.sources, graph.targets, graph.weights, strict=True)) == [
        (0, 1, 5),
        (1, 3, 0),
        (3, 0, -7),
    ]


def test_fractions_inf_and_exponents(save):
    graph = load_graph(save("g.gr", "p sp 2 4\na 1 2 1.5\na 1 2 inf\na 2 1 2e3\na 2 1 .5\n"))
    assert graph.weights.tolist() == [1.5, float("inf"), 2000, 0.5]


def test_integers_stay_exact(save):
    graph = load_graph(save("g.gr", f"p sp 2 1\na 1 2 {2**60 + 1}\n"))
    assert graph.to_weights(torch.int64)[0, 1] == 2**60 + 1


def test_no_vertices(save):
    assert load_graph(save("g.gr", "p sp 0 0\n")).n == 0


def test_undirected(save):
    graph = load_graph(save("g.gr", "p sp 2 1\na 1 2 3\n"), directed=False)
    assert graph.to_weights(torch.int32).tolist() == [[0, 3], [3, 0]]


def test_a_gigantic_header_allocates_nothing(save):
    graph = load_graph(save("g.gr", "p sp 1000000000000 1\na 1 1000000000000 1\n"))
    assert graph.n == 10**12
    with pytest.raises(TooLargeError, match="1000000000000 vertices"):
        graph.to_weights(torch.float32)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("c only\n", ("header `p sp n m`", "add the header")),
        ("a 1 2 3\np sp 2 1\n", ("line 1 begins with 'a'", "move it up")),
        ("c x\n\ncorn\n", ("line 3 begins with 'corn'",)),
        ("p sp 2\na 1 2 3\n", ("line 1 is 'p sp 2'", "correct it")),
        ("p max 2 1\na 1 2 3\n", ("'p max 2 1'",)),
        ("p sp -2 1\n", ("vertices", "line 1 has '-2'", "correct the header")),
        ("p sp 2 x\n", ("arcs", "line 1 has 'x'")),
        ("p sp 99999999999999999999 0\n", ("'99999999999999999999'",)),
        ("p sp 2 1\np sp 2 1\na 1 2 3\n", ("line 2 begins with 'p'", "remove the line")),
        ("p sp 2 2\na 1 2 3\nx 1 2 3\n", ("line 3 begins with 'x'",)),
        ("p sp 2 2\na 1 2 3\n1 2 3\n", ("line 3 begins with '1'",)),
        (
            "p sp 2 2\na 1 2 3\na 1 2\n",
            ("`a source target weight`", "line 3 has 3 fields: 'a 1 2'"),
        ),
        ("p sp 2 2\na 1 2 3\na 1 2 3 4\n", ("line 3 has 5 fields",)),
        ("p sp 2 2\na \n1 2 3\n", ("line 2",)),
        ("p sp 2 1\na \na 1 2 3\n", ("line 2 has 1 field",)),
        ("p sp 2 1\na 1 2 heavy\n", ("line 2 has 'heavy'", "correct the line")),
        ("p sp 2 1\na 1 2 1_000\n", ("'1_000'",)),
        ("p sp 2 1\na 1 2 0x10\n", ("'0x10'",)),
        (
            "p sp 2 2\na 1 2 inf\na 2 1 1e400\n",
            ("at most 1.798e+308", "line 3 has '1e400'", "write inf for no edge"),
        ),
        (f"p sp 2 1\na 1 2 {10**400}\n", ("at most 1.798e+308", "line 2 has '1000")),
        (
            "p sp 2 1\na 1 2 \x00\x1b[31m\n",
            ("must be a text file", "line 2 has the byte 0x00", "rename"),
        ),
        ("p sp 2 1\na 1 2 nan\n", ("neither NaN nor -inf", "line 2 has 'nan'", "remove the line")),
        ("p sp 2 1\nc x\na 1 2 -inf\n", ("line 3 has '-inf'",)),
        ("p sp 2 1\na 1 2 -1e999\n", ("line 2 has '-1e999'",)),
        ("p sp 2 2\na 1 2 3\na 1 3 3\n", ("from 1 to 2", "line 3 has '3'", "vertex count")),
        ("p sp 2 1\na 0 2 3\n", ("from 1 to 2", "line 2 has '0'")),
        ("p sp 2 1\na 1.5 2 3\n", ("whole numbers", "line 2 has '1.5'")),
        ("p sp 2 1\na 1 99999999999999999999 3\n", ("line 2 has '99999999999999999999'",)),
        (
            "p sp 2 1\na 1 2 3\na 2 1 3\nc\n",
            ("the 1 edge ", "line 3 is one more", "correct the header"),
        ),
        ("p sp 2 0\na 1 2 3\n", ("the 0 edges", "line 2 is one more")),
        ("p sp 2 3\na 1 2 3\na 2 1 3\n", ("the 3 edges", "ends after 2, at line 3", "cut short")),
        ("p sp 2 3\n", ("ends after 0",)),
    ],
)
def test_errors_of_the_format(save, refuses, text, parts):
    with refuses("g.gr", *parts):
        load_graph(save("g.gr", text))


def test_base_and_vertices_are_not_for_this_format(save, refuses):
    path = save("g.gr", GOOD)
    with refuses("`base`", "but is 0", "leave it out"):
        load_graph(path, base=0)
    with refuses("`vertices`", "but is 9", "leave it out"):
        load_graph(path, vertices=9)
