"""Progress on a terminal: a bar for solves that take a second or longer."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DELAY = 1.0  # seconds before a bar appears, so that a short solve shows none


@contextmanager
def progress(wanted: bool) -> Iterator[Callable[[float], None] | None]:
    """Yield a callback for the fraction done, which draws a bar on stderr.

    Yields None where stderr is no terminal, or a bar is not `wanted`.
    """
    if not (wanted and sys.stderr is not None and sys.stderr.isatty()):
        yield None
        return
    from tqdm import tqdm

    layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed} < {remaining}"
    with tqdm(
        total=100,
        desc="solving",
        bar_format=layout,
        delay=DELAY,
        leave=False,
        file=sys.stderr,
        **terminal_shape(),
    ) as bar:
        yield lambda fraction: bar.update(int(100 * fraction) - bar.n)


def terminal_shape() -> dict[str, int]:
    """Return tqdm's arguments for the size of the terminal on stderr; 80 x 24 where the terminal
    reports 0, as some do.
    """
    size = os.get_terminal_size(sys.stderr.fileno())
    return {"ncols": size.columns or 80, "nrows": size.lines or 24}
