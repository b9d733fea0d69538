"""The configuration of a solve or product, and what happens if nothing was tuned for it:
TRI_APSP_TUNE decides.
"""

from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.messages import warn_caller
from tri_apsp.tuned.lookup import LookupCall, look_up, policy
from tri_apsp.tuned.store import files, usable

_REQUIRED_FROM = 128
_WARNED_FROM = 512

WARNED: set[str] = set()
"""The topics on which this process has decided whether to warn."""


def config_for_call(call: LookupCall, given: Config | None = None) -> CompleteConfig:
    """Return the configuration that a call runs with: that of `find`. Issue each warning once per
    process, at the line of the caller outside this package.

    With TRI_APSP_TUNE=require, a miss is an error for calls of at least as many operations as one
    graph of 128 vertices. Entries of other GPUs do not count.

    Args:
        call: the call.
        given: the fields that the caller sets.

    Raises:
        InputError: as `find`, or nothing was tuned for the call with "require".

    Cost: as for `find`.
    """
    found = look_up(call, given)
    for topic, message in found.problems.items():
        _warn_once(topic, message)
    operations = call.batch * call.n**3
    # Triton's interpreter is slow with any tiles.
    is_interpreted = call.engine != "cpu" and call.torch_device.type == "cpu"
    if not found.is_miss or operations < _REQUIRED_FROM**3 or is_interpreted:
        return found.config
    wanted = policy()
    if wanted == "require":
        raise InputError(
            "TRI_APSP_TUNE=require requires a tuned configuration, but there is none for "
            f"{call.dtype} near n = {call.n} on the {call.engine} engine; "
            f"tune it with {call.command()}, or unset the variable."
        )
    topic = f"miss {call.engine}"
    # A call of fewer operations takes less than milliseconds with any configuration.
    may_gain = operations >= _WARNED_FROM**3 and call.engine != "cpu"
    if wanted == "warn" and may_gain and found.config.source == "default" and topic not in WARNED:
        message = f"nothing was tuned for {call.dtype}, n = {call.n}; to tune: {call.command()}"
        if _is_covered(call):
            WARNED.add(topic)
        else:
            _warn_once(topic, message)
    return found.config


def _is_covered(call: LookupCall) -> bool:
    """Return whether lookups on this device use a file of the engine, for whatever size.

    The measured gains over the defaults are 1.02 in the geometric mean and at most 1.4 on an H200,
    from which the defaults come, except for batches of graphs of at most 32 vertices. On a GPU of
    another architecture other configurations may be faster.
    """
    return any(
        usable(path, call.device)[0] is not None for path in files(f"*/{call.engine}-*.json")
    )


def _warn_once(topic: str, message: str) -> None:
    if topic not in WARNED:
        WARNED.add(topic)
        warn_caller(message, TuningWarning)
