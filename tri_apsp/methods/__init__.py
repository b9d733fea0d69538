"""The methods by name: one table that the API, the command line, the tests and the tuner share."""

from tri_apsp.configs import MethodName
from tri_apsp.methods.base import Method, Observer
from tri_apsp.methods.floyd_warshall import FloydWarshall
from tri_apsp.methods.iterative import Iterative
from tri_apsp.methods.kleene import Kleene
from tri_apsp.methods.squaring import Squaring

__all__ = ["METHODS", "Method", "Observer"]

METHODS: dict[MethodName, Method] = {method.name: method for method in (FloydWarshall(), Kleene(), Squaring(), Iterative())}
