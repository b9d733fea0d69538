"""What a graph calls its vertices: the numbers or the names of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tri_apsp.errors import InputError

Label: TypeAlias = int | str

Labels: TypeAlias = Sequence[Label]
"""The label of each vertex: a range of numbers, or the ids of a file, sorted. Indexed by vertices
of int.
"""


class Ids(Sequence[Label]):
    """The ids of a file as labels, ascending: integers of any size, or names.

    Args:
        values: (n,) of int64, of str, or of Python's int as objects.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, vertex: Any) -> Any:
        found = self.values[vertex]
        if isinstance(vertex, slice):
            return Ids(found)
        return found.item() if isinstance(found, np.generic) else found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Ids({self.values!r})"

    def index(self, label: Any, *_: int) -> int:
        """Return the vertex with a label.

        Raises:
            InputError: there is none.
        """
        if isinstance(label, str) == (self.values.dtype.kind == "U"):
            place = int(np.searchsorted(self.values, label))
            if place < len(self.values) and self.values[place] == label:
                return place
        ends = f", {self[0]!r} to {self[-1]!r}" if len(self) else ""
        raise InputError(
            f"a label must be one of the {len(self)} of the graph{ends}, but is {label!r}; give "
            "one of these."
        )


def integers_of(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids of str, (k,) as objects, as Python's int if each is written as Python writes it;
    else as they are, like ids of int64. So different ids stay different: 01 and 1 are names.
    """
    if ids.dtype == object and all(re.fullmatch(r"0|-?[1-9][0-9]*", text) for text in ids):
        return np.array([int(text) for text in ids], object)
    return ids


def number_ids(ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], Labels]:
    """Return the vertex of each id, (k,), and their labels: vertices are numbered in the order of
    the sorted ids.

    Args:
        ids: (k,) of int64, or of str or Python's int as objects.
    """
    if ids.dtype == object and len(ids) and isinstance(ids[0], str):
        ids = ids.astype(str)
    found, vertices = np.unique(ids, return_inverse=True)
    if found.dtype == np.int64 and len(found) and found[-1] - found[0] == len(found) - 1:
        return vertices, range(int(found[0]), int(found[-1]) + 1)
    return vertices, Ids(found) if len(found) else range(0)


def vertex_of(labels: Labels, text: str, name: str) -> int:
    """Return the vertex whose label a person wrote.

    Args:
        text: the label.
        name: what messages call the argument.

    Raises:
        InputError: no vertex has it.
    """
    if not len(labels):
        raise InputError(
            f"{name} needs a graph with vertices, but this one has none; give another graph."
        )
    is_text = isinstance(labels[0], str)
    try:
        # int() also takes "1_0" and digits of other scripts.
        return labels.index(text if is_text else int(text.replace("_", "?").encode("ascii")))
    except ValueError:
        shown = f"{labels[0]} to {labels[len(labels) - 1]}"
        among = "" if isinstance(labels, range) else f", of the {len(labels)}"
        raise InputError(
            f"{name} must be a vertex of the graph{among} from {shown}, but is {text}; give one of "
            f"these{', and blanks between several' if re.search('[,;]', text) else ''}."
        ) from None
