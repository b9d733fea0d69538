"""After which rounds the host reads whether one changed anything."""

import pytest

from tri_apsp.sparse.rounds import FIRST, rounds


class Changed:
    """In place of a tensor: set by each round up to the last one that changes anything."""

    def __init__(self, last: int) -> None:
        self.last, self.number, self.value = last, 0, True
        self.reads = list[int]()

    def zero_(self) -> None:
        self.value = False

    def any(self) -> bool:
        self.reads.append(self.number)
        return self.value


@pytest.mark.parametrize(
    ("last", "most", "first", "reads"),
    [
        (0, 64, FIRST, [4]),
        (4, 64, FIRST, [4, 8]),
        (8, 64, FIRST, [4, 8, 16]),
        (200, 64, FIRST, [4, 8, 16, 32, 64, 128, 192, 256]),
        (12, 4, FIRST, [4, 8, 12, 16]),
        (9, 64, 10, [10]),
        (30, 64, 10, [10, 14, 22, 38]),
        (3, 8, 1, [1, 5]),
    ],
)
def test_reads(last: int, most: int, first: int, reads: list[int]) -> None:
    changed = Changed(last)
    for number in rounds(changed, most, first):
        assert number == changed.number + 1
        changed.number, changed.value = number, changed.value or number <= last
    assert changed.reads == reads
    assert changed.number == reads[-1]
