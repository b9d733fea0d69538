"""Operations on the paths of solved graphs: predecessors, and the gradients that follow them."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch


class Tolerance(NamedTuple):
    """How far rounding may separate sums of weights that are equal; each is 0 for integers.

    A path equals a distance d if its sum differs by no more than `relative` * |d| + `absolute`. A
    cycle through vertices at a distance d may weigh 0 if its sum is no more than `cycle_relative` *
    |d| + `cycle_absolute`.
    """

    relative: float
    absolute: float | torch.Tensor
    cycle_relative: float
    cycle_absolute: float | torch.Tensor


class PathOperations(ABC):
    """What follows from weights and distances, whatever method computed the distances.

    `distances` and `gradient` are contiguous; gradients are float32 or float64, and the same bits
    in every run.
    """

    @abstractmethod
    def predecessors(
        self, weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance
    ) -> torch.Tensor:
        """Return the predecessors of all pairs: for (i, j), the vertex before j on a shortest path
        from i.

        Following the predecessors from any j leads to i. Of several shortest paths, the edge (i, j)
        itself comes first; where a cycle of weight 0 might close a loop, paths of the fewest edges;
        then the vertex before j of the least sum (of floats: as rounded), and of several such the
        smallest.

        Args:
            weights: (batch, n, n) with any strides; the diagonal, and the values that `sizes`
                leaves out, are ignored.
            distances: (batch, n, n) of `weights`, no_edge where there is no path.
            tolerance: of the sums in `distances`.

        Returns:
            (batch, n, n) of int32, contiguous; -1 where there is no path, and on the diagonal.

        Cost: with a share t of all pairs (k, j) whose edge is a shortest path, at most t (1 - t)
        n^3 additions and comparisons, mostly far fewer; a search of that cost for each further edge
        of paths beside cycles of weight 0, until such a search finds few pairs; then n^2 edges per
        source.
        """

    def predecessors_if_nonnegative(
        self, weights: torch.Tensor, distances: torch.Tensor, tolerance: Tolerance
    ) -> torch.Tensor | None:
        """Return predecessors() for weights of unknown sign by a faster way for weights without
        negatives.

        None: there is no such way, or a weight is negative. `tolerance` is that for weights without
        negatives.
        """
        return None

    @classmethod
    @abstractmethod
    def predecessors_workspace(cls, weights: torch.Tensor) -> float:
        """Return the most memory that predecessors() allocates beside its result, in matrices of
        the size of `weights`.
        """

    def weights_gradient(
        self, gradient: torch.Tensor, weights: torch.Tensor, distances: torch.Tensor
    ) -> torch.Tensor | None:
        """Return the gradient of weights (batch, n, n) as edge_gradient() does, without
        predecessors; None: the engine has no such way for this n.

        Of several shortest paths, the edge itself comes first, then those whose greatest vertex
        between the two ends is least.
        """
        return None

    @abstractmethod
    def edge_gradient(self, gradient: torch.Tensor, predecessors: torch.Tensor) -> torch.Tensor:
        """Return the gradient of each edge (batch, n, n): the sum of the gradients of all distances
        whose path uses it.

        `predecessors` (batch, n, n) of int32, contiguous, are those of the distances.

        Cost: a few passes over n^2 values (GPU: for each doubling of the most edges of a path), and
        a matrix of 64-bit values (GPU: and at most 24 bytes for each pair of vertices).
        """

    @abstractmethod
    def argmin(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        """Return the first k with a[i, k] + b[k, j] = c[i, j], (batch, m, n) of int32; -1 where c
        is no_edge.

        All are contiguous, of one floating dtype, and `c` is the product of (batch, m, depth) `a`
        and (batch, depth, n) `b`. Where it is less, the result may be any term, or -1.

        Cost: m * n * depth additions and comparisons.
        """

    @abstractmethod
    def factor_gradients(
        self, gradient: torch.Tensor, chosen: torch.Tensor, depth: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients (batch, m, depth) and (batch, depth, n) of the factors of a product
        by that of the product, (batch, m, n).

        `chosen` (batch, m, n) of int32, contiguous, has for each element the term that its gradient
        belongs to; -1: none.
        """
