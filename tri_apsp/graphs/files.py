"""Graphs as bytes: files and streams, the format by file name, decompression, and atomic
replacement of a file.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from tri_apsp.errors import ApspError, InputError

__all__ = ["Source", "file_format", "open_input", "open_output", "read_bytes", "to_path"]

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """What a graph is read from: the file at `place`, or a binary stream.

    Attributes:
        place: a path or a stream.
        extension: the format, as the extension of a file without ".gz"; the first bytes tell
            whether they are compressed.
    """

    place: Path | BinaryIO
    extension: str

    def __str__(self) -> str:
        """Return what messages call it."""
        if isinstance(self.place, Path):
            return str(self.place)
        name = getattr(self.place, "name", None)
        return (
            "standard input"
            if name == "<stdin>"
            else name
            if isinstance(name, str)
            else "the stream"
        )


def to_path(value: object, argument: str) -> Path:
    """Return a path that the caller gave as `argument`.

    Raises:
        InputError: for another type, or a path that no file can have.
    """
    path: Any = value  # which os.fsencode checks
    try:
        name = os.fsencode(path)
        if name and b"\0" not in name:
            return Path(path)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"`{argument}` must be a path that a file can have, but is {value!r}; give a str or a pathlib.Path."
    )


def file_format(path: Path, formats: Sequence[str], remedy: str = "rename it") -> str:
    """Return the extension of `path` in lower case, including ".gz"; it is one of `formats`.

    `remedy` ends the message of the error.

    Raises:
        InputError: for an extension that is not in `formats`.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    extension = "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])
    if extension not in formats:
        raise InputError(
            f"a file name must end in one of {', '.join(formats)}, but {path} ends in {extension or 'none'}; {remedy}."
        )
    return extension


def read_bytes(source: Source) -> bytes:
    """Return the content of a file or a stream, decompressed if it begins as gzip does.

    Raises:
        InputError: for a file that does not exist, is a folder, is not readable, is empty, or is
            compressed but damaged; for a stream of text.
    """
    data = _read(source)
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"a compressed file must be a whole gzip file, but {source} is not ({_reason(error)}); copy or compress it "
                "again."
            ) from error
    if not data:
        raise InputError(f"a graph file must not be empty, but {source} is; write the graph again.")
    return data


def _read(source: Source) -> bytes:
    try:
        data: object = (
            source.place.read_bytes() if isinstance(source.place, Path) else source.place.read()
        )
    except FileNotFoundError:
        raise InputError(
            f"a graph file must exist, but there is no {source}; check the name."
        ) from None
    except IsADirectoryError:
        raise InputError(
            f"a graph must be read from a file, but {source} is a folder; name a file in it."
        ) from None
    except (OSError, ValueError) as error:  # a ValueError if the stream is closed
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(
            f"a graph file must be readable, but {source} is not ({reason}); check it."
        ) from error
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    found = "is text" if isinstance(data, str) else f"returns {type(data).__name__}"
    raise InputError(
        f"a stream must be binary, but {source} {found}; open it in mode 'rb', or give its .buffer."
    )


@contextmanager
def open_input(source: Source) -> Iterator[BinaryIO | Path]:
    """Yield what NumPy and torch load from: the path itself, or the bytes if they are compressed or
    come from a stream.

    Raises:
        InputError: as `read_bytes`; and if the loader fails, with its reason.
    """
    place: BinaryIO | Path = source.place
    if not isinstance(place, Path) or not _is_uncompressed(place):
        place = io.BytesIO(read_bytes(source))
    try:
        yield place
    except ApspError:
        raise
    except Exception as error:  # the loaders raise a dozen unrelated types for a damaged file
        raise InputError(
            f"a {source.extension} file must hold an array of numbers, but {source} cannot be read ({_reason(error)}); "
            "write it again."
        ) from error


def _is_uncompressed(path: Path) -> bool:
    """Return whether `path` is a file that can be read, is not empty and does not begin as gzip
    does.
    """
    try:
        if not path.is_file():  # such as a pipe, of which no byte must be read twice
            return False
        with path.open("rb") as stream:
            return stream.read(len(_GZIP)) not in (_GZIP, b"")
    except OSError:
        return False


def _reason(error: Exception) -> str:
    words = str(error).lower()
    if (
        "object arrays" in words or "python objects" in words
    ):  # NumPy continues with how to load them, which may run code
        return "its values are Python objects"
    if (
        "pickle" in words or "weights only" in words
    ):  # what the loaders suppose of any unknown content
        return "it is damaged, or of another format"
    if isinstance(error, gzip.BadGzipFile):  # which shows the first bytes
        return "it is damaged"
    # The first sentence only, since torch adds a long explanation of how to load unsafely.
    return str(error).split("\n")[0].split(". ")[0].strip().rstrip(".") or type(error).__name__


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is complete; on failure it is removed. Symbolic
    links are followed.

    The bytes are compressed if the name ends in ".gz", without a time stamp, so that equal content
    gives equal files.

    Raises:
        InputError: if the operating system cannot write the file, as on a full disk.
    """
    # Beside the target, since only a rename within one file system is atomic.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("xb") as raw:
                if path.suffix.lower() == ".gz":
                    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                        yield cast(BinaryIO, packed)
                else:
                    yield raw
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"an output must be writable, but {path} is not ({error.strerror or error}); choose another place."
        ) from error
