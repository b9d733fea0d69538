"""Whether tensors share memory with each other, or with a file that is mapped to it."""

import contextlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch


class _FilePart(NamedTuple):
    """Bytes of a file.

    Attributes:
        mapping: where the file is mapped to memory.
        name: of the file, "" if there is none.
        first, end: the bytes.
    """

    mapping: str
    name: str
    first: int
    end: int


_NO_FILE = _FilePart("", "", 0, 0)


class _Addresses:
    """The addresses of the elements of a tensor, for NumPy, which does not read them."""

    def __init__(self, tensor: torch.Tensor) -> None:
        size = tensor.itemsize
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), True),
            "shape": tuple(tensor.shape),
            "strides": tuple(size * stride for stride in tensor.stride()),
            "typestr": f"|V{size}",
            "version": 3,
        }


def overlaps(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether elements of two dense tensors lie at one address of one device."""
    if one.device != other.device or not (one.numel() and other.numel()):
        return False
    return np.shares_memory(np.asarray(_Addresses(one)), np.asarray(_Addresses(other)))


def shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors overlap, or may share bytes of a file that is mapped twice."""
    if overlaps(one, other):
        return True
    if not one.device.type == other.device.type == "cpu":
        return False
    a, b = _file_part(one), _file_part(other)
    is_mapped_twice = a.name != "" and a.name == b.name and a.mapping != b.mapping
    return is_mapped_twice and a.first < b.end and b.first < a.end


def is_mapped_from(tensor: torch.Tensor, path: Path) -> bool:
    """Return whether the memory of a tensor on the CPU is mapped to a file."""
    name = _file_part(tensor).name
    with contextlib.suppress(OSError):
        return name != "" and path.samefile(name)
    return False


def _file_part(tensor: torch.Tensor) -> _FilePart:
    """Return the part of a file to which the memory of a tensor on the CPU is mapped; that of no
    file too if the operating system does not say.
    """
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return _NO_FILE
    address = tensor.data_ptr()
    for line in lines:
        mapping, _, offset, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(number, 16) for number in mapping.split("-"))
        if name and name[0].startswith("/") and begin <= address < end:  # not such as [heap]
            first = int(offset, 16) + address - begin
            places = zip(tensor.shape, tensor.stride(), strict=True)
            last = sum((size - 1) * stride for size, stride in places)
            return _FilePart(mapping, name[0], first, first + (last + 1) * tensor.itemsize)
    return _NO_FILE
