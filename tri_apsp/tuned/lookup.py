"""Which configuration a solve runs with: what the caller gave, over what was tuned near its size, over the default."""

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
from tri_apsp.tuned.cache import FOUND, warn_once
from tri_apsp.tuned.forced import with_forced
from tri_apsp.tuned.kernels import FIELDS, KERNELS, size_in_solve
from tri_apsp.tuned.refusals import doubt
from tri_apsp.tuned.sources import searched, sources

if TYPE_CHECKING:
    from tri_apsp.tuned.schema import Entry, TunedFile

__all__ = ["find", "near"]

# A miss is worth a word from this n on, or a batch of as many operations: less takes some milliseconds with any tiles, and a
# quick sweep starts here. Who requires tuned files means all that a full sweep covers, and that starts lower.
_WORTH_A_WORD = 512
_REQUIRED = 128

# Answers remembered: more sizes than a program is likely to solve, and about a megabyte.
_MOST = 1024


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
    """Return the whole configuration of a solve; its `source` says where it came from.

    For each kernel of the engine the first of these decides that has an entry within a factor of two of its size, with the
    nearest: TRI_APSP_CONFIG_DIR, what was tuned in this process, the other `directories` in their order; else the default. Over
    all of it come the fields that `using` forces, and over those the fields of `given`.

    Args:
        engine: "cpu", "nvidia" or "portable".
        device: where the tensors are.
        dtype: of the weights.
        given: what the caller asks for.
        n: vertices; of a product (m, k) by (k, n), the cube root of m k n. None: nothing tuned is looked up.
        batch: graphs solved in one call.
        nonnegative: whether no weight is negative; entries for weights of that kind are preferred.
        product: whether it is a product alone, to which entries of a solve do not apply.

    Raises:
        InputError: the result cannot run on the device, with the rule that it breaks; or nothing was tuned for this size
            although TRI_APSP_REQUIRE_TUNED is set, but not to 0.

    Cost: some microseconds where the same was asked before. Files are read once a process, and again after save(), reset() or
    reload().
    """
    given, facts, variable = with_forced(given), describe(device), os.environ.get
    # What a caller gives need not be hashable, and 64.0, which is refused, equals 64: so by its text.
    key = (
        engine, facts, dtype, n, batch, nonnegative, product, None if given is None else repr(given),
        variable("TRI_APSP_CONFIG_DIR"), variable("TRI_APSP_TUNED_FOR"), variable("TRI_APSP_REQUIRE_TUNED"),
    )  # fmt: skip
    known = FOUND.get(key)
    if known is not None:
        return known
    found = default_config(engine, dtype)
    if n:
        sign = "nonnegative" if nonnegative else "any"
        found = _Search(engine, device, facts, dtype_name(dtype), n, max(1, batch), sign, product).over(found, given)
    if given is not None:
        found = given.over(found)
    require_valid(found, facts)
    if len(FOUND) >= _MOST:
        FOUND.clear()
    FOUND[key] = found
    return found


@dataclasses.dataclass(frozen=True)
class _Search:
    """What to look for; see find()."""

    engine: str
    place: torch.device
    device: Device
    dtype: str
    n: int
    batch: int
    sign: str
    product: bool

    def over(self, config: CompleteConfig, given: Config | None) -> CompleteConfig:
        """Return `config` with the fields of the entries found; those that `given` sets are not looked up."""
        kernels = [kernel for kernel in self._kernels() if not _sets(given, FIELDS[self.engine, kernel])]
        used: dict[str, None] = {}
        settled: set[str] = set()
        for kernel in kernels:
            size = size_in_solve(kernel, self.n, config if given is None else given.over(config))
            for source, entry in self._entries(kernel, size):
                fields = {name: value for name, value in entry.config.items() if name not in settled}
                if not fields:
                    break  # a solve has set them
                changed = self._with(config, fields, source)
                if changed is not None:
                    config = changed
                    used[source] = None
                    settled |= entry.config.keys()
                    break
        if kernels and not used:
            self._miss()
        return dataclasses.replace(config, source=", ".join(used)) if used else config

    def _kernels(self) -> list[str]:
        """Return what to look up; the solve first: it says how large closures are, and no kernel changes what it sets.

        In a solve, a product that does not fill the GPU is mostly a stripe of a panel. What is best for small square products
        slowed solves in int16 by up to 14% on an H200, so there the solve's own entry decides, or the default.
        """
        *kernels, solve = KERNELS[self.engine]
        if self.product:
            return [kernel for kernel in kernels if kernel.endswith("product")]
        if "small_product" in kernels:
            kernels.remove("small_product")
        if "batch" in kernels:
            kernels.remove("closure" if self.batch > 1 else "batch")
        return [solve, *kernels]

    def _entries(self, kernel: str, size: int) -> Iterator[tuple[str, Entry]]:
        """Yield the entries within a factor of two of `size`, best first, each with its file."""
        for source, file in sources(self.engine, kernel, self.dtype, self.device):
            for entry in near(file, size, self.batch, self.sign):
                doubts = doubt(self.engine, entry.run or file)
                if doubts is not None:  # mostly true of all files of a machine, and said of the first
                    warn_once(
                        doubts,
                        f"a tuned file may be out of date: {source} {doubts}; tune it again, and others of that version.",
                    )
                yield source, entry

    def _with(self, config: CompleteConfig, fields: dict[str, Any], source: str) -> CompleteConfig | None:
        """Return `config` with `fields`, or None, with a warning, if that cannot run here."""
        tuned = from_fields(self.engine, fields)
        changed = dataclasses.replace(config, **{name: getattr(tuned, name) for name in fields})
        reason = invalid_because(changed, self.device)
        if reason is not None:
            warn_once(f"{source} {fields}", f"an entry of {source} is not used: {reason}")
        return changed if reason is None else None

    def _miss(self) -> None:
        """Say, once a process, that nothing was tuned for this; raise instead if that is asked for.

        An entry for one kernel is enough: which kernels take part depends on the method and the size, and one that plays no
        part needs no file.
        """
        required = os.environ.get("TRI_APSP_REQUIRE_TUNED", "") not in ("", "0")
        least = _REQUIRED if required else _WORTH_A_WORD
        # In Triton's interpreter nobody expects speed.
        if self.batch * self.n**3 < least**3 or (self.engine != "cpu" and self.place.type == "cpu"):
            return
        what = f"{self.dtype} near n = {self.n} on the {self.engine} engine"
        folders = ", ".join(map(str, searched(self.device)))
        command = f"python -m tri_apsp.tune --device {self.place} --engine {self.engine} --dtype {self.dtype} --n {self.n}"
        if required:
            raise InputError(
                f"TRI_APSP_REQUIRE_TUNED asks for a tuned configuration, but there is none for {what} in {folders}; tune it "
                f"with {command}, or unset the variable."
            )
        warn_once("miss", f"nothing was tuned for {what}, so defaults are used (searched {folders}); tune it with {command}")


def near(file: TunedFile, n: int, batch: int, sign: str) -> list[Entry]:
    """Return the entries of `file` within a factor of two of `n`, best first."""

    def distance(entry: Entry) -> tuple[bool, bool, float, float]:
        other_kind = (entry.batch > 1) != (batch > 1)
        return entry.sign != sign, other_kind, abs(math.log2(entry.n / n)), abs(math.log2(entry.batch / batch))

    return sorted((entry for entry in file.entries if entry.n <= 2 * n and n <= 2 * entry.n), key=distance)


def _sets(given: Config | None, fields: tuple[str, ...]) -> bool:
    """Return whether `given` leaves nothing of `fields` to a file; a method is never missing."""
    return given is not None and all(getattr(given, name) is not None for name in fields if name != "method")
