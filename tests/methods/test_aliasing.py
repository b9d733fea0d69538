"""A method passes to an engine what the interface allows: a data race shows on a GPU only now and
then, here always.
"""

from types import SimpleNamespace
from typing import cast

import cases
import pytest
import torch

import tri_apsp
from tri_apsp import engines
from tri_apsp.configs import default_config
from tri_apsp.engines import Engine, Update
from tri_apsp.engines.cpu import CpuEngine
from tri_apsp.gpu.padding import aligned
from tri_apsp.methods import METHODS, Observer, kleene


def addresses(block: torch.Tensor, skip: tuple[int, int] = (0, 0)) -> set[int]:
    """The addresses of a block's elements, without rows and columns skip[0]..skip[1]."""
    offsets = torch.zeros(block.shape, dtype=torch.int64)
    for size, stride, dimension in zip(block.shape, block.stride(), range(3), strict=True):
        offsets += (torch.arange(size) * stride).view(
            [-1 if d == dimension else 1 for d in range(3)]
        )
    inside = torch.arange(max(block.shape[1:]))
    keep = (inside < skip[0]) | (inside >= skip[1])
    offsets = offsets[:, keep[: block.shape[1]]][:, :, keep[: block.shape[2]]]
    return {block.data_ptr() + block.itemsize * int(offset) for offset in offsets.flatten()}


class AliasChecked(CpuEngine):
    def product(self, *updates: Update) -> None:
        written = [addresses(update.c, update.skip) for update in updates]
        read = set().union(
            *(addresses(block) for update in updates for block in (update.a, update.b))
        )
        assert sum(map(len, written)) == len(set().union(*written)), (
            "two products write one element"
        )
        assert not read & set().union(*written), "a product reads what one beside it writes"
        super().product(*updates)

    def closure(self, d: torch.Tensor) -> None:
        assert d.shape[1] == d.shape[2] <= self.config.block_size
        super().closure(d)

    def panels(
        self,
        d: torch.Tensor,
        row: torch.Tensor,
        column: torch.Tensor,
        skip: tuple[int, int] = (0, 0),
    ) -> None:
        assert d.stride() == row.stride() == column.stride()
        panels = addresses(row) | addresses(column)
        if skip == (0, 0):
            assert not addresses(d) & panels
        else:
            assert addresses(d) <= panels
        super().panels(d, row, column, skip)


class WithPanelBuffers(AliasChecked):
    """Has panel buffers, filled with the smallest value that is stored."""

    largest = 41 * 41

    def panel_buffers(
        self, like: torch.Tensor, rows: int, columns: int
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        if rows * columns > self.largest:
            return None
        first, second = self.scratch(like, rows, columns), self.scratch(like, columns, rows)
        return first.fill_(self.floor), second.fill_(self.floor)

    def panels(
        self,
        d: torch.Tensor,
        row: torch.Tensor,
        column: torch.Tensor,
        skip: tuple[int, int] = (0, 0),
    ) -> None:
        assert d.shape[1] <= 6 or row.shape[1] * row.shape[2] > self.largest, (
            "panels that fit the buffers are replaced in place"
        )
        super().panels(d, row, column, skip)


class WithSmallPanelBuffers(WithPanelBuffers):
    """Has no panel buffers for the first level of the recursion."""

    largest = 15 * 15


@pytest.mark.parametrize("engine", [AliasChecked, WithPanelBuffers, WithSmallPanelBuffers])
@pytest.mark.parametrize("n", [1, 7, 30, 41])
@pytest.mark.parametrize("method", ["floyd_warshall", "kleene", "squaring"])
def test_no_operation_reads_what_it_writes(method: str, n: int, engine: type[AliasChecked]) -> None:
    """All methods but rank_one_updates, whose rank-1 update is the exception."""
    weights = cases.random_graph(n)
    config = tri_apsp.Config(block_size=6, cutoff=13).over(default_config("cpu", torch.float64))
    spec = engines.MatrixSpec(n, torch.float64, torch.device("cpu"), True)
    d = cases.tensor(weights, torch.float64)[None].clone()
    d.diagonal(dim1=1, dim2=2).zero_()
    METHODS[method].solve(d, engine(spec, config), Observer())
    cases.assert_distances(d[0], weights)


def test_a_padded_matrix_is_split_like_the_graph() -> None:
    """A padded matrix is split at the same vertices as the graph, so that floats round alike."""
    for cutoff in (80, 81, 100, 128, 1000, 1024):
        for n in range(cutoff, 2700, 7):
            assert [at for at in splits(aligned(n), cutoff) if at < n] == splits(n, cutoff), (
                n,
                cutoff,
            )


def splits(n: int, cutoff: int, first: int = 0) -> list[int]:
    """Return at which vertices kleene splits the graph, from `first` on."""
    engine = cast(Engine, SimpleNamespace(config=tri_apsp.Config(cutoff=cutoff)))
    if n <= kleene._cutoff(engine):
        return []
    half = kleene._half(n)
    return [*splits(half, cutoff, first), first + half, *splits(n - half, cutoff, first + half)]
