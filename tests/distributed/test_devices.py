"""shortest_paths on several devices, or with a limit on its memory; ranks are threads here."""

from __future__ import annotations

import mmap
import os
import shutil
import threading

import cases
import numpy as np
import pytest
import torch
from distributed.checkpoints import interrupted, solve

import tri_apsp
from tri_apsp import shared_memory
from tri_apsp.distributed import plan, rows, run
from tri_apsp.distributed.rows import FileRows
from tri_apsp.graphs import DenseGraph
from tri_apsp.graphs.npy_file import NpyFile
from tri_apsp.ranks.threads import run_ranks

N = 300


def joined(result):
    """Return the distances of blocks as one tensor."""
    return torch.cat([block.distances for block in result.blocks or (result,)])


def streamed(dtype: torch.dtype) -> int:
    """Return a memory of 120 of the N rows."""
    return 120 * N * dtype.itemsize


@cases.every_dtype
@pytest.mark.parametrize("make", [cases.random_graph, cases.negative_graph])
@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_as_one_device(make, dtype, count):
    weights = cases.tensor(make(N), dtype)
    weights[7, 7] = 3
    expected, given = tri_apsp.shortest_paths(weights).distances, weights.clone()
    result = tri_apsp.shortest_paths(weights, device=["cpu"] * count)
    assert torch.equal(joined(result), expected)
    assert len(result.blocks) == (count if count > 1 else 0)
    if count > 1:
        assert torch.cat([block.sources for block in result.blocks]).tolist() == list(range(N))
        with pytest.raises(AttributeError, match="read those of each of `blocks`"):
            _ = result.distances
    out = torch.empty_like(weights)
    result = tri_apsp.shortest_paths(
        weights, device=["cpu"] * count, out=out, memory=streamed(dtype)
    )
    assert result.distances is out
    assert result.plan.is_streamed
    assert result.sources is None
    assert torch.equal(out, expected)
    assert torch.equal(weights, given)


@pytest.mark.parametrize("rows", [8, 30, 100, 350])
def test_any_memory(rows):
    """With less memory, strips and pivot blocks become smaller, and the distances are the same."""
    n = N if rows > 8 else 60
    weights = cases.tensor(cases.random_graph(n), torch.int32)
    memory, out = rows * n * weights.itemsize, torch.empty_like(weights)
    result = tri_apsp.shortest_paths(weights, memory=memory, out=out)
    assert torch.equal(out, tri_apsp.shortest_paths(weights).distances)
    assert result.plan.memory <= memory


def test_blocks_of_rows():
    weights = cases.tensor(cases.random_graph(N), torch.float64)
    expected = tri_apsp.shortest_paths(weights).distances
    blocks = [part.clone() for part in weights.split([100, 0, 200])]
    assert torch.equal(joined(tri_apsp.shortest_paths(blocks, device=["cpu"] * 3)), expected)
    out = torch.empty_like(weights)
    result = tri_apsp.shortest_paths(blocks, out=out, memory=streamed(torch.float64))
    assert result.plan.is_streamed
    assert torch.equal(out, expected)
    result = tri_apsp.shortest_paths(blocks, out=blocks)
    assert all(
        one.distances.data_ptr() == block.data_ptr()
        for one, block in zip(result.blocks, blocks, strict=True)
    )
    assert torch.equal(torch.cat(blocks), expected)


@pytest.mark.parametrize("count", [1, 2])
def test_files(tmp_path, count):
    weights = cases.tensor(cases.random_graph(N), torch.int16)
    path, out = tmp_path / "w.npy", tmp_path / "d.npy"
    np.save(path, weights.numpy())
    expected = tri_apsp.shortest_paths(weights).distances
    result = tri_apsp.shortest_paths(
        path, device=["cpu"] * count, out=out, memory=streamed(torch.int16)
    )
    assert torch.equal(result.distances, expected)
    assert np.array_equal(np.load(out), expected)
    tri_apsp.shortest_paths(path, device=["cpu"] * count, out=path)
    assert np.array_equal(np.load(path), expected)


@pytest.mark.parametrize("count", [1, 2])
def test_rows_of_a_file_stay_in_memory(tmp_path, count, monkeypatch):
    """As with a GPU; so the file is written once."""
    monkeypatch.setattr(plan, "spare_memory", lambda device, ranks: 1 << 30)
    written = np.zeros(N, int)
    write = NpyFile.write

    def counted(file, first, values):
        written[first : first + len(values)] += 1
        write(file, first, values)

    monkeypatch.setattr(NpyFile, "write", counted)
    weights = cases.tensor(cases.random_graph(N, degree=2), torch.int32)
    path, out = tmp_path / "w.npy", tmp_path / "d.npy"
    call = {"device": ["cpu"] * count, "memory": streamed(torch.int32)}
    np.save(path, weights.numpy())
    expected = tri_apsp.shortest_paths(weights).distances
    result = tri_apsp.shortest_paths(path, out=out, **call)
    assert result.plan.in_memory
    assert np.array_equal(np.load(out), expected)
    assert (written == 1).all()
    assert np.array_equal(np.load(path), weights)
    call |= {"checkpoint": tri_apsp.Checkpoint(tmp_path / "state", every=0)}
    with interrupted(1), pytest.raises(KeyboardInterrupt):
        tri_apsp.shortest_paths(path, out=out, **call)
    result = tri_apsp.shortest_paths(path, out=out, **call)
    assert result.plan.resumed > 0
    assert np.array_equal(np.load(out), expected)
    del call["checkpoint"]
    for cycle in ((3, 40), (N - 2, N - 1)):  # in the first pivot block, and in the last
        w = weights.clone()
        w[cycle], w[cycle[::-1]] = -2, 1
        np.save(path, w.numpy())
        tri_apsp.shortest_paths(path, out=out, negative_cycles="mark", **call)
        expected = tri_apsp.shortest_paths(w, negative_cycles="mark").distances
        assert np.array_equal(np.load(out), expected)
        with pytest.raises(tri_apsp.NegativeCycleError, match="another `out`") as raised:
            tri_apsp.shortest_paths(path, out=path, **call)
        assert raised.value.overwritten
        assert "restore them before you look for the cycle" in str(raised.value)
        assert set(cycle) & set(raised.value.vertices)


def test_strides_and_the_diagonal():
    weights = torch.rand(N, N, generator=torch.Generator().manual_seed(4)).mT
    expected = tri_apsp.shortest_paths(weights).distances
    out = torch.empty(N, 2 * N)[:, ::2]
    for _ in range(2):
        tri_apsp.shortest_paths(weights, out=out, memory=streamed(torch.float32))
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("count", [1, 2])
def test_negative_cycles(count):
    weights = cases.tensor(cases.random_graph(N, degree=2), torch.int32)
    weights[40, 3], weights[3, 40] = 1, -2
    devices = {"device": ["cpu"] * count, "memory": streamed(torch.int32)}
    expected = tri_apsp.shortest_paths(weights, negative_cycles="mark")
    out, given = torch.empty_like(weights), weights.clone()
    result = tri_apsp.shortest_paths(weights, out=out, negative_cycles="mark", **devices)
    assert torch.equal(out, expected.distances)
    assert result.negative_cycle.weight == -1
    assert set(result.negative_cycle.vertices) == {3, 40}
    with pytest.raises(tri_apsp.NegativeCycleError, match="of weight -1 through"):
        tri_apsp.shortest_paths(weights, out=out, **devices)
    assert torch.equal(weights, given)
    with pytest.raises(tri_apsp.NegativeCycleError, match="another `out`"):
        tri_apsp.shortest_paths(weights, out=weights, **devices)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_negative_cycle_at_an_end_of_a_chain_through_all_devices(count):
    """In each round one row is reached, the first and the last of each device too."""
    n = 12
    weights = torch.full((n, n), tri_apsp.no_edge(torch.int32), dtype=torch.int32)
    place = torch.arange(n - 1)
    weights[place, place + 1] = 1
    weights[1, 0] = -2
    apart = weights.roll((n // 2 - 1, n // 2 - 1), (0, 1))  # the cycle is on two devices
    for each in (weights, weights.mT, weights.flip(0, 1), weights.mT.flip(0, 1), apart):
        expected = tri_apsp.shortest_paths(each, negative_cycles="mark").distances
        found = tri_apsp.shortest_paths(each, device=["cpu"] * count, negative_cycles="mark")
        assert torch.equal(joined(found), expected)


def test_a_file_is_left_as_it_is_by_a_negative_cycle(tmp_path):
    weights = cases.tensor(cases.random_graph(N), torch.int32)
    weights[40, 3], weights[3, 40] = 1, -2
    np.save(tmp_path / "w.npy", weights.numpy())
    with pytest.raises(tri_apsp.NegativeCycleError, match="of weight -1 through") as raised:
        tri_apsp.shortest_paths(tmp_path / "w.npy", device=["cpu"] * 2, out=tmp_path / "w.npy")
    assert str(raised.value).endswith('negative_cycles="mark" and another `out`.')
    assert np.array_equal(np.load(tmp_path / "w.npy"), weights)


@pytest.mark.parametrize("fraction", [0, 0.5])
def test_edges_of_some_rows_decide_on_products_by_exponents(fraction, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(run, "do_values_decide", lambda *facts: True)
    monkeypatch.setattr(run, "solve_threshold", lambda edges, highest: found.append(edges))
    monkeypatch.setattr(run, "_COUNTED", 50)  # every seventh row
    monkeypatch.setattr(rows, "_FILE_VALUES", 40 * N)
    weights = cases.tensor(cases.random_graph(N, degree=20), torch.float32) + fraction
    weights[: N // 2].fill_diagonal_(torch.inf)  # loops are no edges, wherever there are any
    np.save(tmp_path / "w.npy", weights.numpy())
    for graph in (weights, tmp_path / "w.npy"):
        tri_apsp.shortest_paths(graph, device=["cpu"] * 2)
    weights.fill_diagonal_(torch.inf)
    counted = torch.cat([part[::7] for part in weights.split(N // 2)])
    edges = 0 if fraction else int((counted < cases.INF).sum()) / len(counted)
    assert found == [edges] * 4


def test_distances_out_of_range():
    weights = torch.full((N, N), tri_apsp.no_edge(torch.int16), dtype=torch.int16)
    weights[torch.arange(N - 1), torch.arange(1, N)] = 100  # a chain
    for options in ({}, {"out": torch.empty_like(weights), "memory": streamed(torch.int16)}):
        with pytest.raises(tri_apsp.DistanceRangeError, match="use a wider dtype"):
            tri_apsp.shortest_paths(weights, device=["cpu"] * 2, **options)
    few = weights.clone()
    few[100, 101] = tri_apsp.no_edge(torch.int16)
    few[200, 201] = tri_apsp.no_edge(torch.int16)
    expected = tri_apsp.shortest_paths(few).distances
    assert torch.equal(joined(tri_apsp.shortest_paths(few, device=["cpu"] * 2)), expected)


def test_interrupts_end_all_ranks():
    begun = threading.active_count()

    def progress(share):
        raise KeyboardInterrupt

    weights = cases.tensor(cases.random_graph(N), torch.float32)
    with pytest.raises(KeyboardInterrupt):
        solve(weights, progress, device=["cpu"] * 3)
    assert threading.active_count() == begun


def test_a_rank_that_fails_ends_the_others():
    def run(ranks):
        if ranks.rank == 1:
            raise ValueError("of rank 1")
        ranks.gather(None)

    with pytest.raises(ValueError, match="of rank 1"):
        run_ranks([torch.device("cpu")] * 3, run)


def test_an_error_that_only_says_that_another_rank_failed():
    def run(ranks):
        if ranks.rank == 1:
            raise tri_apsp.RankError("of rank 1")
        ranks.gather(None)

    with pytest.raises(tri_apsp.RankError):
        run_ranks([torch.device("cpu")] * 2, run)


def test_tensors_are_combined_in_the_order_of_ranks():
    def combined(ranks):
        own = torch.tensor([10.0**ranks.rank])
        found = ranks.combined(own, torch.sub)
        own.zero_()
        return found.item()

    assert run_ranks([torch.device("cpu")] * 3, combined) == [1 - 10 - 100] * 3
    assert run_ranks([torch.device("cpu")], combined) == [1]


def test_predecessors_need_no_copy_of_blocks_of_rows():
    call = {"device": ["cpu"] * 2, "predecessors": True}
    blocks = [block.clone() for block in WEIGHTS.split(4)]
    assert tri_apsp.select(blocks, **call).memory == tri_apsp.select(WEIGHTS, **call).memory


def test_paths_and_labels_of_rows_on_several_devices():
    graph = DenseGraph(cases.tensor(cases.random_graph(6), torch.float32), list("abcdef"))
    expected = tri_apsp.shortest_paths(graph, predecessors=True)
    result = tri_apsp.shortest_paths(graph, predecessors=True, device=["cpu"] * 2)
    assert result.path(5, 2) == expected.path(5, 2)
    for part in (result, *result.blocks):
        assert list(part.labels) == list("abcdef")
    with pytest.raises(tri_apsp.InputError, match="has the source or the graph, or"):
        result.next_hops()


def test_a_full_disk(tmp_path, monkeypatch):
    """The distances are not called complete, and the error names the file."""
    weights = cases.tensor(cases.random_graph(N), torch.float32)
    write = NpyFile.write

    def fails(self, first, values):
        if first > 200:
            raise OSError(28, os.strerror(28))
        write(self, first, values)

    monkeypatch.setattr(NpyFile, "write", fails)
    out = tmp_path / "d.npy"
    with pytest.raises(tri_apsp.InputError, match=r"d\.npy.*No space left"):
        tri_apsp.shortest_paths(
            weights, device=["cpu"] * 2, out=out, memory=streamed(torch.float32)
        )
    assert not list(tmp_path.iterdir())


def test_the_file_of_a_killed_solve_leaves_its_space(tmp_path, monkeypatch):
    (tmp_path / "d.npy.part").write_bytes(bytes(4 * 8**2))
    usage = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    tri_apsp.shortest_paths(WEIGHTS, memory=9999, out=tmp_path / "d.npy")
    with pytest.raises(tri_apsp.InputError, match="`out` needs 256 bytes on its disk"):
        tri_apsp.shortest_paths(WEIGHTS, memory=9999, out=tmp_path / "e.npy")


def test_memory_beside_that_of_the_weights():
    """Rows of both are between each other, and share nothing."""
    both = torch.ones(8, 16)
    weights, out = both[:, :8], both[:, 8:]
    tri_apsp.shortest_paths(weights, device=["cpu"] * 2, out=out)
    assert torch.equal(out, torch.ones(8, 8).fill_diagonal_(0))
    assert torch.equal(weights, torch.ones(8, 8))


def test_select_predicts(tmp_path):
    weights = cases.tensor(cases.random_graph(N), torch.float32)
    plan = tri_apsp.select(weights, device=["cpu"] * 2)
    assert (plan.way, plan.is_streamed) == ("block rows", False)
    assert 0 < plan.expected.seconds < 60
    assert plan.expected.bound in ("products", "critical path")
    np.save(tmp_path / "w.npy", weights.numpy())
    call = {"out": torch.empty_like(weights), "memory": streamed(torch.float32)}
    several = call | {"device": ["cpu"] * 2}
    for graph, given in ((weights, call), (weights, several), (tmp_path / "w.npy", several)):
        plan = tri_apsp.select(graph, **given)
        assert plan.is_streamed
        assert plan.expected.shares["host"] > 0


class TestPartsOfAFile:
    """Which are read ahead, by more threads than there are parts or by fewer."""

    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(rows, "_FILE_VALUES", 10 * 3 * 7)  # three rows of seven
        self.values = np.arange(50 * 7, dtype=np.float32).reshape(50, 7)
        np.save(tmp_path / "w.npy", self.values)
        self.path, self.begun = tmp_path / "w.npy", threading.active_count()
        yield FileRows(NpyFile(self.path), 2, 46, "weights")
        assert threading.active_count() == self.begun

    def test_come_in_order(self, file):
        found = list(file.parts())
        assert [begin for begin, _ in found] == list(range(0, 44, 3))
        assert np.array_equal(torch.cat([part for _, part in found]), self.values[2:46])

    def test_of_wanted_rows(self, file):
        wanted = np.zeros(44, bool)
        wanted[[4, 43]] = True
        assert [begin for begin, _ in file.parts(wanted)] == [3, 42]
        assert not list(file.parts(np.zeros(44, bool)))

    def test_end_where_the_caller_does(self, file):
        for _ in file.parts():
            break

    def test_raise_where_the_file_ends(self, file):
        os.truncate(self.path, self.path.stat().st_size - 20 * 28)
        with pytest.raises(tri_apsp.InputError, match="shorter than it was"):
            list(file.parts())


WEIGHTS = torch.ones(8, 8)
NEGATIVE_BIT = torch.zeros(8, 8, dtype=torch.complex64).conj().imag


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.ones((3, 5), np.float32), "(3, 5) of float32; save a square matrix."),
        (np.ones((3, 3), bool), "of bool; save numpy.where(matrix, 1.0, numpy.inf)."),
        (np.ones((3, 3), np.float16), "of float16; convert it with .astype(np.float32)."),
        (np.ones((3, 3), np.uint8), "of uint8; convert it with .astype(np.float32)."),
        (np.ones((3, 3), complex), "of complex128; give its .real, or abs() of it."),
        (np.ones((3, 3), "M8[s]"), "of datetime64[s]; give an array of numbers."),
    ],
)
def test_files_of_other_matrices(values, sentence, tmp_path):
    np.save(tmp_path / "w.npy", values)
    with pytest.raises(tri_apsp.InputError) as raised:
        tri_apsp.shortest_paths(tmp_path / "w.npy")
    assert str(raised.value).endswith(sentence)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"device": []}, "or a list of devices, but is empty; choose"),
        ({"device": ["cpu", 3]}, "`device` must be auto, all, cpu, cuda, cuda:N or a list"),
        ({"device": ["cpu", 3]}, "but is 3; choose"),
        ({"device": "all,cpu"}, "must have auto or all alone, but names others"),
        ({"device": "cuda:63"}, "device cuda:63 must exist"),
        ({"device": ["cpu", "tpu"]}, "but is 'tpu'"),
        ({"memory": 9999, "sources": [1]}, "`sources` must not be given with `memory`"),
        ({"memory": 9999, "method": "kleene"}, "`method` must not be given with `memory`"),
        ({"memory": 0}, "`memory` must be at least 1"),
        ({"memory": 10}, "must fit the memory of a device"),
        ({"checkpoint": tri_apsp.Checkpoint("state", -1)}, "`every` must be"),
        ({"memory": 9999, "out": torch.empty(8, 9)}, "`out` must be a dense tensor"),
        ({"memory": 9999, "out": "/nowhere/d.npy"}, "create it"),
        ({"memory": 9999, "out": "d.csv"}, "must end in .npy"),
        ({"memory": 9999, "out": WEIGHTS.numpy()}, "`out` must be a tensor or a path"),
        ({"memory": 9999, "out": torch.empty(8, 8, requires_grad=True)}, "with a gradient;"),
        ({"memory": 9999, "out": NEGATIVE_BIT}, "with the negative bit;"),
        ({"graph": NEGATIVE_BIT, "device": "cpu", "memory": 9999}, "give its .resolve_neg()"),
        ({"memory": 9999, "out": "a\0.npy"}, "embedded null byte"),
        ({"memory": 9999, "out": WEIGHTS.mT}, "or share no memory with them"),
        ({"memory": 9999, "out": [WEIGHTS]}, "`out` may be a list only if it has the blocks"),
        (
            {"graph": WEIGHTS.split(4), "device": "cpu, cpu", "out": WEIGHTS},
            "`out` must not share memory",
        ),
        ({"out": ""}, "`out` must be a path, but is empty"),
        ({"graph": "missing.npy"}, "No such file or directory; give a .npy file of numbers"),
        (
            {"graph": "graph.csv"},
            "must end in .npy, but graph.csv ends in .csv; load another format with",
        ),
        ({"graph": WEIGHTS[:5], "device": "cpu"}, "`graph` must be square"),
        ({"graph": WEIGHTS.to_sparse(), "memory": 9999}, "must be dense weights"),
        ({"graph": [WEIGHTS > 0]}, "give torch.where(graph, 1.0, torch.inf)"),
        ({"graph": [WEIGHTS[:5]], "device": "cpu"}, "must add up to a square matrix"),
        (
            {"graph": [WEIGHTS[:4], WEIGHTS[4:].double()], "device": "cpu, cpu"},
            "must have one dtype, but has float32, float64; convert",
        ),
        (
            {
                "graph": [WEIGHTS[:1].expand(4, 8), WEIGHTS[4:].clone()],
                "out": "graph",
            },
            "`graph` must not overlap itself",
        ),
        ({"graph": WEIGHTS[None], "memory": 9999}, "must be rows of one matrix"),
        ({"graph": [WEIGHTS], "device": ["cpu"] * 2}, "must have one on each `device`"),
        ({"graph": [WEIGHTS, WEIGHTS], "device": "cpu"}, "cpu, cpu for cpu; leave `device` out"),
        ({"graph": WEIGHTS.clone().requires_grad_(), "memory": 9999}, "require a gradient"),
    ],
)
def test_bad_input(call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = call.get("graph", WEIGHTS)
    call |= {"out": given} if isinstance(given, list) and "out" in call else {}
    with pytest.raises(tri_apsp.ApspError) as error:
        tri_apsp.shortest_paths(given, **{name: x for name, x in call.items() if name != "graph"})
    assert sentence in str(error.value)
    assert not list(tmp_path.iterdir())


def test_memory_that_is_mapped_to_the_file_of_the_weights(tmp_path):
    path, weights = tmp_path / "w.npy", cases.tensor(cases.random_graph(30), torch.float32)
    np.save(path, weights.numpy())
    mapped, out = (torch.from_numpy(np.load(path, mmap_mode="r+")) for _ in range(2))
    for given in (path, mapped):
        with pytest.raises(tri_apsp.InputError, match=r"share (no )?memory with"):
            tri_apsp.shortest_paths(given, device="cpu", out=out, memory=2000)
    assert np.array_equal(np.load(path), weights.numpy())
    both = np.concatenate([weights.numpy(), weights.numpy()])
    np.save(path, both)
    mapped, out = (torch.from_numpy(np.load(path, mmap_mode="r+")) for _ in range(2))
    tri_apsp.shortest_paths(mapped[:30], device="cpu", out=out[30:], memory=2000)
    assert torch.equal(out, torch.cat([weights, tri_apsp.shortest_paths(weights).distances]))


def test_parts_of_a_file_that_are_mapped_apart(tmp_path):
    page = mmap.ALLOCATIONGRANULARITY
    (tmp_path / "bytes").write_bytes(bytes(3 * page))
    whole, second, third = (
        torch.from_numpy(np.memmap(tmp_path / "bytes", np.uint8, "r+", first * page, (size,)))
        for first, size in ((0, 3 * page), (1, page), (2, page))
    )
    assert not shared_memory.shares_memory(second, third)
    assert not shared_memory.shares_memory(second, whole[2 * page :])
    assert not shared_memory.shares_memory(third, whole[: 2 * page])
    assert shared_memory.shares_memory(third, whole[2 * page :])
    assert shared_memory.shares_memory(second, whole[2 * page - 1 :])


def test_memory_of_a_heap_in_two_mappings_is_no_file(monkeypatch):
    tensors = torch.ones(8, 8), torch.ones(8, 8)
    maps = "".join(
        f"{tensor.data_ptr():x}-{tensor.data_ptr() + 256:x} rw-p 00000000 00:00 0 [heap]\n"
        for tensor in tensors
    )
    monkeypatch.setattr(shared_memory.Path, "read_text", lambda self, **_: maps)
    assert not shared_memory.shares_memory(*tensors)
    maps = maps.replace("[heap]", "/a/file")
    assert shared_memory.shares_memory(*tensors)


@pytest.mark.parametrize("memory", [None, 2000], ids=["resident", "streamed"])
@pytest.mark.parametrize("count", [1, 2])
def test_in_inference_mode(count, memory):
    call = {"device": ["cpu"] * count, "memory": memory}
    weights = cases.tensor(cases.random_graph(30), torch.float32)
    expected = tri_apsp.shortest_paths(weights).distances
    with torch.inference_mode():
        given, out = weights.clone(), torch.empty(30, 30)
        assert torch.equal(tri_apsp.shortest_paths(given, **call, out=out).distances, expected)
        tri_apsp.shortest_paths(given, device=call["device"], out=given)
        assert torch.equal(given, expected)
    for changed in ({"out": out}, {"out": given}):
        with pytest.raises(tri_apsp.InputError, match=r"of torch.inference_mode, .*its \.clone"):
            tri_apsp.shortest_paths(given, **call, **changed)


def test_a_file_that_takes_the_place_of_another(tmp_path):
    np.save(tmp_path / "w.npy", np.zeros((4, 4)))
    np.save(tmp_path / "other.npy", np.ones((4, 4)))
    file, rows = NpyFile(tmp_path / "w.npy"), np.empty((2, 4))
    file.read(0, rows)
    (tmp_path / "other.npy").replace(tmp_path / "w.npy")
    with pytest.raises(EOFError, match="is another file than it was"):
        file.read(2, rows)


def test_the_file_of_the_weights(tmp_path):
    path = tmp_path / "w.npy"
    np.save(path, WEIGHTS.numpy())
    matrix = np.arange(9.0).reshape(3, 3)
    for order, saved in (("columns", np.asfortranarray(matrix)), ("rows", matrix.astype(">f8"))):
        np.save(path, saved)
        with pytest.raises(tri_apsp.InputError, match=f"in row order .* holds {order} of"):
            tri_apsp.shortest_paths(path)
        assert np.array_equal(np.load(path), matrix)
    np.save(path, saved.astype(saved.dtype.newbyteorder("="), order="C"))  # the remedy
    assert tri_apsp.shortest_paths(path).distances.shape == (3, 3)
    np.savez(tmp_path / "w.npz", matrix)
    path.write_bytes((tmp_path / "w.npz").read_bytes()[:200])
    with pytest.raises(tri_apsp.InputError, match=r"w.npy' cannot: .* give a .npy file of numbers"):
        tri_apsp.shortest_paths(path)
    np.save(path, matrix.astype(np.longdouble))
    with pytest.raises(tri_apsp.InputError, match=r"convert it with .astype\(np.float64\)"):
        tri_apsp.shortest_paths(path)
    np.save(path, matrix[None])
    with pytest.raises(tri_apsp.InputError, match=r"one matrix .* holds shape \(1, 3, 3\)"):
        tri_apsp.shortest_paths(path)
