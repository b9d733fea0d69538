"""Which method `method="auto"` takes: the first rule that applies, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tri_apsp.configs import Config

__all__ = ["RULES", "Rule", "choose"]


@dataclass(frozen=True)
class Rule:
    """Take `method` where `applies(n, config)`; `reason` explains why, with measurements."""

    method: str
    reason: str
    applies: Callable[[int, Config], bool]


_TUNED = "tuned: the fastest of the methods timed end to end near this n (or the method that the given configuration names)"

RULES: tuple[Rule, ...] = (
    Rule(
        "floyd_warshall",
        "the graph fits one diagonal block, so a single closure solves it; block_size is set where kleene becomes faster",
        lambda n, c: n <= (c.block_size or 0),
    ),
    Rule("floyd_warshall", "at most β vertices, which the recursion would not divide", lambda n, c: n <= (c.cutoff or 0)),
    Rule(
        "floyd_warshall",
        "the portable engine, and n too small for large products to pay for more launches: on an H200 in float32 at n = 4096, "
        "8192, 16384 and 32768, 6.4, 8.7, 8.9 and 9.0 T/s against 4.4, 7.7, 8.9 and 9.5 of kleene",
        lambda n, c: c.engine == "portable" and n < 16384,
    ),
    Rule(
        "kleene",
        "most of the work lies in large products, which run at the engine's full rate: on an H200 in float32 at n = 4096, 8192 "
        "and 16384, 13.5, 15.7 and 16.5 T/s against 11.0, 13.4 and 14.7 of floyd_warshall, the best that a sweep tried",
        lambda n, c: c.engine == "nvidia",
    ),
    Rule("kleene", "most of the work lies in large products, which run at the engine's full rate", lambda n, c: True),
)


def choose(n: int, config: Config) -> Rule:
    """Return the first rule that applies to a graph of n vertices; a method that `config` names takes precedence."""
    if config.method is not None:  # by a tuned file, and so by measurement, or by the caller
        return Rule(config.method, _TUNED, lambda n, c: True)
    return next(rule for rule in RULES if rule.applies(n, config))
