"""Reading tuned files: the files that a lookup reads, what is kept of them until reload(), and why
a file cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import difference, identity, refusal
from tri_apsp.tuned.delayed_warnings import PENDING, collect
from tri_apsp.tuned.paths import directories, file_name, named_directory

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = [
    "MEMORY",
    "generation",
    "load",
    "on_reload",
    "read_usable",
    "reload",
    "remember",
    "remembering",
    "search_folders",
    "search_slug",
    "sources",
    "until_reload",
    "unusable_because",
]

P = ParamSpec("P")
R = TypeVar("R")

MEMORY: list[TunedFile] = []
"""The files given to `remember`, newest first."""

_forget: list[Callable[[], object]] = [PENDING.clear]
_generation = object()

_REMEDY = "remove it, or tune again with --force"


def generation() -> object:
    """Return an object that stands for the files as they are until the next reload(), which
    replaces it.

    A result is stored under the generation that was current before its files were read. So a result
    that another thread's reload() has made out of date is not found again, even if it is stored
    after that reload().
    """
    return _generation


def on_reload(forget: Callable[[], object]) -> None:
    """Call `forget` on every reload()."""
    _forget.append(forget)


def until_reload(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the results of a function, whose arguments must be hashable, until reload()."""

    @cache
    def kept(_: object, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    @wraps(function)
    def current(*args: P.args, **kwargs: P.kwargs) -> R:
        return kept(_generation, *args, **kwargs)  # type: ignore[arg-type]  # that they are hashable

    on_reload(kept.cache_clear)
    return current


def reload() -> None:
    """Forget all files and results, so that the next lookup reads the files again: another process
    may have written one.
    """
    global _generation
    for forget in _forget:
        forget()
    _generation = object()


def remember(file: TunedFile) -> None:
    """Use `file` for the rest of this process, without writing it; only files in
    TRI_APSP_CONFIG_DIR come before it.
    """
    MEMORY.insert(0, file)
    reload()


@contextmanager
def remembering() -> Iterator[None]:
    """Forget, at the end of a `with`, the files that were given to `remember` inside."""
    before = list(MEMORY)
    try:
        yield
    finally:
        MEMORY[:] = before
        reload()


def search_folders(device: Device) -> list[Path]:
    """Return the folders searched for files of `device`: of the GPU that TRI_APSP_TUNED_FOR names,
    else of its own.
    """
    return [directory / search_slug(device) for directory in directories()]


def search_slug(device: Device) -> str:
    """Return the GPU (or CPU) whose files are searched: the one that TRI_APSP_TUNED_FOR names, else
    `device`.
    """
    return os.environ.get("TRI_APSP_TUNED_FOR") or device.slug


def sources(
    engine: str, kernel: str, dtype: str, device: Device
) -> Iterator[tuple[str, TunedFile]]:
    """Yield the files of a kernel that may be used on `device`, the most important first, each with
    its path or source.
    """
    name = file_name(engine, kernel, dtype)
    paths = [folder / name for folder in search_folders(device)]
    named = named_directory()
    if named is not None:
        if not os.path.isdir(named):
            collect(
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
        file, message = _read_once(path, device)
        if message is not None:
            collect(str(path), f"a tuned file is not used: {message}")
        if file is not None:
            yield str(path), file


@until_reload
def _read_once(path: Path, device: Device) -> tuple[TunedFile | None, str | None]:
    return read_usable(path, partial(unusable_because, path, device))


def unusable_because(path: Path, device: Device, file: TunedFile) -> str | None:
    """Return why the file at `path`, in the folder of a GPU that is searched for `device`, must not
    be used; None if it may.
    """
    name = file_name(file.engine, file.kernel, file.dtype)
    return (
        refusal(file, device, path.parent.name)
        if path.name == name
        else f"must be called {name}, which it is for"
    )


def read_usable(
    path: Path, unusable_because: Callable[[TunedFile], str | None]
) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path`, or in one sentence why it cannot be used; (None, None) if there is
    no file.

    Args:
        path: the path of the file.
        unusable_because: returns why a file that was read must not be used, in the words of
            `refusal`; None if it may.
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
        path: the path of the file, which may be of any GPU and of other kernel sources; see
            `refusal`.

    Raises:
        InputError: it cannot be read, or breaks the schema.
    """
    from tri_apsp.tuned.schema import TunedFile, read_model

    return read_model(Path(path), f"tuned file {path}", TunedFile, _REMEDY)
