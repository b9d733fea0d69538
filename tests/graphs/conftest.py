"""Fixtures of the tests of graphs: writing a file, and expecting an error message."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tri_apsp.errors import ApspError, InputError


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into a new folder, compressed if its name ends in .gz."""

    def write(name: str, content: str | bytes) -> Path:
        data = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


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
