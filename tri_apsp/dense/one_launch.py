"""Solves in one launch: what depends only on the layout of the weights is done once, and kept in
the table of plans.
"""

import torch

from tri_apsp import engines
from tri_apsp.arguments import DenseBatch
from tri_apsp.dense.negative_diagonal import Attempt
from tri_apsp.dense.plan import DensePlan
from tri_apsp.dense.verification import decided_by_ranges, verify
from tri_apsp.device import current
from tri_apsp.engines import Engine, MakeEngine, MatrixSpec
from tri_apsp.engines.base import QueueSolve
from tri_apsp.memory import is_small
from tri_apsp.paths.predecessors import find_predecessors
from tri_apsp.value_checks import check_graphs
from tri_apsp.value_range import ValueRange

# Whether the last weights of a dtype on a device had a negative value: the next ones are expected
# to be alike.
_NEGATIVE: dict[tuple[torch.device, torch.dtype], bool] = {}


class OneLaunchSolver:
    """Solves weights of one layout by a plan in one launch.

    Args:
        plan: of the solve.
        weights: (batch, n, n), whose shape, strides, dtype and device count.
        sizes: of padded graphs, of which only the presence counts.
        make: makes the engine.
    """

    def __init__(
        self,
        plan: DensePlan,
        weights: torch.Tensor,
        sizes: torch.Tensor | None,
        make: MakeEngine = engines.make,
    ) -> None:
        self._plan, self._check = plan, plan.options.check
        self._device, self._dtype = weights.device, weights.dtype
        self._make, self._n = make, weights.shape[-1]
        engine_type = engines.type_of(plan.engine)
        self._by_sign = self._check and engine_type.solves_by_sign(weights)
        self._queues: dict[bool, QueueSolve] = {
            nonnegative: self._engine(sizes, nonnegative).queue_solve_of(weights, check=self._check)
            for nonnegative in ((True, False) if self._by_sign else (False,))
        }
        size = plan.matrices * weights.numel() * weights.itemsize
        self._is_small = is_small(size, weights.device)

    def attempt_if_small(self, weights: torch.Tensor, sizes: torch.Tensor | None) -> Attempt | None:
        """Solve once; None: whether the memory suffices must be looked at first."""
        if not self._is_small:
            return None
        with current(self._device):
            try:
                return self.attempt(weights, sizes)
            except (torch.OutOfMemoryError, MemoryError):
                return None

    def attempt(self, weights: torch.Tensor, sizes: torch.Tensor | None) -> Attempt:
        """Solve once.

        Args:
            weights: (batch, n, n), or a single graph (n, n), of this layout.
            sizes: checked.

        Returns:
            The attempt, whose tensors have the shape of the weights.

        Raises:
            InputError, DistanceRangeError: as check_graphs and verify.
        """
        distances, checked, is_negative = self._solve(weights, sizes)
        plan, found = self._plan, None
        if checked is not None and checked.lowest < 0:
            plan = plan.for_any_sign()
        if plan.options.predecessors and not is_negative:
            batched = weights.dim() == 3
            batch = DenseBatch(weights if batched else weights[None], batched, sizes)
            engine = self._engine(sizes, checked is not None and checked.lowest >= 0)
            matrices = distances if batched else distances[None]
            found = find_predecessors(batch, matrices, checked, engine)
            found = found if batched else found[0]
        return Attempt(distances, is_negative, found, plan)

    def _engine(self, sizes: torch.Tensor | None, nonnegative: bool) -> Engine:
        """Return the engine for values of which none is negative, or of any sign."""
        spec = MatrixSpec(self._n, self._dtype, self._device, nonnegative, sizes)
        return self._make(spec, self._plan.config)

    def _solve(
        self, weights: torch.Tensor, sizes: torch.Tensor | None
    ) -> tuple[torch.Tensor, ValueRange | None, bool]:
        """Return the distances of graphs that one closure solves; with a check, for which the host
        blocks, the value range of the weights and whether a diagonal value is negative.

        Results for invalid values are discarded, which is cheaper than to block before the solve.
        So are those of an engine that solves by sign where a negative weight was not expected: the
        graphs are solved again.
        """
        nonnegative = self._by_sign and not _expects_negative(weights)
        distances, pending = self._queues[nonnegative](weights, sizes)
        if not self._check:
            return distances, None, False
        assert pending is not None
        weights_range, found = pending.read()
        checked = check_graphs(weights, sizes, weights_range)
        is_negative = checked.lowest < 0
        if self._by_sign:
            _NEGATIVE[self._device, self._dtype] = is_negative
        if nonnegative and is_negative:
            del distances  # frees its memory
            distances, pending = self._queues[False](weights, sizes)
            assert pending is not None
            _, found = pending.read()
        is_fine = decided_by_ranges(self._dtype, checked, found)
        if is_fine is None:
            engine = self._engine(sizes, False)
            matrices = distances if distances.dim() == 3 else distances[None]
            is_fine = verify(matrices, checked, engine, engine.closure, found=found)
        return distances, checked, not is_fine


def _expects_negative(weights: torch.Tensor) -> bool:
    """Return whether weights are likely to have a negative value; the first of a dtype are read, as
    compiling takes seconds.
    """
    expected = _NEGATIVE.get((weights.device, weights.dtype))
    if expected is None:
        return not weights.is_meta and bool(weights.amin() < 0)
    return expected
