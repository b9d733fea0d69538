"""Packed batches: every graph is solved as it is alone, and errors name it as the caller does."""

import os

import cases
import pytest
import torch

import tri_apsp
from tri_apsp import Config, DistanceRangeError, InputError, NegativeCycleError, no_edge
from tri_apsp.engines import packing as moves

INTERPRETER = os.environ.get("TRITON_INTERPRET") == "1"
every_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)
MIXED = (9, 0, 70, 1, 64, 300, 2, 33, 17, 0, 8, 65, 20, 130)


def graphs(
    sizes: tuple[int, ...], dtype: torch.dtype, *, negative: bool = False
) -> list[torch.Tensor]:
    make = cases.negative_graph if negative else cases.random_graph
    return [cases.tensor(make(size, seed=seed), dtype) for seed, size in enumerate(sizes)]


def packed(parts: list[torch.Tensor], device: str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([0, *(part.numel() for part in parts)])
    empty = parts[0].new_empty(0) if parts else torch.empty(0)
    return torch.cat([empty, *(part.flatten() for part in parts)]).to(device), lengths.cumsum(0).to(
        device
    )


def packed_offsets(sizes: list[int]) -> torch.Tensor:
    return torch.tensor([0, *(size * size for size in sizes)]).cumsum(0)


@every_device
@cases.every_dtype
@pytest.mark.parametrize("negative", [False, True])
def test_every_graph_is_solved_as_alone(device: str, dtype: torch.dtype, negative: bool) -> None:
    parts = graphs(MIXED, dtype, negative=negative)
    weights, offsets = packed(parts, device)
    result = tri_apsp.shortest_paths(weights, offsets=offsets, predecessors=True)
    alone = [tri_apsp.shortest_paths(part, predecessors=True) for part in parts]
    assert torch.equal(result.distances.cpu(), packed([found.distances for found in alone])[0])
    assert torch.equal(
        result.predecessors.cpu(), packed([found.predecessors for found in alone])[0]
    )


@every_device
@pytest.mark.parametrize(
    "options", [{}, {"predecessors": True}, {"negative_cycles": "mark"}, {"check": False}], ids=str
)
def test_gradients_are_those_of_each_graph_alone(device: str, options: dict[str, object]) -> None:
    parts = graphs((9, 0, 70, 1, 64, 33, 8), torch.float32)
    if "negative_cycles" in options:
        parts[2][:2, :2] = torch.tensor([[0.0, -5], [4, 0]])
    weights, offsets = packed(parts, device)
    gradient = torch.randint(
        -9, 9, (len(weights),), generator=torch.Generator().manual_seed(0)
    ).float()
    given = weights.requires_grad_()
    result = tri_apsp.shortest_paths(given, offsets=offsets, **options)
    assert (result.predecessors is not None) == ("predecessors" in options)
    result.distances.backward(gradient.to(device))
    found = []
    for part, of_part in zip(parts, gradient.split([part.numel() for part in parts]), strict=True):
        alone = part.to(device).requires_grad_()
        tri_apsp.shortest_paths(alone, **options).distances.backward(
            of_part.view(part.shape).to(device)
        )
        found.append(alone.grad)
    assert any(gradient.any() for gradient in found)
    assert torch.equal(given.grad, packed(found, device)[0])


@every_device
@pytest.mark.parametrize("batch", [0, 1, 31, 300])
def test_batches(device: str, batch: int) -> None:
    sizes = tuple(
        torch.randint(0, 40, (batch,), generator=torch.Generator().manual_seed(batch)).tolist()
    )
    parts = graphs(sizes, torch.float32)
    weights, offsets = packed(parts, device)
    for options in ({}, {"check": False}, {"method": "squaring"}):
        found = tri_apsp.shortest_paths(
            weights, offsets=offsets.to(torch.int32).cpu(), **options
        ).distances
        expected = packed([tri_apsp.shortest_paths(part).distances for part in parts])[0]
        assert torch.equal(found.cpu(), expected)


@every_device
@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.int16, torch.bool, torch.float16, torch.bfloat16, torch.complex64],
)
def test_pack_and_unpack(device: str, dtype: torch.dtype) -> None:
    sizes = torch.tensor([3, 0, 7, 1], device=device)
    matrices = torch.randint(0, 2, (4, 9, 9), device=device).to(dtype)
    values, offsets = tri_apsp.pack(matrices, sizes)
    assert offsets.tolist() == [0, 9, 9, 58, 59]
    assert torch.equal(
        values,
        torch.cat([m[:s, :s].flatten() for m, s in zip(matrices, sizes.tolist(), strict=True)]),
    )
    back, found = tri_apsp.unpack(values, offsets, fill=1)
    assert torch.equal(found, sizes)
    outside = torch.arange(7, device=device) >= sizes[:, None]
    expected = matrices[:, :7, :7].masked_fill(outside[:, :, None] | outside[:, None, :], 1)
    assert torch.equal(back, expected)
    if dtype in cases.DTYPES:
        assert (tri_apsp.unpack(values, offsets)[0][1] == no_edge(dtype)).all()
    assert tri_apsp.unpack(values[:0], offsets[:1], fill=0)[0].shape == (0, 0, 0)


def test_groups_are_of_similar_size_and_fit() -> None:
    """A large graph beside many small ones is not padded to, and very many are solved in parts."""
    sizes = [10] * 500 + [400, 65, 80]
    total = sum(size * size for size in sizes)
    plan = tri_apsp.select(torch.empty(total), offsets=packed_offsets(sizes))
    assert sum(group.values for group, _ in plan.groups) <= 1.5 * total
    sizes = [1024] * 300
    weights = torch.empty(1).expand(300 << 20)
    plan = tri_apsp.select(weights, offsets=packed_offsets(sizes))
    assert [len(group.graphs) for group, _ in plan.groups] == [128, 128, 44]
    assert max(group.values for group, _ in plan.groups) == 1 << 27
    assert plan.memory < 2.5 * 300 * (1 << 22)


class TestErrors:
    def test_negative_cycles(self) -> None:
        parts = graphs((20, 9, 30, 9, 8), torch.int32)
        parts[3][:2, :2] = torch.tensor([[0, -5], [4, 0]])
        weights, offsets = packed(parts)
        with pytest.raises(
            NegativeCycleError, match=r"of weight -1 .* of graph 3 in the batch"
        ) as caught:
            tri_apsp.shortest_paths(weights, offsets=offsets)
        assert caught.value.batch == 3
        assert caught.value.graphs == (3,)
        marked = tri_apsp.shortest_paths(
            weights, offsets=offsets, negative_cycles="mark", predecessors=True
        )
        assert marked.negative_cycle.graph == 3
        alone = [tri_apsp.shortest_paths(part, negative_cycles="mark").distances for part in parts]
        assert torch.equal(marked.distances, packed(alone)[0])

    def test_the_first_wrong_graph_among_others(self) -> None:
        """One has a negative cycle, another NaN."""
        parts = graphs((9, 9, 9), torch.float32)
        parts[0][:2, :2] = torch.tensor([[0.0, -5], [4, 0]])
        parts[1][2, 4] = float("nan")
        weights, offsets = packed(parts)
        with pytest.raises(InputError, match=r"graph 1 of the packed batch: `graph` must hold"):
            tri_apsp.shortest_paths(weights, offsets=offsets)

    def test_paths_of_a_packed_batch(self) -> None:
        result = tri_apsp.shortest_paths(
            torch.rand(13), offsets=torch.tensor([0, 4, 13]), predecessors=True
        )
        for call in (lambda: result.path(0, 1), lambda: result.paths([0], [1]), result.next_hops):
            with pytest.raises(
                InputError, match=r"packed; give its predecessors to tri_apsp\.unpack"
            ):
                call()

    @pytest.mark.parametrize("fill", [1e9, 0.5, float("inf"), "x", None])
    def test_fill(self, fill: object) -> None:
        values, offsets = torch.ones(4, dtype=torch.uint8), torch.tensor([0, 4])
        with pytest.raises(InputError, match="`fill` must be"):
            tri_apsp.unpack(values, offsets, fill=fill)

    def test_distances_out_of_range(self) -> None:
        path = torch.full((5, 5), no_edge(torch.int16), dtype=torch.int16)
        path.diagonal(1).fill_(9000)
        weights, offsets = packed([path[:2, :2], path])
        with pytest.raises(
            DistanceRangeError, match="graph 1 of the packed batch: distances must fit int16"
        ):
            tri_apsp.shortest_paths(weights, offsets=offsets)

    @pytest.mark.parametrize(
        ("offsets", "message"),
        [
            (
                torch.tensor([0, 4, 12]),
                "end with 13, the length of `(graph|values)`, but begin with 0 and end with 12",
            ),
            (torch.tensor([1, 4, 13]), "begin with 1"),
            (
                torch.tensor([0, 5, 13]),
                "square number of values to each graph, but leave 5 to graph 0",
            ),
            (torch.tensor([0, 9, 4, 13]), "but leave -5 to graph 1"),
            (torch.tensor([0.0, 13]), "of int64 or int32.* of float32"),
            (torch.tensor([[0, 13]]), r"\(1, 2\) of int64"),
            ([0, 4, 13], "but is list"),
            (torch.empty(0, dtype=torch.int64), r"but is \(0,\) of int64"),
        ],
        ids=str,
    )
    def test_offsets(self, offsets: object, message: str) -> None:
        for call in (tri_apsp.shortest_paths, lambda x, offsets: tri_apsp.unpack(x, offsets)):
            with pytest.raises(InputError, match=message):
                call(torch.rand(13), offsets=offsets)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sizes": torch.tensor([2, 3])}, "`sizes` must not be given with `offsets`"),
            ({"sources": [0]}, "`sources` must not be given with `offsets`"),
            ({"dtype": torch.float64}, "`dtype` must not be given with `offsets`"),
            ({"method": "johnson"}, "must not be given with `offsets`"),
            ({"negative_cycles": "mark", "check": False}, "check=False was given"),
            ({"config": Config(engine="abacus")}, "abacus"),
            ({"out": torch.empty(5)}, r"`out` must be a dense tensor \(13,\) of float32"),
            ({"graph": torch.rand(2, 2)}, r"one dimension.*\(2, 2\) of float32; make one with"),
            ({"graph": torch.rand(13).half()}, r"one of the dtypes .* but has float16"),
            ({"graph": [1.0] * 13, "out": torch.empty(13)}, "one dimension.* but is list"),
            ({"offsets": None}, "must be square"),
        ],
    )
    def test_other_arguments(self, options: dict[str, object], message: str) -> None:
        given = {"graph": torch.rand(13), "offsets": torch.tensor([0, 4, 13])}
        with pytest.raises(InputError, match=message) as caught:
            tri_apsp.shortest_paths(**given | options)
        assert "packed batch" not in str(caught.value)

    def test_transforms(self) -> None:
        offsets = torch.tensor([0, 4, 13])
        with pytest.raises(InputError, match=r"`offsets` .*; give padded weights and `sizes`"):
            torch.func.vmap(lambda x: tri_apsp.shortest_paths(x, offsets=offsets).distances)(
                torch.rand(1, 13)
            )

    def test_pack(self) -> None:
        with pytest.raises(InputError, match=r"\(batch, n, n\), but is \(3, 3\)"):
            tri_apsp.pack(torch.rand(3, 3), torch.tensor([3]))
        with pytest.raises(InputError, match=r"`sizes` must lie in \[0, 3\].* but sizes\[0\] is 4"):
            tri_apsp.pack(torch.rand(1, 3, 3), torch.tensor([4]))
        with pytest.raises(InputError, match=r"`sizes` must be a tensor \(1,\)"):
            tri_apsp.pack(torch.rand(1, 3, 3), torch.tensor([1, 2]))


@pytest.mark.skipif(not INTERPRETER, reason="runs in a process of its own, with TRITON_INTERPRET=1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
@pytest.mark.parametrize("sizes", [(3, 0, 5, 1), (40, 7)], ids=str)
def test_moves_interpreted(dtype: torch.dtype, sizes: tuple[int, ...]) -> None:
    n = max(sizes)
    parts = [torch.randint(0, 2, (size, size)).to(dtype) for size in sizes]
    values, offsets = packed(parts)
    size = torch.tensor(sizes)
    matrices = values.new_empty((len(sizes), n, n))
    moves._move_on_gpu(matrices, values, offsets[:-1].contiguous(), size, 1, False)
    assert torch.equal(matrices, moves.unpacked(values, offsets[:-1].contiguous(), size, n, 1))
    back = torch.zeros_like(values)
    moves._move_on_gpu(matrices, back, offsets[:-1].contiguous(), size, 0, True)
    assert torch.equal(back, values)
