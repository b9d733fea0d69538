"""Which method `method="auto"` takes: the first rule that applies, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tri_apsp.configs import Config

__all__ = ["RULES", "Rule", "choose"]


@dataclass(frozen=True)
class Rule:
    """Take `method` where `applies(n, config)`; `reason` says why, with the figures behind it."""

    method: str
    reason: str
    applies: Callable[[int, Config], bool]


RULES: tuple[Rule, ...] = (
    Rule(
        "floyd_warshall",
        "the graph fits one diagonal block: one closure solves it",
        lambda n, c: n <= (c.block_size or 0),
    ),
    Rule("floyd_warshall", "at most β vertices: the recursion would not divide them", lambda n, c: n <= (c.cutoff or 0)),
    Rule("kleene", "most of the work in large products, which run at the engine's full rate", lambda n, c: True),
)


def choose(n: int, config: Config) -> Rule:
    """Return the first rule that applies to a graph of n vertices under `config`."""
    return next(rule for rule in RULES if rule.applies(n, config))
