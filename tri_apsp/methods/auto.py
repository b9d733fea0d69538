"""Which method `method="auto"` takes: the first rule that applies, each with its reason."""

from collections.abc import Callable
from dataclasses import dataclass

from tri_apsp.configs import Config, MethodName


@dataclass(frozen=True)
class Rule:
    """Take `method` where `applies(n, config)`; `reason` is for users, and may name fields of the
    configuration in braces.
    """

    method: MethodName
    reason: str
    applies: Callable[[int, Config], bool]


_TUNED = "tuned near this n"

# Times on an H200 in float32, of floyd_warshall and of kleene.
RULES: tuple[Rule, ...] = (
    # One closure, in one launch: n = 1280, 1536 and 1920 take 0.56, 0.71 and 1.06 ms, and by kleene
    # 0.76, 0.95 and 1.05 ms.
    Rule("floyd_warshall", "one block: n <= {block_size}", lambda n, c: n <= (c.block_size or 0)),
    Rule(
        "floyd_warshall",
        "no recursion: n <= cutoff = {cutoff}",
        lambda n, c: n <= (c.cutoff or 0),
    ),
    # n = 4096, 8192, 16384 and 32768 run at 6.4, 8.7, 8.9 and 9.0 T/s, by kleene at 4.4, 7.7, 8.9
    # and 9.5 T/s: below 16384 the large products of kleene do not pay for its launches.
    Rule(
        "floyd_warshall",
        "n < 16384 on the portable engine",
        lambda n, c: c.engine == "portable" and n < 16384,
    ),
    # On the nvidia engine, n = 4096, 8192 and 16384 run at 13.5, 15.7 and 16.5 T/s, by the best
    # floyd_warshall that a tuning run tried at 11.0, 13.4 and 14.7 T/s.
    Rule("kleene", "most of the work is in large products", lambda n, c: True),
)


def choose(n: int, config: Config) -> Rule:
    """Return the first rule that applies to a graph of n vertices; a method that `config` names
    takes precedence.
    """
    if config.method is not None:  # by a tuned file, and so by measurement, or by the caller
        return Rule(config.method, _TUNED, lambda n, c: True)
    return next(rule for rule in RULES if rule.applies(n, config))


def reason(rule: Rule, config: Config) -> str:
    """Return why `rule` was chosen for `config`, in a few words."""
    return rule.reason.format(block_size=config.block_size, cutoff=config.cutoff)
