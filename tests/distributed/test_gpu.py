"""Block rows on one GPU, streamed through it, on two by threads, and by processes of NCCL."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import torch
import torch.distributed as dist
from distributed.checkpoints import interrupted
from distributed.ranks import Ranks

import tri_apsp
from tri_apsp import distributed
from tri_apsp.dense.exponents import with_exponents_threshold
from tri_apsp.distributed import plan, run

N = 1531  # not a multiple of anything
DTYPES = [torch.float32, torch.int16]
MEMORY = 3 << 20


def graph_of(make, dtype, n=N):
    weights = cases.tensor(make(n), dtype)
    return weights, tri_apsp.shortest_paths(weights).distances


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [cases.random_graph, cases.negative_graph])
def test_on_one_gpu(make, dtype, tmp_path):
    weights, expected = graph_of(make, dtype)
    assert torch.equal(tri_apsp.shortest_paths(weights, device="cuda").distances.cpu(), expected)
    out = torch.empty_like(weights)
    result = tri_apsp.shortest_paths(weights, device="cuda", out=out, memory=MEMORY)
    assert result.plan.is_streamed
    assert torch.equal(out, expected)
    plan = tri_apsp.select(weights, device="cuda", out=out, memory=MEMORY)
    assert min(plan.expected.shares.values()) > 0
    np.save(tmp_path / "w.npy", weights.numpy())
    tri_apsp.shortest_paths(
        tmp_path / "w.npy", device="cuda", out=tmp_path / "d.npy", memory=MEMORY
    )
    assert np.array_equal(np.load(tmp_path / "d.npy"), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("memory", [1 << 30, 64 << 20], ids=["resident", "streamed"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_on_one_gpu(dtype, memory):
    weights = cases.tensor(cases.random_graph(4 * N, low=1, high=4), dtype)  # of several blocks
    expected = tri_apsp.shortest_paths(weights).distances
    out = torch.empty_like(weights)
    with with_exponents_threshold(200):
        result = tri_apsp.shortest_paths(
            weights, device="cuda", out=out, memory=memory * dtype.itemsize // 4
        )
    assert result.plan.exponents
    assert result.plan.is_streamed == (memory < 1 << 30)
    assert torch.equal(out, expected)


@pytest.mark.gpu
def test_marking_and_checkpoints_on_one_gpu(tmp_path):
    weights = cases.tensor(cases.random_graph(N, degree=2), torch.float32)
    weights[40, 3], weights[3, 40] = 1, -2
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    for options in ({}, {"out": torch.empty_like(weights), "memory": MEMORY}):
        result = tri_apsp.shortest_paths(
            weights,
            device="cuda",
            negative_cycles="mark",
            checkpoint=tri_apsp.Checkpoint(tmp_path, every=0),
            **options,
        )
        assert torch.equal(result.distances.cpu(), expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("spare", "of_host"), [(1 << 30, 0), (0, 1 << 30), (0, 0)])
def test_goes_on_from_a_checkpoint_on_one_gpu(spare, of_host, tmp_path, monkeypatch):
    """Which is copied on the GPU first, or to the host, or written while the solve waits."""
    for module in plan, run:
        monkeypatch.setattr(module, "spare_memory", lambda device, ranks: of_host)
    weights, expected = graph_of(cases.random_graph, torch.float32, 2 * N)  # of six pivot blocks
    rows = weights.cuda()
    memory = tri_apsp.select(rows, device="cuda", checkpoint=tmp_path).memory + spare
    call = {"device": "cuda", "memory": memory, "checkpoint": tri_apsp.Checkpoint(tmp_path, 0)}
    with interrupted(1), pytest.raises(KeyboardInterrupt):
        tri_apsp.shortest_paths(rows, **call)
    result = tri_apsp.shortest_paths(weights, **call)  # the same graph, on the CPU
    assert torch.equal(result.distances.cpu(), expected)
    assert result.plan.resumed > 0


@pytest.mark.gpu
def test_as_many_gpus_as_help(monkeypatch):
    """With one GPU that is named twice, which no caller may do."""
    twice = (torch.device("cuda", 0),) * 2
    monkeypatch.setattr("tri_apsp.request.resolve_all", lambda devices: twice)
    weights, expected = graph_of(cases.negative_graph, torch.float32)
    result = tri_apsp.shortest_paths(weights, device="all", predecessors=True)
    assert (result.plan.way, len(result.blocks)) == ("one launch", 1)
    assert "more devices would be slower" in result.plan.reason
    assert torch.equal(result.blocks[0].distances.cpu(), expected)
    assert result.path(3, 5) == tri_apsp.shortest_paths(weights, predecessors=True).path(3, 5)
    out = torch.empty_like(weights)
    assert tri_apsp.shortest_paths(weights, device="all", out=out).distances is out
    assert torch.equal(out, expected)
    assert tri_apsp.shortest_paths(weights, device="all", memory=1 << 30).plan.way == "block rows"
    large = torch.randint(1, 100, (2 * 5120, 2 * 5120), dtype=torch.int16)  # by exponents
    plan = tri_apsp.select(large, device="all")
    assert plan.way == "dense"
    assert "more devices would be slower" in plan.reason
    assert tri_apsp.select(large + 16000, device="all").way == "block rows"


@pytest.mark.two_gpus
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_two_gpus(dtype, monkeypatch):
    monkeypatch.setattr("tri_apsp.dense.device_count._LEAST_ROWS", 1)
    weights, expected = graph_of(cases.negative_graph, dtype)
    devices = ["cuda:0", "cuda:1"]
    results = tri_apsp.shortest_paths(weights, device=devices).blocks
    assert [str(result.distances.device) for result in results] == devices
    assert torch.equal(torch.cat([result.distances.cpu() for result in results]), expected)
    out = torch.empty_like(weights)
    tri_apsp.shortest_paths(weights, device="all", out=out, memory=MEMORY)
    assert torch.equal(out, expected)
    plan = tri_apsp.select(weights, device=devices, out=out, memory=MEMORY)
    assert min(plan.expected.shares.values()) > 0
    blocks = [part.to(device) for part, device in zip(weights.split(800), devices, strict=True)]
    tri_apsp.shortest_paths(blocks, device=devices, out=blocks)
    assert torch.equal(torch.cat([block.cpu() for block in blocks]), expected)
    rows = weights.cuda()
    with pytest.raises(tri_apsp.InputError, match="`out` must not be weights that lie elsewhere"):
        tri_apsp.shortest_paths(rows, device=devices, out=rows)


def solved(weights, cuts):
    rank = dist.get_rank()
    rows = weights[cuts[rank] : cuts[rank + 1]]
    if rows.is_floating_point():
        with pytest.raises(tri_apsp.InputError, match="NaN"):  # which leaves the group as it is
            distributed.shortest_paths((rows * torch.nan).cuda())
    own = distributed.shortest_paths(rows.cuda()).distances.cpu()
    out = torch.empty_like(rows)
    streamed = distributed.shortest_paths(rows, device="cuda", out=out, memory=MEMORY)
    return own, streamed.distances


@pytest.mark.gpu
@pytest.mark.parametrize("cuts", [[0, 900, N], [0, 0, 1000, 1001, N]], ids=["two", "four"])
def test_processes_of_nccl(cuts, tmp_path):
    group = Ranks(len(cuts) - 1, tmp_path, backend="nccl")
    try:
        for dtype in DTYPES:
            weights, expected = graph_of(cases.random_graph, dtype)
            found = group.run(solved, weights, cuts)
            for way in zip(*found, strict=True):
                assert torch.equal(torch.cat(way), expected)
    finally:
        group.close()
