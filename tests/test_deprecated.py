"""Options of version 0.2 work, warn, and give the same as what replaces them."""

from pathlib import Path

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import no_edge


def test_min_only() -> None:
    weights = cases.tensor(cases.random_graph(20), torch.float32)
    expected = tri_apsp.nearest(weights, [3, 5], limit=7, predecessors=True)
    with pytest.warns(DeprecationWarning, match=r"`min_only` is deprecated.*tri_apsp\.nearest"):
        found = tri_apsp.shortest_paths(
            weights, sources=[3, 5], min_only=True, limit=7, predecessors=True
        )
    assert torch.equal(found.distances, expected.distances)
    assert torch.equal(found.predecessors, expected.predecessors)
    assert torch.equal(found.nearest, expected.nearest)
    source = int(found.nearest[0])
    assert found.path(source, 0) == expected.path(source, 0)


def test_no_path(tmp_path: Path) -> None:
    weights = cases.tensor(cases.CASES["disconnected"](20), torch.int32)
    expected = tri_apsp.shortest_paths(weights).filled(-1)
    for out in None, torch.empty_like(weights), tmp_path / "d.npy":
        with pytest.warns(DeprecationWarning, match=r"`no_path` is deprecated.*filled"):
            found = tri_apsp.shortest_paths(weights, no_path=-1, out=out)
        assert torch.equal(found.distances, expected)
        if isinstance(out, torch.Tensor):
            assert found.distances is out
    assert np.array_equal(np.load(tmp_path / "d.npy"), expected.numpy())


def test_overwrite() -> None:
    given = cases.tensor(cases.random_graph(20), torch.float32)
    expected = tri_apsp.shortest_paths(given).distances
    with pytest.warns(DeprecationWarning, match="`overwrite` is deprecated.*weights as `out`"):
        assert tri_apsp.select(given, overwrite=True).in_place
    with pytest.warns(DeprecationWarning, match="`overwrite` is deprecated"):
        found = tri_apsp.shortest_paths(given, overwrite=True)
    assert found.distances is given
    assert torch.equal(given, expected)


def test_options_beside_old_ones() -> None:
    weights = cases.tensor(cases.CASES["disconnected"](20), torch.float32)
    expected, out = tri_apsp.nearest(weights, [3]).distances, torch.empty(1, 20)
    config = tri_apsp.Config(engine="cpu")
    with pytest.warns(DeprecationWarning, match="min_only"):
        found = tri_apsp.shortest_paths(
            weights, sources=[3], min_only=True, out=out, config=config, progress=False
        )
    assert found.distances is out
    assert torch.equal(out, expected)
    with pytest.warns(DeprecationWarning, match="min_only"):
        assert tri_apsp.select(weights, sources=[3], min_only=True).nearest
    given = weights.clone()
    with pytest.warns(DeprecationWarning, match="overwrite"):
        assert tri_apsp.shortest_paths(graph=given, overwrite=True).distances is given
    with (
        pytest.warns(DeprecationWarning, match="overwrite"),
        pytest.raises(tri_apsp.InputError, match="must not be given with `out`"),
    ):
        tri_apsp.shortest_paths(weights, overwrite=True, out=out)


def test_paths_beside_no_path() -> None:
    weights = torch.tensor([[0, 3, no_edge(torch.int32)]] * 3, dtype=torch.int32)
    with pytest.warns(DeprecationWarning, match="no_path"):
        found = tri_apsp.shortest_paths(weights, no_path=-1, predecessors=True)
    assert found.distances.tolist() == [[0, 3, -1], [0, 0, -1], [0, 3, 0]]
    assert (found.path(0, 2), found.path(2, 1)) == ([], [2, 1])


@pytest.mark.filterwarnings("ignore:`no_path`:DeprecationWarning")
def test_errors_beside_old_options() -> None:
    weights = torch.rand(4, 4)
    with pytest.raises(tri_apsp.InputError, match=r"call \.filled\(value\) of each of"):
        tri_apsp.shortest_paths(weights, no_path=-1, device=["cpu", "cpu"])
    with pytest.raises(TypeError, match=r"^missing a required argument: 'graph'"):
        tri_apsp.shortest_paths(no_path=-1)
    with pytest.raises(TypeError, match=r"^got an unexpected keyword argument 'nearest'"):
        tri_apsp.shortest_paths(weights, no_path=-1, nearest=True)


def test_a_value_for_no_path_that_is_a_distance() -> None:
    with (
        pytest.warns(DeprecationWarning, match="no_path"),
        pytest.raises(tri_apsp.InputError, match="`no_path` must differ from every distance"),
    ):
        tri_apsp.shortest_paths(torch.zeros(2, 2), no_path=0)


def test_the_old_name_of_a_method() -> None:
    weights = torch.rand(5, 5)
    with pytest.warns(DeprecationWarning, match="'iterative' is deprecated.*'rank_one_updates'"):
        found = tri_apsp.shortest_paths(weights, method="iterative")
    assert found.method == "rank_one_updates"
    with pytest.warns(DeprecationWarning, match="'iterative' is deprecated"):
        assert tri_apsp.Config(method="iterative").method == "rank_one_updates"


def test_what_is_gone_names_what_replaces_it() -> None:
    with pytest.raises(AttributeError, match=r"call \.filled\(value\)"):
        _ = tri_apsp.shortest_paths(torch.rand(5, 5)).no_path
