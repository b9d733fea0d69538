"""What a solve does if nothing was tuned for it: TRI_APSP_TUNE decides."""

from __future__ import annotations

import os
from functools import partial

import torch

from tri_apsp.configs import CompleteConfig, Config
from tri_apsp.errors import InputError
from tri_apsp.tuned import automatic, pending
from tri_apsp.tuned.call import Call, call_of
from tri_apsp.tuned.lookup import look_up
from tri_apsp.tuned.paths import is_frozen, save_directory
from tri_apsp.tuned.policy import gains, is_large, policy
from tri_apsp.tuned.reading import search_folders

__all__ = ["choose", "issue_warnings"]

_MISS = "miss"


def choose(
    engine: str,
    device: torch.device,
    dtype: torch.dtype,
    given: Config | None = None,
    *,
    n: int,
    batch: int = 1,
    nonnegative: bool = False,
    product: bool = False,
) -> CompleteConfig:
    """Return the configuration that a solve runs with: as `find`, but on a miss TRI_APSP_TUNE may ask for more.

    With "require", a miss is an error; with "auto", the tuner runs first, in a process of its own, for 20 s at most. Both apply
    to calls of at least as many operations as one graph of 128 vertices. Entries of other GPUs do not count.

    Args and cost: as for `find`.

    Raises:
        InputError: as `find`, or nothing was tuned for a call with "require".
    """
    answer = partial(look_up, engine, device, dtype, given, n=n, batch=batch, nonnegative=nonnegative, product=product)
    config, miss = answer()
    if miss is None or not is_large(miss):
        return config
    wanted = policy()
    if wanted == "require":
        raise _required(miss)
    if wanted == "auto":
        automatic.tune(miss, lambda: answer().miss is not None)
        return answer().config
    return config


def _required(call: Call) -> InputError:
    folders = ", ".join(map(str, search_folders(call.device)))
    variable = "TRI_APSP_TUNE=require" if os.environ.get("TRI_APSP_TUNE") else "TRI_APSP_REQUIRE_TUNED"
    return InputError(
        f"{variable} asks for a tuned configuration, but there is none for {call.dtype} near n = {call.n} on the "
        f"{call.engine} engine in {folders}; tune it with {call.command()}, or unset the variable."
    )


def issue_warnings(
    config: CompleteConfig,
    device: torch.device,
    dtype: torch.dtype,
    *,
    n: int,
    batch: int = 1,
    product: bool = False,
) -> None:
    """Issue the warnings of a call that has succeeded, at the line of its caller outside this package.

    These are what its lookup has collected, and once per process that nothing was tuned for it, if tuning is likely to make it
    noticeably faster.

    Args:
        config: the configuration that it ran with.
        device: the device of the tensors.
        dtype: the dtype of the weights.
        n: vertices, as for `find`.
        batch: graphs.
        product: whether it was a product.

    Cost: less than 1 us without a warning.
    """
    if config.source == "default" and _MISS not in pending.ISSUED and gains(config.engine, device, n, batch, product=product):
        call = call_of(config.engine, device, dtype, n, batch, nonnegative=True, product=product)
        if policy() == "warn" and not is_frozen(save_directory()):
            pending.collect(_MISS, f"nothing was tuned for {call.dtype}, n = {n}; to tune: {call.command()}")
    if pending.PENDING:
        pending.issue()
