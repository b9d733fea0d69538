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
        for name in ("v", "sp", "e", "u", "nbunch", "sources", "k")
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


# From these numbers of nodes on, this backend is faster than NetworkX 3.6.1, on two cores of an AMD
# EPYC 9004 with the cpu engine:
# - than algorithms that NetworkX runs edge by edge in Python, by a part of their names, and than
#   others of weighted graphs;
# - than a breadth-first search, and Floyd-Warshall by NumPy, if at most this share of n^2 edges is
#   there: edges are converted one by one here, while a breadth-first search of many ends early.
_LEAST_NODES = {"floyd": 30, "dijkstra": 100, "bellman": 100, "johnson": 100}
_LEAST_NODES_WEIGHTED, _LEAST_NODES_IF_QUICK, _MOST_DENSITY = 100, 150, 1 / 8


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or that NetworkX is expected to be quicker; NetworkX asks this where the backend
    was not named.

    Not counted: the first call of a process takes about two seconds longer, to import torch and
    load the engine.
    """
    arguments = _arguments(name, args, kwargs)
    graph = _original(arguments["G"])
    n, edges = len(graph), graph.number_of_edges() * (1 if graph.is_directed() else 2)
    algorithm = arguments.get("method") or name
    weight = arguments.get("weight", arguments.get("distance"))
    weighted = algorithm == name and weight is not None
    otherwise = _LEAST_NODES_WEIGHTED if weighted else None
    least = next((_LEAST_NODES[part] for part in _LEAST_NODES if part in algorithm), otherwise)
    if least is not None and not algorithm.endswith("numpy"):
        runs = n >= least
    else:
        few_edges = edges <= _MOST_DENSITY * n**2
        # To write the paths of a breadth-first search takes as long here as there.
        runs = n >= _LEAST_NODES_IF_QUICK and few_edges and name != "all_pairs_shortest_path"
    return runs or f"NetworkX is expected to be quicker with {n} nodes and {edges} edges"


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
