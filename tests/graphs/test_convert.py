"""from_numpy, from_scipy, from_networkx."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tri_apsp.errors import DistanceRangeError, RoundingWarning
from tri_apsp.graphs import from_networkx, from_numpy, from_scipy
from tri_apsp.semirings import DTYPES, DTYPES_BY_NAME, dtype_name, no_edge

INF = float("inf")


class TestNumpy:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_supported_dtypes_are_kept(self, dtype):
        far = no_edge(dtype)
        weights = from_numpy(np.array([[0, 3], [far, 0]], dtype_name(dtype)))
        assert weights.dtype == dtype
        assert weights.tolist() == [[0, 3], [far, 0]]

    def test_memory_layouts(self):
        array = np.array([[0.0, 1.0], [2.0, 0.0]])
        frozen = array.copy()
        frozen.flags.writeable = False
        for given in (frozen, array.T.copy().T, array.astype(">f8"), array[::-1, ::-1][::-1, ::-1]):
            weights = from_numpy(given)
            assert weights.tolist() == [[0, 1], [2, 0]]
            weights[0, 1] = 9  # the memory is not shared
            assert given[0, 1] == 1
        assert from_numpy(array[::-1]).tolist() == [[0, 0], [0, 0]]
        batch = from_numpy(np.full((2, 3, 3), 4, np.int16))
        assert batch[1].tolist() == [[0, 4, 4], [4, 0, 4], [4, 4, 0]]

    @pytest.mark.parametrize("dtype", ["float32", "int16", "int64", "uint8"])
    def test_masked_is_no_edge(self, dtype):
        array = np.ma.MaskedArray(
            np.array([[0, 9], [4, 0]], dtype), mask=[[False, True], [False, False]]
        )
        assert from_numpy(array, torch.float32).tolist() == [[0, INF], [4, 0]]
        assert from_numpy(array, torch.int32).tolist() == [[0, no_edge(torch.int32)], [4, 0]]
        assert array.data[0, 1] == 9
        assert from_numpy(np.ma.masked_invalid([[0, np.nan], [1, 0]])).tolist() == [
            [0, INF],
            [1, 0],
        ]

    @pytest.mark.parametrize(
        "kind", ["int8", "uint8", "uint16", "uint32", "uint64", "float16", "longdouble"]
    )
    def test_other_real_types_need_the_dtype(self, kind, refuses):
        array = np.array([[0, 100], [3, 0]], kind)
        assert from_numpy(array, torch.int32).tolist() == [[0, 100], [3, 0]]
        fits = "float64" if array.itemsize >= 8 else "float32"
        with refuses(array.dtype.name, f".astype(np.{fits})"):
            from_numpy(array)

    def test_bool(self):
        array = np.array([[True, True], [False, False]])
        assert from_numpy(array).dtype == torch.float32
        assert from_numpy(array).tolist() == [[0, 1], [INF, 0]]
        assert from_numpy(array, torch.int16).tolist() == [[0, 1], [no_edge(torch.int16), 0]]
        assert from_numpy(np.ma.MaskedArray(array, mask=array)).tolist() == [[0, INF], [INF, 0]]

    def test_missing(self):
        """As NetworkX and SciPy make adjacency matrices, and with NaN; the diagonal is 0 all the
        same.
        """
        array = np.array([[0, 7], [0, 0]])
        for dtype in (np.float32, np.int64, np.int16):
            weights = from_numpy(array.astype(dtype), missing=0)
            assert weights.tolist() == [[0, 7], [no_edge(weights.dtype), 0]]
        assert from_numpy(array.astype(np.uint8), torch.int32, missing=7)[0, 1] == no_edge(
            torch.int32
        )
        assert from_numpy(np.array([[0, np.nan], [0, 0]]), missing=np.nan).tolist() == [
            [0, INF],
            [0, 0],
        ]
        graph = nx.Graph([(0, 1, {"weight": 2.5}), (1, 2, {"weight": 4})])
        assert torch.equal(
            from_numpy(nx.to_numpy_array(graph), torch.float32, missing=0), from_networkx(graph)
        )
        masked = np.ma.MaskedArray(
            np.array([[0.0, 5], [3, 0]]), mask=[[False, True], [False, False]]
        )
        assert from_numpy(masked, missing=3).tolist() == [[0, INF], [INF, 0]]
        assert masked.data.tolist() == [[0, 5], [3, 0]]

    @pytest.mark.parametrize(
        ("array", "options", "part"),
        [
            (np.zeros((2, 2), "complex64"), {}, "complex64; give its .real"),
            (
                np.zeros((2, 2), object),
                {"dtype": torch.float32},
                "object; give an array of numbers",
            ),
            (np.zeros(()), {}, "`array` must be square, (n, n) or (batch, n, n), but has shape ()"),
            (np.zeros((2, 3)), {}, "(2, 3)"),
            (np.zeros((1, 1, 2, 2)), {}, "(1, 1, 2, 2)"),
            (np.array([[0, np.nan], [0, 0]]), {}, "has NaN at (0, 1); replace it"),
            (np.array([[0, -np.inf], [0, 0]]), {}, "is -inf at (0, 1)"),
            (np.array([[0, 0.5], [0, 0]]), {"dtype": torch.int32}, "0.5; use float32"),
            (np.zeros((1, 1)), {"dtype": torch.float16}, "float16"),
        ],
    )
    def test_refused(self, refuses, array, options, part):
        with refuses(part):
            from_numpy(array, **options)

    @pytest.mark.parametrize("missing", ["0", [0], True, np.zeros(2)])
    def test_other_types(self, missing):
        with pytest.raises(TypeError, match="`missing` must be a number, but is"):
            from_numpy(np.zeros((2, 2)), missing=missing)
        with pytest.raises(TypeError, match=r"`array` must be a NumPy array, but is a list; wrap"):
            from_numpy([[0.0]])


class TestScipy:
    entries = (np.array([5.0, 0.0, 3.0]), (np.array([0, 1, 2]), np.array([1, 2, 2])))
    dense = ((0, 5, INF), (INF, 0, 0), (INF, INF, 0))

    @pytest.mark.parametrize(
        "kind", [sp.coo_array, sp.csr_array, sp.csc_array, sp.coo_matrix, sp.csr_matrix]
    )
    def test_stored_zeros_are_edges(self, kind):
        weights = from_scipy(kind(self.entries, shape=(3, 3)))
        assert weights.dtype == torch.float64
        assert weights.tolist() == [list(row) for row in self.dense]

    def test_the_smallest_of_duplicate_entries_counts(self):
        matrix = sp.coo_array((np.array([4, 9, 2]), ([0, 0, 0], [1, 1, 1])), shape=(2, 2))
        assert from_scipy(matrix)[0, 1] == 2
        unsummed = sp.csr_array(
            (np.array([4, 9]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2)
        )
        assert from_scipy(unsummed)[0, 1] == 4

    def test_only_negative_loops_count(self):
        matrix = sp.coo_array(([-1.5, 3.0], ([0, 1], [0, 1])), shape=(2, 2))
        assert from_scipy(matrix).diagonal().tolist() == [-1.5, 0]
        assert matrix.data.tolist() == [-1.5, 3]

    def test_other_dtypes(self, refuses):
        small = sp.csr_array(np.array([[0, 7], [0, 0]], np.uint8))
        assert from_scipy(small, torch.int16)[0, 1] == 7
        with refuses("uint8", ".astype(np.float32)"):
            from_scipy(small)
        with refuses("complex128", "give its .real, or abs() of it"):
            from_scipy(sp.csr_array(np.eye(2, dtype=np.complex128)), torch.float32)

    def test_bool(self):
        """A stored False, which SciPy keeps until eliminate_zeros, is no edge."""
        matrix = sp.coo_array((np.array([True, False, True]), ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
        weights = from_scipy(matrix)
        assert weights.dtype == torch.float32
        assert weights.tolist() == [[0, 1, INF], [INF, 0, INF], [1, INF, 0]]
        assert from_scipy(matrix, torch.int16)[1, 2] == no_edge(torch.int16)

    @pytest.mark.parametrize("kind", ["float32", "float64", "int16", "int32", "int64"])
    @pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok", "bsr"])
    def test_a_stored_no_edge(self, kind, form):
        missing = no_edge(DTYPES_BY_NAME[kind])
        matrix = sp.coo_array(
            (np.array([1, missing, 3], kind), ([0, 1, 2], [1, 2, 0])), shape=(3, 3)
        ).asformat(form)
        assert from_scipy(matrix).tolist() == [
            [0, 1, missing],
            [missing, 0, missing],
            [3, missing, 0],
        ]
        assert from_scipy(matrix, torch.float64).tolist() == [
            [0, 1, INF],
            [INF, 0, INF],
            [3, INF, 0],
        ]

    def test_damaged_matrices(self, refuses):
        outside = sp.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
        outside.row[1] = 7
        damaged = sp.csr_array(np.eye(2))
        damaged.indices[1] = 7
        for matrix, part in (
            (sp.csc_array([[0, 1], [np.nan, 0]]), "that from 1 to 0 is nan; replace it"),
            (sp.csc_array([[0, 1], [-INF, 0]]), "neither NaN nor -inf"),
            (outside, "each edge must join vertices in [0, 2), but one leads from 7"),
            (damaged, "`matrix` must be a valid sparse matrix, but is not: indices must be < 2"),
            (sp.csr_array((2, 3)), "(2, 3); add empty rows"),
            (np.ones((3, 3)), "but is ndarray; convert an array with from_numpy"),
        ):
            with refuses(part):
                from_scipy(matrix)

    @pytest.mark.parametrize("kind", ["dia", "bsr"])
    def test_formats_with_padding(self, kind):
        """A 0 in them is no edge."""
        matrix = sp.csr_array(np.kron(np.eye(2), [[0.0, 3.0], [0.0, 0.0]])).asformat(kind)
        stored = matrix.data.copy()
        assert from_scipy(matrix).tolist() == [
            [0, 3, INF, INF],
            [INF, 0, INF, INF],
            [INF, INF, 0, 3],
            [INF, INF, INF, 0],
        ]
        assert np.array_equal(matrix.data, stored)


class TestNetworkx:
    def test_directed(self):
        graph = nx.DiGraph()
        graph.add_weighted_edges_from([("a", "b", 2.5), ("b", "c", 0)])
        weights = from_networkx(graph)
        assert weights.dtype == torch.float32
        assert weights.tolist() == [[0, 2.5, INF], [INF, 0, 0], [INF, INF, 0]]

    def test_sparse_knows_the_edges(self):
        graph = nx.MultiGraph([(0, 1, {"weight": 4}), (2, 1), (1, 0, {"weight": 3}), (2, 0)])
        found = from_networkx(graph, nodelist=[1, 2, 0], sparse=True)
        assert torch.equal(found.dense(), from_networkx(graph, nodelist=[1, 2, 0]))
        edges = list(graph.edges)
        ends = [{edges[i][0], edges[i][1]} for i in found.by_source.rows]
        names = [1, 2, 0]
        owners, vertices = found.by_source.owners(), found.by_source.vertices
        assert ends == [{names[u], names[v]} for u, v in zip(owners, vertices, strict=True)]
        place = found.by_source.numbers_of(torch.tensor([0]), torch.tensor([2]))
        assert graph.edges[edges[found.by_source.rows[place]]]["weight"] == 3

    def test_undirected_is_symmetric(self):
        graph = nx.Graph()
        graph.add_edge(0, 1, weight=3)
        graph.add_edge(1, 1, weight=-1)
        assert from_networkx(graph, dtype=torch.int32).tolist() == [[0, 3], [3, -1]]

    @pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
    def test_the_lightest_of_parallel_edges_counts(self, kind):
        graph = kind()
        graph.add_weighted_edges_from([(0, 1, 5), (0, 1, 2), (0, 1, 8)])
        back = INF if graph.is_directed() else 2
        assert from_networkx(graph).tolist() == [[0, 2], [back, 0]]

    def test_an_edge_without_the_attribute_weighs_one(self):
        graph = nx.DiGraph([(0, 1)])
        graph.add_edge(1, 0, cost=4, weight=9)
        assert from_networkx(graph, "cost").tolist() == [[0, 1], [4, 0]]
        assert from_networkx(graph, None).tolist() == [[0, 1], [1, 0]]

    def test_nodelist_orders_and_selects(self):
        graph = nx.DiGraph()
        graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", 2), ("c", "a", 3)])
        assert from_networkx(graph, nodelist=["c", "b"]).tolist() == [[0, INF], [2, 0]]

    def test_numbers_of_other_types(self):
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(
            [(0, 1, np.float32(0.5)), (1, 2, Fraction(1, 4)), (2, 0, np.int16(3)), (0, 2, INF)]
        )
        assert from_networkx(graph).tolist() == [[0, 0.5, INF], [INF, 0, 0.25], [3, INF, 0]]

    @pytest.mark.parametrize("value", ["heavy", None, True, 1j, float("nan"), -INF])
    def test_weights_that_are_not_numbers(self, value, refuses):
        graph = nx.DiGraph()
        graph.add_edge("a", "b", weight=value)
        with refuses("('a', 'b')", repr(value), "correct it"):
            from_networkx(graph)

    def test_integers_of_any_size(self, refuses):
        graph = nx.DiGraph()
        graph.add_edge(0, 1, weight=2**70)
        assert from_networkx(graph)[0, 1] == 2.0**70
        with refuses("int64", error=DistanceRangeError):
            from_networkx(graph, dtype=torch.int64)
        graph.add_edge(0, 1, weight=2**5000)
        with refuses("that float64 can hold"):
            from_networkx(graph)

    @pytest.mark.parametrize(
        ("options", "part", "is_type_error"),
        [
            ({"nodelist": [0, 1, 0]}, "repeats 0; remove the repetition", False),
            ({"nodelist": [0, "z"]}, "'z' is not in it; add it or leave it out", False),
            ({"weight": len}, "`weight` must be the name of an edge attribute, but is", True),
            ({"graph": [1]}, "`graph` must be a NetworkX graph, but is a list", True),
            ({"graph": nx.Graph}, "`graph` must be a NetworkX graph, but is a type", True),
        ],
    )
    def test_refused(self, refuses, options, part, is_type_error):
        with refuses(part) as caught:
            from_networkx(**{"graph": nx.DiGraph([(0, 1)])} | options)
        assert isinstance(caught.value, TypeError) == is_type_error


ROUNDED = 2**24 + 1


@pytest.mark.parametrize(
    "convert",
    [
        lambda: from_networkx(nx.DiGraph([(0, 1, {"weight": ROUNDED})])),
        lambda: from_networkx(
            nx.DiGraph([(0, 1, {"weight": float(ROUNDED)}), (1, 2, {"weight": 0.5})])
        ),
        lambda: from_scipy(sp.coo_array(([ROUNDED], ([0], [1])), shape=(2, 2)), torch.float32),
        lambda: from_numpy(np.array([[0, ROUNDED], [ROUNDED, 0]]), torch.float32),
    ],
)
def test_an_integer_that_float32_rounds(recwarn, convert):
    convert()
    (warning,) = recwarn
    assert (warning.category, warning.filename) == (RoundingWarning, __file__)
    assert str(warning.message) == (
        "float32 is exact for integers below 16777216 only, but a weight is 16777217; use float64 "
        "or int64 for exact distances."
    )


@pytest.mark.parametrize("weights", [(2**53 + 1, 0.5), (2**64 + 1, 3), (2**63 + 1, 2**65)])
def test_integers_of_networkx_that_float64_rounds(weights):
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, weights[0]), (1, 2, weights[1])])
    with pytest.warns(RoundingWarning, match=f"a weight is {weights[0]};"):
        from_networkx(graph, dtype=torch.float64)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float"
)
def test_numbers_beyond_float64(refuses):
    large = np.array([[0, np.longdouble("1e400")], [np.inf, 0]])
    for convert, given in ((from_numpy, large), (from_scipy, sp.coo_array(large))):
        with refuses("at most 1.798e+308", "one is 1e+400", error=DistanceRangeError):
            convert(given, torch.float64)
