"""Reading and writing tuned files."""

from __future__ import annotations

import datetime
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES, dtype_name
from tri_apsp.tuned.cache import MEMORY, reload
from tri_apsp.tuned.kernels import KERNELS
from tri_apsp.tuned.places import file_name, save_directory, user_directory
from tri_apsp.tuned.refusals import Identity, difference, identity, triton_version

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = ["conflict", "load", "new_file", "path_of", "reset", "save"]

_REMEDY = "remove it, or tune again with --force"
_KERNEL_NAMES = tuple(dict.fromkeys(itertools.chain.from_iterable(KERNELS.values())))
_DTYPE_NAMES = tuple(map(dtype_name, DTYPES))

LOCK_SECONDS = 30.0
"""How long `save` waits for another process that writes to the same folder."""


def new_file(
    engine: str,
    kernel: str,
    dtype: str,
    device: Device,
    entries: Iterable[Entry],
    *,
    space_hash: str,
    protocol: str,
    seed: int,
    budget_seconds: float | None,
    complete: bool,
    driver: str | None = None,
) -> TunedFile:
    """Return a tuned file of what was measured here and now, with the present versions and kernel hash in its header.

    Args: as the fields of tri_apsp.tuned.schema.TunedFile; `device` is what was measured.

    Raises:
        InputError: a kernel or dtype that does not exist, entries that break the schema.
    """
    from tri_apsp.tuned.schema import SCHEMA, TunedFile

    header = {
        "schema_version": SCHEMA,
        **identity(engine, kernel, dtype, device)._asdict(),
        "triton": None if engine == "cpu" else triton_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "driver": driver,
        "space_hash": space_hash,
        "protocol": protocol,
        "seed": seed,
        "budget_seconds": budget_seconds,
        "complete": complete,
        "created": datetime.datetime.now(datetime.timezone.utc).date(),
    }
    with _explained("a tuned file"):
        return TunedFile.model_validate({**header, "entries": tuple(entries)})


def path_of(engine: str, kernel: str, dtype: str, slug: str, directory: Path | str | None = None) -> Path:
    """Return where `save` writes the file of a kernel on the GPU `slug`; directory: None for save_directory()."""
    return Path(directory or save_directory()) / slug / file_name(engine, kernel, dtype)


def load(path: Path | str) -> TunedFile:
    """Read a tuned file.

    Args:
        path: the file. It may be of any GPU and of other kernel sources; see `refusal` for whether it would be used.

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
    with _explained(what):
        return TunedFile.model_validate_json(text)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn what pydantic says inside the `with` into one sentence."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        said = (f"{place}: " if place else "") + first["msg"].removeprefix("Value error, ").rstrip(".")
        more = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        raise InputError(f"{what} must follow tuning/README.md, but breaks its schema ({said}{more}); {_REMEDY}.") from None


def conflict(engine: str, kernel: str, dtype: str, device: Device, directory: Path | str | None = None) -> str | None:
    """Return why `save` would refuse to write there without `force`, as one sentence, or None if it would not.

    That is so where a file lies that is damaged, or was measured on another GPU or with other kernel sources. A tuner asks
    before it starts.
    """
    path = path_of(engine, kernel, dtype, device.slug, directory)
    return _present(path, identity(engine, kernel, dtype, device))[1]


def _present(path: Path, wanted: Identity) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path`, None if there is none, or why it must not be overwritten."""
    if not path.exists():
        return None, None
    try:
        present = load(path)
    except InputError as error:
        return None, str(error)
    reason = difference(present, wanted)
    return (present, None) if reason is None else (None, f"tuned file {path} {reason}; {_REMEDY}.")


def save(file: TunedFile, directory: Path | str | None = None, *, force: bool = False) -> Path:
    """Write what was tuned to `<directory>/<slug>/<engine>-<kernel>-<dtype>.json`, where the next solve finds it.

    Entries of a file that lies there are kept unless `file` has one of the same sign, n and batch. Other processes that
    save at the same time wait for each other, and a reader sees the old file or the new one, never a part.

    Args:
        file: from `new_file`.
        directory: None for save_directory(): TRI_APSP_CONFIG_DIR, a checkout's tuning/, or the user's directory.
        force: replace a file that cannot be used, all of it: damaged, of another GPU or of other kernel sources.

    Returns:
        The path written to.

    Raises:
        InputError: such a file lies there and `force` is not given; the directory cannot be written to, is full, or stays
            locked for half a minute. What lies there is then as it was.
    """
    import filelock

    path = path_of(file.engine, file.kernel, file.dtype, file.slug, directory)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.parent / ".lock", timeout=LOCK_SECONDS):
            present, reason = _present(path, Identity(*(getattr(file, name) for name in Identity._fields)))
            if reason is not None and not force:
                raise InputError(reason)
            merged = file if present is None else _merged(present, file)
            _write(path, merged)
            assert load(path) == merged, f"{path} reads back as something else"
    except filelock.Timeout:
        raise InputError(
            f"tuned files in {path.parent} must not be locked, but another process has held {path.parent / '.lock'} for "
            f"{LOCK_SECONDS:g} s; wait for it, or choose another directory with --save-dir."
        ) from None
    except OSError as error:
        raise InputError(
            f"tuned files must be written to {path.parent}, but that failed ({error.strerror}); make room and give the rights, "
            "or choose another directory with --save-dir."
        ) from None
    reload()
    return path


def _merged(present: TunedFile, file: TunedFile) -> TunedFile:
    """Return `file` with the entries of `present` that it has none for; these name the run that measured them."""
    new = {entry.key: entry for entry in file.entries}
    own = present.run
    kept = {
        entry.key: entry if entry.run is not None or own == file.run else entry.model_copy(update={"run": own})
        for entry in present.entries
        if entry.key not in new
    }
    return file.model_copy(update={"entries": tuple(entry for _, entry in sorted({**kept, **new}.items()))})


def _write(path: Path, file: TunedFile) -> None:
    """Write under a name of its own, then rename: whoever reads sees the old file or the new one."""
    content = file.model_dump(mode="json")
    for entry in content["entries"]:
        if entry["run"] is None:
            del entry["run"]
    part = path.with_name(f".{path.name}.part")  # one name is enough under the lock, and a crash leaves one file at most
    try:
        with part.open("w", encoding="utf-8") as stream:
            json.dump(content, stream, indent=2, allow_nan=False)
            stream.write("\n")
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
    """Remove tuned files of this machine, and forget what was tuned in this process.

    Args:
        device: "auto", "cpu", "cuda" or "cuda:N": whose files.
        engine: None: of every engine.
        kernel: None: every kernel; see tri_apsp.tuned.KERNELS.
        dtype: such as "float32"; None: every dtype.
        directory: None for the user's directory. The shipped files stay.

    Returns:
        The paths removed.

    Raises:
        InputError: a name that does not exist, or a file that cannot be removed.
    """
    for given, known in ((engine, KERNELS), (kernel, _KERNEL_NAMES), (dtype, _DTYPE_NAMES)):
        if given is not None and given not in known:
            raise InputError(f"reset takes one of {', '.join(known)}, but got {given!r}; choose one of these.")
    folder, removed = Path(directory or user_directory()) / describe(resolve(device)).slug, list[Path]()
    wanted = itertools.product(
        KERNELS if engine is None else [engine],
        _KERNEL_NAMES if kernel is None else [kernel],
        _DTYPE_NAMES if dtype is None else [dtype],
    )
    for path in (folder / file_name(*names) for names in wanted):
        if path.exists():
            try:
                path.unlink()
            except OSError as error:
                raise InputError(f"{path} must be removable, but is not ({error.strerror}); change its rights.") from None
            removed.append(path)
    MEMORY.clear()
    reload()
    return removed
