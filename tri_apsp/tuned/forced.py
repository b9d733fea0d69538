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
    """Force a configuration on every solve and product inside a `with`, also in functions that it
    calls.

    Args:
        config: its fields override what was tuned. The `config` argument of a call and a `with`
            inside this one override it.

    Raises:
        InputError: config is no Config. A configuration that cannot run is refused by the call that
            would use it.

    Holds for the thread (or asyncio task) that entered the `with`, like every context variable.
    """
    if not isinstance(config, Config):
        raise InputError(
            f"using must get a tri_apsp.Config, but got {type(config).__name__}; give a Config."
        )
    token = _forced.set(with_forced(config))
    try:
        yield
    finally:
        _forced.reset(token)


def with_forced(given: Config | None) -> Config | None:
    """Return the fields of `given` over those that `using` forces; None if there are neither."""
    forced = _forced.get()
    if forced is None or given is None:
        return given or forced
    return given.over(forced)
