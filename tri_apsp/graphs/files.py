"""Graphs as bytes: files and streams, decompression, and atomic replacement of a file."""

import gzip
import io
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypedDict, cast

from tri_apsp.errors import InputError, InputTypeError
from tri_apsp.graphs.text import Text
from tri_apsp.messages import parsing, reason_of, shown

Format: TypeAlias = Literal[
    "gr",
    "mtx",
    "txt",
    "csv",
    "tsv",
    "npy",
    "npz",
    "pt",
    "tntp",
    "tsp",
    "atsp",
    "graph",
    "graphml",
    "gml",
]
"""The formats of files, by their extensions."""


class ReadOptions(TypedDict, total=False):
    """How a file is read: the options of `read_graph`, `read_sparse_graph` and `load_graph`, by
    keyword. None stands for what is said here of None.

    Attributes:
        format: the extension without its dot, such as "csv"; None: as the name of the file ends. A
            stream needs it.
        directed: False: each edge of a file that lists edges counts in both directions. Default:
            True.
        base: of an edge list as text: the number of its first vertex, 0 or 1; None: as a comment
            declares.
        vertices: of an edge list as text: the number of its vertices, which are numbered from
            `base` on. None: as a comment `# base 0 vertices 100` declares; else the vertices are
            those that the file names, by integers or by names, in their order.
        columns: of a text: those of source, target and weight, by the names of the first row or by
            numbers from 1, as a list or with commas; None: by well-known names, or the first two or
            three. Of TNTP, GraphML and GML: the one that holds the weights, by default
            free_flow_time, or weight; "": none, and each edge weighs 1.
        header: of a text: whether the first row is no edge, or of a matrix holds labels; None: if
            it has well-known names of columns, or of a matrix does not begin with a number.
        matrix: of a text: whether it is a matrix, whose first row and column may hold labels; None:
            False.
        missing: the entry of a matrix as text that means no edge, besides inf.
    """

    format: Format | None
    directed: bool
    base: Literal[0, 1] | None
    vertices: int | None
    columns: str | Sequence[str | int] | None
    header: bool | None
    matrix: bool | None
    missing: float | None


def columns_of(given: str | Sequence[str | int]) -> list[str]:
    """Return the columns of ReadOptions one by one."""
    if not isinstance(given, Sequence):
        raise InputTypeError(
            f"`columns` must be names or numbers of columns, but is {shown(given)}; give a list, "
            "or a str with commas."
        )
    columns = given.split(",") if isinstance(given, str) else given
    return [str(column).strip() for column in columns]


def one_column(options: ReadOptions, default: str) -> str:
    """Return the one column that the options name, or the default; "" is none."""
    given = options.get("columns")
    columns = columns_of(default if given is None else given)
    if len(columns) != 1:
        raise InputError(
            f"`columns` must be the one that holds the weights of a format of its own, but are "
            f"{len(columns)}; give one."
        )
    return columns[0]


def pajek_error(name: object) -> InputError:
    """Return the error of a file of Pajek."""
    return InputError(
        f"a file of Pajek must be converted, but {name} is not; call "
        "igraph.Graph.Read_Pajek(path).write_graphml('g.graphml'), check the number and the "
        "direction of its edges, and read that file."
    )


# Lines that begin with % are comments.
_OF_PAJEK = re.compile(rb"\s*(%.*\n\s*)*\*(network|vertices|arcs|edges|matrix)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
# Control characters other than tabs, line feeds and form feeds.
_CONTROL = bytes({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0B, 0x0C})


@dataclass(frozen=True)
class Source:
    """What a graph is read from: the file at `place`, or a binary stream.

    Attributes:
        place: a path or a stream; the first bytes tell whether they are compressed.
        format: the name of its format.
        what: what messages call such a file.
    """

    place: Path | BinaryIO
    format: Format
    what: str = "graph file"

    def __str__(self) -> str:
        """Return what messages call it."""
        given = self.place if isinstance(self.place, Path) else getattr(self.place, "name", None)
        name = "the stream" if given is None else str(given)
        return "standard input" if name == "<stdin>" else name

    def text(self, comment: str) -> Text:
        """Return the content of a text file, of which `comment` begins comments.

        Raises:
            InputError: as `read`, and for a control character.
        """
        data = self.read().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
        if len(data.translate(None, _CONTROL)) < len(data):
            raise InputError(
                f"a .{self.format} file must be text, but {self} holds control characters; give "
                "the text, or name the format of a binary file."
            )
        if _OF_PAJEK.match(data):
            raise pajek_error(self)
        encoding = "utf-8"
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            encoding = "latin-1"  # which decodes every byte
        return Text(str(self), data, encoding, comment)

    def read(self) -> bytes:
        """Return the content of a file or a stream, decompressed if it begins as gzip does.

        Raises:
            InputError: for a file that is not readable, is empty, or is compressed but damaged;
                for a stream of text.
        """
        try:
            data: Any = (
                self.place.read_bytes() if isinstance(self.place, Path) else self.place.read()
            )
        except (OSError, ValueError) as error:
            # A ValueError if the stream is closed, or no file can have the path.
            raise InputError(
                f"a {self.what} must be readable, but {self} is not ({reason_of(error)}); check "
                "the name."
            ) from error
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InputTypeError(
                f"a stream must be binary, but {self} returns {type(data).__name__}; open it in "
                "mode 'rb', or give its .buffer."
            )
        content = bytes(data)
        if content.startswith(_GZIP):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(
                    f"a compressed file must be a whole gzip file, but {self} is damaged; copy or "
                    "compress it again."
                ) from error
        if not content:
            raise InputError(f"a {self.what} must not be empty, but {self} is; write it again.")
        return content

    def loadable(self) -> io.BytesIO | Path:
        """Return what NumPy and torch load from: the path of a plain file, which can be mapped, or
        the bytes if they are compressed or come from a stream.

        Raises:
            InputError: as `read`.
        """
        place = self.place
        with suppress(OSError, ValueError):  # which read() explains
            if isinstance(place, Path) and place.is_file():  # no byte of a pipe is read twice
                with place.open("rb") as stream:
                    if stream.read(len(_GZIP)) not in (_GZIP, b""):
                        return place
        return io.BytesIO(self.read())

    def parsing(self) -> AbstractContextManager[None]:
        """Return a context in which the file is parsed; see messages.parsing."""
        failed = f"a .{self.format} file must hold a graph, but {self} cannot be read"
        return parsing(str(self), failed, "write it again, or give its format in `format`")


def to_path(value: object, argument: str, *, or_tensor: bool = False) -> Path:
    """Return a path that the caller gave as `argument`, in place of a tensor with `or_tensor`.

    Raises:
        InputTypeError: for another type.
        InputError: for an empty str.
    """
    if not isinstance(value, (str, os.PathLike)):
        what, remedy = "a path", "give a str or a pathlib.Path"
        if or_tensor:
            what, remedy = "a tensor or a path", "give a tensor, a str or a pathlib.Path"
            if hasattr(value, "__array__"):
                remedy = f"give torch.from_numpy({argument})"
        raise InputTypeError(f"`{argument}` must be {what}, but is {shown(value)}; {remedy}.")
    if not os.fspath(value):
        raise InputError(f"`{argument}` must be a path, but is empty; name a file or a folder.")
    return Path(value)


def file_format(path: Path, formats: Sequence[str], remedy: str = "rename it") -> str:
    """Return the extension of `path` in lower case without ".gz"; with it, it is in `formats`.

    Raises:
        InputError: for an extension that is not in `formats`.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    extension = "".join(suffixes) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])
    if extension not in formats:
        is_packed = extension.endswith(".gz")
        listed = [one for one in formats if is_packed or not one.endswith(".gz")]
        one_of = "one of " if len(listed) > 1 else ""
        packed = ", some also with .gz" if len(listed) < len(formats) else ""
        raise InputError(
            f"a file name must end in {one_of}{', '.join(listed)}{packed}, but {path} ends in "
            f"{extension or 'none'}; {remedy}."
        )
    return extension.removesuffix(".gz")


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
            # To a file that can be read too, numpy.save writes in a way that names a full disk.
            with temporary.open("x+b") as raw:
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
            f"an output must be writable, but {path} is not ({reason_of(error)}); choose another "
            "place."
        ) from error
