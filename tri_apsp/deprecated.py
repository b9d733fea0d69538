"""Options of version 0.2: each works for one minor version, and warns what replaces it.

CONTRIBUTING.md has the policy.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from tri_apsp.errors import InputError
from tri_apsp.graphs import write_distances
from tri_apsp.messages import warn_caller
from tri_apsp.paths.following import Paths
from tri_apsp.request import Request
from tri_apsp.result import Result
from tri_apsp.value_checks import filled

F = TypeVar("F", bound=Callable[..., Any])

_INSTEAD = {
    "min_only": "call tri_apsp.nearest",
    "no_path": "call .filled(value) of the result",
    "overwrite": "give the weights as `out`",
}


def old_options(run: Callable[..., Any], *names: str, own: str) -> Callable[[F], F]:
    """Return what makes a function take options of version 0.2 too.

    Args:
        run: what the function does with its request.
        names: the old options.
        own: the option that `run` takes.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*graph: Any, **options: Any) -> Any:
            old = {name: options.pop(name) for name in names if name in options}
            if not old:
                return function(*graph, **options)
            for name, value in old.items():
                if value is not None and value is not False:
                    warn_caller(
                        f"`{name}` is deprecated, and goes with version 0.4; {_INSTEAD[name]}.",
                        DeprecationWarning,
                    )
            inspect.signature(function).bind(*graph, **options)  # which names what is wrong
            if old.get("overwrite"):
                if options.get("out") is not None:
                    raise InputError(
                        "`overwrite` must not be given with `out`; give the weights as `out`."
                    )
                options["out"] = graph[0] if graph else options.get("graph")
            rest = {own: options.pop(own)} if own in options else {}
            request = Request.of(*graph, nearest=int(bool(old.get("min_only"))), **options)
            no_path = old.get("no_path")
            if no_path is None:
                return _of_row(run(request, **rest))
            if len(request.devices) > 1 or isinstance(request.matrix, tuple):
                raise InputError(
                    "`no_path` must not be given with several devices; call .filled(value) of each "
                    "of the result's `blocks`."
                )
            result = _of_row(run(dataclasses.replace(request, out=None), **rest))
            return _filled(result, request, no_path)

        return call  # type: ignore[return-value]

    return decorate


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Filled(Result):
    """A result whose distances hold a number where there is no path; `solved` has its paths."""

    solved: Result

    def paths(
        self,
        sources: torch.Tensor | Sequence[int],
        targets: torch.Tensor | Sequence[int],
        graph: torch.Tensor | Sequence[int] | int = 0,
    ) -> Paths:
        return self.solved.paths(sources, targets, graph)


def _of_row(found: Any) -> Any:
    """Return the result of `min_only` with nearest (n,); another result, or a plan, as it is."""
    if isinstance(found, Result) and found.nearest is not None:
        return dataclasses.replace(found, nearest=found.nearest[0])
    return found


def _filled(result: Result, request: Request, no_path: float) -> Result:
    """Return a result with `no_path` where there is no path, in the place that was asked for."""
    distances = filled(result.distances, no_path, "no_path")
    out = result.distances if request.options.overwrite else request.out
    if isinstance(out, torch.Tensor):
        distances = out.copy_(distances)
    elif out is not None:
        write_distances(distances, out)
    return _Filled(**{**vars(result), "distances": distances}, solved=result)
