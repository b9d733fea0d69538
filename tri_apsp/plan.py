"""What will run, and why: a plan is made once per call, from what the caller gave, and then carried
out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tri_apsp.configs import CompleteConfig
from tri_apsp.errors import InputError

if TYPE_CHECKING:
    from tri_apsp.result import Result

NegativeCycles = Literal["raise", "mark"]
"""What to do about negative cycles."""

BY_NAME = "asked for by name"
"""The reason of a plan whose method the caller named."""

Progress = Callable[[float], None]
"""Receives the fraction of a solve that is done; each call synchronizes with the device."""


class Checkpoint(NamedTuple):
    """Where the state of a solve is kept, and how often.

    Attributes:
        folder: made if it is not there, and emptied once the solve is complete.
        every: seconds between two checkpoints.

    Examples:
        >>> import tri_apsp
        >>> tri_apsp.Checkpoint("state", every=60)
        Checkpoint(folder='state', every=60)
    """

    folder: str | os.PathLike[str]
    every: float = 600.0


class Options(NamedTuple):
    """What a caller wants of the distances; tri_apsp.shortest_paths documents each.

    Attributes:
        overwrite: solve in the memory of the weights, which are `out`.
    """

    overwrite: bool = False
    check: bool = True
    predecessors: bool = False
    negative_cycles: NegativeCycles = "raise"
    weight_error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a call runs, and why. `select` returns a plan, and `Result.plan` is the one that ran.

    Attributes:
        way: how the graph is solved: "dense", "one launch", "packed", "sparse", "block rows",
            "shared" among devices, or "update" of an earlier result.
        method: the name of the method, never "auto".
        engine: "cpu", "nvidia" or "portable".
        config: the complete configuration of the engine, with its source; None for a method of
            sparse graphs, which has none.
        reason: why the method was chosen.
        memory: bytes that the call allocates for distances and workspace.
        exponents: whether large products are tried by exponents, on the tensor cores of an NVIDIA
            GPU. The values of the weights decide that: it is False unless they were read.

    Examples:
        >>> import torch
        >>> import tri_apsp
        >>> plan = tri_apsp.select(torch.ones(4, 4), method="squaring")
        >>> plan.way, plan.engine, plan.reason, plan.memory
        ('dense', 'cpu', 'asked for by name', 128)
    """

    way: str
    method: str
    engine: str
    config: CompleteConfig | None
    reason: str
    memory: int
    exponents: bool = False
    _runner: Callable[..., Any] | None = field(default=None, init=False, repr=False, compare=False)

    def run(self, graph: Any, *, sizes: Any = None, out: Any = None) -> Result:
        """Solve other weights by the plan of `select`, which saves the host the time of checking
        options and planning.

        The sign of the weights, and whether products by exponents pay, are decided anew from their
        values. The rest is kept: the configuration also if tuned files change, and the method also
        if few edges would lead to one of sparse graphs, or many to a dense one.

        Args:
            graph: weights of the shape, strides, dtype and device of those of `select`, after its
                `dtype` and `device`. If `select` was given the weights as `out`, these are
                replaced.
            sizes: of the graphs of a padded batch, (batch,); None: those of `select`.
            out: a tensor for the distances, of their shape and dtype; None: a new one. An `out` of
                `select` that is not the weights is not written to.

        Returns:
            As `shortest_paths`.

        Raises:
            InputError: this plan is not one that `select` returned for dense weights in one tensor
                and directed=True, such as a changed copy; or the weights differ from those of it.
            ApspError: the errors of `shortest_paths`.

        Cost:
            That of the solve; on a CPU 20 us more.

        Examples:
            >>> import torch
            >>> import tri_apsp
            >>> plan = tri_apsp.select(torch.ones(3, 3))
            >>> plan.run(torch.tensor([[0.0, 3, 9], [9, 0, 1], [2, 9, 0]])).distances[0]
            tensor([0., 3., 4.])
        """
        if self._runner is None:
            raise InputError(
                "`run` needs a plan that `select` returned for dense weights in one tensor and "
                "directed=True, but this is another; call shortest_paths."
            )
        result: Result = self._runner(graph, sizes, out)
        return result
