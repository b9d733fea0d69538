"""What every engine must do: inherit EngineContract, set `name`, `device` and, where it must stay
small, `sizes`.
"""

from collections.abc import Sequence
from typing import ClassVar

import cases
import numpy as np
import pytest
import torch

import tri_apsp
from tri_apsp import engines, tuned
from tri_apsp.engines import Engine, Update, block, triton_base
from tri_apsp.semirings import floor

SHAPES = [(1, 1, 1), (2, 3, 5), (63, 65, 1), (7, 129, 64), (100, 31, 257), (130, 200, 67)]


def min_plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of (batch, m, k) and (batch, k, n), the slow and obvious way."""
    return (a[:, :, :, None] + b[:, None, :, :]).min(axis=2, initial=cases.INF)


def block_of(whole: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """The part of a copy of a matrix where a view of the matrix lies."""
    return whole.as_strided(view.shape, view.stride(), view.storage_offset())


class EngineContract:
    name: ClassVar[str]
    device: ClassVar[str]
    config: ClassVar[tri_apsp.Config | None] = None
    shapes: ClassVar[Sequence[tuple[int, int, int]]] = SHAPES
    large: ClassVar[tuple[int, int]] = (150, 90)  # n, and a closed block larger than block_size
    closures: ClassVar[Sequence[int]] = (1, 2, 31, 64)
    dtypes: ClassVar[tuple[torch.dtype, ...]] = cases.DTYPES

    def engine(self, dtype: torch.dtype, *, n: int = 256, nonnegative: bool = True) -> Engine:
        device = torch.device(self.device)
        config = tuned.find(self.name, device, dtype, self.config)
        return engines.make(engines.MatrixSpec(n, dtype, device, nonnegative), config)

    def blocks(
        self, dtype: torch.dtype, *shapes: tuple[int, int], negative: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """Random blocks (2, rows, columns), two in three values missing, each cut out of a larger
        poisoned matrix.
        """
        rng = np.random.default_rng(7)
        out = []
        for rows, columns in shapes:
            values = rng.integers(-40 if negative else 0, 100, (2, rows, columns)).astype(
                np.float64
            )
            values[rng.random(values.shape) < 0.66] = cases.INF
            host = torch.full((2, rows + 3, columns + 5), floor(dtype), dtype=dtype)
            whole = host.to(self.device)
            whole[:, 1 : rows + 1, 2 : columns + 2] = cases.tensor(values, dtype, self.device)
            out.append(whole[:, 1 : rows + 1, 2 : columns + 2])
        return tuple(out)

    def after(self, update: Update) -> np.ndarray:
        """C after an update that is still to be computed."""
        before, (start, stop) = cases.values(update.c), update.skip
        result = min_plus(cases.values(update.a), cases.values(update.b))
        if not update.fresh:
            result = np.minimum(before, result)
        result[:, start:stop], result[:, :, start:stop] = (
            before[:, start:stop],
            before[:, :, start:stop],
        )
        return result

    def check_products(
        self, dtype: torch.dtype, *updates: Update, nonnegative: bool = True
    ) -> None:
        """Compute updates, and check C and what lies around it."""
        expected = []
        for update in updates:
            whole = update.c._base.clone()
            block_of(whole, update.c).copy_(cases.tensor(self.after(update), dtype, self.device))
            expected.append(whole)
            if update.fresh:
                update.c.fill_(floor(dtype))
        self.engine(dtype, nonnegative=nonnegative).product(*updates)
        for update, whole in zip(updates, expected, strict=True):
            assert torch.equal(update.c._base, whole), (dtype, *update.c.shape, update.a.shape[2])

    def test_product_on_awkward_shapes(self) -> None:
        for dtype in self.dtypes:
            for m, n, k in self.shapes:
                self.check_products(dtype, Update(*self.blocks(dtype, (m, n), (m, k), (k, n))))

    def test_product_with_negative_values(self) -> None:
        for dtype in self.dtypes:
            m, n, k = self.shapes[-1]
            c, a, b = self.blocks(dtype, (m, n), (m, k), (k, n), negative=True)
            # In integers a missing edge plus a negative value is not yet "no edge": use values that
            # are all there.
            a, b = (x.masked_fill(x >= tri_apsp.no_edge(dtype), 1) for x in (a, b))
            self.check_products(dtype, Update(c, a, b), nonnegative=False)

    @pytest.mark.parametrize(("skip", "fresh"), [((1, 5), False), ((0, 0), True)])
    def test_independent_products_together(self, skip: tuple[int, int], fresh: bool) -> None:
        m, n, k = self.shapes[-1]
        for dtype in self.dtypes:
            c0, a0, b0, c1, a1, b1 = self.blocks(
                dtype, (m, n), (m, k), (k, n), (k, m), (k, n), (n, m)
            )
            self.check_products(dtype, Update(c0, a0, b0, skip, fresh), Update(c1, a1, b1))

    @pytest.mark.parametrize("skip", [(0, 5), (3, 9), (20, 31)])
    def test_product_skips_a_cross_where_its_operands_lie(self, skip: tuple[int, int]) -> None:
        for dtype in self.dtypes:
            (d,) = self.blocks(dtype, (31, 31))
            row, column = block(d, skip, (0, 31)), block(d, (0, 31), skip)
            self.check_products(dtype, Update(d, column, row, skip))

    def test_rank_one_update_in_place(self) -> None:
        weights = cases.random_graph(40)
        np.fill_diagonal(weights, 0)
        for dtype in self.dtypes:
            d = cases.tensor(weights, dtype, self.device)[None].clone()
            self.engine(dtype).product(
                Update(d, block(d, (0, 40), (7, 8)), block(d, (7, 8), (0, 40)))
            )
            np.testing.assert_array_equal(
                cases.values(d)[0], np.minimum(weights, weights[:, 7, None] + weights[7])
            )

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_copies(self, count: int) -> None:
        shapes = [(31, 70), (0, 4), (65, 1), (40, 64)][: count + 1]
        for dtype in self.dtypes:
            targets = self.blocks(dtype, *shapes)
            sources = self.blocks(dtype, *shapes, negative=True)
            expected = [target._base.clone() for target in targets]
            for whole, target, source in zip(expected, targets, sources, strict=True):
                block_of(whole, target).copy_(source)
            self.engine(dtype).copy(*zip(targets, sources, strict=True))
            assert all(
                torch.equal(target._base, whole)
                for target, whole in zip(targets, expected, strict=True)
            )

    def test_closure(self) -> None:
        for dtype in self.dtypes:
            for n in self.closures:
                weights = np.stack([cases.random_graph(n, seed=seed) for seed in range(3)])
                weights[:, np.arange(n), np.arange(n)] = 0
                whole = cases.tensor(np.full((3, n + 2, n + 3), -1.0), dtype, self.device)
                d = whole[:, 1 : n + 1, 2 : n + 2]
                d.copy_(cases.tensor(weights, dtype, self.device))
                self.engine(dtype).closure(d)
                cases.assert_distances(d, weights)

    @pytest.mark.parametrize("skip", [(0, 0), (0, 16), (16, 32), (37, 53)])
    def test_panels_in_place(self, skip: tuple[int, int]) -> None:
        for dtype in self.dtypes:
            (d,) = self.blocks(dtype, (53, 53))
            closed = block(d, (16, 32), (16, 32))
            closed.copy_(
                cases.tensor(
                    np.stack([np.minimum(cases.random_graph(16), 9)] * 2), dtype, self.device
                )
            )
            closed.diagonal(dim1=1, dim2=2).zero_()
            engine = self.engine(dtype)
            engine.closure(closed)
            row, column = block(d, (16, 32), (0, 53)), block(d, (0, 53), (16, 32))
            if skip != (16, 32):  # D is not among what it multiplies
                row, column = block(d, (0, 16), (0, 53)), block(d, (0, 53), (37, 53))
            middle, left, above = cases.values(closed), cases.values(row), cases.values(column)
            expected_row, expected_column = min_plus(middle, left), min_plus(above, middle)
            inside = slice(*skip)
            expected_row[:, :, inside], expected_column[:, inside] = (
                left[:, :, inside],
                above[:, inside],
            )
            if skip != (16, 32):  # the two panels cross: check them one at a time
                engine.panels(closed, row, block(column, (0, 0), (0, 16)), skip)
                np.testing.assert_array_equal(cases.values(row), expected_row, str(dtype))
                continue
            engine.panels(closed, row, column, skip)
            np.testing.assert_array_equal(cases.values(row), expected_row, str(dtype))
            np.testing.assert_array_equal(cases.values(column), expected_column, str(dtype))

    @pytest.mark.parametrize("share", [0.0, 0.01])
    def test_panels_of_a_large_closed_block(
        self, monkeypatch: pytest.MonkeyPatch, share: float
    ) -> None:
        """Panels are computed in stripes, or at once if the engine has buffers for whole panels."""
        monkeypatch.setattr(triton_base, "EXTRA_WORKSPACE", share)
        n, half = self.large
        for dtype in self.dtypes:
            weights = cases.random_graph(n)
            np.fill_diagonal(weights, 0)
            closed = cases.floyd_warshall(weights[:half, :half])
            weights[:half, :half] = closed
            d = cases.tensor(weights, dtype, self.device)[None].clone()
            first, last = (0, half), (half, n)
            self.engine(dtype, n=n).panels(
                block(d, first, first), block(d, first, last), block(d, last, first)
            )
            expected = weights.copy()
            expected[:half, half:] = min_plus(closed[None], weights[None, :half, half:])[0]
            expected[half:, :half] = min_plus(weights[None, half:, :half], closed[None])[0]
            np.testing.assert_array_equal(cases.values(d)[0], expected, str(dtype))

    def test_stored_values_never_leave_their_range(self) -> None:
        for dtype in self.dtypes:
            low = floor(dtype)
            c = torch.full((1, 9, 9), tri_apsp.no_edge(dtype), dtype=dtype, device=self.device)
            a = torch.full((1, 9, 9), low, dtype=dtype, device=self.device)
            engine = self.engine(dtype, nonnegative=False)
            engine.product(Update(c, a, a))
            assert (c == low).all(), dtype
            engine.closure(c)
            assert (c == low).all(), dtype
            engine.panels(c, a, block(a, (0, 0), (0, 9)))
            assert (a == low).all(), dtype

    def test_empty_products_change_nothing(self) -> None:
        c, a, b = self.blocks(torch.float32, (5, 6), (5, 4), (4, 6))
        before = c.clone()
        engine = self.engine(torch.float32)
        engine.product(Update(c, a[:, :, :0], b[:, :0]))
        engine.product(Update(c[:, :0], a[:, :0], b), Update(c[:, :, :0], a, b[:, :, :0]))
        assert torch.equal(c, before)
        engine.product(Update(c, a[:, :, :0], b[:, :0], fresh=True))
        assert (c == cases.INF).all()
