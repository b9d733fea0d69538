"""Reading a tuned file, with one sentence for each way in which it may be unusable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.errors import InputError

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["REMEDY", "load", "schema_errors"]

REMEDY = "remove it, or tune again with --force"
"""The remedy for a tuned file that cannot be used."""


def load(path: Path | str) -> TunedFile:
    """Read a tuned file.

    Args:
        path: of the file. It may be of any GPU and of other kernel sources; `refusal` says whether it would be used.

    Raises:
        InputError: it cannot be read, or breaks the schema.
    """
    what = f"tuned file {path}"
    try:
        text = Path(path).read_text(encoding="utf-8")
        content = json.loads(text)
    except OSError as error:
        raise InputError(f"{what} must be readable, but is not ({error.strerror}); check its name and rights.") from None
    except ValueError as error:  # of the encoding, or of JSON
        raise InputError(f"{what} must hold JSON, but is damaged ({error}); {REMEDY}.") from None
    from tri_apsp.tuned.schema import SCHEMA, TunedFile

    version = content.get("schema_version") if isinstance(content, dict) else None
    if version is not None and version != SCHEMA:
        raise InputError(f"{what} must have schema version {SCHEMA}, but has {version!r}; {REMEDY}.")
    with schema_errors(what):
        return TunedFile.model_validate_json(text)


@contextmanager
def schema_errors(what: str) -> Iterator[None]:
    """Turn the ValidationError of pydantic that is raised inside the `with` into an InputError of one sentence."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        fault = (f"{location}: " if location else "") + first["msg"].removeprefix("Value error, ").rstrip(".")
        more = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        raise InputError(f"{what} must follow tuning/README.md, but breaks its schema ({fault}{more}); {REMEDY}.") from None
