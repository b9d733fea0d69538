"""Writing and removing tuned files."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tri_apsp.device import Device, describe, resolve, triton_version
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.compatibility import Identity, difference, identity
from tri_apsp.tuned.hashes import kernel_hash
from tri_apsp.tuned.paths import file_name, save_directory, user_directory
from tri_apsp.tuned.reading import MEMORY, read_usable, reload, schema_errors
from tri_apsp.tuned.records import KERNELS

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = ["existing", "new_file", "path_of", "require_writable", "reset", "save"]

_KERNEL_NAMES = tuple(dict.fromkeys(itertools.chain.from_iterable(KERNELS.values())))

LOCK_SECONDS = 30.0
"""Seconds for which `save` waits for another process that writes to the same folder."""


def new_file(engine: str, kernel: str, dtype: str, device: Device, entries: Iterable[Entry], **run: Any) -> TunedFile:
    """Return a tuned file of new entries, with the present versions, date and kernel hash in its header.

    Args:
        engine: the name of the engine.
        kernel: the name of the kernel.
        dtype: the name of the dtype, such as "float32".
        device: the device that was measured.
        entries: at least one.
        run: the fields of tri_apsp.tuned.schema.Run that are not known here: space_hash, protocol, seed and complete; if known
            also budget_seconds and driver.

    Raises:
        InputError: a kernel or dtype that does not exist; entries, or fields of `run`, that break the schema.
    """
    from tri_apsp.tuned.schema import SCHEMA, TunedFile

    header = {
        "schema_version": SCHEMA,
        **identity(engine, kernel, dtype, device)._asdict(),
        "triton": None if engine == "cpu" else triton_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "created": datetime.datetime.now(datetime.timezone.utc).date(),
        **run,
    }
    with schema_errors("a tuned file"):
        return TunedFile.model_validate({**header, "entries": tuple(entries)})


def path_of(engine: str, kernel: str, dtype: str, slug: str, directory: Path | str | None = None) -> Path:
    """Return where `save` writes the file of a kernel on the GPU `slug`; directory: None for save_directory()."""
    return Path(directory or save_directory()) / slug / file_name(engine, kernel, dtype)


def existing(
    engine: str, kernel: str, dtype: str, device: Device, directory: Path | str | None = None
) -> tuple[TunedFile | None, str | None]:
    """Return the present file at the path where `save` writes, or why it must not be overwritten; (None, None) without a file.

    The reason is the sentence with which `save` refuses without `force`: the file is damaged, or was measured on another GPU or
    with other kernel sources. The tuner checks that before it starts.
    """
    wanted = identity(engine, kernel, dtype, device)
    return read_usable(path_of(engine, kernel, dtype, device.slug, directory), lambda file: difference(file, wanted))


def save(file: TunedFile, directory: Path | str | None = None, *, force: bool = False) -> Path:
    """Write `file` to `<directory>/<slug>/<engine>-<kernel>-<dtype>.json`, where the next solve finds it.

    Entries of a file that is there are kept unless `file` has one of the same sign, n and batch. Processes that save at the
    same time wait for each other, and a reader sees the old file or the new one, never a part.

    Args:
        file: the file, made by `new_file`.
        directory: None for save_directory(): TRI_APSP_CONFIG_DIR, else the user's directory.
        force: replace the whole file if it cannot be used: it is damaged, of another GPU or of other kernel sources.

    Returns:
        The path written to.

    Raises:
        InputError: such a file is there and `force` is not given; `file` was measured with other kernel sources; the directory
            cannot be written to, is full, or stays locked for half a minute. The directory is then as it was.
    """
    path = path_of(file.engine, file.kernel, file.dtype, file.slug, directory)
    own = Identity(*(getattr(file, name) for name in Identity._fields))
    stale = difference(file, own._replace(kernel_hash=kernel_hash(file.engine, file.kernel)))
    if stale is not None:
        raise InputError(f"a tuned file {stale}; tune again.")
    with _locked(path.parent):
        present, reason = read_usable(path, lambda file: difference(file, own))
        if reason is not None and not force:
            raise InputError(reason)
        _write(path, _content(file if present is None else _merged(present, file)))
    reload()
    return path


def require_writable(slug: str, directory: Path | str | None = None) -> None:
    """Raise unless tuned files of the GPU `slug` can be written. Creates no folder; in an existing one it takes the lock once.

    Raises:
        InputError: the directory cannot be written to, or another process locks it for half a minute.
    """
    folder = Path(directory or save_directory()) / slug
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not (present.is_dir() and os.access(present, os.W_OK)):
        raise InputError(
            f"tuned files must be written to {folder}, but {present} is no writable folder; choose another --save-dir."
        )
    if present == folder:
        with _locked(folder):
            pass


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make `folder`, and hold its lock inside the `with`; an error of the file system becomes an InputError."""
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lock", timeout=LOCK_SECONDS):
            yield
    except filelock.Timeout:
        raise InputError(
            f"tuned files in {folder} must not be locked, but another process has held {folder / '.lock'} for "
            f"{LOCK_SECONDS:g} s; wait for it, or choose another directory with --save-dir."
        ) from None
    except OSError as error:
        raise InputError(
            f"tuned files must be written to {folder}, but that failed ({error.strerror}); free disk space and set "
            "permissions, or choose another directory with --save-dir."
        ) from None


def _merged(present: TunedFile, file: TunedFile) -> TunedFile:
    """Return `file` with the entries of `present` that it does not replace; these name the run that measured them."""
    new = {entry.key: entry for entry in file.entries}
    own = present.run
    kept = {
        entry.key: entry if entry.run is not None or own == file.run else entry.model_copy(update={"run": own})
        for entry in present.entries
    }
    return file.model_copy(update={"entries": tuple(entry for _, entry in sorted({**kept, **new}.items()))})


def _content(file: TunedFile) -> bytes:
    content = file.model_dump(mode="json")
    for entry in content["entries"]:
        if entry["run"] is None:
            del entry["run"]
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    """Write under another name, then rename, so that a reader sees the old file or the new one."""
    part = path.with_name(f".{path.name}.part")  # under the lock one name is enough, and a crash leaves one file at most
    try:
        with part.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def reset(
    *,
    device: str = "auto",
    engine: str | None = None,
    kernel: str | None = None,
    dtype: str | None = None,
    directory: Path | str | None = None,
) -> list[Path]:
    """Remove tuned files of this machine from the user's directory, and forget what was tuned in this process.

    Files in TRI_APSP_CONFIG_DIR, which several users may share, stay unless `directory` names that directory; if there are
    any, a TuningWarning is issued. Shipped files stay in use.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:N": the device whose files are removed.
        engine: None: every engine.
        kernel: None: every kernel; see tri_apsp.tuned.KERNELS.
        dtype: such as "float32"; None: every dtype.
        directory: None for the user's directory.

    Returns:
        The paths removed.

    Raises:
        InputError: a name that does not exist, or a file that cannot be removed.
    """
    for given, known in ((engine, KERNELS), (kernel, _KERNEL_NAMES), (dtype, DTYPES_BY_NAME)):
        if given is not None and given not in known:
            raise InputError(f"reset takes one of {', '.join(known)}, but got {given!r}; choose one of these.")
    slug = describe(resolve(device)).slug
    names = list(
        itertools.product(
            KERNELS if engine is None else [engine],
            _KERNEL_NAMES if kernel is None else [kernel],
            DTYPES_BY_NAME if dtype is None else [dtype],
        )
    )
    removed = _present_files(names, slug, directory or user_directory())
    for path in removed:
        try:
            path.unlink()
        except OSError as error:
            raise InputError(f"{path} must be removable, but is not ({error.strerror}); change its rights.") from None
    MEMORY.clear()
    reload()
    kept = [] if directory else _present_files(names, slug, save_directory())
    if kept:
        warnings.warn(
            f"reset must be told to remove tuned files outside the user's directory, but {kept[0].parent}, which is "
            f"searched first, still has {len(kept)}; give directory={str(save_directory())!r} to remove them.",
            TuningWarning,
            stacklevel=2,
        )
    return removed


def _present_files(names: Iterable[tuple[str, str, str]], slug: str, directory: Path | str) -> list[Path]:
    """Return the files of these (engine, kernel, dtype) that are there."""
    paths = (path_of(*each, slug, directory) for each in names)
    return [path for path in paths if path.exists()]
