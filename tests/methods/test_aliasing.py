"""A method passes to an engine what the interface allows: a data race shows on a GPU only now and
then, here always.
"""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import cast

import cases
import pytest
import torch

import tri_apsp
from tri_apsp import engines, tuned
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

    def panel_buffers(
        self, like: torch.Tensor, rows: int, columns: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = self.scratch(like, rows, columns), self.scratch(like, columns, rows)
        return first.fill_(self.floor), second.fill_(self.floor)

    def panels(
        self,
        d: torch.Tensor,
        row: torch.Tensor,
        column: torch.Tensor,
        skip: tuple[int, int] = (0, 0),
    ) -> None:
        assert d.shape[1] <= 6, "only the panels of one diagonal block are replaced in place"
        super().panels(d, row, column, skip)


@pytest.mark.parametrize(
    "method", sorted(set(METHODS) - {"iterative"})
)  # whose rank-1 update is the exception
@pytest.mark.parametrize("n", [1, 7, 30, 41])
@pytest.mark.parametrize("engine", [AliasChecked, WithPanelBuffers])
def test_no_operation_reads_what_it_writes(
    monkeypatch: pytest.MonkeyPatch, method: str, n: int, engine: type[AliasChecked]
) -> None:
    monkeypatch.setattr("tri_apsp.engines.type_of", lambda name: engine)
    weights = cases.random_graph(n)
    config = tri_apsp.Config(block_size=6, cutoff=13)
    cases.assert_distances(
        tri_apsp.shortest_paths(
            cases.tensor(weights, torch.float64), method=method, config=config
        ).distances,
        weights,
    )


@pytest.mark.parametrize("n", [40, 700])
def test_panel_buffers_change_no_bit(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    weights = torch.rand((2, n, n), generator=torch.Generator().manual_seed(n))
    small = tri_apsp.Config(block_size=6, cutoff=6) if n < 100 else tri_apsp.Config(cutoff=128)
    config = small.over(default_config("cpu", torch.float32))
    expected = tri_apsp.shortest_paths(weights, method="kleene", config=config).distances
    buffers = []

    def record(
        engine: CpuEngine, like: torch.Tensor, rows: int, columns: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        buffers.append(
            (like.new_full((2, rows, columns), -1.0), like.new_full((2, columns, rows), -1.0))
        )
        return buffers[-1]

    monkeypatch.setattr(CpuEngine, "panel_buffers", record)
    assert torch.equal(
        tri_apsp.shortest_paths(weights, method="kleene", config=config).distances, expected
    )
    assert len(buffers) == 1
    assert all((block >= 0).any() for block in buffers[0])


def test_levels_that_fit_are_multiplied_into_panel_buffers() -> None:
    """Half the vertices, if the buffers do not suffice for all of them."""
    asked, in_place, held = list[tuple[int, int]](), list[int](), list[weakref.ref[torch.Tensor]]()

    class SmallPanelBuffers(AliasChecked):
        def panel_buffers(
            self, like: torch.Tensor, rows: int, columns: int
        ) -> tuple[torch.Tensor, torch.Tensor] | None:
            asked.append((rows, columns))
            if rows * columns > 20 * 20:
                return None
            found = self.scratch(like, rows, columns), self.scratch(like, columns, rows)
            held.append(weakref.ref(found[0]))
            return found

        def panels(
            self,
            d: torch.Tensor,
            row: torch.Tensor,
            column: torch.Tensor,
            skip: tuple[int, int] = (0, 0),
        ) -> None:
            in_place.append(d.shape[1])
            assert not any(buffer() is not None for buffer in held), (
                "a workspace and panel buffers at once"
            )
            super().panels(d, row, column, skip)

    for n, seen in ((80, [40, 40]), (40, []), (12, [])):
        asked.clear()
        in_place.clear()
        weights = cases.random_graph(n)
        config = tuned.find(
            "cpu", torch.device("cpu"), torch.float64, tri_apsp.Config(block_size=16, cutoff=16)
        )
        engine = SmallPanelBuffers(
            engines.MatrixSpec(n, torch.float64, torch.device("cpu"), True), config
        )
        matrix = cases.tensor(weights, torch.float64)[None].clone()
        matrix.diagonal(dim1=1, dim2=2).zero_()
        METHODS["kleene"].solve(matrix, engine, Observer())
        cases.assert_distances(matrix[0], weights)
        assert in_place == seen, n
        assert len(asked) == {80: 3, 40: 1, 12: 0}[n]


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
