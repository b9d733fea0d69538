"""Tuned files with the values that a test does not depend on."""

from typing import Any

from tri_apsp import tuned
from tri_apsp.device import Device
from tri_apsp.tuned.schema import Entry, TunedFile

_TIMES = dict.fromkeys(("p20_ms", "p50_ms", "p80_ms", "default_ms", "speedup"), 1.0)
_RUN = {"space_hash": "", "protocol": "", "seed": 0}


def entry_of(n: int, config: dict[str, Any], sign: str = "any", batch: int = 1) -> Entry:
    return Entry(sign=sign, n=n, batch=batch, config=config, **_TIMES, evaluated=1)


def file_of(
    engine: str, kernel: str, dtype: str, device: Device, *entries: Entry, **header: Any
) -> TunedFile:
    return tuned.new_file(engine, kernel, dtype, device, entries, **{**_RUN, **header})
