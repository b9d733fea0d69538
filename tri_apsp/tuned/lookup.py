"""Finding the configuration of a solve: fields that the caller gives, over those tuned near its size, over the default."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from tri_apsp.configs import CompleteConfig, Config, default_config, from_fields, invalid_because, require_valid
from tri_apsp.device import Device, describe
from tri_apsp.errors import InputError
from tri_apsp.semirings import dtype_name
from tri_apsp.tuned.compatibility import version_mismatch
from tri_apsp.tuned.forced import with_forced
from tri_apsp.tuned.reading import ANSWERS, search_folders, sources, warn_once
from tri_apsp.tuned.records import TunableKernel, records_of

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = ["find", "nearest"]

# A miss is warned about from this n on, or from a batch of as many operations: smaller solves take milliseconds with any tiles,
# and a quick sweep starts here. TRI_APSP_REQUIRE_TUNED applies from the sizes of a full sweep on, which are smaller.
_MIN_WARNED = 512
_MIN_REQUIRED = 128

# The most answers kept: more sizes than a program is likely to solve, and about a megabyte.
_MAX_ANSWERS = 1024


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
    """Return the complete configuration of a solve; its `source` names where it came from.

    For each kernel, the first location with an entry within a factor of two of the size supplies its nearest entry. The
    locations are TRI_APSP_CONFIG_DIR, the files of `remember`, and the other `directories` in their order. Without an entry,
    the default is used. Fields of `using` override these, and fields of `given` override both.

    Args:
        engine: "cpu", "nvidia" or "portable".
        device: the device of the tensors.
        dtype: the dtype of the weights.
        given: the fields that the caller sets.
        n: vertices; of a product (m, k) by (k, n), the cube root of m k n. None: nothing tuned is looked up.
        batch: graphs solved in one call.
        nonnegative: whether no weight is negative; entries for weights of that kind are preferred.
        product: whether the call is a product, to which entries of a solve do not apply.

    Raises:
        InputError: the result cannot run on the device, with the rule that it breaks; or nothing was tuned for this size
            although TRI_APSP_REQUIRE_TUNED is set, and not to 0.

    Cost: some microseconds if the arguments are those of an earlier call. Files are read once per process, and again after
    save(), reset() or reload().
    """
    given, facts, variable = with_forced(given), describe(device), os.environ.get
    # The fields of `given` need not be hashable, and 64.0, which is refused, equals 64: so its text is the key.
    key = (
        engine, facts, dtype, n, batch, nonnegative, product, None if given is None else repr(given),
        variable("TRI_APSP_CONFIG_DIR"), variable("TRI_APSP_TUNED_FOR"), variable("TRI_APSP_REQUIRE_TUNED"),
    )  # fmt: skip
    known = ANSWERS.get(key)
    if known is not None:
        return known
    found = default_config(engine, dtype)
    if n:
        call = "product" if product else "batch" if batch > 1 else "solve"
        sign = "nonnegative" if nonnegative else "any"
        found = _Lookup(engine, device, facts, dtype_name(dtype), n, max(1, batch), sign, call).over(found, given)
    if given is not None:
        found = given.over(found)
    require_valid(found, facts)
    if len(ANSWERS) >= _MAX_ANSWERS:
        ANSWERS.clear()
    ANSWERS[key] = found
    return found


@dataclasses.dataclass(frozen=True)
class _Lookup:
    """The arguments of a lookup; see find()."""

    engine: str
    torch_device: torch.device
    device: Device
    dtype: str
    n: int
    batch: int
    sign: str
    call: str

    def over(self, config: CompleteConfig, given: Config | None) -> CompleteConfig:
        """Return `config` with the fields of the entries found; kernels whose fields `given` sets are not looked up."""
        records = [record for record in self._records() if not _sets(given, record.fields)]
        used: dict[str, None] = {}
        settled: set[str] = set()
        for record in records:
            size = record.lookup_size(self.n, config if given is None else given.over(config))
            for source, entry in self._entries(record.name, size):
                fields = {name: value for name, value in entry.config.items() if name not in settled}
                if not fields:
                    break  # a solve has set them
                changed = self._with(config, fields, source)
                if changed is not None:
                    config = changed
                    used[source] = None
                    settled |= entry.config.keys()
                    break
        if records and not used:
            self._miss()
        return dataclasses.replace(config, source=", ".join(used)) if used else config

    def _records(self) -> list[TunableKernel[Any]]:
        """Return the kernels to look up, the solve first: it decides the size of closures, and its fields are not changed."""
        records = [record for record in records_of(self.engine) if self.call in record.calls]
        return sorted(records, key=lambda record: not record.is_solve)

    def _entries(self, kernel: str, size: int) -> Iterator[tuple[str, Entry]]:
        """Yield the entries within a factor of two of `size`, best first, each with its file."""
        for source, file in sources(self.engine, kernel, self.dtype, self.device):
            for entry in nearest(file, size, self.batch, self.sign):
                mismatch = version_mismatch(self.engine, entry.run or file)
                if mismatch is not None:  # mostly true of all files of a machine, and reported for the first
                    warn_once(
                        mismatch,
                        f"a tuned file may be out of date: {source} {mismatch}; tune it again, and others of that version.",
                    )
                yield source, entry

    def _with(self, config: CompleteConfig, fields: dict[str, Any], source: str) -> CompleteConfig | None:
        """Return `config` with `fields`; None, with a warning, if the result cannot run here."""
        tuned = from_fields(self.engine, fields)
        changed = dataclasses.replace(config, **{name: getattr(tuned, name) for name in fields})
        reason = invalid_because(changed, self.device)
        if reason is not None:
            warn_once(f"{source} {fields}", f"an entry of {source} is not used: {reason}")
        return changed if reason is None else None

    def _miss(self) -> None:
        """Warn, once per process, that nothing was tuned for this call; raise instead if TRI_APSP_REQUIRE_TUNED asks for it.

        An entry for any kernel counts as tuned, because the kernels that run depend on method and size.
        """
        required = os.environ.get("TRI_APSP_REQUIRE_TUNED", "") not in ("", "0")
        least = _MIN_REQUIRED if required else _MIN_WARNED
        # Triton's interpreter is slow with any tiles.
        if self.batch * self.n**3 < least**3 or (self.engine != "cpu" and self.torch_device.type == "cpu"):
            return
        what = f"{self.dtype} near n = {self.n} on the {self.engine} engine"
        folders = ", ".join(map(str, search_folders(self.device)))
        command = (
            f"python -m tri_apsp.tune --device {self.torch_device} --engine {self.engine} --dtype {self.dtype} --n {self.n}"
        )
        if required:
            raise InputError(
                f"TRI_APSP_REQUIRE_TUNED asks for a tuned configuration, but there is none for {what} in {folders}; tune it "
                f"with {command}, or unset the variable."
            )
        warn_once("miss", f"nothing was tuned for {what}, so defaults are used (searched {folders}); tune it with {command}")


def nearest(file: TunedFile, n: int, batch: int, sign: str) -> list[Entry]:
    """Return the entries of `file` within a factor of two of `n`, best first.

    Entries of the same sign come first; among these, entries for one graph or for a batch, as `batch` is; then the nearest n.
    """

    def distance(entry: Entry) -> tuple[bool, bool, float, float]:
        other_kind = (entry.batch > 1) != (batch > 1)
        return entry.sign != sign, other_kind, abs(math.log2(entry.n / n)), abs(math.log2(entry.batch / batch))

    return sorted((entry for entry in file.entries if entry.n <= 2 * n and n <= 2 * entry.n), key=distance)


def _sets(given: Config | None, fields: tuple[str, ...]) -> bool:
    """Return whether `given` sets all of `fields`; a method may be missing, since `auto` chooses one then."""
    return given is not None and all(getattr(given, name) is not None for name in fields if name != "method")
