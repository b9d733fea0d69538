"""Random damage to the bytes of files: of disks, of transfers, and of editors."""

import io
import random
import re
import zipfile
from collections.abc import Callable

# Written in place of a number, or anywhere.
_ODD = [
    *(b"0", b"-1", b"7", b"1.5", b"inf", b"-inf", b"nan", b"1e400", b"-1e400", b"1_0", b"0013"),
    *(b"1000000000000", b"%d" % 2**63, b"%d" % 2**64, b"%d" % (2**53 + 1), b"9" * 400, b"9" * 5000),
    *(
        b"\0",
        b"\x1b[31m",
        b"\x85",
        b"\xff",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b",",
        b'"',
        b"#",
        b"<",
        b"[",
    ),
    *("é\u2028".encode(), b"x" * 400),
]


def _place(data: bytes, draw: random.Random) -> int:
    return draw.randrange(len(data) + 1)


def _flip(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return (
        data[:at]
        + bytes(byte ^ 1 << draw.randrange(8) for byte in data[at : at + 1])
        + data[at + 1 :]
    )


def _delete(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + data[at + draw.choice((1, 1, 2, 8, 40)) :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + draw.choice(_ODD) + data[at:]


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)]


def _swap_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = (draw.randrange(len(lines)) for _ in range(2))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _repeat_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    return b"\n".join(lines[: at + 1] + lines[at:])


def _other_number(data: bytes, draw: random.Random) -> bytes:
    numbers = list(re.finditer(rb"[0-9.]+", data))
    if not numbers:
        return _insert(data, draw)
    begin, end = draw.choice(numbers).span()
    return data[:begin] + draw.choice(_ODD) + data[end:]


_KINDS: list[Callable[[bytes, random.Random], bytes]] = [
    *(_flip, _delete, _insert, _truncate, _swap_lines, _repeat_line, _other_number, _other_number)
]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a file with one to three damages; of an archive also one of a member, whole again."""
    if data[:2] == b"PK" and draw.random() < 0.7:
        archive = zipfile.ZipFile(io.BytesIO(data))
        chosen = draw.choice(archive.namelist())
        with zipfile.ZipFile(stream := io.BytesIO(), "w") as changed:
            for name in archive.namelist():
                member = archive.read(name)
                changed.writestr(name, mutated(member, draw) if name == chosen else member)
        return stream.getvalue()
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(_KINDS)(data, draw)
    return data
