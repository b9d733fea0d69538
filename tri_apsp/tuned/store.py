"""Making and writing tuned files."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tri_apsp.device import Device, triton_version
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import difference, identity, identity_of
from tri_apsp.tuned.hashes import kernel_hash
from tri_apsp.tuned.objective import DEFAULT_OBJECTIVE
from tri_apsp.tuned.paths import file_name, is_frozen, save_directory
from tri_apsp.tuned.reading import read_usable, reload

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = [
    "content_of",
    "existing",
    "locked",
    "merged",
    "new_file",
    "path_of",
    "require_current",
    "require_replaceable",
    "require_writable",
    "save",
    "write",
]

LOCK_SECONDS = 30.0
"""Seconds for which `save` waits for another process that writes to the same folder."""


def new_file(
    engine: str, kernel: str, dtype: str, device: Device, entries: Iterable[Entry], **run: Any
) -> TunedFile:
    """Return a tuned file of new entries, with the present versions, date and kernel hash in its
    header.

    Args:
        engine: the name of the engine.
        kernel: the name of the kernel.
        dtype: the name of the dtype, such as "float32".
        device: the device that was measured.
        entries: at least one.
        run: the fields of tri_apsp.tuned.schema.Run that are not known here: space_hash, protocol,
            seed and complete; if known also budget_seconds and driver.

    Raises:
        InputError: a kernel or dtype that does not exist; entries, or fields of `run`, that break
            the schema.
    """
    from tri_apsp.tuned.schema import SCHEMA, TunedFile, schema_errors

    header = {
        "schema_version": SCHEMA,
        **identity(engine, kernel, dtype, device)._asdict(),
        "triton": None if engine == "cpu" else triton_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "created": datetime.datetime.now(datetime.timezone.utc).date(),
        **run,
    }
    with schema_errors("a tuned file", "correct the entries or the fields of the run"):
        return TunedFile.model_validate({**header, "entries": tuple(entries)})


def path_of(
    engine: str, kernel: str, dtype: str, slug: str, directory: Path | str | None = None
) -> Path:
    """Return where `save` writes the file of a kernel on the GPU `slug`; directory: None for
    save_directory().
    """
    return Path(directory or save_directory()) / slug / file_name(engine, kernel, dtype)


def existing(
    engine: str, kernel: str, dtype: str, device: Device, directory: Path | str | None = None
) -> tuple[TunedFile | None, str | None]:
    """Return the present file at the path where `save` writes, or why it must not be overwritten;
    (None, None) without a file.

    The reason is the sentence with which `save` refuses without `force`: the file is damaged, or
    was measured on another GPU or with other kernel sources. The tuner checks that before it
    starts.
    """
    wanted = identity(engine, kernel, dtype, device)
    return read_usable(
        path_of(engine, kernel, dtype, device.slug, directory),
        lambda file: difference(file, wanted),
    )


def save(file: TunedFile, directory: Path | str | None = None, *, force: bool = False) -> Path:
    """Write `file` to `<directory>/<slug>/<engine>-<kernel>-<dtype>.json`, where the next solve
    finds it.

    Entries of a file that is there are kept unless `file` has one of the same sign, n, batch and
    objective. Processes that save at the same time wait for each other, and a reader sees the old
    file or the new one, never a part.

    Args:
        file: the file, made by `new_file`.
        directory: None for save_directory(): TRI_APSP_CONFIG_DIR, else the user's directory.
        force: replace the whole file if it cannot be used: it is damaged, of another GPU or of
            other kernel sources.

    Returns:
        The path written to.

    Raises:
        InputError: such a file is there and `force` is not given; `file` was measured with other
            kernel sources; the directory is frozen, cannot be written to, is full, or stays locked
            for half a minute. The directory is then as it was.
    """
    require_current(file)
    _require_not_frozen(Path(directory or save_directory()))
    path = path_of(file.engine, file.kernel, file.dtype, file.slug, directory)
    with locked(path.parent):
        present = require_replaceable(file, path, force=force)
        write(path, content_of(file if present is None else merged(present, file)))
    reload()
    return path


def require_current(file: TunedFile, what: str = "a tuned file") -> None:
    """Raise InputError unless `file`, which the error calls `what`, was measured with the present
    sources of its kernel.
    """
    stale = difference(
        file, identity_of(file)._replace(kernel_hash=kernel_hash(file.engine, file.kernel))
    )
    if stale is not None:
        raise InputError(f"{what} {stale}; tune again.")


def require_replaceable(file: TunedFile, path: Path, *, force: bool) -> TunedFile | None:
    """Return the file at `path`, with which `file` may be merged; None if there is none, or with
    `force` one to be replaced.

    Raises:
        InputError: it is damaged, of another GPU or of other kernel sources, and `force` is not
            given.
    """
    present, reason = read_usable(path, lambda other: difference(other, identity_of(file)))
    if reason is not None and not force:
        raise InputError(reason)
    return present


def require_writable(slug: str, directory: Path | str | None = None) -> None:
    """Raise unless tuned files of the GPU `slug` can be written. Creates no folder; in an existing
    one it takes the lock once.

    Raises:
        InputError: the directory is frozen, cannot be written to, or is locked by another process
            for half a minute.
    """
    _require_not_frozen(Path(directory or save_directory()))
    folder = Path(directory or save_directory()) / slug
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not (present.is_dir() and os.access(present, os.W_OK)):
        raise InputError(
            f"tuned files must be written to {folder}, but {present} is no writable folder; choose another --save-dir."
        )
    if present == folder:
        with locked(folder):
            pass


def _require_not_frozen(directory: Path) -> None:
    if is_frozen(directory):
        raise InputError(
            f"tuned files must not change in a frozen directory, which {directory} is; unset TRI_APSP_CONFIG_DIR or choose "
            "another directory, and freeze again afterwards."
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make `folder`, and hold its lock inside the `with`; an error of the file system becomes an
    InputError.
    """
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lock", timeout=LOCK_SECONDS):
            yield
    except filelock.Timeout:
        raise InputError(
            f"tuned files in {folder} must not be locked, but another process has held {folder / '.lock'} for "
            f"{LOCK_SECONDS:g} s; wait for it, or choose another directory."
        ) from None
    except OSError as error:
        raise InputError(
            f"tuned files must be written to {folder}, but that failed ({error.strerror}); free disk space and set "
            "permissions, or choose another directory."
        ) from None


def merged(present: TunedFile, file: TunedFile) -> TunedFile:
    """Return `file` with the entries of `present` that it does not replace; these name the run that
    measured them.
    """
    new = {entry.key: entry for entry in file.entries}
    own = present.run
    kept = {
        entry.key: entry
        if entry.run is not None or own == file.run
        else entry.model_copy(update={"run": own})
        for entry in present.entries
    }
    return file.model_copy(
        update={"entries": tuple(entry for _, entry in sorted({**kept, **new}.items()))}
    )


def content_of(file: TunedFile) -> dict[str, Any]:
    """Return the content of a tuned file as JSON holds it."""
    content = file.model_dump(mode="json")
    for entry in content["entries"]:
        for name in [name for name, value in entry.items() if value is None]:
            del entry[name]
        if entry["objective"] == DEFAULT_OBJECTIVE:  # as in files that have none
            del entry["objective"]
    return content


def write(path: Path, content: dict[str, Any]) -> None:
    """Write JSON under another name, then rename, so that a reader sees the old file or the new
    one.
    """
    part = path.with_name(
        f".{path.name}.part"
    )  # under the lock one name is enough, and a crash leaves one file at most
    try:
        with part.open("wb") as stream:
            stream.write((json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
