"""A solve that was killed goes on from its checkpoint, with any number of ranks."""

from __future__ import annotations

import os
import random
import threading

import cases
import numpy as np
import pytest
import torch
from distributed.checkpoints import at_each_block, interrupted, solve
from distributed.ranks import FORKSERVER, use_one_thread

import tri_apsp
from tri_apsp import Checkpoint
from tri_apsp.distributed.checkpoint import Checkpoints
from tri_apsp.distributed.device_rows import ResidentRows
from tri_apsp.distributed.rows import TensorRows
from tri_apsp.graphs.npy_file import NpyFile

N = 700


@pytest.fixture(scope="module")
def graph():
    weights = cases.tensor(cases.negative_graph(N), torch.float32)
    return weights, tri_apsp.shortest_paths(weights).distances


def solve_until_killed(weights, folder, ranks, steps, memory):
    use_one_thread()
    weights, left = torch.from_numpy(weights), steps

    def progress(share):
        nonlocal left
        left -= 1
        if not left:
            os._exit(9)

    Checkpoints.poll = at_each_block
    solve(
        weights,
        progress,
        device=["cpu"] * ranks,
        out=torch.empty_like(weights) if memory else None,
        memory=memory,
        checkpoint=Checkpoint(folder, every=0),
    )


def killed(*arguments):
    """Solve in another process, which is killed after so many pivot blocks."""
    process = FORKSERVER.Process(target=solve_until_killed, args=arguments)
    process.start()
    try:
        process.join(300)
        assert process.exitcode == 9
    finally:
        process.kill()


@pytest.fixture
def begun(tmp_path):
    """Return a function that begins to solve weights, and returns the folder with two states."""

    def begin(weights):
        folder = tmp_path / "state"
        with interrupted(2), pytest.raises(KeyboardInterrupt):
            tri_apsp.shortest_paths(weights, checkpoint=Checkpoint(folder, every=0))
        return folder

    return begin


def resumed(weights, folder, ranks):
    checkpoint = Checkpoint(folder, every=1e6)
    found = tri_apsp.shortest_paths(weights, device=["cpu"] * ranks, checkpoint=checkpoint)
    return found.blocks or (found,)


def check_killed(graph, folder, seed):
    rng = random.Random(seed)
    weights, expected = graph
    memory = rng.choice([None, 200 * N * 4])
    most = 0
    for _ in range(rng.randint(1, 2)):
        ranks, steps = rng.randint(1, 3), rng.randint(1, 4)
        most = max(most, steps)
        killed(weights.numpy(), folder, ranks, steps, memory)
    found = resumed(weights, folder, rng.randint(1, 3))
    # The first state is complete at the second pivot block.
    assert all((each.plan.resumed > 0) == (most > 1) for each in found)
    assert torch.equal(torch.cat([each.distances for each in found]), expected)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("spare", "host_spare"), [(1e9, 0), (0, 1e9), (0, 0)])
def test_a_copy_of_rows_that_change_afterwards(spare, host_spare):
    """In the memory of the device, of the host, or of neither."""
    rows, copy = torch.rand(1, 300, 320), torch.empty(300, 300)
    expected = rows[0, :, :300].clone()
    solved = ResidentRows(rows, 300, spare, host_spare)
    solved.begin_copy(TensorRows(copy))
    written = solved.end_copy()
    rows.zero_()
    written.result()
    solved.close()
    assert torch.equal(copy, expected)


@pytest.mark.parametrize("seed", range(1))
def test_killed_at_random(graph, tmp_path, seed):
    check_killed(graph, tmp_path / "state", seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 23))
def test_killed_at_random_more(graph, tmp_path, seed):
    check_killed(graph, tmp_path / "state", seed)


@pytest.mark.parametrize("vertex", [0, N // 2, N - 2])
def test_a_negative_cycle_is_found_again(tmp_path, monkeypatch, vertex):
    """No state is complete before its diagonal has been looked at."""
    monkeypatch.setattr(Checkpoints, "poll", at_each_block)
    weights = torch.full((N, N), torch.inf)
    weights[vertex, vertex + 1], weights[vertex + 1, vertex] = 1, -2
    for _ in range(2):
        with pytest.raises(tri_apsp.NegativeCycleError):
            tri_apsp.shortest_paths(weights, checkpoint=Checkpoint(tmp_path, every=0))


def damage(path, place=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 64
    path.write_bytes(data)


def damage_header(path):
    """Of the .npy file, or of what an archive holds."""
    damage(path, path.read_bytes().index(b"'descr'"))


def compress(path):
    """Name another compression in the directory of an archive, which is at its end."""
    damage(path, path.read_bytes().rindex(b"PK\1\2") + 10)


def newest(folder):
    numbers = {path: int(np.load(path)["number"]) for path in folder.glob("*.npz")}
    return sorted(numbers, key=numbers.get, reverse=True)


def test_a_negative_cycle_after_a_checkpoint(graph, begun):
    """What is solved without the cycle starts from the weights."""
    weights = graph[0].clone()
    weights[N - 1, N - 2] = weights[N - 2, N - 1] = -50
    folder = begun(weights)
    found = tri_apsp.shortest_paths(
        weights, device="cpu", checkpoint=folder, negative_cycles="mark"
    )
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark").distances
    assert found.plan.resumed > 0
    assert torch.equal(found.distances, expected)
    assert not list(folder.iterdir())


def cut_off(path):
    path.write_bytes(path.read_bytes()[:100])


def other_facts(**others):
    """Write a whole archive with other values."""

    def harm(path):
        np.savez(path, **{**np.load(path), **others})

    return harm


HARMS = [
    (".npz", other_facts(sums=np.uint32(0))),
    (".npz", other_facts(done=N + 1)),
    (".npz", other_facts(done=-1)),
    (".npy", damage),
    (".npy", damage_header),
    (".npz", cut_off),
    (".npz", damage_header),
    (".npz", compress),
]


@pytest.mark.parametrize(("ending", "harm"), HARMS)
def test_a_damaged_generation_is_left_out(graph, begun, ending, harm):
    weights, expected = graph
    folder = begun(weights)
    first, second = newest(folder)
    older = int(np.load(second)["done"])
    harm(first.with_suffix(ending))
    with pytest.warns(tri_apsp.ApspWarning, match=f"{first.stem} is damaged"):
        found = resumed(weights, folder, 2)
    assert torch.equal(torch.cat([each.distances for each in found]), expected)
    assert [each.plan.resumed for each in found] == [older] * 2


@pytest.mark.parametrize(("ending", "harm"), HARMS)
def test_all_generations_damaged(graph, begun, ending, harm):
    weights = graph[0]
    folder = begun(weights)
    for facts in newest(folder):
        harm(facts.with_suffix(ending))
    with pytest.raises(tri_apsp.InputError, match="state-0 and state-1 are damaged; remove"):
        resumed(weights, folder, 2)


def test_another_graph(graph, begun):
    weights = graph[0]
    folder = begun(weights)
    other = weights.clone()
    other[3, 4] = 17
    for wrong in (other, weights.double()):
        with pytest.raises(tri_apsp.InputError, match="another graph or dtype"):
            resumed(wrong, folder, 2)
    assert len(newest(folder)) == 2


def test_files_of_others(graph, tmp_path):
    """Neither replaced nor removed, though they have the names of a checkpoint."""
    weights = graph[0]
    other = tmp_path / "state-0.npy"
    np.save(other, weights.numpy())
    for given in (weights, other):
        with pytest.raises(tri_apsp.InputError, match=r"files are of checkpoints, but .*state-0"):
            tri_apsp.shortest_paths(given, checkpoint=Checkpoint(tmp_path, every=0))
    assert np.array_equal(np.load(other), weights.numpy())
    out = tmp_path / "state" / "state-0.npy"
    out.parent.mkdir()
    with pytest.raises(tri_apsp.InputError, match="must not be in the folder of `checkpoint`"):
        tri_apsp.shortest_paths(weights, device="cpu", checkpoint=out.parent, out=out)
    assert not list(out.parent.iterdir())


def test_a_generation_that_was_being_written(graph, begun):
    """It is no damage, and the solve goes on from the other."""
    weights, expected = graph
    folder = begun(weights)
    first, second = newest(folder)
    facts = dict(np.load(first))
    np.savez(first, **facts | {"done": 0, "sums": np.zeros(0, np.uint32)})
    older = int(np.load(second)["done"])
    (found,) = resumed(weights, folder, 1)
    assert torch.equal(found.distances, expected)
    assert found.plan.resumed == older


def test_a_removal_that_was_interrupted(graph, begun):
    weights, expected = graph
    folder = begun(weights)
    for facts in newest(folder):
        facts.with_suffix(".npy").unlink()
        (found,) = resumed(weights, folder, 1)
        assert torch.equal(found.distances, expected)
        begun(weights)


def test_a_folder_that_cannot_be_made(graph, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tri_apsp.InputError, match="must be a path that can be written"):
        resumed(graph[0], tmp_path / "file" / "state", 1)


def test_overwritten_files_have_no_checkpoint(graph, tmp_path):
    path = tmp_path / "weights.npy"
    np.save(path, graph[0].numpy())
    with pytest.raises(tri_apsp.InputError, match="`checkpoint` needs weights"):
        tri_apsp.shortest_paths(str(path), checkpoint=tmp_path, out=path)


def test_two_solves(graph, tmp_path):
    """Neither a folder nor a file is written by both."""
    weights, out, state = graph[0], tmp_path / "d.npy", tmp_path / "state"

    def second(share):
        assert (tmp_path / "d.npy.part").exists()
        with pytest.raises(tri_apsp.InputError, match="`out` must be a path that no other solve"):
            tri_apsp.shortest_paths(weights, memory=1 << 30, out=out)
        with pytest.raises(tri_apsp.InputError, match=r"`checkpoint` .* no other solve"):
            tri_apsp.shortest_paths(weights, checkpoint=state, out=tmp_path / "e.npy")
        seen.append(share)

    seen = []
    solve(weights, second, checkpoint=state, out=out)
    assert seen
    tri_apsp.shortest_paths(weights, checkpoint=state, out=out)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["d.npy", "state"]


def test_a_solve_does_not_wait_for_its_last_checkpoint(graph, tmp_path, monkeypatch):
    begun, may_end, ended = (threading.Event() for _ in range(3))

    def sync(self):
        begun.set()
        may_end.wait(60)
        ended.set()

    monkeypatch.setattr(NpyFile, "sync", sync)
    weights, expected = graph
    found = tri_apsp.shortest_paths(weights, checkpoint=Checkpoint(tmp_path, every=0))
    assert begun.wait(60)
    assert not ended.is_set()
    may_end.set()
    assert torch.equal(found.distances, expected)
    assert not list(tmp_path.iterdir())


def test_marking_goes_on_from_a_checkpoint(graph, tmp_path):
    """The solve that finds the cycle is the first of two."""
    weights = graph[0].clone()
    weights[-2, -1], weights[-1, -2] = 1, -2
    call = {"negative_cycles": "mark", "checkpoint": Checkpoint(tmp_path, every=0)}
    with interrupted(2), pytest.raises(KeyboardInterrupt):
        tri_apsp.shortest_paths(weights, device="cpu", **call)
    found = tri_apsp.shortest_paths(weights, device="cpu", **call)
    assert found.plan.resumed > 0
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    assert torch.equal(found.distances, expected.distances)
