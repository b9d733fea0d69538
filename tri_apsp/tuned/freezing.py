"""One directory with all tuned files that lookups use on a device, so that every rank and every run
takes the same ones.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.compatibility import difference, identity_of
from tri_apsp.tuned.delayed_warnings import issue
from tri_apsp.tuned.other_gpus import files_of_other_gpus
from tri_apsp.tuned.paths import FROZEN, is_frozen, matching, named_directory
from tri_apsp.tuned.reading import read_usable, reload, search_slug, sources
from tri_apsp.tuned.records import RECORDS
from tri_apsp.tuned.store import content_of, locked, merged, path_of, write

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["freeze"]

# What FROZEN is called until every file is written; an interrupted freeze leaves it.
_UNFINISHED = f".{FROZEN}.part"
_EXPLANATION = (
    "With TRI_APSP_CONFIG_DIR set to this directory, tri_apsp searches tuned files nowhere else.\n"
)


def freeze(path: Path | str, device: str = "auto") -> list[Path]:
    """Write the tuned files that lookups use on a device to one directory.

    Lookups of processes in which TRI_APSP_CONFIG_DIR names that directory search nowhere else,
    whatever is tuned later. So all ranks and runs on such devices take the same configurations, and
    without an entry the defaults.

    A file holds the entries of all files of its kernel and dtype that can be used; of those with
    the same sign, n, batch and objective the one of the first location, as lookups take it. Files
    of other GPUs of the same compute capability are included, since kernels without an entry take
    theirs. Files that cannot be used are left out, with a TuningWarning.

    Args:
        path: a directory that does not exist, is empty, or was written by this function, for this
            device or for others. In it, the files of this device are replaced, and those of others
            stay if they can still be used.
        device: "auto", "cpu", "cuda" or "cuda:N".

    Returns:
        The paths of the files of the device; none if nothing was tuned for it.

    Raises:
        InputError: the directory holds anything else, cannot be read or written to, or is frozen
            already and named by TRI_APSP_CONFIG_DIR, so that nothing else would be searched; no
            such device.
    """
    folder, facts = Path(path), describe(resolve(device))
    own = search_slug(facts)
    try:
        _require_suitable(folder)
    except InputError:
        if not os.path.isfile(folder / ".lock"):
            raise  # with a lock, another process may be freezing the directory: wait for it, and check again
    with locked(folder):
        _require_suitable(folder)
        # A process that starts meanwhile searches the other directories too, until the last file is
        # here.
        unfinished = folder / _UNFINISHED
        unfinished.write_text(_EXPLANATION, encoding="utf-8")
        files = _files(facts, folder)
        for target, file in files.items():
            if file.slug == own or not _is_usable(target, file):
                target.parent.mkdir(exist_ok=True)
                write(target, content_of(file))
        written = [target for target, file in files.items() if file.slug == own]
        for target in matching(folder / own, "*.json"):
            if target not in written:
                target.unlink()
        unfinished.replace(folder / FROZEN)
    issue()
    reload()
    return written


def _require_suitable(folder: Path) -> None:
    """Raise InputError unless `folder` may be frozen: it does not exist, is empty, or freeze() has
    written it or begun to.
    """
    if is_frozen(folder):
        named = named_directory()
        if named is not None and named.resolve() == folder.resolve():
            raise InputError(
                f"freeze must search other directories than the one that it writes to, but {folder} is frozen and "
                "TRI_APSP_CONFIG_DIR names it; unset the variable to freeze again."
            )
        return
    try:
        held = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    except OSError as error:
        raise InputError(
            f"freeze must be able to list its directory, but {folder} cannot be listed ({error.strerror}); change its rights, "
            "or choose another."
        ) from None
    if _UNFINISHED not in held and held - {".lock"}:
        raise InputError(
            f"freeze must write to an empty or a frozen directory, but {folder} holds other files; choose another."
        )


def _is_usable(target: Path, file: TunedFile) -> bool:
    """Return whether there is a file at `target` that lookups can use as they use `file`, which is
    for the same GPU.
    """
    present, _ = read_usable(target, lambda other: difference(other, identity_of(file)))
    return present is not None


def _files(device: Device, folder: Path) -> dict[Path, TunedFile]:
    """Return the files to write, by their paths in `folder`."""
    found: dict[Path, TunedFile] = {}
    for engine, kernel in RECORDS:
        for dtype in DTYPES_BY_NAME:
            arguments = engine, kernel, dtype, device
            for _, file in (*sources(*arguments), *files_of_other_gpus(*arguments)):
                first = found.setdefault(path_of(engine, kernel, dtype, file.slug, folder), file)
                if first is not file and difference(file, identity_of(first)) is None:
                    found[path_of(engine, kernel, dtype, file.slug, folder)] = merged(file, first)
    return found
