"""The fixture of the tests of graphs: expecting an error message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tri_apsp.errors import ApspError, InputError


@pytest.fixture
def refuses() -> Callable[..., AbstractContextManager[pytest.ExceptionInfo[ApspError]]]:
    """Expect an error whose message is one sentence that contains every part given."""

    @contextmanager
    def expect(
        *parts: str, error: type[ApspError] = InputError
    ) -> Iterator[pytest.ExceptionInfo[ApspError]]:
        with pytest.raises(error) as caught:
            yield caught
        message = str(caught.value)
        assert message.endswith(".")
        assert "\n" not in message
        for part in parts:
            assert part in message

    return expect
