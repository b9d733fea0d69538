"""Calls that are made again: by the plan of an earlier call, and by Plan.run."""

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import QUICK_DTYPES
from tuned_files import entry_of, file_of

import tri_apsp
from tri_apsp import InputError, NegativeCycleError, no_edge, select, shortest_paths, tuned
from tri_apsp.configs import Config
from tri_apsp.device import describe
from tri_apsp.reference import floyd_warshall
from tri_apsp.request import Request
from tri_apsp.sparse import choice

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def graph(
    n: int, seed: int, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> torch.Tensor:
    """Return weights of which a third are missing; those of an odd seed have a negative edge."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randint(1, 40, (n, n), generator=generator).to(dtype)
    weights[torch.rand(n, n, generator=generator) < 0.33] = no_edge(dtype)
    if seed % 2 and n > 1:
        weights[0], weights[:, 0] = no_edge(dtype), 9
        weights[0, 1], weights[0, 0] = -3, 0
    return weights.to(device)


def expected(weights: torch.Tensor) -> torch.Tensor:
    values = weights.double().masked_fill(weights == no_edge(weights.dtype), torch.inf)
    found = torch.from_numpy(floyd_warshall(values.cpu().numpy()))
    return found.masked_fill(found == torch.inf, no_edge(weights.dtype)).to(weights.dtype)


@pytest.fixture
def no_request(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after which every call must use an earlier plan."""
    return lambda: monkeypatch.setattr(
        Request, "of", lambda *_, **__: pytest.fail("the arguments were checked again")
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", QUICK_DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 7, 70, 130])
def test_values_decide_anew(device: str, dtype: torch.dtype, n: int, no_request: Any) -> None:
    weights = [graph(n, seed, dtype, device) for seed in range(5)]
    plan = select(weights[0])
    shortest_paths(weights[0])
    shortest_paths(weights[0], predecessors=True)
    no_request()
    for each in weights:
        for result in (plan.run(each), shortest_paths(each)):
            assert torch.equal(result.distances.cpu(), expected(each))
            assert result.plan.method == plan.method
        paths = shortest_paths(each, predecessors=True)
        assert torch.equal(paths.distances, result.distances)
        assert paths.predecessors is not None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("check", [True, False])
def test_batches_sizes_and_unchecked(device: str, check: bool, no_request: Any) -> None:
    weights = torch.stack([graph(9, seed, device=device) for seed in (0, 2, 4)])
    sizes = torch.tensor([9, 4, 0], device=device)
    options: dict[str, Any] = {"check": check}
    plans = select(weights, **options), select(weights, sizes=sizes, **options)
    want = [shortest_paths(weights, **options), shortest_paths(weights, sizes=sizes, **options)]
    assert torch.equal(want[1].distances[1, :4, :4].cpu(), expected(weights[1, :4, :4]))
    no_request()
    for given, plan, result in zip([{}, {"sizes": sizes}], plans, want, strict=True):
        again = shortest_paths(weights, **given, **options)
        assert torch.equal(again.distances, result.distances)
        assert torch.equal(plan.run(weights).distances, result.distances)
    other = torch.tensor([0, 9, 9], device=device)
    first = shortest_paths(weights, sizes=other, **options).distances
    assert torch.equal(plans[1].run(weights, sizes=other).distances, first)
    assert torch.equal(first[1], want[0].distances[1])


def test_the_memory_of_out_is_used(no_request: Any) -> None:
    weights, other = graph(8, 2), graph(8, 4)
    out = torch.empty(8, 8)
    plan = select(weights)
    shortest_paths(weights, out=out)
    no_request()
    result = shortest_paths(other, out=out)
    assert result.distances is out
    assert torch.equal(out, expected(other))
    assert plan.run(weights, out=out).distances is out
    assert torch.equal(out, expected(weights))
    in_place = weights.clone()
    assert plan.run(in_place).distances.data_ptr() != in_place.data_ptr()


def test_the_weights_are_replaced_by_a_plan_for_that() -> None:
    weights, other = graph(70, 2), graph(70, 4)
    plan, want = select(weights, out=weights), expected(other)
    result = plan.run(other)
    assert result.distances.data_ptr() == other.data_ptr()
    assert torch.equal(other, want)


def test_rows_cycles_and_packed_graphs_of_a_plan() -> None:
    weights, other = graph(8, 2), graph(8, 4)
    rows = select(weights, sources=[3, 1], targets=[0, 7], predecessors=True).run(other)
    assert torch.equal(rows.distances, expected(other)[[3, 1]][:, [0, 7]])
    assert rows.path(3, 7)[-1] == 7
    cycle = other.clone()
    cycle[2, 3], cycle[3, 2] = -5, 1
    with pytest.raises(NegativeCycleError):
        select(weights).run(cycle)
    marked = select(weights, negative_cycles="mark").run(cycle)
    assert marked.distances[2, 2] == -torch.inf
    values, offsets = tri_apsp.pack(torch.stack([weights, other]), torch.tensor([8, 5]))
    packed = select(values, offsets=offsets).run(values * 2)
    assert torch.equal(packed.distances[:64].view(8, 8), expected(weights * 2))


def test_few_edges_ask_for_a_sparse_method_except_in_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "_LEAST_VERTICES_WITHOUT_LISTS", {"cpu": 100})
    monkeypatch.setattr(choice, "_OPERATIONS_PER_EDGE", {"cpu": 10})
    n = 110
    full = torch.ones(n, n, dtype=torch.int32)
    few = torch.full((n, n), no_edge(torch.int32), dtype=torch.int32)
    few[torch.arange(n - 1), torch.arange(1, n)] = 2
    plan = select(full)
    for weights, way in ((full, "dense"), (few, "sparse"), (full, "dense"), (few, "sparse")):
        assert shortest_paths(weights).plan.way == way
    result = plan.run(few)
    assert result.plan.way == "dense"
    assert result.distances[0, -1] == 2 * (n - 1)
    sparse = select(few, read_values=True)
    assert sparse.way == "sparse"
    assert torch.equal(sparse.run(full).distances, shortest_paths(full).distances)


def test_a_range_that_only_a_sparse_method_holds() -> None:
    # A dense solve holds a quarter of the range beside negative weights.
    weights = torch.tensor([[0, 5000, 16383], [16383, 0, -1], [16383, 16383, 0]]).to(torch.int32)
    large = weights.masked_fill(weights == 16383, no_edge(torch.int32))
    large[0, 1] = 2**29
    plan = select(weights.abs())
    want = shortest_paths(large).distances
    assert want[0, 2] == 2**29 - 1
    assert torch.equal(plan.run(large).distances, want)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:3, :3], r"must be like .* float32 \(4, 4\) with .* is float32 \(3, 3\)"),
        (lambda w: w.T, r"strides \(1, 4\)"),
        (lambda w: w.double(), "is float64"),
        (lambda w: w.to_sparse(), "select again"),
        (lambda w: w.tolist(), "is list"),
        (lambda w: None, "None"),
    ],
)
def test_other_weights_than_those_of_the_plan(change: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        select(torch.ones(4, 4)).run(change(torch.ones(4, 4)))


def test_arrays_run_too(no_request: Any) -> None:
    weights = graph(6, 2)
    plan = select(weights.numpy())
    shortest_paths(weights)
    no_request()
    assert torch.equal(plan.run(weights.numpy()).distances, expected(weights))
    assert torch.equal(shortest_paths(weights.numpy()).distances, expected(weights))


def test_plans_that_cannot_run_again() -> None:
    weights = torch.ones(4, 4)
    plans = [
        shortest_paths(weights).plan,
        select(weights, directed=False),
        select([weights[:2], weights[2:]]),
        select(weights.to_sparse()),
        select(tri_apsp.prepare(weights)),
    ]
    for plan in plans:
        with pytest.raises(
            InputError, match="needs a plan that `select` returned for dense weights"
        ):
            plan.run(weights)


def test_what_a_plan_overwrites_may_be_overwritten() -> None:
    weights = torch.ones(70, 70)
    plan = select(weights, out=weights)
    with pytest.raises(InputError, match="must be a tensor where it is overwritten"):
        plan.run(np.frombuffer(bytes(70 * 70 * 4), np.float32).reshape(70, 70))
    with torch.inference_mode():
        other = torch.ones(70, 70)
    with pytest.raises(InputError, match="inference_mode"):
        plan.run(other)
    with pytest.raises(InputError, match="only of a plan that does not overwrite"):
        plan.run(weights, out=torch.empty(70, 70))
    with pytest.raises(InputError, match="share no memory"):
        select(weights).run(weights, out=weights)


def test_labels_sizes_and_copies_of_a_plan() -> None:
    weights = graph(6, 2)
    named = tri_apsp.graphs.DenseGraph(weights, tuple("abcdef"))
    assert select(named).run(named).labels == tuple("abcdef")
    sizes = torch.tensor([4, 2])
    batch = torch.stack([weights, weights])
    plan, want = select(batch, sizes=sizes), shortest_paths(batch, sizes=sizes).distances
    sizes.fill_(1)
    assert torch.equal(plan.run(batch).distances, want)
    values, offsets = tri_apsp.pack(batch, torch.tensor([6, 5]))
    with pytest.raises(InputError, match="plan of packed graphs"):
        select(values, offsets=offsets).run(values, sizes=sizes)
    changed = dataclasses.replace(select(weights), method="kleene")
    with pytest.raises(InputError, match="but this is another"):
        changed.run(weights)


def test_arguments_are_checked_again() -> None:
    weights = torch.ones(4, 4)
    for options in ({}, {"predecessors": True}):
        shortest_paths(weights, **options)
    shortest_paths(weights, weight_error=1.0)
    for wrong in ({"check": 1}, {"predecessors": 1}, {"directed": 1}, {"progress": 0}):
        with pytest.raises(InputError, match="must be True or False"):
            shortest_paths(weights, **wrong)
    for wrong in ({"method": ["auto"]}, {"negative_cycles": []}, {"weight_error": True}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            shortest_paths(weights, **wrong)
    with pytest.raises(InputError, match="share no memory"):
        shortest_paths(weights, out=weights.T)
    with pytest.raises(InputError, match="`out` must be a dense tensor"):
        shortest_paths(weights, out=torch.empty(4, 4, dtype=torch.float64))
    with pytest.raises(InputError, match="NaN"):
        shortest_paths(weights * torch.nan)
    with pytest.raises(InputError, match="NaN"):
        select(weights).run(weights * torch.nan)


@pytest.mark.parametrize("device", DEVICES)
def test_derivatives_and_transforms(device: str) -> None:
    weights = graph(6, 2, device=device)
    plan, plain = select(weights), shortest_paths(weights).distances
    for run in (plan.run, shortest_paths):
        given = weights.clone().requires_grad_()
        distances = run(given).distances
        distances[0, 1].backward()
        assert given.grad is not None
        assert given.grad.sum() >= 1
        with torch.no_grad():
            assert torch.equal(run(given).distances, plain)
        both = torch.func.vmap(lambda w, run=run: run(w).distances)(torch.stack([weights] * 2))
        assert torch.equal(both[1], plain)
        _, tangent = torch.func.vjp(lambda w, run=run: run(w).distances, weights)
        assert tangent(torch.ones_like(plain))[0].shape == (6, 6)
        negated = torch._neg_view(-weights)
        assert torch.equal(run(negated).distances, plain)
    compiled = torch.compile(lambda w: shortest_paths(w).distances, backend="eager", fullgraph=True)
    assert torch.equal(compiled(weights), plain)


def test_configurations_that_appear_in_between(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    weights = torch.ones(300, 300)
    device = weights.device
    first = shortest_paths(weights).config
    with tuned.using(Config(block_size=32)):
        assert shortest_paths(weights).config.block_size == 32
    assert shortest_paths(weights).config == first
    monkeypatch.setenv("TRI_APSP_CONFIG_DIR", str(tmp_path))
    assert shortest_paths(weights).config.source != "tuned"
    entry = entry_of(300, {"block_size": 16, "cutoff": 64}, "nonnegative")
    tuned.save(file_of("cpu", "solve", "float32", describe(device), entry))
    assert shortest_paths(weights).config.block_size == 16
    monkeypatch.delenv("TRI_APSP_CONFIG_DIR")
    assert shortest_paths(weights).config == first
    assert shortest_paths(weights, config=Config(block_size=48)).config.block_size == 48


def test_many_shapes_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.planning._MAX_PLANS", 5)  # cleared while others read it
    wrong = list[object]()

    def solve(seed: int) -> None:
        try:
            for turn in range(60):
                weights = graph(1 + (seed + turn) % 12, seed + turn)
                if not torch.equal(shortest_paths(weights).distances, expected(weights)):
                    wrong.append(weights)
        except Exception as error:  # which a thread would only print
            wrong.append(error)

    threads = [threading.Thread(target=solve, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 5)])
def test_a_plan_for_edges_of_bool(shape: tuple[int, ...]) -> None:
    edges = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.4
    plan = tri_apsp.select(edges)
    for given in (edges, ~edges):
        expected = tri_apsp.shortest_paths(given).distances
        assert torch.equal(plan.run(given).distances, expected)
