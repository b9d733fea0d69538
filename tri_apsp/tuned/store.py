"""Tuned files: their folders and names, reading and writing, and whether one fits a device and the
present kernels.
"""

from __future__ import annotations

import datetime
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
from tri_apsp.messages import counted
from tri_apsp.tuned.hashes import kernel_hash

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, Run, TunedFile

LOCK_SECONDS = 30.0
"""Seconds for which `save` waits for another process that writes to the same folder."""

_PACKAGE = Path(__file__).resolve().parents[1]
# A checkout, and an editable install of it, has the files beside the package; a wheel carries them
# as tri_apsp/_tuned.
_CHECKOUT, _WHEEL = _PACKAGE.parent / "tuning", _PACKAGE / "_tuned"
_REMEDY = "remove it, or tune again with --force"

# The directories that `searching` puts before all others.
_first: list[Path] = []
_generation = 0


def save_directory() -> Path:
    """Return the directory that the tuner writes to: TRI_APSP_CONFIG_DIR, else the user's.

    Returns:
        The path; it need not exist.

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.save_directory() in tuned.directories()
        True
    """
    named = os.environ.get("TRI_APSP_CONFIG_DIR")
    return Path(named) if named else _user_directory()


def _user_directory() -> Path:
    return platformdirs.user_config_path("tri_apsp", appauthor=False)


def directories() -> list[Path]:
    """Return the directories searched for tuned files, the most important first.

    TRI_APSP_CONFIG_DIR is first, then the user's directory, and the one with the files that are
    shipped is last. They need not exist.

    Returns:
        The paths, each once.

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.directories()  # doctest: +SKIP
        [PosixPath('/home/ada/.config/tri_apsp'), PosixPath('/home/ada/tri_apsp/tuning')]
    """
    shipped = [path for path in (_WHEEL, _CHECKOUT) if path.is_dir()][:1]
    return list(dict.fromkeys([*_first, save_directory(), _user_directory(), *shipped]))


@contextmanager
def searching(directory: Path) -> Iterator[None]:
    """Search `directory` before all others inside a `with`.

    Holds for all threads of the process.

    Args:
        directory: of tuned files, in folders of their GPUs; it need not exist.

    Examples:
        >>> from pathlib import Path
        >>> from tri_apsp import tuned
        >>> with tuned.searching(Path("fleet")):
        ...     print(tuned.directories()[0])
        fleet
    """
    _first.insert(0, directory)
    reload()
    try:
        yield
    finally:
        _first.remove(directory)
        reload()


def files(pattern: str = "*/*.json") -> list[Path]:
    """Return the tuned files, of any GPU, whose paths below their directory match a pattern, in the
    order of `directories`. A directory that cannot be searched has none.

    Args:
        pattern: of `<slug>/<engine>-<kernel>-<dtype>.json`, as for pathlib.Path.glob.

    Returns:
        The paths; one name may occur in several directories.

    Examples:
        >>> from tri_apsp import tuned
        >>> [path.name for path in tuned.files("nvidia-h200/*-solve-float32.json")]
        ... # doctest: +SKIP
        ['nvidia-solve-float32.json', 'portable-solve-float32.json']
    """
    return [
        path
        for directory in directories()
        if os.path.isdir(directory)  # noqa: PTH112 (Path.is_dir raises PermissionError)
        for path in sorted(directory.glob(pattern))
    ]


def reload() -> None:
    """Read all files again at the next lookup: another process may have written one.

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.reload()
    """
    global _generation
    _generation += 1
    _read.cache_clear()


def generation() -> int:
    """Return a number that every reload() changes.

    Results are cached under the number from before their files were read, so that a result is not
    found again after another thread called reload().
    """
    return _generation


def file_name(engine: str, kernel: str, dtype: str) -> str:
    """Return the name of the file of a kernel in the folder of its GPU; dtype as in "float32"."""
    return f"{engine}-{kernel}-{dtype}.json"


def unused_because(path: Path, file: TunedFile, device: Device) -> str | None:
    """Return why lookups on `device` do not use the file that was read from `path`, even if they
    search the directory that it is in: "must be of ..., but is of ...". None: they use it. A file
    of another GPU, whose slug differs, is used where this GPU has no entry.

    Args:
        path: the path of the file.
        file: what `load` returned for it.
        device: of tri_apsp.device.describe.

    Examples:
        >>> import torch
        >>> from tri_apsp import tuned
        >>> from tri_apsp.device import describe
        >>> path = tuned.files("*/cpu-solve-float32.json")[0]  # doctest: +SKIP
        >>> here = describe(torch.device("cpu"))
        >>> tuned.unused_because(path, tuned.load(path), here)  # doctest: +SKIP
        'must be of AMD EPYC (amd-epyc-2-cores, 2 units), but is of ...'
    """
    place = f"{path.parent.name}/{path.name}"
    expected = f"{file.slug}/{file_name(file.engine, file.kernel, file.dtype)}"
    present = kernel_hash(file.engine, file.kernel)
    if place != expected:
        return f"must lie at {expected}, but lies at {place}"
    if file.kernel_hash != present:
        return (
            f"must be tuned for the present sources of its kernel, {present[:8]}, but was for "
            f"others, {file.kernel_hash[:8]}"
        )
    here, there = _machine(device), _machine(file.device)
    same_architecture = file.capability == device.capability is not None
    if here == there or (same_architecture and file.slug != device.slug):
        return None
    return f"must be of {here}, but is of {there}"


def _machine(device: Device) -> str:
    """Return the facts of a device in which a file must agree with it."""
    architecture = ""
    if device.capability is not None:
        architecture = ", compute capability {}.{}".format(*device.capability)
    return f"{device.name} ({device.slug}, {counted(device.units, 'unit')}{architecture})"


def version_mismatch(run: Run) -> str | None:
    """Return why the results of `run` may not be the fastest with the installed Triton: "was tuned
    with ...", or None.
    """
    installed = triton_version()
    if run.triton and installed and run.triton.split(".")[:2] != installed.split(".")[:2]:
        return (
            f"was tuned with Triton {run.triton}, but {installed} is installed, "
            "for which others may be faster"
        )
    return None


def load(path: Path | str) -> TunedFile:
    """Read a tuned file, which may be of any GPU and of other kernel sources; see
    `unused_because`.

    Args:
        path: of the file.

    Returns:
        The file, checked against its schema; `entries` holds its configurations.

    Raises:
        InputError: it cannot be read, or breaks the schema.

    Examples:
        >>> from tri_apsp import InputError, tuned
        >>> try:
        ...     tuned.load("missing.json")
        ... except InputError as error:
        ...     print(error)
        tuned file missing.json must be readable, but is not (No such file or directory); check ...
    """
    from pydantic import ValidationError

    from tri_apsp.tuned.schema import TunedFile

    try:
        return TunedFile.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"tuned file {path} must be readable, but is not ({error.strerror}); check its name "
            "and rights."
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "file"
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        more = f" and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        raise InputError(
            f"tuned file {path} must be one that this version can read, but breaks its schema "
            f"({location}: {message}{more}); {_REMEDY}."
        ) from None


@cache
def _read(path: Path, _: int) -> TunedFile | InputError:
    try:
        return load(path)
    except InputError as error:
        return error


def usable(path: Path, device: Device) -> tuple[TunedFile | None, str | None]:
    """Return the file at `path`, read once until reload(), and None; or None and a sentence, why
    lookups on `device` do not use it.

    Args:
        path: of a tuned file.
        device: of tri_apsp.device.describe.

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> from tri_apsp import tuned
        >>> from tri_apsp.device import describe
        >>> file, reason = tuned.usable(Path("missing.json"), describe(torch.device("cpu")))
        >>> file is None, reason.partition(",")[0]
        (True, 'tuned file missing.json must be readable')
    """
    file = _read(path, _generation)
    if isinstance(file, InputError):
        return None, str(file)
    reason = unused_because(path, file, device)
    if reason is not None:
        return None, f"tuned file {path} {reason}; {_REMEDY}."
    return file, None


def path_of(
    engine: str, kernel: str, dtype: str, slug: str, directory: Path | str | None = None
) -> Path:
    """Return the path to which `save` writes the file of a kernel for the GPU `slug`.

    Args:
        engine: "cpu", "nvidia" or "portable".
        kernel: one of KERNELS[engine].
        dtype: the name of the dtype, such as "float32".
        slug: the name of the GPU as folders spell it.
        directory: None for save_directory().

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.path_of("cpu", "solve", "float32", "amd-epyc", "fleet").as_posix()
        'fleet/amd-epyc/cpu-solve-float32.json'
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
        run: the other fields of tri_apsp.tuned.schema.Run: space_hash, protocol and seed; if known
            also budget_seconds.

    Returns:
        The file, not written yet: `save` does that.

    Raises:
        ValueError: a kernel or dtype that does not exist, or fields that break the schema.

    Examples:
        >>> import torch
        >>> from tri_apsp import tuned
        >>> from tri_apsp.device import describe
        >>> from tri_apsp.tuned.schema import Entry
        >>> ms = {"p20_ms": 4.9, "p50_ms": 5.0, "p80_ms": 5.1, "default_ms": 6.0, "speedup": 1.2}
        >>> entry = Entry(sign="any", n=1024, config={"cutoff": 128}, evaluated=1, **ms)
        >>> run = {"space_hash": "by hand", "protocol": "median of 20 runs", "seed": 0}
        >>> here = describe(torch.device("cpu"))
        >>> tuned.new_file("cpu", "solve", "float32", here, [entry], **run).held
        'n = 1024'
    """
    from tri_apsp.tuned.schema import SCHEMA, TunedFile

    header = {
        "schema_version": SCHEMA,
        "engine": engine,
        "kernel": kernel,
        "dtype": dtype,
        "gpu": device.name,
        "slug": device.slug,
        "capability": device.capability,
        "units": device.units,
        "kernel_hash": kernel_hash(engine, kernel),
        "triton": None if engine == "cpu" else triton_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "created": datetime.datetime.now(datetime.timezone.utc).date(),
    }
    return TunedFile.model_validate({**header, **run, "entries": tuple(entries)})


def existing(
    engine: str, kernel: str, dtype: str, device: Device, directory: Path | str | None = None
) -> tuple[TunedFile | None, str | None]:
    """Return the file at the path where `save` writes, or the sentence with which `save` refuses to
    replace it; (None, None) without a file.

    Args:
        engine: "cpu", "nvidia" or "portable".
        kernel: one of KERNELS[engine].
        dtype: the name of the dtype, such as "float32".
        device: of tri_apsp.device.describe.
        directory: None for save_directory().

    Examples:
        >>> import torch
        >>> from tri_apsp import tuned
        >>> from tri_apsp.device import describe
        >>> tuned.existing("cpu", "solve", "float32", describe(torch.device("cpu")), "empty")
        (None, None)
    """
    path = path_of(engine, kernel, dtype, device.slug, directory)
    if not path.exists():
        return None, None
    reload()
    return usable(path, device)


def save(file: TunedFile, directory: Path | str | None = None, *, force: bool = False) -> Path:
    """Write `file` to `<directory>/<slug>/<engine>-<kernel>-<dtype>.json`, where the next solve
    finds it.

    Entries of a file that is there are kept unless `file` has one of the same sign, n and batch.
    Processes that save at the same time wait for each other, and a reader sees the old file or the
    new one, never a part.

    Args:
        file: the file, made by `new_file` or read by `load`.
        directory: None for save_directory().
        force: replace the whole file if it cannot be used: it is damaged, of another GPU or of
            other kernel sources.

    Returns:
        The path written to.

    Raises:
        InputError: such a file is there and `force` is not given; or the directory cannot be
            written to, is full, or stays locked for half a minute. It is then as it was.

    Examples:
        >>> from tri_apsp import tuned
        >>> path = tuned.files("*/cpu-solve-float32.json")[0]  # doctest: +SKIP
        >>> tuned.save(tuned.load(path), "fleet")  # doctest: +SKIP
        PosixPath('fleet/amd-epyc-2-cores/cpu-solve-float32.json')
    """
    path = path_of(file.engine, file.kernel, file.dtype, file.slug, directory)
    with _locked(path.parent):
        present, reason = existing(file.engine, file.kernel, file.dtype, file.device, directory)
        if reason is not None and not force:
            raise InputError(reason)
        _write(path, file if present is None else _merged(present, file))
    reload()
    return path


def require_writable(slug: str, directory: Path | str | None = None) -> None:
    """Raise InputError unless tuned files of the GPU `slug` can be written; creates no folder.

    Args:
        slug: the name of the GPU as folders spell it.
        directory: None for save_directory().

    Raises:
        InputError: the folder, or the nearest above it that exists, is not writable.

    Examples:
        >>> from tri_apsp import tuned
        >>> tuned.require_writable("amd-epyc", "fleet")
    """
    folder = Path(directory or save_directory()) / slug
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not (present.is_dir() and os.access(present, os.W_OK)):
        raise InputError(
            f"tuned files must be written to {folder}, but {present} is no writable folder; "
            "choose another directory."
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
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(file.model_dump_json(indent=2, exclude_none=True) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
