"""Options of version 0.2: each works for one minor version, and warns what replaces it.

CONTRIBUTING.md has the policy.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from tri_apsp.graphs import write_distances
from tri_apsp.messages import warn_caller
from tri_apsp.result import Result
from tri_apsp.values import filled

F = TypeVar("F", bound=Callable[..., Any])

_INSTEAD = {
    "min_only": "call tri_apsp.nearest",
    "no_path": "call .filled(value) of the result",
    "overwrite": "give the weights as `out`",
}


def old_options(nearest: Callable[..., Result] | None = None) -> Callable[[F], F]:
    """Return what makes a function take the options of version 0.2 too.

    Args:
        nearest: the function that `min_only` has become; None: there is none.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*graph: Any, **options: Any) -> Any:
            old = [name for name in _INSTEAD if name in options]
            if not old:
                return function(*graph, **options)
            values = {name: options.pop(name) for name in old}
            for name, value in values.items():
                if value:
                    warn_caller(
                        f"`{name}` is deprecated, and goes with version 0.4; {_INSTEAD[name]}.",
                        DeprecationWarning,
                    )
            if values.get("overwrite"):
                options["out"] = graph[0]
            solve: Callable[..., Any] | None = nearest if values.get("min_only") else function
            if solve is None:
                raise TypeError(f"`min_only` is no option any more; {_INSTEAD['min_only']}.")
            no_path = values.get("no_path")
            if no_path is None:
                return solve(*graph, **options)
            out = options.pop("out", None)
            result = solve(*graph, out=out if isinstance(out, torch.Tensor) else None, **options)
            distances = filled(result.distances, no_path, "no_path")
            if isinstance(out, torch.Tensor):
                distances = out.copy_(distances)
            elif out is not None:
                write_distances(distances, out)
            return dataclasses.replace(result, distances=distances)

        return call  # type: ignore[return-value]

    return decorate
