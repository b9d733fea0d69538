"""A pytest plugin for NetworkX's own tests: counts the calls that the backend served, by the file
of the test.

Prints them as one line of JSON at the end. The calls that it left to NetworkX, by
NotImplementedError, count apart.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tri_apsp.interop import networkx_backend

SERVED, LEFT = Counter[str](), Counter[str]()
_file = ["collection"]


def pytest_sessionstart() -> None:
    for name in networkx_backend.FUNCTIONS:
        setattr(networkx_backend, name, _counting(getattr(networkx_backend, name)))


def pytest_runtest_logstart(location: tuple[str, int | None, str]) -> None:
    _file[0] = location[0].rpartition("/")[2]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(json.dumps({"served": SERVED, "left": LEFT}))


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except NotImplementedError:
            LEFT[_file[0]] += 1
            raise
        except Exception:
            SERVED[_file[0]] += 1
            raise
        SERVED[_file[0]] += 1
        return result

    return run
