"""One directory with all tuned files that lookups use on a device, so that every rank and every run takes the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.compatibility import difference, identity_of
from tri_apsp.tuned.other_gpus import files_of_other_gpus
from tri_apsp.tuned.paths import FROZEN, is_frozen
from tri_apsp.tuned.reading import reload, search_slug, sources
from tri_apsp.tuned.records import RECORDS
from tri_apsp.tuned.store import content_of, locked, merged, path_of, write

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["freeze"]

_EXPLANATION = "With TRI_APSP_CONFIG_DIR set to this directory, tri_apsp searches tuned files nowhere else.\n"


def freeze(path: Path | str, device: str = "auto") -> list[Path]:
    """Write the tuned files that lookups use on a device to one directory.

    Lookups of processes in which TRI_APSP_CONFIG_DIR names that directory search nowhere else, whatever is tuned later. So all
    ranks and runs on such devices take the same configurations, and without an entry the defaults.

    A file holds the entries of all files of its kernel and dtype that can be used; of those with the same sign, n and batch the
    one of the first location, as lookups take it. Files of other GPUs of the same compute capability are included, since
    kernels without an entry take theirs.

    Args:
        path: a directory that does not exist, is empty, or was written by this function, for this device or for others. In it,
            the files of this device are replaced, and those of others stay.
        device: "auto", "cpu", "cuda" or "cuda:N".

    Returns:
        The paths of the files of the device; none if nothing was tuned for it.

    Raises:
        InputError: the directory holds anything else, or cannot be written to; no such device.
    """
    folder, facts = Path(path), describe(resolve(device))
    if folder.is_dir() and not is_frozen(folder) and {each.name for each in folder.iterdir()} - {".lock"}:
        raise InputError(
            f"freeze must write to an empty or a frozen directory, but {folder} holds other files; choose another."
        )
    own = search_slug(facts)
    files = _files(facts, folder)
    with locked(folder):
        (folder / FROZEN).write_text(_EXPLANATION, encoding="utf-8")
        for target, file in files.items():
            if file.slug == own or not target.exists():
                target.parent.mkdir(exist_ok=True)
                write(target, content_of(file))
        written = [target for target, file in files.items() if file.slug == own]
        for target in (folder / own).glob("*.json"):
            if target not in written:
                target.unlink()
    reload()
    return written


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
