"""Finding the configuration of a solve: fields that the caller gives, over those tuned near its
size, over the default.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tri_apsp.configs import (
    CompleteConfig,
    Config,
    default_config,
    from_fields,
    invalid_because,
    require_valid,
)
from tri_apsp.device import Device
from tri_apsp.errors import InputError
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.call import LookupCall, call_of
from tri_apsp.tuned.compatibility import version_mismatch
from tri_apsp.tuned.delayed_warnings import collect
from tri_apsp.tuned.policy import policy
from tri_apsp.tuned.records import TunableKernel
from tri_apsp.tuned.sources import files_of_other_gpus, files_of_this_gpu
from tri_apsp.tuned.store import generation

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

_VARIABLES = (
    "TRI_APSP_CONFIG_DIR",
    "TRI_APSP_TUNED_FOR",
    "TRI_APSP_TUNE",
    "TRI_APSP_REQUIRE_TUNED",
)
# To read them without the exception that os.environ.get raises and catches for each that is not
# set: 2 instead of 10 us.
_KEYS = tuple(map(os.environ.encodekey, _VARIABLES))
# The most results kept: more sizes than a program is likely to solve, and about a megabyte.
_MAX_RESULTS = 1024


class LookupResult(NamedTuple):
    """The result of a lookup.

    Attributes:
        config: the complete configuration.
        is_miss: whether no kernel of the call has an entry of this GPU (or CPU), although one was
            looked up.
    """

    config: CompleteConfig
    is_miss: bool


RESULTS: dict[Any, LookupResult] = {}
"""The results of lookups by their arguments, the environment and the generation of the files."""

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


def find(
    engine: str,
    device: torch.device,
    dtype: torch.dtype,
    given: Config | None = None,
    *,
    n: int | None = None,
    batch: int = 1,
    nonnegative: bool = False,
    product: bool = False,
) -> CompleteConfig:
    """Return the complete configuration of a solve; its `source` names where it came from. Nothing
    is measured.

    For each kernel, the nearest entry within a factor of two of the size is used, and of entries
    with the same key the one of the first of `directories`. A kernel without such an entry takes
    that of the nearest GPU of the same architecture; see `files_of_other_gpus`. Without any entry,
    the default is used. Fields of `using` override these, and fields of `given` override both.

    Args:
        engine: "cpu", "nvidia" or "portable".
        device: the device of the tensors.
        dtype: the dtype of the weights.
        given: the fields that the caller sets.
        n: vertices; of a product (m, k) by (k, n), the cube root of m k n. None: nothing tuned is
            looked up.
        batch: graphs solved in one call.
        nonnegative: whether no weight is negative; entries for weights of that kind are preferred.
        product: whether the call is a product, to which entries of a solve do not apply.

    Raises:
        InputError: the result cannot run on the device, with the rule that it breaks; or
            TRI_APSP_TUNE has an unknown value.

    Cost: some microseconds if the arguments are those of an earlier call. Files are read once per
    process, and again after save() or reload().
    """
    call = call_of(
        engine,
        device,
        dtype,
        n=n or 0,
        batch=batch,
        nonnegative=nonnegative,
        product=product,
    )
    return look_up(call, given).config


def environment() -> tuple[object, ...]:
    """Return what lookups depend on besides their arguments, to keep results by: files, variables,
    and what `using` forces.

    With the generation, a result from files that another thread has changed meanwhile is not found
    again.
    """
    forced = with_forced(None)
    variables = map(os.environ._data.get, _KEYS)  # type: ignore[attr-defined]
    return (generation(), None if forced is None else repr(forced), *variables)


def look_up(call: LookupCall, given: Config | None = None) -> LookupResult:
    """As `find`, and also return whether it was a miss."""
    given = with_forced(given)
    # The fields of `given` need not be hashable, and 64.0, which is refused, equals 64: so its text
    # is the key.
    key = call, None if given is None else repr(given), environment()
    known = RESULTS.get(key)
    if known is not None:
        return known
    policy()  # raises if TRI_APSP_TUNE has an unknown value
    found = LookupResult(default_config(call.engine, DTYPES_BY_NAME[call.dtype]), is_miss=False)
    if call.n:
        found = _over(found.config, call, given)
    if given is not None:
        found = found._replace(config=given.over(found.config))
    require_valid(found.config, call.device)
    if len(RESULTS) >= _MAX_RESULTS:
        RESULTS.clear()
    RESULTS[key] = found
    return found


def _over(default: CompleteConfig, call: LookupCall, given: Config | None) -> LookupResult:
    """Return `default` with the fields of the entries found; kernels whose fields `given` sets are
    not looked up.
    """
    records = [record for record in call.records() if not _sets(given, record.fields)]
    search = _Search(call, default, given)
    missing = [record for record in records if not search.use_entry(record, files_of_this_gpu)]
    # An entry for any kernel counts as tuned, because the kernels that run depend on method and
    # size.
    is_miss = bool(records) and not search.used
    for record in missing:
        search.use_entry(record, files_of_other_gpus, quiet=True)
    config = search.config
    return LookupResult(
        dataclasses.replace(config, source=", ".join(search.used)) if search.used else config,
        is_miss,
    )


class _Search:
    """The state of a lookup.

    Attributes:
        config: the default, with the fields of the entries that are used.
        used: the sources of these entries, in their order.
    """

    def __init__(self, call: LookupCall, default: CompleteConfig, given: Config | None) -> None:
        self.config = default
        self.used: dict[str, None] = {}
        self._call, self._given = call, given
        self._settled: set[str] = set()  # the fields that these entries set, which later ones leave

    def use_entry(
        self,
        record: TunableKernel[Any],
        files: Callable[[str, str, str, Device], Iterator[tuple[str, TunedFile]]],
        *,
        quiet: bool = False,
    ) -> bool:
        """Put the fields of the best entry of a kernel into `config`, and return whether there is
        one.

        Args:
            record: the kernel.
            files: returns the files of a kernel, the most important first, each with its source.
            quiet: collect no warnings about entries that cannot run here, or may be out of date.
        """
        call = self._call
        size = record.lookup_size(
            call.n, self.config if self._given is None else self._given.over(self.config)
        )
        for source, file, entry in nearest(
            files(call.engine, record.name, call.dtype, call.device),
            size,
            max(1, call.batch),
            call.sign,
        ):
            fields = {
                name: value for name, value in entry.config.items() if name not in self._settled
            }
            if not fields:
                return True  # a solve has set them
            tuned = from_fields(call.engine, fields)
            changed = dataclasses.replace(
                self.config, **{name: getattr(tuned, name) for name in fields}
            )
            reason = invalid_because(changed, call.device)
            if not quiet:
                self._collect_warnings(
                    source, fields, reason, version_mismatch(call.engine, entry.run or file)
                )
            if reason is None:
                self.config = changed
                self.used[source] = None
                self._settled |= entry.config.keys()
                return True
        return False

    def _collect_warnings(
        self, source: str, fields: dict[str, Any], reason: str | None, mismatch: str | None
    ) -> None:
        if mismatch is not None:
            # Mostly true of all files of a machine, so it is reported for the first alone.
            collect(
                mismatch,
                f"a tuned file may be out of date: {source} {mismatch}; tune it again, and others "
                "of that version.",
            )
        if reason is not None:
            collect(f"{source} {fields}", f"an entry of {source} is not used: {reason}")


def nearest(
    files: Iterable[tuple[str, TunedFile]], n: int, batch: int, sign: str
) -> list[tuple[str, TunedFile, Entry]]:
    """Return the entries of `files` within a factor of two of `n`, best first, each with its source
    and file.

    Entries of the GPU of the first file come first; among these, those of the same sign, then those
    for one graph or for a batch, as `batch` is, then the nearest n, then the nearest batch. Entries
    that are alike keep the order of `files`.
    """
    gpus: dict[str, int] = {}

    def distance(found: tuple[str, TunedFile, Entry]) -> tuple[int, bool, bool, float, float]:
        _, file, entry = found
        other_kind = (entry.batch > 1) != (batch > 1)
        sizes = abs(math.log2(entry.n / n)), abs(math.log2(entry.batch / batch))
        return gpus[file.slug], entry.sign != sign, other_kind, *sizes

    near = []
    for source, file in files:
        gpus.setdefault(file.slug, len(gpus))
        near += [
            (source, file, entry) for entry in file.entries if entry.n <= 2 * n and n <= 2 * entry.n
        ]
    return sorted(near, key=distance)


def _sets(given: Config | None, fields: tuple[str, ...]) -> bool:
    """Return whether `given` sets all of `fields`; a method may be missing, since `auto` chooses
    one then.
    """
    return given is not None and all(
        getattr(given, name) is not None for name in fields if name != "method"
    )
