"""The configuration of a solve or product, and what happens if nothing was tuned for it:
TRI_APSP_TUNE decides.
"""

import os

from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.errors import InputError
from tri_apsp.tuned import automatic, delayed_warnings
from tri_apsp.tuned.call import LookupCall
from tri_apsp.tuned.lookup import look_up
from tri_apsp.tuned.policy import policy
from tri_apsp.tuned.sources import covers_architecture, search_folders

_MISS = "miss"
_REQUIRED_FROM = 128
_WARNED_FROM = 512


def config_for_call(call: LookupCall, given: Config | None = None) -> CompleteConfig:
    """Return the configuration that a call runs with: that of `find`, except on a miss with
    "require" or "auto".

    With TRI_APSP_TUNE=require, a miss is an error. With "auto", the tuner runs first, in its own
    process, for at most 20 s. Both apply to calls of at least as many operations as one graph of
    128 vertices. Entries of other GPUs do not count.

    Args:
        call: the call.
        given: the fields that the caller sets.

    Raises:
        InputError: as `find`, or nothing was tuned for the call with "require".

    Cost: as for `find`.
    """
    config, is_miss = look_up(call, given)
    if not is_miss or call.batch * call.n**3 < _REQUIRED_FROM**3 or _is_interpreted(call):
        return config
    wanted = policy()
    if wanted == "require":
        raise _required(call)
    if wanted == "auto":
        automatic.tune(call, lambda: look_up(call, given).is_miss)
        return look_up(call, given).config
    return config


def _required(call: LookupCall) -> InputError:
    folders = ", ".join(map(str, search_folders(call.device)))
    variable = (
        "TRI_APSP_TUNE=require" if os.environ.get("TRI_APSP_TUNE") else "TRI_APSP_REQUIRE_TUNED"
    )
    return InputError(
        f"{variable} requires a tuned configuration, but there is none for {call.dtype} "
        f"near n = {call.n} on the {call.engine} engine in {folders}; "
        f"tune it with {call.command()}, or unset the variable."
    )


def issue_warnings(call: LookupCall, config: CompleteConfig) -> None:
    """Issue the warnings of a call that has succeeded, at the line of its caller outside this
    package.

    These are what its lookup has collected, and once per process that it ran with the defaults, if
    tuning is likely to make it noticeably faster.

    Args:
        call: the call.
        config: the configuration that it ran with.

    Cost: less than 1 us without a warning.
    """
    may_gain = (
        config.source == "default"
        and _MISS not in delayed_warnings.ISSUED
        and _is_worth_tuning(call)
    )
    if may_gain and policy() == "warn":
        delayed_warnings.collect(
            _MISS, f"nothing was tuned for {call.dtype}, n = {call.n}; to tune: {call.command()}"
        )
    if delayed_warnings.PENDING:
        delayed_warnings.issue()


def _is_worth_tuning(call: LookupCall) -> bool:
    """Return whether a call that ran with the defaults is likely to become noticeably faster by
    tuning.

    Measured gains over the defaults: 1.02 in the geometric mean and at most 1.4 on an H200. The
    defaults come from that machine, so on a GPU of another architecture other configurations may be
    faster. A call of fewer operations than a graph of 512 vertices takes less than milliseconds
    with any configuration.
    """
    if call.engine == "cpu" or _is_interpreted(call) or call.batch * call.n**3 < _WARNED_FROM**3:
        return False
    return not covers_architecture(call.engine, call.device.capability)


def _is_interpreted(call: LookupCall) -> bool:
    """Return whether Triton's interpreter runs the kernels, which is slow with any tiles."""
    return call.engine != "cpu" and call.torch_device.type == "cpu"
