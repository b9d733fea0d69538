"""The table that `bench` prints: one line per row, as rows come."""

from tri_apsp.bench.measure import BenchRow
from tri_apsp.console.output import amount

_LAYOUT = "{:14}  {:7}  {:11}  {:>6}  {:>5}  {:8}  {:>8}  {:>8}  {:>8}  {:>7}  {:>6}  {:>7}  {:>6}"
_TITLES = (
    *("operation", "dtype", "sign", "n", "batch", "engine"),
    *("median s", "p20 s", "p80 s", "ops/s", "bound", "scipy", "ratio"),
)


def titles() -> str:
    """Return the line of the titles."""
    return _LAYOUT.format(*_TITLES)


def line(row: BenchRow) -> str:
    """Return the line of a row; "-" stands for None."""
    seconds = (f"{value:.3g}" for value in (row.p50_seconds, row.p20_seconds, row.p80_seconds))
    bound = "-" if row.bound_fraction is None else f"{row.bound_fraction:.1%}"
    scipy = "-" if row.scipy_seconds is None else amount(row.batch * row.n**3 / row.scipy_seconds)
    ratio = "-" if row.ratio is None else f"{row.ratio:.1f}"
    names = (row.operation, row.dtype, row.sign, row.n, row.batch, row.engine)
    return _LAYOUT.format(*names, *seconds, amount(row.ops_per_second), bound, scipy, ratio)
