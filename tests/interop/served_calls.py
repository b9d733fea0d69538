"""A pytest plugin for NetworkX's own tests: counts the calls of the backend, and those that it left
to NetworkX by NotImplementedError.

Prints them as one line of JSON at the end.
"""

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tri_apsp.interop import networkx_backend

COUNTS = Counter[str]()


def pytest_sessionstart() -> None:
    for name in networkx_backend.FUNCTIONS:
        setattr(networkx_backend, name, _counting(getattr(networkx_backend, name)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(json.dumps({"called": COUNTS["called"], "left": COUNTS["left"]}))


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        COUNTS["called"] += 1
        try:
            return function(*args, **kwargs)
        except NotImplementedError:
            COUNTS["left"] += 1
            raise

    return run
