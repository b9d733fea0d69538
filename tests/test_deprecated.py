"""Options of version 0.2 work, warn, and give the same as what replaces them."""

from __future__ import annotations

from pathlib import Path

import cases
import numpy as np
import pytest
import torch

import tri_apsp


def test_min_only() -> None:
    weights = cases.tensor(cases.random_graph(20), torch.float32)
    expected = tri_apsp.nearest(weights, [3, 5], limit=7, predecessors=True)
    with pytest.warns(DeprecationWarning, match=r"`min_only` is deprecated.*tri_apsp\.nearest"):
        found = tri_apsp.shortest_paths(
            weights, sources=[3, 5], min_only=True, limit=7, predecessors=True
        )
    assert torch.equal(found.distances, expected.distances)
    assert torch.equal(found.predecessors, expected.predecessors)


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


def test_what_cannot_work_names_what_replaces_it() -> None:
    weights = torch.rand(5, 5)
    with (
        pytest.warns(DeprecationWarning, match="min_only"),
        pytest.raises(TypeError, match=r"call tri_apsp\.nearest"),
    ):
        tri_apsp.select(weights, sources=[0], min_only=True)
    with pytest.raises(AttributeError, match=r"call \.filled\(value\)"):
        _ = tri_apsp.shortest_paths(weights).no_path
