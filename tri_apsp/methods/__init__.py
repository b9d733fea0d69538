"""The dense methods by name, as the API, the command line, the tests and the tuner know them."""

from tri_apsp.configs import SWEEP_FIELDS, USED_FIELDS, Config
from tri_apsp.errors import InputError
from tri_apsp.methods.base import Method, Observer
from tri_apsp.methods.floyd_warshall import FloydWarshall
from tri_apsp.methods.kleene import Kleene
from tri_apsp.methods.rank_one_updates import RankOneUpdates
from tri_apsp.methods.squaring import Squaring

__all__ = ["METHODS", "Method", "Observer", "require_used"]

METHODS: dict[str, Method] = {
    "floyd_warshall": FloydWarshall(),
    "kleene": Kleene(),
    "squaring": Squaring(),
    "rank_one_updates": RankOneUpdates(),
}


def require_used(name: str, method: Method | None, config: Config | None) -> None:
    """Check that a method uses every field that a configuration sets.

    A configuration that sets every field of its engine is taken whole, such as that of a result.

    Args:
        name: of the method, or "auto".
        method: the method; None for "auto", which uses every field.
        config: what the caller gave.

    Raises:
        InputError: it sets a field without effect.
    """
    if config is None:
        return
    every_field = USED_FIELDS.get(config.engine or "", frozenset())
    if every_field and all(
        getattr(config, field) is not None for field in every_field - {"method"}
    ):
        return
    for field in SWEEP_FIELDS:
        if getattr(config, field) is not None:
            raise InputError(
                f"{field} must be left out of `config`, since no dense method uses it, but is "
                f"{getattr(config, field)!r}; leave it out, or force it with tuned.using."
            )
    if method is None:
        name, method = str(config.method), METHODS.get(str(config.method))
    elif config.method not in (None, name):
        raise InputError(
            f"config.method must be left out with method {name!r}, which takes its place, but is "
            f"{config.method!r}; leave one of them out."
        )
    for field in method.unused_fields if method is not None else ():
        value = getattr(config, field)
        if value is not None:
            raise InputError(
                f"{field} must be left out with method {name!r}, which does not use it, but is "
                f"{value!r}; leave it out, or choose another method."
            )
