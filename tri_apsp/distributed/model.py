"""How long a solve of block rows takes, by the rates of what it does.

Each of the n / b pivot blocks takes the longest of what runs at the same time on a rank with m of
the n rows, of s bytes per value:

    products      m n b / R + b^3 / (p C) + h t   of which the rank closes one pivot block of p
    copies        m n s / W     of streamed rows, to the device and back
    host          m n s / H     of streamed rows, read and written
    critical path t = 2 b^2 n / R + b^3 / C + b n s / B + L: what the look-ahead of one block
                  updates, closes and sends

A message that a device waits for, or receives, takes a share h of it from the products: NCCL waits
on some of the multiprocessors. Before the first block its rows are read and closed, with nothing to
do beside it.
"""

from dataclasses import dataclass
from typing import Literal

Bound = Literal["products", "copies", "host", "critical path"]


@dataclass(frozen=True)
class Rates:
    """What a machine does in a second, for values of one dtype.

    Attributes:
        product: min-plus operations of a product on one device.
        closure: n^3 of the closure of a diagonal block on one device.
        copy: bytes between the host and a device, in each direction at once.
        host: bytes of rows that one rank reads and writes on the host, in each direction at once,
            while its device copies them.
        broadcast: bytes that a rank sends to all others.
        latency: seconds until a broadcast begins.
        held: the share of a device that a broadcast takes while it is awaited.
        setup: seconds of a solve besides its pivot blocks.
    """

    product: float
    closure: float
    copy: float = float("inf")
    host: float = float("inf")
    broadcast: float = float("inf")
    latency: float = 0.0
    held: float = 0.0
    setup: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """The expected time of a solve, without compilation and without what each call costs besides. A
    matrix that takes less than a second may take several times as long; so may rows that are
    streamed through a CPU, whose copies take the cores of its products.

    Attributes:
        seconds: of the whole solve.
        bound: what takes longest of each pivot block.
        shares: of each such part, its time as a share of that of the longest.
    """

    seconds: float
    bound: Bound
    shares: dict[Bound, float]


def predict(
    rates: Rates, n: int, itemsize: int, *, ranks: int, block: int, streamed: bool
) -> Prediction:
    """Return the expected time of n vertices on some ranks, each with as many rows."""
    rows = -(-n // ranks)
    moved = rows * n * itemsize if streamed else 0.0
    sent = block * n * itemsize / rates.broadcast + rates.latency if ranks > 1 else 0.0
    closure = block**3 / rates.closure
    close = block**2 * n / rates.product + closure
    ahead = block**2 * n / rates.product + close + sent
    held = rates.held * ahead if ranks > 1 else 0.0
    parts: dict[Bound, float] = {
        "products": rows * n * block / rates.product + closure / ranks + held,
        "copies": moved / rates.copy,
        "host": moved / rates.host,
        "critical path": ahead,
    }
    bound = max(parts, key=lambda name: parts[name])
    first = close + sent + (block * n * itemsize / min(rates.copy, rates.host) if streamed else 0)
    longest = max(parts[bound], 1e-12)
    shares: dict[Bound, float] = {name: seconds / longest for name, seconds in parts.items()}
    return Prediction(rates.setup + first + n / block * parts[bound], bound, shares)
