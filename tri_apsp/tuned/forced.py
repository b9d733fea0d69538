"""A configuration forced on all solves inside a `with`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tri_apsp.configs import Config
from tri_apsp.errors import InputError

__all__ = ["using", "with_forced"]

_forced: ContextVar[Config | None] = ContextVar("tri_apsp_forced", default=None)


@contextmanager
def using(config: Config) -> Iterator[None]:
    """Force a configuration on every solve and product inside a `with`, wherever in it they are called.

    Args:
        config: the fields that are set come before what was tuned, and after the `config` argument of a call; inside a second
            `with`, also after its own.

    Raises:
        InputError: config is no Config. One that cannot run is refused by the call that would use it.

    Holds for the thread (or asyncio task) that entered the `with`, like every context variable.
    """
    if not isinstance(config, Config):
        raise InputError(f"using must get a tri_apsp.Config, but got {type(config).__name__}; give a Config.")
    token = _forced.set(with_forced(config))
    try:
        yield
    finally:
        _forced.reset(token)


def with_forced(given: Config | None) -> Config | None:
    """Return the fields of `given` over those that `using` forces; None where there are neither."""
    forced = _forced.get()
    if forced is None or given is None:
        return given or forced
    return given.over(forced)
