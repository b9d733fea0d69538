"""The bar that shows how much of a solve is done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

# Seconds before a bar is shown: a short solve shows none.
_DELAY = 1.0


@contextmanager
def progress_bar(wanted: bool, doing: str = "solving") -> Iterator[Callable[[float], None] | None]:
    """Yield a callback for the fraction done, which draws a bar on stderr.

    Yields None where stderr is no terminal, or a bar is not `wanted`.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        yield None  # a hidden bar would take a quarter of the time of a small call
        return
    layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed} < {remaining}"
    with tqdm(
        total=100,
        desc=doing,
        bar_format=layout,
        delay=_DELAY,
        leave=False,
        nrows=24,  # some terminals report 0 rows, of which tqdm would use none
    ) as bar:
        yield lambda fraction: bar.update(int(100 * fraction) - bar.n)
