"""Runs the tests of a MethodContract with each of its methods."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = any(
        "method" in str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize")
    )
    if "method" in metafunc.fixturenames and hasattr(metafunc.cls, "methods") and not own:
        metafunc.parametrize("method", metafunc.cls.methods)
