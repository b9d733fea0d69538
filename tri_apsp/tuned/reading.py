"""Reading tuned files: the files that a lookup reads, the answers kept between lookups, and why a file cannot be used."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tri_apsp.device import Device
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.tuned.compatibility import difference, identity, refusal
from tri_apsp.tuned.paths import directories, file_name, named_directory

if TYPE_CHECKING:
    from tri_apsp.configs import CompleteConfig
    from tri_apsp.tuned.schema import TunedFile

__all__ = [
    "ANSWERS", "MEMORY", "load", "read_usable", "reload", "remember", "schema_errors", "search_folders", "sources", "warn_once",
]  # fmt: skip

ANSWERS: dict[Any, CompleteConfig] = {}
"""The answers of `find` by its arguments and the environment."""

MEMORY: list[TunedFile] = []
"""The files given to `remember`, newest first."""

# The files by their path and the device that they are read for; None: missing, or refused.
_files: dict[Any, TunedFile | None] = {}
_issued: set[str] = set()

_REMEDY = "remove it, or tune again with --force"


def reload() -> None:
    """Forget all files and answers, so that the next lookup reads the files again: another process may have written one."""
    ANSWERS.clear()
    _files.clear()


def remember(file: TunedFile) -> None:
    """Use `file` for the rest of this process, without writing it; only files in TRI_APSP_CONFIG_DIR come before it."""
    MEMORY.insert(0, file)
    reload()


def warn_once(topic: str, message: str) -> None:
    """Issue a TuningWarning, unless one on this topic was issued in this process before."""
    if topic not in _issued:
        _issued.add(topic)
        warnings.warn(message, TuningWarning, stacklevel=2)


def search_folders(device: Device) -> list[Path]:
    """Return the folders searched for files of `device`: of the GPU that TRI_APSP_TUNED_FOR names, else of its own."""
    slug = os.environ.get("TRI_APSP_TUNED_FOR") or device.slug
    return [directory / slug for directory in directories()]


def sources(engine: str, kernel: str, dtype: str, device: Device) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel that may be used on `device`, the most important first, each with its path or source."""
    name = file_name(engine, kernel, dtype)
    paths = [folder / name for folder in search_folders(device)]
    named = named_directory()
    if named is not None:
        if not os.path.isdir(named):  # noqa: PTH112 (Path.is_dir raises PermissionError)
            warn_once(
                f"TRI_APSP_CONFIG_DIR {named}",
                f"TRI_APSP_CONFIG_DIR must name a folder of tuned files, but {named} is none; correct the variable, or "
                "unset it.",
            )
        yield from _read([paths.pop(0)], device)
    wanted = identity(engine, kernel, dtype, device) if MEMORY else None
    for file in MEMORY:
        if wanted is not None and difference(file, wanted) is None:
            yield "this process", file
    yield from _read(paths, device)


def _read(paths: list[Path], device: Device) -> Iterator[tuple[str, TunedFile]]:
    for path in paths:
        key = (path, device)
        if key not in _files:
            _files[key], message = read_usable(path, partial(_unusable_because, path, device))
            if message is not None:
                warn_once(str(path), f"a tuned file is not used: {message}")
        file = _files[key]
        if file is not None:
            yield str(path), file


def _unusable_because(path: Path, device: Device, file: TunedFile) -> str | None:
    name = file_name(file.engine, file.kernel, file.dtype)
    return refusal(file, device, path.parent.name) if path.name == name else f"must be called {name}, which it is for"


def read_usable(path: Path, unusable_because: Callable[[TunedFile], str | None]) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path`, or in one sentence why it cannot be used; (None, None) if there is no file.

    Args:
        path: the path of the file.
        unusable_because: returns why a file that was read must not be used, in the words of `refusal`; None if it may.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError:
        pass  # load() reports it
    try:
        file = load(path)
    except InputError as error:
        return None, str(error)
    reason = unusable_because(file)
    return (file, None) if reason is None else (None, f"tuned file {path} {reason}; {_REMEDY}.")


def load(path: Path | str) -> TunedFile:
    """Read a tuned file.

    Args:
        path: the path of the file, which may be of any GPU and of other kernel sources; see `refusal`.

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
        raise InputError(f"{what} must hold JSON, but is damaged ({error}); {_REMEDY}.") from None
    from tri_apsp.tuned.schema import SCHEMA, TunedFile

    version = content.get("schema_version") if isinstance(content, dict) else None
    if version is not None and version != SCHEMA:
        raise InputError(f"{what} must have schema version {SCHEMA}, but has {version!r}; {_REMEDY}.")
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
        raise InputError(f"{what} must follow tuning/README.md, but breaks its schema ({fault}{more}); {_REMEDY}.") from None
