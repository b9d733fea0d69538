"""The public calls: what they return, what they refuse, and that a refusal leaves the input alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args, get_type_hints

import cases
import numpy as np
import pytest
import scipy.sparse
import torch

import tri_apsp
from tri_apsp import (
    Config,
    CpuTiles,
    EngineError,
    GpuTiles,
    InputError,
    TooLargeError,
    csgraph,
    tuned,
)
from tri_apsp.bench.cases import Case
from tri_apsp.engines.triton_base import TritonEngine
from tri_apsp.methods import METHODS, auto
from tri_apsp.methods.auto import RULES
from tri_apsp.semirings import SIGNS, Sign, remedy_beyond
from tri_apsp.solver.memory import memory_for
from tri_apsp.tune import tune

INF = float("inf")


def test_the_result_says_how_it_was_computed() -> None:
    result = tri_apsp.shortest_paths(cases.tensor(cases.FIVE, torch.float64))
    assert result.distances.tolist() == cases.FIVE_DISTANCES.tolist()
    assert (result.method, result.engine, result.config.source) == (
        "floyd_warshall",
        "cpu",
        "default",
    )
    given = tri_apsp.shortest_paths(
        torch.zeros(3, 3), config=Config(cutoff=2, block_size=1), method="kleene"
    )
    assert (given.config.cutoff, given.config.block_size, given.config.source) == (2, 1, "given")
    assert isinstance(given.config.product, CpuTiles)


def test_the_diagonal_counts_as_zero_unless_negative() -> None:
    weights = torch.tensor([[5.0, 1.0], [INF, INF]])
    assert tri_apsp.shortest_paths(weights).distances.tolist() == [[0, 1], [INF, 0]]
    assert weights[0, 0] == 5
    with pytest.raises(tri_apsp.NegativeCycleError) as caught:
        tri_apsp.shortest_paths(torch.tensor([[-1.0, 1.0], [INF, INF]]))
    assert caught.value.vertices == (0,)


def test_select_returns_what_would_run_and_why() -> None:
    small, large = torch.zeros(10, 10), torch.zeros(600, 600)
    assert tri_apsp.select(small).method == "floyd_warshall"
    selection = tri_apsp.select(large)
    assert (selection.method, selection.engine) == ("kleene", "cpu")
    assert selection.reason == RULES[-1].reason == "most of the work is in large products"
    assert tri_apsp.shortest_paths(large).method == selection.method
    assert tri_apsp.select(large, method="squaring").reason == "asked for by name"
    assert tri_apsp.select(large, config=Config(method="squaring")).reason == "asked for by name"
    assert tri_apsp.select(large, config=Config(block_size=9000)).reason == "one block: n <= 9000"
    assert tri_apsp.select(large, config=Config(cutoff=600)).method == "floyd_warshall"


def test_every_rule_of_auto_can_apply() -> None:
    taken = {
        auto.choose(n, Config(engine=engine, block_size=64, cutoff=512))
        for engine in ("cpu", "portable", "nvidia")
        for n in (10, 100, 1000, 100_000)
    }
    assert taken == set(RULES)


def test_true_is_an_edge_of_weight_one() -> None:
    edges = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    inf = float("inf")
    distances = tri_apsp.shortest_paths(edges).distances
    assert distances.dtype == torch.float32
    assert distances.tolist() == [[0, 1, 2], [inf, 0, 1], [inf, inf, 0]]
    assert tri_apsp.min_plus(edges, edges).tolist() == [[inf, inf, 2], [inf] * 3, [inf] * 3]
    torch.set_default_dtype(torch.float64)
    try:
        assert tri_apsp.shortest_paths(edges).distances.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(InputError, match="of bool must not be overwritten"):
        tri_apsp.shortest_paths(edges, overwrite=True)


def test_a_tensor_of_bool_that_does_not_fit_the_memory(monkeypatch) -> None:
    """The memory is checked before the weights of 4 bytes per edge are allocated, for which torch
    has an error of its own.
    """
    monkeypatch.setattr("tri_apsp.device.fits_memory", lambda size, device: size < 4 * 30 * 30)
    monkeypatch.setattr(
        "tri_apsp.solver.arguments.from_bool", lambda edges: pytest.fail("allocated")
    )
    edges = torch.zeros(30, 30, dtype=torch.bool)
    for call in (lambda: tri_apsp.shortest_paths(edges), lambda: tri_apsp.min_plus(edges, edges)):
        with pytest.raises(
            TooLargeError,
            match=r"of bool, as float32, must fit the memory of its device, but needs 3\.5 KiB and cpu has ",
        ):
            call()


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_no_remedy_names_a_wider_dtype_where_there_is_none(dtype) -> None:
    assert "wider" not in remedy_beyond(dtype)
    weights = torch.tensor([[0, 2**62], [1, 0]])
    with pytest.raises(
        InputError,
        match=r"give tri_apsp.no_edge\(dtype\) for missing edges, or use float64, or scale",
    ):
        tri_apsp.shortest_paths(weights)


@pytest.mark.parametrize("call", [tri_apsp.shortest_paths, tri_apsp.select])
def test_type_checkers_know_the_methods(call) -> None:
    assert get_args(get_type_hints(call)["method"]) == ("auto", *METHODS, "johnson")


def test_type_checkers_know_the_signs_and_objectives() -> None:
    assert get_args(Sign) == SIGNS
    assert get_type_hints(Case)["sign"] == Sign
    hints = get_type_hints(
        tune, localns={"Sign": Sign, "SweepResult": object, "Objective": tuned.Objective}
    )
    assert (hints["signs"], hints["objective"]) == (Sequence[Sign], tuned.Objective)
    assert get_args(tuned.Objective) == tuned.OBJECTIVES
    assert tuned.DEFAULT_OBJECTIVE in tuned.OBJECTIVES


def test_results_are_compared_by_identity() -> None:
    """Comparing the distances would raise, since a tensor has no single truth value."""
    weights = torch.rand(3, 3)
    result = tri_apsp.shortest_paths(weights)
    assert result == result
    assert result != tri_apsp.shortest_paths(weights)
    assert len({result, result}) == 1


BAD_WEIGHTS = {
    "a list": (
        [[0.0]],
        "`weights` must be a torch tensor or a sparse graph, but is list; convert an array with from_numpy",
    ),
    "an array": (np.zeros((2, 2)), "must be a torch tensor or a sparse graph, but is ndarray"),
    "one dimension": (
        torch.zeros(4),
        r"must be square, \(n, n\) or \(batch, n, n\), but has shape \(4,\)",
    ),
    "four dimensions": (torch.zeros(1, 1, 2, 2), "must be square"),
    "not square": (
        torch.zeros(3, 4),
        r"must be square.*has shape \(3, 4\); pad missing vertices with no_edge",
    ),
    "half": (torch.zeros(2, 2, dtype=torch.float16), "but has float16; convert"),
    "complex": (
        torch.zeros(2, 2, dtype=torch.complex64),
        "but has complex64; give its .real, or abs",
    ),
    "unsigned": (
        torch.zeros(2, 2, dtype=torch.uint8),
        "but has uint8; convert it with .to\\(torch.float32\\)",
    ),
    "sparse": (
        torch.eye(3).to_sparse(),
        "`overwrite` is for dense methods .* given with a sparse graph",
    ),
    "NaN": (
        torch.tensor([[0, 1], [float("nan"), 0]]),
        r"must hold numbers, but has NaN at \(1, 0\); replace",
    ),
    "minus infinity": (
        torch.tensor([[0, -INF], [1, 0]]),
        r"greater than minus infinity, but is -inf at \(0, 1\); replace",
    ),
    "an integer above no_edge": (
        torch.tensor([[0, 16384], [1, 0]], dtype=torch.int16),
        r"\[-16383, 16383\].*but one is 16384 at \(0, 1\); give tri_apsp.no_edge",
    ),
    "the smallest integer": (torch.tensor([[-32768]], dtype=torch.int16), "one is -32768"),
    "on the meta device": (
        torch.zeros(2, 2, device="meta"),
        "on the CPU or a CUDA device, but is on meta",
    ),
}


@pytest.mark.parametrize("weights", BAD_WEIGHTS.values(), ids=list(BAD_WEIGHTS))
def test_bad_weights(weights: tuple[object, str]) -> None:
    value, message = weights
    for method in ("auto", "kleene"):
        with pytest.raises(InputError, match=message) as caught:
            tri_apsp.shortest_paths(value, method=method, overwrite=True)  # type: ignore[arg-type]
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


def test_a_bad_batch_says_where() -> None:
    weights = torch.zeros(3, 2, 2)
    weights[2, 0, 1] = float("nan")
    with pytest.raises(InputError, match=r"NaN at \(2, 0, 1\)"):
        tri_apsp.shortest_paths(weights)


def test_an_unknown_method_lists_the_valid_ones() -> None:
    with pytest.raises(
        InputError,
        match=re.escape(f"auto, {', '.join(METHODS)}, johnson, but is 'dijkstra'"),
    ):
        tri_apsp.shortest_paths(torch.zeros(2, 2), method="dijkstra")


def test_an_unknown_engine_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match="cpu, nvidia, portable, but is 'tpu'"):
        tri_apsp.shortest_paths(torch.zeros(2, 2), config=Config(engine="tpu"))


def test_an_engine_that_cannot_run_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    for engine in ("nvidia", "portable"):
        with pytest.raises(
            EngineError,
            match=f"{engine} engine needs (Triton|a GPU, but the device is cpu; choose a GPU)",
        ):
            tri_apsp.shortest_paths(torch.zeros(2, 2), config=Config(engine=engine))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(block_size=0), "block_size must be a whole number from 1, but is 0"),
        (Config(cutoff=2.5), "cutoff must be a whole number from 1, but is 2.5"),  # type: ignore[arg-type]
        (
            Config(product=CpuTiles(0, 1, 1)),
            "product.block_m must be a whole number from 1, but is 0",
        ),
        (Config(product=GpuTiles(16, 16)), "takes CpuTiles, but product is GpuTiles"),
        ({"cutoff": 3}, "must be a tri_apsp.Config, but is dict"),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value)[:30],
)
def test_bad_configurations(config: Config, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        tri_apsp.shortest_paths(torch.zeros(2, 2), config=config)


def test_overwriting_a_tensor_that_overlaps_itself() -> None:
    row = torch.zeros(1, 4)
    for weights in (row.expand(4, 4), torch.zeros(7).as_strided((4, 4), (1, 1))):
        with pytest.raises(InputError, match="must not overlap itself"):
            tri_apsp.shortest_paths(weights, overwrite=True)
    assert torch.equal(row, torch.zeros(1, 4))


def test_a_graph_too_large_for_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 1 << 20)
    weights = torch.zeros(1000, 1000)
    needs = r"a problem of 1000 vertices in float32 must fit .* needs 3\.8 MiB and cpu has 1\.0 MiB free, which fits 512 vertices"
    with pytest.raises(TooLargeError, match=needs):
        tri_apsp.shortest_paths(weights, method="floyd_warshall")
    with pytest.raises(
        TooLargeError, match=r"float32 \(2 matrices\) must fit .* but needs 7\.6 MiB"
    ):
        tri_apsp.shortest_paths(weights, method="squaring")
    batch = r"300 graphs of 100 vertices .* 11\.4 MiB and .*, which fits 26 of these graphs; .* or fewer graphs at a time\.$"
    with pytest.raises(TooLargeError, match=batch):
        tri_apsp.shortest_paths(torch.zeros(1, 1, 1).expand(300, 100, 100), method="floyd_warshall")
    with pytest.raises(
        TooLargeError,
        match=r"2 graphs of 1000 vertices .*, which fits one of 512 vertices; .* or a smaller graph",
    ):
        tri_apsp.shortest_paths(weights.expand(2, 1000, 1000), method="floyd_warshall")
    assert (
        tri_apsp.shortest_paths(weights, method="floyd_warshall", overwrite=True).distances
        is weights
    )
    with pytest.raises(TooLargeError, match=r"needs 3\.8 MiB.*fits 262 of its 1000 rows"):
        tri_apsp.min_plus(weights, weights)


def out_of_memory(*_: object, **__: object) -> torch.Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_an_allocation_that_fails_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small problem is not checked before it is allocated; if the allocation fails, the call
    raises TooLargeError.
    """
    weights = torch.zeros(10, 10)
    monkeypatch.setattr("torch.Tensor.clone", out_of_memory)
    monkeypatch.setattr("torch.Tensor.new_empty", out_of_memory)
    monkeypatch.setattr("numpy.empty", out_of_memory)
    calls = {
        "a problem of 10 vertices in float32 must fit": tri_apsp.shortest_paths,
        "a product must fit": lambda x: tri_apsp.min_plus(x, x),
    }
    for message, call in calls.items():
        monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 100)
        with pytest.raises(TooLargeError, match=f"{message}.*400 bytes"):
            call(weights)
        monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 1 << 30)
        with pytest.raises(
            TooLargeError, match="although enough seemed free \\(CUDA out of memory\\); free what"
        ):
            call(weights)


def test_an_array_that_cannot_be_allocated_is_too_large() -> None:
    with (
        pytest.raises(TooLargeError, match="although enough"),
        memory_for("hops", 8, torch.device("cpu"), "give fewer sources"),
    ):
        np.empty(1 << 50)


def test_what_says_that_it_is_too_large_keeps_its_message() -> None:
    with (
        pytest.raises(TooLargeError, match=r"^a workspace$"),
        memory_for("hops", 8, torch.device("cpu"), "give fewer sources"),
    ):
        raise TooLargeError("a workspace")


def test_a_workspace_that_does_not_fit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS["squaring"], "solve", out_of_memory)
    monkeypatch.setattr("tri_apsp.device.free_memory", lambda device: 799)
    with pytest.raises(TooLargeError, match="800 bytes"):
        tri_apsp.shortest_paths(torch.zeros(10, 10), method="squaring")


def test_what_is_small_depends_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from tri_apsp import device

    monkeypatch.setattr(
        device, "describe", lambda _: device.Device("cuda", "a GPU", "a-gpu", 100, memory=64 << 30)
    )
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert device.is_small(1 << 30, gpu)
    assert not device.is_small((1 << 30) + 1, gpu)
    assert device.is_small(1 << 18, cpu)
    assert not device.is_small((1 << 18) + 1, cpu)


def test_strides_with_which_a_gpu_can_solve_in_place() -> None:
    """Dense weights of any size, and others whose row stride keeps every tile within 32 bits."""
    for n, stride, in_place in (
        (10, 10, True),
        (300_000, 300_000, True),
        (10, 1 << 18, True),
        (10, 1 << 19, False),
    ):
        weights = torch.empty(0, device="meta").as_strided((1, n, n), (1, stride, 1))
        assert TritonEngine.can_solve_in_place(weights) == in_place
    assert not TritonEngine.can_solve_in_place(torch.empty(1, 9, 9, device="meta").transpose(1, 2))


class TestMinPlus:
    def test_product(self) -> None:
        a, b = (
            torch.tensor([[1.0, 5.0], [INF, 2.0]]),
            torch.tensor([[1.0, INF, 0.0], [0.0, INF, 7.0]]),
        )
        assert tri_apsp.min_plus(a, b).tolist() == [[2, INF, 1], [2, INF, 9]]
        c = torch.tensor([[0.0, 3.0, 9.0], [9.0, 9.0, 9.0]])
        assert tri_apsp.min_plus(a, b, c).tolist() == [[0, 3, 1], [2, 9, 9]]
        assert c[0].tolist() == [0, 3, 9]

    def test_a_sum_of_exactly_no_edge_is_refused(self) -> None:
        a, b = (torch.tensor([[value]], dtype=torch.int16) for value in (8000, 8383))
        with pytest.raises(tri_apsp.DistanceRangeError):
            tri_apsp.min_plus(a, b)
        assert tri_apsp.min_plus(a - 1, b).item() == 16382

    @pytest.mark.parametrize("dtype", cases.DTYPES, ids=str)
    def test_batches_strides_and_empty_shapes(self, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)
        a = torch.randint(0, 50, (3, 40, 17), generator=generator).to(dtype)
        b = torch.randint(0, 50, (3, 33, 17), generator=generator).to(dtype).mT
        assert torch.equal(tri_apsp.min_plus(a, b), (a[..., None] + b[:, None]).amin(dim=2))
        assert torch.equal(tri_apsp.min_plus(a[1], b[1]), tri_apsp.min_plus(a, b)[1])
        assert (tri_apsp.min_plus(a[:, :, :0], b[:, :0]) == tri_apsp.no_edge(dtype)).all()
        assert tri_apsp.min_plus(a[:, :0], b).shape == (3, 0, 33)
        assert tri_apsp.min_plus(a[:0], b[:0]).shape == (0, 40, 33)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                (torch.zeros(2, 3), torch.zeros(2, 3)),
                r"must have shapes \(m, k\) and \(k, n\).*but have \(2, 3\) and \(2, 3\)",
            ),
            ((torch.zeros(2, 2), torch.zeros(1, 2, 2)), "must have shapes"),
            ((torch.zeros(2, 2, 2), torch.zeros(3, 2, 2)), "must have shapes"),
            (
                (torch.zeros(2, 2), torch.zeros(2, 3), torch.zeros(2, 2)),
                r"`c` must have.*\(2, 3\), but has \(2, 2\)",
            ),
            (
                (torch.zeros(2, 2), torch.zeros(2, 2).double()),
                "must have one dtype, but `a` is float32 and `b` float64",
            ),
            ((torch.zeros(2, 2), torch.zeros(2, 2).half()), "`b` must have one of the dtypes"),
            ((torch.zeros(2, 2), [[0.0]]), "`b` must be a torch tensor, but is list"),
            (
                (torch.zeros(2, 2), torch.full((2, 2), float("nan"))),
                r"`b` must hold numbers, but has NaN at \(0, 0\)",
            ),
            (
                (torch.zeros(2, 2), torch.zeros(2, 2), torch.full((2, 2), -INF)),
                "`c` must be greater than minus infinity",
            ),
        ],
    )
    def test_bad_operands(self, arguments: tuple[torch.Tensor, ...], message: str) -> None:
        with pytest.raises(InputError, match=message):
            tri_apsp.min_plus(*arguments)

    @pytest.mark.gpu
    def test_operands_on_two_devices(self) -> None:
        with pytest.raises(
            InputError, match="must be on one device, but `a` is on cpu and `b` on cuda:0; move one"
        ):
            tri_apsp.min_plus(torch.zeros(2, 2), torch.zeros(2, 2, device="cuda"))


def test_mixed_devices_are_refused_before_values_are_read() -> None:
    # A device that is always there stands for the second one: the check must not depend on CUDA.
    with pytest.raises(InputError, match="on the CPU or a CUDA device, but is on meta"):
        tri_apsp.min_plus(torch.zeros(2, 2), torch.zeros(2, 2, device="meta"))


@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about layouts in beta
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_the_remedy_for_a_sparse_operand_works(layout: torch.layout) -> None:
    operand = torch.sparse_coo_tensor(
        torch.tensor([[0, 1], [1, 0]]), torch.tensor([3.0, 0.0]), (2, 2)
    ).to_sparse(layout=layout)
    with pytest.raises(
        InputError, match="`a` must be a dense tensor, but has layout sparse_"
    ) as caught:
        tri_apsp.min_plus(operand, operand)
    found = re.search(r"give (.*), x being its (.*)\.$", str(caught.value))
    assert found is not None
    known = {"x": eval(f"operand{found[2]}"), "scipy": scipy, "from_scipy": tri_apsp.from_scipy}
    assert eval(found[1], known).tolist() == [[0, 3], [0, 0]]  # the stored 0 is an edge


def test_errors_are_of_the_families_that_callers_know() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(TooLargeError, MemoryError)
    assert issubclass(tri_apsp.DistanceRangeError, OverflowError)
    assert issubclass(tri_apsp.NegativeCycleError, ValueError)
    import pickle

    for given in (
        tri_apsp.NegativeCycleError([3, 1], 2),
        tri_apsp.NegativeCycleError([3, 1], 2, mark=""),
    ):
        error = pickle.loads(pickle.dumps(given))
        assert (error.vertices, error.batch) == ((3, 1), 2)
        assert str(error) == str(given)


ONE_CYCLE = torch.tensor(
    [[0.0, 1.0, torch.inf], [-2.0, 0.0, torch.inf], [torch.inf, torch.inf, 0.0]]
)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (tri_apsp.shortest_paths, 'or mark such pairs: negative_cycles="mark"'),
        (
            partial(tri_apsp.shortest_paths, method="johnson"),
            'or mark such pairs: negative_cycles="mark"',
        ),
        (
            lambda weights: tri_apsp.shortest_paths(weights.clone(), overwrite=True),
            'negative_cycles="mark" without overwrite',
        ),
        (partial(tri_apsp.single_source, sources=0), 'or mark such pairs: negative_cycles="mark"'),
        (tri_apsp.all_pairs, 'or mark such pairs: negative_cycles="mark"'),
        *(
            (partial(measure, weighted=True), "remove or raise one of its edges")
            for measure in (
                tri_apsp.closeness,
                tri_apsp.diameter,
                tri_apsp.eccentricities,
                tri_apsp.mean_distance,
            )
        ),
        (csgraph.shortest_path, "remove or raise one of its edges"),
    ],
)
def test_the_remedy_of_a_negative_cycle_is_one_of_the_function(
    call: Callable[[torch.Tensor], object], remedy: str
) -> None:
    with pytest.raises(tri_apsp.NegativeCycleError, match=f"{remedy}\\.$"):
        call(ONE_CYCLE)


@pytest.mark.parametrize("cutoff", [64.0, [64]])
def test_a_config_that_equals_a_valid_one_is_still_refused(cutoff: object) -> None:
    weights = torch.zeros(3, 3)
    tri_apsp.select(weights, config=Config(cutoff=64))
    with pytest.raises(InputError, match="cutoff must be a whole number from 1"):
        tri_apsp.select(weights, config=Config(cutoff=cutoff))  # type: ignore[arg-type]
