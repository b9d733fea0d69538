"""warmup: later calls compile nothing, and bad arguments are refused before anything is solved."""

import subprocess
import sys

import pytest
import torch

import tri_apsp
from tri_apsp import InputError
from tri_apsp.dense.one_launch import OneLaunchSolver
from tri_apsp.engines.cpu import CpuEngine


@pytest.mark.parametrize("predecessors", [False, True])
def test_solves_each_dtype_size_and_sign(
    monkeypatch: pytest.MonkeyPatch, predecessors: bool
) -> None:
    solved, solve = set[tuple[object, ...]](), OneLaunchSolver.attempt
    found, find = list[object](), CpuEngine.predecessors
    monkeypatch.setattr(
        OneLaunchSolver,
        "attempt",
        lambda solver, weights, sizes: (
            solved.add((weights.dtype, tuple(weights.shape), bool((weights < 0).any())))
            or solve(solver, weights, sizes)
        ),
    )
    monkeypatch.setattr(
        CpuEngine,
        "predecessors",
        lambda *args, **options: found.append(1) or find(*args, **options),
    )
    tri_apsp.warmup(
        [torch.float32, torch.int16],
        [0, 9, (5, 8), 1, (0, 5)],
        device="cpu",
        predecessors=predecessors,
    )
    for dtype in (torch.float32, torch.int16):
        for shape in ((1, 9, 9), (5, 8, 8)):
            assert {(dtype, shape, False), (dtype, shape, True)} <= solved
        assert (dtype, (1, 1, 1), False) in solved
    assert bool(found) == predecessors
    tri_apsp.warmup(torch.float64, 6, device="cpu")
    assert any(dtype == torch.float64 for dtype, *_ in solved)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtypes": [torch.float16]}, "one of the dtypes .*float32.* but have float16"),
        ({"dtypes": ["float32"]}, "but is 'float32'"),
        ({"sizes": [-1]}, "`sizes` must be at least 0, but is -1"),
        ({"sizes": [(1, 2, 3)]}, r"but one is \(1, 2, 3\)"),
        ({"sizes": [2.5]}, "`sizes` must be an integer, but is 2.5"),
        ({"dtypes": 3}, "`dtypes` must be one value or a list of them, but is 3"),
        ({"sizes": 2.5}, "`sizes` must be one value or a list of them, but is 2.5"),
        ({"device": "tpu"}, "`device` must be auto, cpu, cuda"),
    ],
    ids=str,
)
def test_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tri_apsp.warmup(**arguments)


@pytest.mark.gpu
def test_later_calls_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton

    tri_apsp.warmup([torch.float32, torch.int32], [300, (200, 20), (40, 50)])
    monkeypatch.setattr(
        triton.runtime.jit.JITFunction, "_do_compile", lambda *_: pytest.fail("compiled")
    )
    for dtype in (torch.float32, torch.int32):
        for shape in ((300, 300), (200, 20, 20), (40, 50, 50)):
            weights = torch.randint(1, 9, shape, device="cuda").to(dtype)
            tri_apsp.shortest_paths(weights)
            if len(shape) == 3:
                tri_apsp.shortest_paths(weights, sizes=torch.full(shape[:1], 7, device="cuda"))
            weights[..., 0, 1] = -1
            tri_apsp.shortest_paths(weights)


PREPARED = """
import torch
import tri_apsp
from tri_apsp.graphs import generate
from tri_apsp.kernels.cpu import compilation

tri_apsp.warmup(torch.float32, 9, device="cpu", prepared=True, predecessors=True)

def fail(cache, signature, *_):
    raise AssertionError(f"{cache} was not warm: {signature}")

compilation._Cache.load_overload = fail
for edges in (generate("roads", 1000), generate("erdos_renyi", 500, p=0.01), torch.rand(90, 90)):
    graph = tri_apsp.prepare(edges, dtype=torch.float32)
    near = range(0, graph.n, 3)
    for sources in (0, near):
        tri_apsp.shortest_paths(graph, sources=sources, predecessors=True)
        tri_apsp.shortest_paths(graph, sources=sources, targets=[1, 2])
    tri_apsp.nearest(graph, near)
    tri_apsp.paired_paths(graph, near, near)
    tri_apsp.hops(graph)
    tri_apsp.closeness(graph, weighted=True)
    tri_apsp.betweenness(graph)
    tri_apsp.accessibility(graph, [2, 3])
"""


@pytest.mark.slow
def test_later_calls_of_prepared_graphs_compile_nothing() -> None:
    """In a new process, where no kernel is loaded yet."""
    subprocess.run([sys.executable, "-c", PREPARED], check=True, timeout=600)
