"""The model of block rows beside measurements: rates that are fitted to some of them, a simulation
of each step, and what the model predicts for more ranks.

tri_apsp.distributed.model has the equations.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tri_apsp.distributed.layout import Layout, even_counts
from tri_apsp.distributed.model import Bound, Prediction, Rates, predict

# The largest share of a device that a broadcast may hold in a fit.
_MOST_HELD = 0.9
# Seconds of one GPU between two failures: 419 in 54 days of 16,384 GPUs (arXiv 2407.21783).
_SECONDS_BETWEEN_FAILURES = 50_700 * 3600


class Solve(NamedTuple):
    """A solve of block rows.

    Attributes:
        n: vertices.
        itemsize: bytes of a value.
        ranks: how many.
        block: vertices of a pivot block.
        streamed: whether rows are streamed from the host.
        rates: what is known of them, such as what was measured beside the solve.
    """

    n: int
    itemsize: int
    ranks: int
    block: int
    streamed: bool
    rates: Rates


class Fitted(NamedTuple):
    """The rates that are fitted to measured solves.

    Attributes:
        product, held, setup: see Rates.
        cores: how many ranks compute at the same time.
    """

    product: float
    held: float = 0.0
    setup: float = 0.0
    cores: float = math.inf

    def rates(self, solve: Solve) -> Rates:
        """Return the rates of a solve with those that are fitted. Products of streamed rows keep
        the rate that was measured, which is lower: a strip has few rows.
        """
        product = self.product * min(1.0, self.cores / solve.ranks)
        if solve.streamed:
            product = solve.rates.product
        return dataclasses.replace(solve.rates, product=product, held=self.held, setup=self.setup)

    def predict(self, solve: Solve) -> Prediction:
        """Return the time of a solve by the model."""
        return predict(
            self.rates(solve),
            solve.n,
            solve.itemsize,
            ranks=solve.ranks,
            block=solve.block,
            streamed=solve.streamed,
        )


def fit(measured: Sequence[tuple[Solve, float]], cores: float = math.inf) -> Fitted:
    """Return the fitted rates with the least relative deviations from measured seconds, of which
    there is at least one.
    """
    from scipy.optimize import least_squares

    def model(parameters: Sequence[float]) -> Fitted:
        rate, held, setup = (float(x) for x in parameters)
        return Fitted(math.exp(rate), held, setup * fastest, cores)

    def deviations(parameters: Sequence[float]) -> list[float]:
        fitted = model(parameters)
        return [math.log(fitted.predict(solve).seconds / seconds) for solve, seconds in measured]

    # The logarithm of the rate, and the setup as a share of the fastest solve.
    fastest = min(seconds for _, seconds in measured)
    rate = math.log(max(solve.n**3 / solve.ranks / seconds for solve, seconds in measured))
    bounds = [rate - 1, 0.0, 0.0], [rate + 1, _MOST_HELD, 1.0]
    return model(least_squares(deviations, [rate, 0.05, 0.01], bounds=bounds).x)


def simulate(solve: Solve, rates: Rates) -> float:
    """Return the seconds of a solve of resident rows by what each rank does at each pivot block,
    which the model only adds up: ranks wait for late rows, and the owner falls behind by what it
    closes.
    """
    n, ranks = solve.n, solve.ranks
    if ranks == 1:
        rates = dataclasses.replace(rates, broadcast=math.inf, latency=0.0, held=0.0)
    counts = even_counts(n, ranks)
    pivots = Layout(counts, solve.block).pivots()
    # Before the first pivot block and after the last there are none.
    owners = [0, *(pivot.owner for pivot in pivots), 0]
    widths = [0, *(pivot.end - pivot.begin for pivot in pivots), 0]
    rows, step = np.array(counts, float), n / rates.product  # seconds of a row and a pivot
    free, sent = np.zeros(ranks), 0.0  # when each rank has done its work, and rows have arrived
    for owner, width, following, ahead in zip(owners, widths, owners[1:], widths[1:], strict=False):
        begin = np.maximum(free, sent)
        close = ahead**2 * step + ahead**3 / rates.closure
        send = ahead * n * solve.itemsize / rates.broadcast + rates.latency
        work = rows * width * step
        work[owner] -= width**2 * step
        work[following] += close
        ready = begin[following] + ahead * width * step + close
        sent = max(ready, sent) + send
        waited = np.maximum(sent - begin, 0)  # for the next rows
        waited[following] = sent - ready
        work += rates.held * np.minimum(waited, work / (1 - rates.held))
        free = begin + work
    return rates.setup + float(free.max())


class Forecast(NamedTuple):
    """What the model predicts of a solve by many ranks.

    Attributes:
        seconds: of the solve.
        share: of the rate of as many single ranks that hold the matrix.
        bound: what takes longest.
        network: bytes per second that each rank must receive, so that products hide broadcasts;
            infinity: they never do.
        most_ranks: how many products keep busy; more need blocks in two dimensions.
        failure: the probability that a rank fails during the solve.
    """

    seconds: float
    share: float
    bound: Bound
    network: float
    most_ranks: float
    failure: float


def forecast(fitted: Fitted, solve: Solve) -> Forecast:
    """Return what the model predicts of a solve."""
    rates, found = fitted.rates(solve), fitted.predict(solve)
    alone = fitted.predict(solve._replace(ranks=1, streamed=False)).seconds
    moved = solve.itemsize * rates.product
    spare = solve.n / solve.ranks - 2 * solve.block  # rows multiplied while others are sent
    return Forecast(
        found.seconds,
        alone / (solve.ranks * found.seconds),
        found.bound,
        moved / spare if spare > 0 else math.inf,
        solve.n / (2 * solve.block + moved / rates.broadcast),
        -math.expm1(-found.seconds * solve.ranks / _SECONDS_BETWEEN_FAILURES),
    )
