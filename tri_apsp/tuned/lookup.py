"""Finding the configuration of a solve: fields that the caller gives, over those tuned near its
size, over the default. TRI_APSP_TUNE decides what happens if nothing was tuned for it.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tri_apsp.configs import (
    SWEEP_FIELDS,
    CompleteConfig,
    Config,
    default_config,
    from_fields,
    invalid_because,
)
from tri_apsp.device import Device, describe
from tri_apsp.errors import InputError, TuningWarning
from tri_apsp.messages import warn_caller
from tri_apsp.semirings import DTYPES_BY_NAME, dtype_name
from tri_apsp.tuned.records import TunableKernel, records_of
from tri_apsp.tuned.store import file_name, files, generation, usable, version_mismatch

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

POLICIES = ("warn", "off", "require")
"""The values of TRI_APSP_TUNE, which says what happens if nothing was tuned for a call; the first
is the default.
"""

WARNED: set[str] = set()
"""The topics of warnings that this process has issued or suppressed."""

# The vertices of a graph from which on TRI_APSP_TUNE applies; a batch counts by its operations.
_REQUIRED_FROM, _WARNED_FROM = 128, 512

# Their keys in os.environ._data, where a lookup takes 1 us. os.environ.get takes 5 us for a
# variable that is not set, since it raises and catches an exception.
_KEYS = tuple(map(os.environ.encodekey, ("TRI_APSP_CONFIG_DIR", "TRI_APSP_TUNE")))
# The size of the cache: more sizes than a program is likely to solve, and about a megabyte.
_MAX_RESULTS = 1024


class LookupCall(NamedTuple):
    """A solve, or a product, for which a configuration is looked up.

    Attributes:
        engine: "cpu", "nvidia" or "portable".
        torch_device: the device of the tensors.
        device: the facts of that device.
        dtype: the name of the dtype, such as "float32".
        n: vertices; of a product (m, k) by (k, n), the cube root of m k n. 0: no tuned entry is
            looked up.
        batch: the number of graphs.
        sign: the sign of the weights, one of tri_apsp.semirings.SIGNS.
        kind: one of tri_apsp.tuned.records.CALLS.
    """

    engine: str
    torch_device: torch.device
    device: Device
    dtype: str
    n: int
    batch: int
    sign: str
    kind: str

    def records(self) -> list[TunableKernel[Any]]:
        """Return the kernels to look up, in the order of tuning."""
        return [
            record
            for record in records_of(self.engine)
            if self.kind in record.calls and self.dtype in record.dtypes and self.n >= record.from_n
        ]

    def command(self) -> str:
        """Return the command that tunes this size, as a user may type it."""
        return (
            f"python -m tri_apsp.tune --device {self.torch_device} --engine {self.engine} "
            f"--dtype {self.dtype} --n {self.n} --sign {self.sign}"
        )


def call_of(
    engine: str,
    device: torch.device,
    dtype: torch.dtype,
    *,
    n: int,
    batch: int = 1,
    nonnegative: bool = False,
    product: bool = False,
    sweep: bool = False,
) -> LookupCall:
    """Return the call with these arguments of `tri_apsp.tuned.find`."""
    kind = "sweep" if sweep else "product" if product else "batch" if batch > 1 else "solve"
    sign = "nonnegative" if nonnegative else "any"
    return LookupCall(engine, device, describe(device), dtype_name(dtype), n, batch, sign, kind)


class LookupResult(NamedTuple):
    """The result of a lookup.

    Attributes:
        config: the complete configuration.
        is_miss: whether no kernel of the call has an entry of this GPU (or CPU), although one was
            looked up.
        problems: warnings about tuned files, by topic.
    """

    config: CompleteConfig
    is_miss: bool
    problems: dict[str, str]


RESULTS: dict[Any, LookupResult] = {}
"""The results of lookups by their arguments, the environment and the generation of the files."""

_forced: ContextVar[Config | None] = ContextVar("tri_apsp_forced", default=None)
_heard: ContextVar[list[LookupCall] | None] = ContextVar("tri_apsp_heard", default=None)


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

    Examples:
        >>> import torch
        >>> from tri_apsp import Config, shortest_paths, tuned
        >>> weights = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
        >>> with tuned.using(Config(method="squaring")):
        ...     print(shortest_paths(weights).method)
        squaring
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


@contextmanager
def lookups() -> Iterator[list[LookupCall]]:
    """Give a list that receives the call of each lookup of this thread inside a `with`; plans that
    are kept look up again.
    """
    found = list[LookupCall]()
    token = _heard.set(found)
    try:
        yield found
    finally:
        _heard.reset(token)


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
    sweep: bool = False,
) -> CompleteConfig:
    """Return the complete configuration of a solve; its `source` names where it came from. Nothing
    is measured.

    For each kernel, the nearest entry within a factor of two of the size is used, and of entries
    with the same key the one of the first of `directories`. A kernel without such an entry takes
    that of the nearest GPU of the same compute capability: the one with the nearest number of
    units, of several the first by name. Without any entry, the default is used. Fields of `using`
    override these, and fields of `given` override both.

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
        sweep: whether the call is of sweeps over an elimination tree, to which only their entries
            apply, and of `using` only their fields.

    Returns:
        Every field that the engine reads has a value, `method` excepted. `source` is "default", or
        the paths of the tuned files, after "given" if `given` or `using` sets a field.

    Raises:
        InputError: the result cannot run on the device, with the rule that it breaks; or
            TRI_APSP_TUNE has an unknown value.

    Cost:
        Some microseconds if the arguments are those of an earlier call. Files are read once per
        process, and again after save() or reload().

    Examples:
        >>> import torch
        >>> from tri_apsp import Config, tuned
        >>> cpu = torch.device("cpu")
        >>> config = tuned.find("cpu", cpu, torch.float32, Config(cutoff=64), n=1000)
        >>> config.engine, config.cutoff, config.source.split(",")[0]
        ('cpu', 64, 'given')
    """
    call = call_of(
        engine,
        device,
        dtype,
        n=n or 0,
        batch=batch,
        nonnegative=nonnegative,
        product=product,
        sweep=sweep,
    )
    return look_up(call, given).config


def environment() -> tuple[object, ...]:
    """Return what lookups depend on besides their arguments, as a key for caches: files, variables,
    what `using` forces, and who listens.
    """
    variables = map(os.environ._data.get, _KEYS)  # type: ignore[attr-defined]
    return (generation(), repr(with_forced(None)), id(_heard.get()), *variables)


def policy() -> str:
    """Return the value of TRI_APSP_TUNE, one of POLICIES.

    Raises:
        InputError: it has another value.
    """
    value = os.environ.get("TRI_APSP_TUNE") or POLICIES[0]
    if value not in POLICIES:
        raise InputError(
            f"TRI_APSP_TUNE must be one of {', '.join(POLICIES)}, but is {value!r}; "
            "correct or unset it."
        )
    return value


def look_up(call: LookupCall, given: Config | None = None) -> LookupResult:
    """As `find`, and also return whether it was a miss, and what is wrong with tuned files."""
    given = with_forced(given)
    if call.kind == "sweep" and given is not None:
        given = Config(**{name: getattr(given, name) for name in SWEEP_FIELDS})
    # The text of `given` is the key, since its fields need not be hashable, and since 64.0, which
    # is refused, equals 64.
    key = call, repr(given), environment()
    heard = _heard.get()
    if heard is not None:
        heard.append(call)
    known = RESULTS.get(key)
    if known is not None:
        return known
    policy()  # raises if TRI_APSP_TUNE has an unknown value
    found = _Lookup(call, given).result()
    reason = invalid_because(found.config, call.device)
    if reason is not None:
        raise InputError(reason)
    if len(RESULTS) >= _MAX_RESULTS:
        RESULTS.clear()
    RESULTS[key] = found
    return found


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

    Cost:
        As for `find`.
    """
    found = look_up(call, given)
    for topic, message in found.problems.items():
        if topic not in WARNED:
            WARNED.add(topic)
            warn_caller(message, TuningWarning)
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
        WARNED.add(topic)
        if not _is_covered(call):
            message = f"nothing was tuned for {call.dtype}, n = {call.n}; to tune: {call.command()}"
            warn_caller(message, TuningWarning)
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


class _Lookup:
    """The state of a lookup.

    Attributes:
        config: the default, with the fields of the entries that are used.
        used: the sources of these entries, in their order.
        problems: as in LookupResult.
    """

    def __init__(self, call: LookupCall, given: Config | None) -> None:
        self.config = default_config(call.engine, DTYPES_BY_NAME[call.dtype], call.device)
        self.used: dict[str, None] = {}
        self.problems: dict[str, str] = {}
        self._call, self._given = call, given
        self._settled: set[str] = set()  # the fields that earlier entries set

    def result(self) -> LookupResult:
        """Look up each kernel of the call whose fields the caller does not set."""
        named = os.environ.get("TRI_APSP_CONFIG_DIR")
        if named and not os.path.isdir(named):  # noqa: PTH112 (Path.is_dir raises PermissionError)
            self.problems[f"TRI_APSP_CONFIG_DIR {named}"] = (
                f"TRI_APSP_CONFIG_DIR must name a folder of tuned files, but {named} is none; "
                "correct the variable, or unset it."
            )
        records = [
            record for record in self._call.records() if not _sets(self._given, record.fields)
        ]
        # The solve first: it decides the size of closures, and its fields are not changed.
        records.sort(key=lambda record: not record.is_solve)
        missing = [record for record in records if not self._use_entry(record)]
        # An entry for any kernel counts as tuned, because the kernels that run depend on method and
        # size.
        is_miss = bool(records) and not self.used
        for record in missing:
            self._use_entry(record, of_other_gpus=True)
        config = self.config
        if self.used:
            config = dataclasses.replace(config, source=", ".join(self.used))
        if self._given is not None:
            config = self._given.over(config)
        return LookupResult(config, is_miss, self.problems)

    def _use_entry(self, record: TunableKernel[Any], *, of_other_gpus: bool = False) -> bool:
        """Put the fields of the best entry of a kernel into `config`, and return whether there is
        one.
        """
        call, given = self._call, self._given
        size = record.lookup_size(call.n, self.config if given is None else given.over(self.config))
        for source, file, entry in nearest(self._files(record.name, of_other_gpus), call, size):
            fields = {
                name: value for name, value in entry.config.items() if name not in self._settled
            }
            changed = dataclasses.replace(self.config, **from_fields(call.engine, fields).given())
            mismatch = version_mismatch(entry.run or file)
            if mismatch is not None and not of_other_gpus:
                # Usually true of all files of a machine, so only the first is reported.
                self.problems.setdefault(
                    mismatch,
                    f"a tuned file may be out of date: {source} {mismatch}; tune it again, and "
                    "others of that version.",
                )
            if invalid_because(changed, call.device) is None:
                self.config = changed
                self._settled |= entry.config.keys()
                if fields:  # else a solve has set them all
                    self.used[source] = None
                return True
        return False

    def _files(self, kernel: str, of_other_gpus: bool) -> Iterator[tuple[str, TunedFile]]:
        """Yield the files of a kernel that may be used, each with its source: those of this GPU, or
        those of other GPUs of its compute capability.
        """
        call = self._call
        folder = "*" if of_other_gpus else call.device.slug
        for path in files(f"{folder}/{file_name(call.engine, kernel, call.dtype)}"):
            file, reason = usable(path, call.device)
            if file is not None and (file.slug != call.device.slug) == of_other_gpus:
                yield f"{path}, tuned for {file.gpu}" if of_other_gpus else str(path), file
            elif reason is not None and not of_other_gpus:
                self.problems[str(path)] = f"a tuned file is not used: {reason}"


def nearest(
    files: Iterable[tuple[str, TunedFile]], call: LookupCall, n: int
) -> list[tuple[str, TunedFile, Entry]]:
    """Return the entries of `files` within a factor of two of `n`, best first, each with its source
    and file.

    Entries of the GPU with the nearest number of units come first; among these, those of the same
    sign, then those for one graph or for a batch, as the call is, then the nearest n, then the
    nearest batch. Entries that are alike keep the order of `files`.
    """
    batch = max(1, call.batch)

    def distance(found: tuple[str, TunedFile, Entry]) -> tuple[int, str, bool, bool, float, float]:
        _, file, entry = found
        other_kind = (entry.batch > 1) != (batch > 1)
        sizes = abs(math.log2(entry.n / n)), abs(math.log2(entry.batch / batch))
        units = abs(file.units - call.device.units)
        return units, file.slug, entry.sign != call.sign, other_kind, *sizes

    near = [
        (source, file, entry)
        for source, file in files
        for entry in file.entries
        if entry.n <= 2 * n and n <= 2 * entry.n
    ]
    return sorted(near, key=distance)


def _sets(given: Config | None, fields: tuple[str, ...]) -> bool:
    """Return whether `given` sets all of `fields`; a method may be missing, since `auto` chooses
    one then.
    """
    return given is not None and all(
        getattr(given, name) is not None for name in fields if name != "method"
    )
