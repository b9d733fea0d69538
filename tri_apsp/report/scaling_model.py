"""The model of block rows beside measurements: rates that are fitted to some of them, a simulation
of each step, and what both predict for many ranks.

tri_apsp.distributed.model has the equations.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tri_apsp.distributed.layout import Layout, even_counts
from tri_apsp.distributed.model import Bound, Rates, predict

RatesOf = Callable[[int, int], Rates]
"""Returns the rates for n vertices on some ranks, but for those that are fitted."""

_MOST_HELD = 0.9
# Vertices of a pivot block of streamed rows.
_STREAMED_BLOCK = 4096


class Solve(NamedTuple):
    """A solve of block rows.

    Attributes:
        n: vertices.
        itemsize: bytes of a value.
        ranks: how many.
        block: vertices of a pivot block.
        streamed: whether rows are streamed from the host.
    """

    n: int
    itemsize: int
    ranks: int
    block: int
    streamed: bool = False

    def seconds(self, rates: Rates) -> float:
        """Return the time by the model."""
        return self._predicted(rates)[0]

    def bound(self, rates: Rates) -> Bound:
        """Return what takes longest."""
        return self._predicted(rates)[1]

    def share(self, rates: Rates) -> float:
        """Return the rate as a share of that of as many single ranks that hold the matrix."""
        alone = self._replace(ranks=1, streamed=False).seconds(rates)
        return alone / (self.ranks * self.seconds(rates))

    def _predicted(self, rates: Rates) -> tuple[float, Bound]:
        found = predict(
            rates,
            self.n,
            self.itemsize,
            ranks=self.ranks,
            block=self.block,
            streamed=self.streamed,
        )
        return found.seconds, found.bound


@dataclass(frozen=True)
class Fitted:
    """Rates of which some are fitted to measured solves.

    Attributes:
        others: those that are measured by themselves.
        product: operations per second of one rank.
        held: see Rates.
        setup: seconds.
        cores: how many ranks compute at the same time; None: all.
    """

    others: RatesOf
    product: float
    held: float = 0.0
    setup: float = 0.0
    cores: int | None = None

    def rates(self, n: int, ranks: int) -> Rates:
        """Return all rates for n vertices on some ranks."""
        crowded = max(1.0, ranks / self.cores) if self.cores else 1.0
        return dataclasses.replace(
            self.others(n, ranks),
            product=self.product / crowded,
            held=self.held,
            setup=self.setup,
        )

    def seconds(self, solve: Solve) -> float:
        """Return the time of a solve by the model."""
        return solve.seconds(self.rates(solve.n, solve.ranks))


def fit(others: RatesOf, measured: Sequence[tuple[Solve, float]], cores: int | None) -> Fitted:
    """Return the rate of products, the share that broadcasts hold and the time of the setup with
    the least relative deviations from measured seconds, of which there is at least one.
    """
    from scipy.optimize import least_squares

    def model(parameters: Sequence[float]) -> Fitted:
        rate, held, setup = (float(x) for x in parameters)
        return Fitted(others, math.exp(rate), held, setup * fastest, cores)

    def deviations(parameters: Sequence[float]) -> list[float]:
        found = model(parameters)
        return [math.log(found.seconds(solve) / seconds) for solve, seconds in measured]

    fastest = min(seconds for _, seconds in measured)
    rate = max(solve.n**3 / solve.ranks / seconds for solve, seconds in measured)
    log = math.log(rate)
    # The setup as a share of the fastest solve.
    bounds = [log - 1, 0.0, 0.0], [log + 1, _MOST_HELD, 1.0]
    found = least_squares(deviations, [log, 0.05, 0.01], bounds=bounds)
    return model(found.x)


def simulated(solve: Solve, rates: Rates) -> float:
    """Return the time of a solve by what each rank does at each pivot block, which the equations of
    the model only add up: ranks wait for rows that come late, and the owner falls behind by what it
    closes.
    """
    n, ranks = solve.n, solve.ranks
    counts = even_counts(n, ranks)
    pivots = Layout(counts, solve.block).pivots()
    step, rows = n / rates.product, np.array(counts, float)

    def close(width: int) -> float:
        return width**2 * step + width**3 / rates.closure

    def send(width: int) -> float:
        if ranks == 1:
            return 0.0
        return width * n * solve.itemsize / rates.broadcast + rates.latency

    widths = [pivot.end - pivot.begin for pivot in pivots]
    free = np.zeros(ranks)  # when each rank has done its work
    free[pivots[0].owner] = close(widths[0])
    arrival = sent = close(widths[0]) + send(widths[0])
    for index, (pivot, width) in enumerate(zip(pivots, widths, strict=True)):
        begin = np.maximum(free, arrival)
        work = rows * width * step
        work[pivot.owner] -= width**2 * step
        waited = np.zeros(ranks)  # for the next rows
        if index + 1 < len(pivots):
            owner, ahead = pivots[index + 1].owner, widths[index + 1]
            work[owner] += close(ahead)
            ready = begin[owner] + ahead * width * step + close(ahead)
            sent = max(ready, sent) + send(ahead)
            waited = np.maximum(sent - begin, 0)
            waited[owner] = sent - ready
        if ranks > 1:
            work += rates.held * np.minimum(waited, work / (1 - rates.held))
        free, arrival = begin + work, sent
    return rates.setup + float(free.max())


class Forecast(NamedTuple):
    """What the model predicts for some ranks.

    Attributes:
        solve: what is solved.
        seconds: by the model.
        simulated: by the simulation; None for streamed rows.
        share: of the rate of as many single ranks.
        bound: what takes longest.
        needed: bytes per second that each rank must receive, so that products hide broadcasts;
            infinity: they never do.
        memory: bytes of a rank, on the host where rows are streamed.
    """

    solve: Solve
    seconds: float
    simulated: float | None
    share: float
    bound: Bound
    needed: float
    memory: float


def forecast(
    fitted: Fitted,
    n: int,
    itemsize: int,
    ranks: int,
    *,
    blocks: Sequence[int] = (_STREAMED_BLOCK,),
    streamed: bool = False,
) -> Forecast:
    """Return what the model predicts for n vertices, by the best of some pivot blocks."""
    rates, rows = fitted.rates(n, ranks), -(-n // ranks)
    chosen = {min(block, rows) for block in blocks}
    solves = [Solve(n, itemsize, ranks, block, streamed) for block in sorted(chosen)]
    solve = min(solves, key=lambda each: each.seconds(rates))
    panels = 0 if streamed else 2 * solve.block
    return Forecast(
        solve,
        solve.seconds(rates),
        None if streamed else simulated(solve, rates),
        solve.share(rates),
        solve.bound(rates),
        needed_bandwidth(rates, solve),
        float((rows + panels) * n * itemsize),
    )


def needed_bandwidth(rates: Rates, solve: Solve) -> float:
    """Return the bytes per second by which rows arrive while a rank multiplies by those before."""
    rows, block = -(-solve.n // solve.ranks), solve.block
    products = rows * solve.n * block / rates.product
    closed = 2 * block**2 * solve.n / rates.product + block**3 / rates.closure + rates.latency
    left = products - closed
    return block * solve.n * solve.itemsize / left if left > 0 else math.inf


def largest_n(memory: float, itemsize: int, ranks: int, block: int) -> int:
    """Return the most vertices whose rows and two panels fit the memory of each rank."""
    # n^2 s / p + 2 b n s = memory
    half = ranks * block
    return int(math.sqrt(half**2 + ranks * memory / itemsize) - half)
