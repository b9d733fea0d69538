"""Graph files as bytes: the format by file name, decompression, and atomic replacement of a file."""

from __future__ import annotations

import gzip
import io
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tri_apsp.errors import ApspError, InputError

__all__ = ["file_format", "open_input", "open_output", "read_bytes"]


def file_format(path: Path, formats: Sequence[str]) -> str:
    """Return the extension of `path` in lower case, including ".gz"; it is one of `formats`.

    Raises:
        InputError: for an extension that is not in `formats`.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    extension = "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])
    if extension not in formats:
        raise InputError(
            f"a file name must end in one of {', '.join(formats)}, but {path} ends in {extension or 'none'}; rename it."
        )
    return extension


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, decompressed if its name ends in ".gz".

    Raises:
        InputError: for a file that does not exist, is a folder, is not readable, is empty, or is named .gz but damaged.
    """
    if path.is_dir():
        raise InputError(f"a graph must be read from a file, but {path} is a folder; name a file in it.")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"a graph file must exist, but there is no {path}; check the name.") from None
    except OSError as error:
        raise InputError(f"a graph file must be readable, but {path} is not ({error.strerror}); check it.") from error
    if path.suffix.lower() == ".gz" and data:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"a .gz file must be a whole gzip file, but {path} is not ({_reason(error)}); copy or pack it again."
            ) from error
    if not data:
        raise InputError(f"a graph file must not be empty, but {path} is; write the graph again.")
    return data


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO | Path]:
    """Yield what NumPy and torch load from: the path itself, or the decompressed bytes if the name ends in ".gz".

    Raises:
        InputError: as `read_bytes`; and if the loader fails, with its reason.
    """
    if path.suffix.lower() == ".gz" or not path.is_file() or path.stat().st_size == 0:
        source: BinaryIO | Path = io.BytesIO(read_bytes(path))
    else:
        source = path
    try:
        yield source
    except ApspError:
        raise
    except Exception as error:  # the loaders raise a dozen unrelated types for a damaged file
        kind = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
        raise InputError(
            f"a {kind.lower()} file must hold an array of numbers, but {path} cannot be read ({_reason(error)}); "
            "write it again."
        ) from error


def _reason(error: Exception) -> str:
    words = str(error).lower()
    if "object arrays" in words or "python objects" in words:  # NumPy continues with how to load them, which may run code
        return "its values are Python objects"
    if "pickle" in words or "weights only" in words:  # what the loaders suppose of any unknown content
        return "it is damaged, or of another format"
    # The first sentence only, since torch adds a long explanation of how to load unsafely.
    return str(error).split("\n")[0].split(". ")[0].strip().rstrip(".") or type(error).__name__


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is complete; on failure it is removed.

    The bytes are compressed if the name ends in ".gz", without a time stamp, so that equal content gives equal files.

    Raises:
        InputError: if the operating system cannot write the file, as on a full disk.
    """
    # Beside the target, since only a rename within one file system is atomic.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("xb") as raw:
                if path.suffix.lower() == ".gz":
                    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                        yield cast(BinaryIO, packed)
                else:
                    yield raw
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"an output must be writable, but {path} is not ({error.strerror or error}); choose another place."
        ) from error
