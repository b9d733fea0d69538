"""The methods by name, as the API, the command line, the tests and the tuner know them: METHODS,
and SYSTEMS beside them.
"""

from tri_apsp.configs import AnyMethodName
from tri_apsp.methods.base import Method, Observer
from tri_apsp.methods.floyd_warshall import FloydWarshall
from tri_apsp.methods.iterative import Iterative
from tri_apsp.methods.kleene import Kleene
from tri_apsp.methods.papers import (
    SYSTEMS,
    method_of_paper,
    require_runnable,
    resolve_parameter,
    runnable_systems,
    supports_dtype,
)
from tri_apsp.methods.squaring import Squaring

__all__ = [
    "METHODS",
    "SYSTEMS",
    "Method",
    "Observer",
    "method_of",
    "require_runnable",
    "resolve_parameter",
    "runnable_systems",
    "supports_dtype",
]

METHODS: dict[str, Method] = {
    "floyd_warshall": FloydWarshall(),
    "kleene": Kleene(),
    "squaring": Squaring(),
    "iterative": Iterative(),
}


def method_of(name: AnyMethodName) -> Method:
    """Return the method of METHODS or SYSTEMS that is called `name`."""
    return method_of_paper(name) if name in SYSTEMS else METHODS[name]
