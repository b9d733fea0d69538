"""Groups of processes, one for each number of ranks, which all tests share."""

from __future__ import annotations

import pytest
from distributed.ranks import Ranks


@pytest.fixture(scope="session", params=[1, 2, 3, 4])
def ranks(request, tmp_path_factory):
    """The number of ranks, and their processes."""
    group = Ranks(request.param, tmp_path_factory.mktemp("ranks"))
    yield request.param, group
    group.close()
