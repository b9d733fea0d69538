"""Which calls of NetworkX this backend can run, by their arguments, and which it should run, because it is faster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Any

import networkx as nx

__all__ = ["can_run", "should_run"]

_METHODS = (None, "unweighted", "dijkstra", "bellman-ford", "floyd-warshall", "floyd-warshall-numpy")

# What an argument must be; NetworkX runs the call otherwise. Arguments that are not here may be anything.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "weight": (lambda value: value is None or isinstance(value, str), "the name of an attribute or None"),
    "distance": (lambda value: value is None or isinstance(value, str), "the name of an attribute or None"),
    "cutoff": (lambda value: value is None or (isinstance(value, Real) and value == value), "a number or None"),
    "method": (lambda value: value in _METHODS, f"one of {_METHODS}"),
    "usebounds": (lambda value: value is False, "False"),
    **{name: (lambda value: value is None, "None") for name in ("v", "sp", "e", "u", "nbunch", "sources")},
}


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or why this backend cannot run a function of NetworkX with these arguments."""
    try:
        arguments = _arguments(name, args, kwargs)
    except TypeError as error:
        return str(error)
    for argument, value in arguments.items():
        allowed, wanted = _ALLOWED.get(argument, (lambda _: True, ""))
        if not allowed(value):
            return f"`{argument}` must be {wanted}, but is {value!r}"
    graph = _original(arguments["G"])
    if name == "center" and arguments["weight"] is None and len(graph) and not graph.is_directed() and nx.is_tree(graph):
        return "NetworkX finds the center of a tree in linear time"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    return True


def _original(graph: Any) -> Any:
    return getattr(graph, "original", graph)


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, with defaults.

    Raises:
        TypeError: they do not fit the signature.
    """
    bound = _signature(name).bind(*args, **{key: value for key, value in kwargs.items() if key != "backend"})
    bound.apply_defaults()
    return bound.arguments


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(nx, name).orig_func)
