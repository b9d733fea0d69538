"""Processes that all tests share, in a group for each number of ranks."""

from __future__ import annotations

from multiprocessing import forkserver

import pytest
from distributed.ranks import Ranks


@pytest.fixture(autouse=True, scope="session")
def awaited_server():
    """Wait until the server of processes has ended: the time of its processes counts only then."""
    yield
    forkserver._forkserver._stop()


@pytest.fixture(scope="session")
def processes(tmp_path_factory):
    group = Ranks(4, tmp_path_factory.mktemp("ranks"))
    yield group
    group.close()


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(count, marks=[] if count == 3 else pytest.mark.slow) for count in range(1, 5)
    ],
)
def ranks(request, processes):
    """The number of ranks, and their processes."""
    processes.form(request.param)
    return request.param, processes
