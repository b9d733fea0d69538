"""Whether tensors share memory with each other, or with a file that is mapped to it."""

import contextlib
from pathlib import Path

import numpy as np
import torch


def shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors share memory or bytes of one file; on a GPU, whether they begin at
    one place.
    """
    if not one.device.type == other.device.type == "cpu":
        return one.data_ptr() == other.data_ptr() != 0
    if np.shares_memory(one.numpy(), other.numpy()):
        return True
    name, part = _mapped_part(one)
    other_name, other_part = _mapped_part(other)
    return bool(name) and name == other_name and bool(_overlap(part, other_part))


def is_mapped_from(tensor: torch.Tensor, path: Path) -> bool:
    """Return whether the memory of a tensor is mapped to a file."""
    name, _ = _mapped_part(tensor)
    with contextlib.suppress(OSError):
        return bool(name) and path.samefile(name)
    return False


def _mapped_part(tensor: torch.Tensor) -> tuple[str, range]:
    """Return the file to which the memory of a tensor on the CPU is mapped, and which of its bytes;
    "" if there is none, or the operating system does not say.
    """
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return "", range(0)
    address = tensor.data_ptr()
    for line in lines:
        place, _, offset, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(number, 16) for number in place.split("-"))
        if name and begin <= address < end:
            first = int(offset, 16) + address - begin
            places = zip(tensor.shape, tensor.stride(), strict=True)
            last = sum((size - 1) * stride for size, stride in places)
            return name[0], range(first, first + (last + 1) * tensor.itemsize)
    return "", range(0)


def _overlap(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))
