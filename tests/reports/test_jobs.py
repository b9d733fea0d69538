"""The jobs: both ways of one find the same."""

import numpy as np
import pytest
import torch
from peers.graphs import REMEDY

pytest.importorskip("matplotlib")
pytest.importorskip("networkit", reason=f"needs NetworKit; {REMEDY}")

from reports.studies import jobs
from tri_apsp import graphs
from tri_apsp.graphs.sparse import sparse_graph


def test_betweenness_of_a_connected_part() -> None:
    roads = jobs._road_weights(sparse_graph(graphs.generate("roads", 400, seed=0)))
    job = jobs._betweenness(torch.device("cpu"), roads, 250)
    assert job.name == "betweenness of a road network, 250 vertices"
    ours = jobs._numbers(job.ours())
    assert (ours > 250).any()  # a connected part has vertices that many paths pass
    np.testing.assert_allclose(ours, jobs._numbers(job.theirs()), rtol=1e-6)
