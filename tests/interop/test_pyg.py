"""The transforms of PyTorch Geometric and the encodings of Graphormer, against NetworkX and the
formulas of the paper.
"""

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest
import torch

pytest.importorskip("torch_geometric", reason="the transforms need PyTorch Geometric")

import torch_geometric
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import ToSparseTensor

from tri_apsp import InputError, InputTypeError
from tri_apsp.interop.graphormer import encodings, features_along
from tri_apsp.interop.pyg import GraphormerEncodings, ShortestPathDistances, padded

M = 4


def graph(n: int, seed: int, edges: int | None = None) -> Data:
    """A directed graph with loops, parallel edges and unreachable vertices."""
    random = torch.Generator().manual_seed(seed)
    count = (2 * n if edges is None else edges) if n else 0
    edge_index = torch.randint(0, max(n, 1), (2, count), generator=random)
    features = torch.rand(count, 3, generator=random)
    return Data(
        edge_index=edge_index, edge_attr=features, edge_weight=features[:, 0] + 0.1, num_nodes=n
    )


def path_graph(n: int) -> Data:
    edges = torch.stack((torch.arange(n - 1), torch.arange(1, n)))
    return Data(
        edge_index=edges, edge_attr=torch.rand(n - 1, 3), edge_weight=torch.ones(n - 1), num_nodes=n
    )


GRAPHS = [
    graph(9, 0),
    graph(1, 1),
    graph(0, 2),
    graph(20, 3),
    graph(5, 4, edges=0),
    path_graph(12),
    graph(3, 5),
]


def lengths(data: Data, weight: str | None = None) -> torch.Tensor:
    """The distances by NetworkX; inf without a path."""
    made = nx.MultiDiGraph()
    made.add_nodes_from(range(data.num_nodes))
    for (u, v), w in zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True):
        made.add_edge(u, v, weight=w)
    found = torch.full((data.num_nodes, data.num_nodes), float("inf"))
    for u, row in nx.all_pairs_dijkstra_path_length(made, weight=weight or (lambda *_: 1)):
        for v, length in row.items():
            found[u, v] = length
    return found


class TestEncodings:
    @pytest.mark.parametrize("data", GRAPHS, ids=str)
    def test_spatial_positions(self, data: Data) -> None:
        found = encodings(
            data.edge_index, num_nodes=data.num_nodes, max_distance=M
        ).spatial_positions[0]
        expected = lengths(data)
        assert torch.equal(
            found, torch.where(expected.isinf(), M + 1, expected.clamp(max=M)).long()
        )

    @pytest.mark.parametrize("data", GRAPHS, ids=str)
    def test_edge_paths(self, data: Data) -> None:
        """Each is a path of as many edges as there are, from its source on, by the first of
        parallel edges.
        """
        paths = encodings(data.edge_index, num_nodes=data.num_nodes, max_distance=M).edge_paths[0]
        expected, edges = lengths(data), data.edge_index.T.tolist()
        for i in range(data.num_nodes):
            for j in range(data.num_nodes):
                path = [edge for edge in paths[i, j].tolist() if edge >= 0]
                length = expected[i, j].item()
                assert len(path) == (0 if length == float("inf") else min(length, M))
                assert paths[i, j, len(path) :].eq(-1).all()
                vertex = i
                for edge in path:
                    assert edges.index(edges[edge]) == edge
                    assert edges[edge][0] == vertex
                    vertex = edges[edge][1]
                if path and length <= M:
                    assert vertex == j
                elif path:
                    assert expected[vertex, j] == length - M

    def test_edge_encoding_of_the_paper(self) -> None:
        """c_ij = 1/N sum over the N edges e_n of the path of x(e_n) w_n."""
        data, w = GRAPHS[0], torch.rand(M, 3)
        found = encodings(data.edge_index, num_nodes=data.num_nodes, max_distance=M)
        features = data.edge_attr.clone().requires_grad_()
        along = (features_along(found.edge_paths, features) * w).sum((-1, -2))
        c = along / found.spatial_positions.clamp(min=1)
        (gradient,) = torch.autograd.grad(c.sum(), features)
        used = torch.isin(torch.arange(data.num_edges), found.edge_paths)
        assert torch.equal((gradient != 0).any(1), used)
        for i in range(data.num_nodes):
            for j in range(data.num_nodes):
                path = [edge for edge in found.edge_paths[0, i, j].tolist() if edge >= 0]
                expected = sum(
                    float(data.edge_attr[edge] @ w[k]) for k, edge in enumerate(path)
                ) / max(1, len(path))
                if len(path) or lengths(data)[i, j] == 0:
                    assert c[0, i, j].item() == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize("value", [0, 1.5, None, True])
    def test_max_distance(self, value: object) -> None:
        with pytest.raises(InputError, match=r"`max_distance` must be (an integer|at least 1)"):
            encodings(GRAPHS[0].edge_index, max_distance=value)


class TestTransforms:
    @pytest.mark.parametrize("name", ["index_of_distance", "batch_distance", "face", "adjacency"])
    def test_names_that_a_loader_changes(self, name: str) -> None:
        with pytest.raises(
            InputError, match="`name` must not contain 'index', 'batch', 'face' or 'adj'"
        ):
            ShortestPathDistances(name=name)

    def test_weights_as_edge_attributes(self) -> None:
        data = path_graph(4)
        data.edge_attr = torch.arange(1.0, 1 + data.num_edges)[:, None]
        data.length = data.edge_attr[:, 0]
        found, expected = (
            ShortestPathDistances(edge_weight=name)(data).shortest_path_distances
            for name in ("edge_attr", "length")
        )
        assert torch.equal(found, expected)

    def test_a_list_of_data_is_refused(self) -> None:
        with pytest.raises(InputTypeError, match=r"or of a list Batch.from_data_list\(data\)\."):
            ShortestPathDistances()([path_graph(3)])

    def test_edges_that_are_not_grouped(self) -> None:
        batch = GraphormerEncodings(2)(Batch.from_data_list([path_graph(3)] * 2))
        batch.edge_index = batch.edge_index[:, [2, 0, 3, 1]]
        with pytest.raises(InputError, match="the edges of a batch must be grouped by graph"):
            padded(batch, "edge_paths", fill=-1, edges=True)

    @pytest.mark.parametrize("weight", [None, "edge_weight"])
    @pytest.mark.parametrize("limit", [None, 2.5])
    def test_distances(self, weight: str | None, limit: float | None) -> None:
        transform = ShortestPathDistances(limit, edge_weight=weight)
        for data in GRAPHS:
            expected = lengths(data, weight and "weight").clamp(
                max=float("inf") if limit is None else limit
            )
            found = transform(data)
            assert torch.allclose(found.shortest_path_distances, expected.flatten())
            assert "shortest_path_distances" not in data

    @pytest.mark.parametrize(
        "transform", [ShortestPathDistances(), GraphormerEncodings(M)], ids=str
    )
    def test_a_batch_is_its_graphs(self, transform: object) -> None:
        single = [transform(data) for data in GRAPHS]
        batch = transform(Batch.from_data_list(GRAPHS))
        joined = Batch.from_data_list(single)
        for name in set(single[0].keys()) - set(GRAPHS[0].keys()):
            assert torch.equal(batch[name], joined[name])
            for data, part in zip(single, batch.to_data_list(), strict=True):
                assert torch.equal(data[name], part[name])
            (loaded,) = DataLoader(single, batch_size=len(single))
            assert torch.equal(loaded[name], joined[name])

    def test_padded(self) -> None:
        transform = GraphormerEncodings(M)
        loaded = Batch.from_data_list([transform(data) for data in GRAPHS])
        expected = encodings(
            loaded.edge_index, loaded.batch, max_distance=M, batch_size=len(GRAPHS)
        )
        positions, sizes = padded(loaded, "spatial_positions", fill=M + 2)
        paths, _ = padded(loaded, "edge_paths", fill=-1)
        assert torch.equal(padded(loaded, "edge_paths", fill=-1, edges=True)[0], paths)
        for found, wanted in zip((positions, paths, sizes), expected, strict=True):
            assert torch.equal(found, wanted)
        of_each = padded(loaded, "edge_paths", fill=-1, edges=False)[0]
        assert int(of_each.max()) < int(paths.max())
        alone = transform(GRAPHS[0])
        assert padded(alone, "edge_paths", fill=-1, edges=True)[0].shape == (1, 9, 9, M)

    def test_refused(self) -> None:
        with pytest.raises(InputError, match="must be greater than 0, but is -1"):
            ShortestPathDistances(-1)
        with pytest.raises(InputError, match="'edge_attr' must hold 81 values"):
            padded(GRAPHS[0], "edge_attr", fill=-1)

    @pytest.mark.parametrize(
        "apply",
        [
            ShortestPathDistances(),
            GraphormerEncodings(max_distance=2),
            lambda data: padded(data, "shortest_path_distances", fill=0),
        ],
    )
    def test_data_of_other_kinds(self, apply: Callable[[Any], object]) -> None:
        mixed = HeteroData()
        mixed["stop"].num_nodes, mixed["line"].num_nodes = 2, 1
        mixed["stop", "of", "line"].edge_index = torch.tensor([[0, 1], [0, 0]])
        for data in (mixed, Batch.from_data_list([mixed, mixed])):
            with pytest.raises(InputError, match=r"but are HeteroData.*; give the to_homogeneous"):
                apply(data)
        whole = ShortestPathDistances()(mixed.to_homogeneous())
        assert padded(whole, "shortest_path_distances", fill=0)[1].tolist() == [3]
        with pytest.raises(InputError, match=r"must have the attribute '.*', but have num_nodes;"):
            apply(Data(num_nodes=2))

    @pytest.mark.filterwarnings("ignore:Sparse")
    def test_an_adjacency_in_place_of_edges(self) -> None:
        data = ToSparseTensor(attr="edge_weight")(path_graph(4))
        with pytest.raises(InputError, match="must have the attribute 'edge_index', but ") as error:
            ShortestPathDistances()(data)
        remedy = str(error.value).split(" or set ")[1].rstrip(".")
        exec(remedy, {"data": data, "torch_geometric": torch_geometric})
        found, expected = (ShortestPathDistances()(each) for each in (data, path_graph(4)))
        assert torch.equal(found.shortest_path_distances, expected.shortest_path_distances)
        with pytest.raises(InputError, match="must have the attribute 'edge_weight', but have"):
            ShortestPathDistances(edge_weight="edge_weight")(data)
