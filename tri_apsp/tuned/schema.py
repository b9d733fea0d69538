"""The schema of a tuned file. Imported only to read or write one: pydantic loads slowly."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tri_apsp.configs import from_fields
from tri_apsp.device import Device
from tri_apsp.semirings import DTYPES_BY_NAME
from tri_apsp.tuned.records import allowed_fields, record_of

SCHEMA = 1
"""The version of the schema; another one is refused."""

_Count = Annotated[int, Field(ge=1)]
_Positive = Annotated[float, Field(gt=0)]
_Fields = dict[str, str | int | dict[str, int]]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Run(_Model):
    """The conditions of a measurement besides the machine and the kernel.

    Attributes:
        triton: version; None for an engine that does not use it.
        torch: version.
        cuda: version that torch was built for; None if for the CPU alone.
        space_hash: hash of the search space.
        protocol: the way in which times were taken, in words.
        seed: the seed of the search.
        budget_seconds: time budget of the search; None: no limit.
        created: the date.
        driver: of earlier versions; nothing writes or reads it.
        complete: of earlier versions; nothing writes or reads it.
    """

    triton: str | None = None
    torch: str
    cuda: str | None = None
    space_hash: str
    protocol: str
    seed: int
    budget_seconds: _Positive | None = None
    created: datetime.date
    driver: str | None = None
    complete: bool | None = None


class Entry(_Model):
    """The best configuration found for one sign, n and batch.

    Attributes:
        sign: the sign of the weights, "any" or "nonnegative".
        n: vertices.
        batch: graphs solved in one call.
        config: the fields of tri_apsp.Config that the kernel sets, as configs.to_fields writes
            them.
        p20_ms: 20th percentile of the winner's times, in milliseconds.
        p50_ms: their median.
        p80_ms: their 80th percentile.
        default_ms: the median of the default configuration, timed in the same rounds.
        speedup: default_ms / p50_ms.
        evaluated: the number of configurations that were run.
        run: the run that measured the entry; None: the one in the header of the file.
    """

    sign: Literal["any", "nonnegative"]
    n: _Count
    batch: _Count = 1
    config: _Fields
    p20_ms: _Positive
    p50_ms: _Positive
    p80_ms: _Positive
    default_ms: _Positive
    speedup: _Positive
    evaluated: _Count
    run: Run | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """The sign, batch and n: unique within a file, which is sorted by it."""
        return self.sign, self.batch, self.n


class TunedFile(Run):
    """A tuned file: the best configurations of one kernel of an engine for one dtype, on one GPU
    (or CPU).

    Attributes:
        schema_version: SCHEMA.
        engine: cpu, nvidia or portable.
        kernel: one of tri_apsp.tuned.KERNELS[engine].
        dtype: "float32" and so on.
        gpu: the name of the device.
        slug: the name of the device as folders spell it.
        capability: (major, minor) of an NVIDIA GPU.
        units: multiprocessors, or cores.
        kernel_hash: the hash of the sources of the kernel.
        entries: at least one.

    The other fields, from Run, are those of the last run that wrote the file.
    """

    schema_version: Literal[1]
    engine: str
    kernel: str
    dtype: str
    gpu: str
    slug: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    capability: tuple[int, int] | None = None
    units: _Count
    kernel_hash: str
    entries: Annotated[tuple[Entry, ...], Field(min_length=1)]

    @property
    def held(self) -> str:
        """The sizes of the entries, in words: "n = 256, 1024"."""
        return f"n = {', '.join(map(str, sorted({entry.n for entry in self.entries})))}"

    @property
    def device(self) -> Device:
        """The facts of the device that was measured, as far as the file states them."""
        return Device("", self.gpu, self.slug, self.units, memory=0, capability=self.capability)

    @property
    def run(self) -> Run:
        """The run of the header."""
        return Run(**{name: getattr(self, name) for name in Run.model_fields})

    @model_validator(mode="after")
    def _fits_together(self) -> TunedFile:
        record_of(self.engine, self.kernel)  # raises if there is none
        if self.dtype not in DTYPES_BY_NAME:
            raise ValueError(
                f"dtype must be one of {', '.join(DTYPES_BY_NAME)}, but is {self.dtype!r}"
            )
        if len({entry.key for entry in self.entries}) < len(self.entries):
            raise ValueError("no two entries may have the same sign, n and batch")
        allowed = allowed_fields(self.engine, self.kernel)
        for entry in self.entries:
            if not entry.config or not entry.config.keys() <= set(allowed):
                found = ", ".join(entry.config) or "none"
                raise ValueError(
                    f"a config must have fields of {', '.join(allowed)}, but has {found}"
                )
            from_fields(self.engine, entry.config)
        return self
