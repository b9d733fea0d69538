"""All distances in blocks, written to a file that an interrupted call goes on with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp.errors import InputError, NegativeCycleError
from tri_apsp.sparse.all_pairs import all_pairs

WEIGHTS = cases.tensor(cases.random_graph(50), torch.float32)
EXPECTED = tri_apsp.shortest_paths(WEIGHTS).distances


@pytest.mark.parametrize("rows", [1, 7, 50, 1000, None])
def test_blocks(rows: int | None) -> None:
    blocks = list(all_pairs(WEIGHTS, sources_per_block=rows))
    assert [block.first for block in blocks] == list(range(0, 50, rows or 1000))
    assert torch.equal(torch.cat([block.distances for block in blocks]), EXPECTED)


def test_no_vertex_has_no_block() -> None:
    assert list(all_pairs(torch.empty(0, 0))) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_file(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "distances.npy"
    weights = cases.tensor(cases.negative_graph(30), dtype)
    for first, distances in all_pairs(weights, sources_per_block=8, sink=path):
        assert np.array_equal(np.load(path)[first : first + len(distances)], distances.numpy())
    assert np.array_equal(np.load(path), tri_apsp.shortest_paths(weights).distances.numpy())
    assert [file.name for file in tmp_path.iterdir()] == ["distances.npy"]


def test_an_interrupted_call_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    blocks = all_pairs(WEIGHTS, sources_per_block=10, sink=path)
    next(blocks)
    blocks.close()
    rest = list(all_pairs(WEIGHTS, sources_per_block=20, sink=path))
    assert rest[0].first >= 10
    assert np.array_equal(np.load(path), EXPECTED.numpy())


def test_a_killed_process_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    program = f"""
import sys, time, torch, cases
from tri_apsp.sparse.all_pairs import all_pairs
weights = cases.tensor(cases.random_graph(50), torch.float32)
for first, _ in all_pairs(weights, sources_per_block=5, sink={str(path)!r}):
    print(first, flush=True)
    time.sleep(60 if first else 0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(__file__).parents[1], text=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline().strip() for _ in range(2)] == ["0", "5"]
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rest = list(all_pairs(WEIGHTS, sources_per_block=5, sink=path))
    assert rest[0].first in (10, 15)
    assert np.array_equal(np.load(path), EXPECTED.numpy())


def test_files_that_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "distances.npy"
    np.save(path, np.arange(3))
    with pytest.raises(InputError, match="`sink` must not be there yet"):
        all_pairs(WEIGHTS, sink=path)
    assert np.load(path).tolist() == [0, 1, 2]
    path.unlink()
    next(all_pairs(WEIGHTS, sources_per_block=5, sink=path))
    with pytest.raises(InputError, match="an interrupted call with the same graph"):
        all_pairs(WEIGHTS + 1, sink=path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sink": "distances.csv"}, "`sink` must be a file that ends in .npy"),
        ({"sink": "/no/such/folder/d.npy"}, "cannot: No such file or directory"),
        ({"sources_per_block": 0}, "`sources_per_block` must be a positive integer"),
        ({"method": "floyd_warshall"}, "`method` must be one of auto"),
    ],
)
def test_bad_arguments_raise_at_once(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        all_pairs(WEIGHTS, **arguments)


def test_negative_cycles(tmp_path: Path) -> None:
    weights = torch.tensor([[0.0, -2.0, 3.0], [1.0, 0.0, torch.inf], [torch.inf, torch.inf, 0.0]])
    with pytest.raises(NegativeCycleError):
        list(all_pairs(weights))
    (block,) = all_pairs(weights, negative_cycles="mark")
    assert torch.equal(block.distances, tri_apsp.shortest_paths(weights, negative_cycles="mark").distances)
