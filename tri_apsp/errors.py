"""The errors and warnings that a caller may get; a message is a sentence: rule, value, remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = [
    "ApspError",
    "ApspWarning",
    "DistanceRangeError",
    "EngineError",
    "InputError",
    "InputTypeError",
    "NegativeCycleError",
    "RankError",
    "RoundingWarning",
    "TooLargeError",
    "TuningWarning",
]


class ApspError(Exception):
    """Base of every error that tri_apsp raises on purpose: one `except` catches all of them."""


class ApspWarning(UserWarning):
    """Base of every warning of tri_apsp; itself of what a caller may not have meant, such as the
    name of an edge attribute that no edge has.
    """


class TuningWarning(ApspWarning):
    """Results are correct, but nothing was tuned for the problem, or a tuned file is not used.

    Issued once per process and reason. TRI_APSP_TUNE=off suppresses the
    warning that nothing was tuned.
    """


class RoundingWarning(ApspWarning):
    """An integer does not fit a float dtype exactly, so distances may be rounded.

    Integers below 2^24 fit float32, below 2^53 float64. Issued once per call.
    """


class InputError(ApspError, ValueError):
    """An argument, a weight matrix or a graph file breaks a rule."""


class InputTypeError(InputError, TypeError):
    """An argument has a type that is not supported."""


def error_for(value: object, *types: type) -> type[InputError]:
    """Return the error that an argument deserves: InputTypeError if it has none of `types`."""
    return InputError if isinstance(value, types) else InputTypeError


class TooLargeError(ApspError, MemoryError):
    """The problem needs more memory than the device has free; raised before the solve begins if
    the need is known then.
    """


class EngineError(ApspError, RuntimeError):
    """The engine that was asked for cannot run here, or not on this input."""


class RankError(ApspError, RuntimeError):
    """Another rank of a solve by several processes ended or failed, and with it the solve."""


class DistanceRangeError(ApspError, OverflowError):
    """The dtype cannot hold a weight or a distance; a wider dtype, or float64, can."""


_CYCLES = {
    "min_plus": ("shortest paths", "negative cycles", "weight", "raise", "g"),
    "max_plus": ("critical paths", "cycles of positive weight", "weight", "lower", "g"),
    "max_times": ("most reliable paths", "cycles of product above 1", "product", "lower", ".10g"),
}


class NegativeCycleError(ApspError, ValueError):
    """The graph has a cycle of negative weight, so some distances have no lower bound; or of
    `critical_paths` one of positive weight, of `most_reliable_paths` one whose product is above 1.

    Args:
        vertices: those on negative cycles.
        batch: the index of the graph.
        labels: the labels of its vertices.
        weight: the weight of the cycle.
        graphs: the indices of all such graphs; None: `batch` alone, or 0.
        mark: what marks such pairs.
        overwritten: whether the solve has replaced the weights.
        semiring: the name of that of the paths.

    Attributes:
        vertices: vertices on negative cycles, numbered from 0: one cycle in its order where it
            could be traced, else ascending.
        batch: index of the graph with these vertices in a batch, or None for a single graph.
        labels: what the message calls each vertex; None: 0, 1, ...
        weight: of the cycle, or None if it could not be traced.
        graphs: the indices of all graphs that may have a negative cycle, as far as they were
            solved; (0,) for a single graph.
        mark: the argument or option that marks such pairs in place of the error, for the message;
            "" if there is none.
        overwritten: whether the solve has replaced the weights.
        semiring: that of the paths: "min_plus", "max_plus" or "max_times".

    Examples:
        >>> import torch
        >>> from tri_apsp import NegativeCycleError, shortest_paths
        >>> try:
        ...     shortest_paths(torch.tensor([[0, -2], [1, 0]]))
        ... except NegativeCycleError as error:
        ...     print(sorted(error.vertices), error.weight)
        [0, 1] -1
    """

    def __init__(
        self,
        vertices: Sequence[int],
        batch: int | None = None,
        labels: Sequence[int | str] | None = None,
        weight: float | None = None,
        graphs: Sequence[int] | None = None,
        mark: str = 'negative_cycles="mark"',
        overwritten: bool = False,
        semiring: str = "min_plus",
    ) -> None:
        self.vertices = tuple(vertices)
        self.batch = batch
        self.labels = labels
        self.weight = weight
        self.graphs = (batch or 0,) if graphs is None else tuple(graphs)
        self.mark, self.overwritten, self.semiring = mark, overwritten, semiring
        paths, cycles, what, change, digits = _CYCLES[semiring]
        shown = ", ".join(
            str(vertex if labels is None else labels[vertex]) for vertex in self.vertices[:8]
        ) + (", ..." if len(self.vertices) > 8 else "")
        of_weight = (
            ""
            if weight is None
            else f" of {what} {weight if isinstance(weight, int) else format(weight, digits)}"
        )
        where = "" if batch is None else f" of graph {batch} in the batch"
        noun = "vertex" if len(self.vertices) == 1 else "vertices"
        lost = (
            " The weights were overwritten, so the cause may also be rounding or integer overflow; "
            "restore them before you look for the cycle."
        )
        super().__init__(
            f"{paths} need a graph without {cycles}, but there is one{of_weight} "
            f"through {noun} {shown}{where}; remove or {change} one of its "
            f"edges{mark and f', or mark such pairs: {mark}'}.{lost if overwritten else ''}"
        )

    def reworded(self, mark: str, labels: Sequence[int | str] | None = None) -> NegativeCycleError:
        """Return the same error with another `mark`, and with labels; None: those it has."""
        labels = self.labels if labels is None else labels
        return type(self)(**self._facts() | {"mark": mark, "labels": labels})

    def of_semiring(self, semiring: str, weight: float | None) -> NegativeCycleError:
        """Return the same error of paths over another semiring, in which a cycle has another weight
        and cannot be marked.
        """
        changes = {"semiring": semiring, "weight": weight, "mark": ""}
        return type(self)(**self._facts() | changes)

    def of_vertices(
        self, vertices: Sequence[int], labels: Sequence[int | str]
    ) -> NegativeCycleError:
        """Return the same error with other vertices."""
        return type(self)(**self._facts() | {"vertices": vertices, "labels": labels})

    def of_graphs(self, batch: int | None, graphs: Sequence[int]) -> NegativeCycleError:
        """Return the same error with other indices of graphs."""
        return type(self)(**self._facts() | {"batch": batch, "graphs": graphs})

    def __reduce__(self) -> tuple[type[NegativeCycleError], tuple[object, ...]]:
        return type(self), tuple(self._facts().values())

    def _facts(self) -> dict[str, Any]:
        """Return the arguments that make this error, in their order."""
        facts = "vertices", "batch", "labels", "weight", "graphs", "mark", "overwritten", "semiring"
        return {name: getattr(self, name) for name in facts}
