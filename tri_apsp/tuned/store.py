"""Tuned files: their folders and names, reading and writing."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import torch

from tri_apsp.device import Device, triton_version
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import IDENTITY, difference, identity
from tri_apsp.tuned.delayed_warnings import PENDING

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

LOCK_SECONDS = 30.0
"""Seconds for which `save` waits for another process that writes to the same folder."""

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout, and an editable install of it, has the files beside the package; a wheel carries them
# as tri_apsp/_tuned.
_CHECKOUT, _WHEEL = _PACKAGE.parent / "tuning", _PACKAGE / "_tuned"

# The directories that `searching` puts before all others.
_first: list[Path] = []
_generation = 0


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return the name of the file of a kernel in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def user_directory() -> Path:
    """Return the directory of this user's own tuned files, which need not exist."""
    return platformdirs.user_config_path("tri_apsp", appauthor=False)


def named_directory() -> Path | None:
    """Return the directory that TRI_APSP_CONFIG_DIR names; None if the variable is not set."""
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    return Path(named) if named else None


def save_directory() -> Path:
    """Return the directory that the tuner writes to: TRI_APSP_CONFIG_DIR, else the user's."""
    return named_directory() or user_directory()


def directories() -> list[Path]:
    """Return the directories searched for tuned files, the most important first.

    TRI_APSP_CONFIG_DIR is first, then the user's directory, and the one with the files that are
    shipped is last. They need not exist.
    """
    shipped = [path for path in (_WHEEL, _CHECKOUT) if path.is_dir()][:1]
    return list(dict.fromkeys([*_first, save_directory(), user_directory(), *shipped]))


@contextmanager
def searching(directory: Path) -> Iterator[None]:
    """Search `directory` before all others inside a `with`."""
    _first.insert(0, directory)
    reload()
    try:
        yield
    finally:
        _first.remove(directory)
        reload()


def files() -> list[Path]:
    """Return every tuned file found, of any GPU, in the order of `directories`."""
    return [path for directory in directories() for path in matching(directory, "*/*.json")]


def matching(directory: Path, pattern: str) -> list[Path]:
    """Return the paths in a directory that match a pattern, sorted; none if it is no directory, or
    cannot be searched.
    """
    is_directory = os.path.isdir(directory)  # noqa: PTH112 (Path.is_dir raises PermissionError)
    return sorted(directory.glob(pattern)) if is_directory else []


def reload() -> None:
    """Read all files again at the next lookup: another process may have written one."""
    global _generation
    _generation += 1
    _read_once.cache_clear()
    PENDING.clear()


def generation() -> int:
    """Return a number that every reload() changes.

    A result is kept under the number from before its files were read, so a result that another
    thread's reload() makes out of date is not found again.
    """
    return _generation


def load(path: Path | str) -> TunedFile:
    """Read a tuned file, which may be of any GPU and of other kernel sources; see `refusal`.

    Raises:
        InputError: it cannot be read, or breaks the schema.
    """
    from tri_apsp.tuned.schema import read_file

    return read_file(Path(path))


def read_once(path: Path) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path`, or in a sentence why it cannot be read; (None, None) if there is
    none. The result is kept until reload().
    """
    return _read_once(path, _generation)


@cache
def _read_once(path: Path, _: int) -> tuple[TunedFile | None, str | None]:
    return _read(path)


def _read(path: Path) -> tuple[TunedFile | None, str | None]:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError:
        pass  # load() reports it
    try:
        return load(path), None
    except InputError as error:
        return None, str(error)


def unusable(path: Path, reason: str) -> str:
    """Return the sentence about a file that must not be used; `reason` is one of `refusal`."""
    return f"tuned file {path} {reason}; remove it, or tune again with --force."


def path_of(
    engine: str, kernel: str, dtype: str, slug: str, directory: Path | str | None = None
) -> Path:
    """Return where `save` writes the file of a kernel on the GPU `slug`; directory: None for
    save_directory().
    """
    return Path(directory or save_directory()) / slug / file_name(engine, kernel, dtype)


def new_file(
    engine: str, kernel: str, dtype: str, device: Device, entries: Iterable[Entry], **run: Any
) -> TunedFile:
    """Return a tuned file of new entries, with the present versions, date and kernel hash.

    Args:
        engine: the name of the engine.
        kernel: the name of the kernel.
        dtype: the name of the dtype, such as "float32".
        device: the device that was measured.
        entries: at least one.
        run: the other fields of tri_apsp.tuned.schema.Run: space_hash, protocol, seed and
            complete; if known also budget_seconds and driver.

    Raises:
        InputError: a kernel or dtype that does not exist, or fields that break the schema.
    """
    from tri_apsp.tuned.schema import SCHEMA, TunedFile, schema_errors

    header = {
        "schema_version": SCHEMA,
        **identity(engine, kernel, dtype, device),
        "triton": None if engine == "cpu" else triton_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "created": datetime.datetime.now(datetime.timezone.utc).date(),
        **run,
    }
    with schema_errors("a tuned file", "correct the entries or the fields of the run"):
        return TunedFile.model_validate({**header, "entries": tuple(entries)})


def existing(
    engine: str, kernel: str, dtype: str, device: Device, directory: Path | str | None = None
) -> tuple[TunedFile | None, str | None]:
    """Return the file at the path where `save` writes, or the sentence with which `save` refuses to
    overwrite it; (None, None) without a file.
    """
    path = path_of(engine, kernel, dtype, device.slug, directory)
    return _replaceable(path, identity(engine, kernel, dtype, device))


def _replaceable(path: Path, wanted: dict[str, Any]) -> tuple[TunedFile | None, str | None]:
    file, reason = _read(path)
    if file is not None and (found := difference(file, wanted)) is not None:
        return None, unusable(path, found)
    return file, reason


def save(file: TunedFile, directory: Path | str | None = None, *, force: bool = False) -> Path:
    """Write `file` to `<directory>/<slug>/<engine>-<kernel>-<dtype>.json`, where the next solve
    finds it.

    Entries of a file that is there are kept unless `file` has one of the same sign, n and batch.
    Processes that save at the same time wait for each other, and a reader sees the old file or the
    new one, never a part.

    Args:
        file: the file, made by `new_file`.
        directory: None for save_directory().
        force: replace the whole file if it cannot be used: it is damaged, of another GPU or of
            other kernel sources.

    Returns:
        The path written to.

    Raises:
        InputError: such a file is there and `force` is not given; or the directory cannot be
            written to, is full, or stays locked for half a minute. It is then as it was.
    """
    path = path_of(file.engine, file.kernel, file.dtype, file.slug, directory)
    with _locked(path.parent):
        present, reason = _replaceable(path, {name: getattr(file, name) for name in IDENTITY})
        if reason is not None and not force:
            raise InputError(reason)
        _write(path, file if present is None else _merged(present, file))
    reload()
    return path


def require_writable(slug: str, directory: Path | str | None = None) -> None:
    """Raise InputError unless tuned files of the GPU `slug` can be written; creates no folder."""
    folder = Path(directory or save_directory()) / slug
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not (present.is_dir() and os.access(present, os.W_OK)):
        raise InputError(
            f"tuned files must be written to {folder}, but {present} is no writable folder; "
            "choose another --save-dir."
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make `folder`, and hold its lock inside the `with`."""
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lock", timeout=LOCK_SECONDS):
            yield
    except filelock.Timeout:
        raise InputError(
            f"tuned files in {folder} must not be locked, but another process has held "
            f"{folder / '.lock'} for {LOCK_SECONDS:g} s; wait for it, or choose another directory."
        ) from None
    except OSError as error:
        raise InputError(
            f"tuned files must be written to {folder}, but that failed ({error.strerror}); "
            "free disk space and set permissions, or choose another directory."
        ) from None


def _merged(present: TunedFile, file: TunedFile) -> TunedFile:
    """Return `file` with the entries of `present` that it does not replace; these name the run that
    measured them.
    """
    entries = {
        entry.key: entry
        if entry.run is not None or present.run == file.run
        else entry.model_copy(update={"run": present.run})
        for entry in present.entries
    }
    entries |= {entry.key: entry for entry in file.entries}
    return file.model_copy(update={"entries": tuple(entry for _, entry in sorted(entries.items()))})


def _write(path: Path, file: TunedFile) -> None:
    """Write under another name, then rename, so that a reader sees the old file or the new one."""
    content = file.model_dump(mode="json")
    for entry in content["entries"]:
        if entry["run"] is None:
            del entry["run"]
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
