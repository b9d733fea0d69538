"""The kernel counts as many edges as torch does: on a GPU, and in Triton's interpreter."""

import weakref
from types import SimpleNamespace

import cases
import pytest
import torch

pytest.importorskip("triton", reason="the kernel needs Triton")

from gpu.test_value_range import LAYOUTS, values

from tri_apsp import no_edge
from tri_apsp.gpu import result_buffers
from tri_apsp.gpu.edge_count import queue_edge_count

dtypes = pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.float32], ids=str)


def matrices(shape: tuple[int, int, int], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Values of either sign, half of them no_edge, and some at the ends of the dtype."""
    generator, drawn = torch.Generator().manual_seed(sum(shape)), values(shape, dtype)
    ends = (
        (-float("inf"), float("nan"))
        if dtype.is_floating_point
        else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    )
    for end in ends:
        drawn.masked_fill_(torch.rand(shape, generator=generator) < 0.02, end)
    return drawn.to(device)


def check(dtype: torch.dtype, device: str, shapes: list[tuple[int, int, int]]) -> None:
    used = len(result_buffers._IN_USE)
    for shape in shapes:
        drawn = matrices(shape, dtype, device)
        for name, layout in LAYOUTS.items():
            given = layout(drawn)
            for step in (1, 3, 1000):
                for loops in (False, True):
                    found = queue_edge_count(given, step, loops=loops)()
                    assert found == cases.count_edges(given, step, loops=loops), (shape, name, step)
    assert len(result_buffers._IN_USE) == used


def check_memory(device: str) -> None:
    """A count that is pending does not keep the matrices, which a solve frees before it verifies
    the distances.
    """
    given = matrices((1, 9, 9), torch.float32, device)
    memory = weakref.ref(given)
    count = queue_edge_count(given, 1, loops=True)
    del given
    assert memory() is None
    assert count() > 0


def check_fractions(device: str) -> None:
    """A fraction makes the count 0 only in a row that is read, and not on a diagonal that is left
    out.
    """
    whole = matrices((2, 9, 9), torch.float32, device).nan_to_num(
        1, neginf=1, posinf=no_edge(torch.float32)
    )
    for row, column, value in (
        (6, 2, 0.5),
        (6, 6, 0.5),
        (0, 8, -1.25),
        (5, 2, 0.5),
        (6, 2, float("nan")),
    ):
        given = whole.clone()
        given[1, row, column] = value
        for loops in (False, True):
            fails = row != 5 and value == value and (loops or row != column)
            expected = 0 if fails else cases.count_edges(given, 3, loops=loops)
            found = queue_edge_count(given, 3, loops=loops)()
            assert found == expected, (row, column, value, loops)


@cases.interpreted
def test_interpreted_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tri_apsp.gpu.edge_count._PROGRAMS_PER_UNIT", 1)
    monkeypatch.setattr("tri_apsp.gpu.edge_count.describe", lambda device: SimpleNamespace(units=3))
    check(torch.int16, "cpu", [(1, 1, 1), (2, 7, 5), (3, 20, 4099)])


@cases.interpreted
def test_interpreted_fractions_and_memory() -> None:
    check_fractions("cpu")
    check_memory("cpu")


@pytest.mark.gpu
@dtypes
def test_counts(dtype: torch.dtype) -> None:
    check(dtype, "cuda", [(1, 1, 1), (3, 20, 4099), (70, 100, 100)])


@pytest.mark.gpu
def test_fractions_and_memory() -> None:
    check_fractions("cuda")
    check_memory("cuda")


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_tensor_on_another_than_the_current_gpu() -> None:
    check(torch.int16, "cuda:1", [(2, 7, 5)])
    assert torch.cuda.current_device() == 0


@pytest.mark.gpu
def test_addresses_past_two_to_the_31() -> None:
    n = 46400
    given = torch.full((1, n, n), no_edge(torch.int16), dtype=torch.int16, device="cuda")
    given[0, -1, 1:], given[0, 1:, -1] = 1, 1  # rows 0 and n - 1 are read; only row n - 1 has edges
    for matrix in (given, given.mT):
        assert queue_edge_count(matrix, 46399, loops=False)() == n - 2
        assert queue_edge_count(matrix, 46399, loops=True)() == n - 1
