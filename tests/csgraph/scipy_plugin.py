"""A plugin of pytest that puts the functions of tri_apsp.csgraph in place of SciPy's, before tests
are collected.

    python -m pytest -p scipy_plugin --pyargs scipy.sparse.csgraph.tests.test_shortest_path

The error stays SciPy's: its tests must catch ours by it.
"""

import pytest
from scipy.sparse import csgraph

import tri_apsp.csgraph

NAMES = [name for name in tri_apsp.csgraph.__all__ if name != "NegativeCycleError"]
for _name in NAMES:
    setattr(csgraph, _name, getattr(tri_apsp.csgraph, _name))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in NAMES:
            assert getattr(item.module, name, None) in (None, getattr(tri_apsp.csgraph, name)), (
                f"{name} is still SciPy's"
            )
