"""Writing all tuned files of a device to one file, and saving the tuned files that such a file
holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tri_apsp.device import Device, describe, resolve
from tri_apsp.errors import InputError
from tri_apsp.tuned.compatibility import refusal
from tri_apsp.tuned.delayed_warnings import collect, issue
from tri_apsp.tuned.paths import file_name, is_frozen, matching, save_directory, user_directory
from tri_apsp.tuned.reading import read_usable
from tri_apsp.tuned.store import (
    content_of,
    merged,
    path_of,
    require_current,
    require_replaceable,
    save,
    write,
)

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import TunedFile

__all__ = ["export_file", "import_file"]


def export_file(
    path: Path | str, device: str = "auto", directory: Path | str | None = None
) -> list[Path]:
    """Write the tuned files of a device to one JSON file, which `import_file` reads.

    Of entries for the same kernel, dtype, sign, n, batch and objective, the first is taken. Files
    that cannot be used are left out, with a TuningWarning.

    Args:
        path: the file to write; one that is there is replaced.
        device: "auto", "cpu", "cuda" or "cuda:N".
        directory: the directory of the files; None: what this user tuned, in TRI_APSP_CONFIG_DIR,
            unless it is frozen, and in the user's directory.

    Returns:
        The paths of the files that it holds.

    Raises:
        InputError: no file of the device can be used, `path` is a folder or cannot be written to,
            or there is no such device.
    """
    from tri_apsp.tuned.schema import SCHEMA

    facts = describe(resolve(device))
    files: dict[str, TunedFile] = {}
    paths = []
    searched = _own_directories() if directory is None else [Path(directory)]
    for source, file in _usable_files(searched, facts):
        name = file_name(file.engine, file.kernel, file.dtype)
        files[name] = merged(file, files[name]) if name in files else file
        paths.append(source)
    issue()
    if not files:
        places = " or ".join(map(str, searched))
        raise InputError(
            f"an export must hold tuned files, but {places} has none that can be used on {facts.name}; run the tuner first."
        )
    try:
        if Path(path).is_dir():
            raise InputError(
                f"an export must be written to a file, but {path or '.'} is a folder; name a file in it."
            )
        write(
            Path(path),
            {"schema_version": SCHEMA, "files": [content_of(file) for file in files.values()]},
        )
    except OSError as error:
        raise InputError(
            f"an export must be written to {path}, but that failed ({error.strerror}); choose another."
        ) from None
    return paths


def _own_directories() -> list[Path]:
    """Return the directories with what this user tuned."""
    return [
        path for path in dict.fromkeys([save_directory(), user_directory()]) if not is_frozen(path)
    ]


def _usable_files(directories: Iterable[Path], device: Device) -> Iterator[tuple[Path, TunedFile]]:
    for directory in directories:
        for path in matching(directory / device.slug, "*.json"):
            file, reason = read_usable(path, lambda file: refusal(file, device))
            if reason is not None:
                collect(f"export {path}", f"a tuned file is not exported: {reason}")
            if file is not None:
                yield path, file


def import_file(
    path: Path | str, directory: Path | str | None = None, *, force: bool = False
) -> list[Path]:
    """Save each tuned file of an export, of any GPU, as `save` does: merged with what is there.

    Args:
        path: a file that `export_file` wrote.
        directory: None for save_directory().
        force: replace files that cannot be used, as for `save`.

    Returns:
        The paths written to.

    Raises:
        InputError: the export cannot be read, breaks the schema or was measured with other kernel
            sources; or `save` would refuse one of its files. Nothing is written then.
    """
    from tri_apsp.tuned.schema import Export, read_model

    export = read_model(
        Path(path), f"export {path}", Export, "export again with the present version"
    )
    for file in export.files:
        require_current(file, f"{file_name(file.engine, file.kernel, file.dtype)} in export {path}")
        require_replaceable(
            file, path_of(file.engine, file.kernel, file.dtype, file.slug, directory), force=force
        )
    return [save(file, directory, force=force) for file in export.files]
