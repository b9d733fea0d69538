"""Which calls of NetworkX this backend can run, by their arguments, and which it should run,
because it is faster.
"""

import inspect
from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Any

import networkx as nx

_METHODS = (
    None,
    "unweighted",
    "dijkstra",
    "bellman-ford",
    "floyd-warshall",
    "floyd-warshall-numpy",
)

# What an argument must be; NetworkX runs the call otherwise. Arguments that are not here may be
# anything.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    **{
        name: (
            lambda value: value is None or isinstance(value, str),
            "the name of an attribute or None",
        )
        for name in ("weight", "distance")
    },
    "cutoff": (
        lambda value: value is None or (isinstance(value, Real) and value == value),
        "a number or None",
    ),
    "method": (lambda value: value in _METHODS, f"one of {_METHODS}"),
    "usebounds": (lambda value: value is False, "False"),
    **{
        name: (lambda value: value is None, "None")
        for name in ("v", "sp", "e", "u", "nbunch", "sources")
    },
}


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or why this backend cannot run a function of NetworkX with these arguments."""
    arguments = _arguments(name, args, kwargs)
    for argument in arguments.keys() & _ALLOWED.keys():
        value, (allowed, wanted) = arguments[argument], _ALLOWED[argument]
        if not allowed(value):
            return f"`{argument}` must be {wanted}, but is {value!r}"
    graph = _original(arguments["G"])
    trees = name == "center" and arguments["weight"] is None and not graph.is_directed()
    if trees and graph.number_of_edges() == len(graph) - 1:
        return "NetworkX finds the center of a tree in linear time"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or that NetworkX is expected to be quicker; NetworkX asks this where the backend
    was not named.

    Both times are estimated from the numbers of nodes and edges. Not counted: the first call of a
    process takes about two seconds longer, to import torch and load the engine.
    """
    arguments = _arguments(name, args, kwargs)
    graph = _original(arguments["G"])
    n, edges = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    here, there = _seconds_here(name, n, edges), _seconds_of_networkx(name, arguments, n, edges)
    return (
        here < there
        or f"NetworkX is expected to be quicker with {n} nodes ({there:.1g} s, here {here:.1g} s)"
    )


# The constants of both estimates are fitted to calls on two cores of an AMD EPYC 9004, with the cpu
# engine and NetworkX 3.6.1, for graphs of 30 to 1000 nodes.


def _seconds_here(name: str, n: int, edges: int) -> float:
    """Return the time of a call: of conversion, solve, and output of n^2 paths, dictionary entries,
    or numbers.

    Args:
        edges: those of an undirected graph counted twice.
    """
    if (
        name == "johnson"
        or name in ("all_pairs_dijkstra", "floyd_warshall_predecessor_and_distance")
        or name.endswith("_path")
    ):
        output = 0.7e-6
    elif name == "floyd_warshall" or name.endswith("_path_length"):
        output = 0.25e-6
    else:
        output = 0.03e-6
    return 1.5e-3 + 0.3e-6 * edges + 0.03e-9 * n**3 + output * n**2


def _seconds_of_networkx(name: str, arguments: dict[str, Any], n: int, edges: int) -> float:
    """Return the time that NetworkX takes, by its algorithm."""
    method, weight = arguments.get("method"), arguments.get("weight", arguments.get("distance"))
    weighted = name == "johnson" or "dijkstra" in name or "bellman" in name or weight is not None
    if name == "floyd_warshall_numpy" or method == "floyd-warshall-numpy":
        return 1e-9 * n**3
    if "floyd_warshall" in name or method == "floyd-warshall":
        return 100e-9 * n**3
    if not weighted or method == "unweighted":  # breadth-first, which ends early in a dense graph
        return 0.4e-6 * n**2
    return 0.3e-6 * n * (n + edges)  # Dijkstra's algorithm; Bellman-Ford takes longer


def _original(graph: Any) -> Any:
    return getattr(graph, "original", graph)


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, with defaults."""
    bound = _signature(name).bind(
        *args, **{key: value for key, value in kwargs.items() if key != "backend"}
    )
    bound.apply_defaults()
    return bound.arguments


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(nx, name).orig_func)
