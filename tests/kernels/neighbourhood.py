"""Compile the defaults of the GPU engines, and their neighbours, for GPUs that are not here: a step
for a maintainer who changed a kernel, a default or a search space.

    PYTHONPATH=tests python -m kernels.neighbourhood [--gpu sm_80 ...]

A neighbour differs from the default in the value of one parameter. Writes the file
tri_apsp/tune/ranked.json, by which a search orders its first trials, and the tables of
docs/explanation/tuner.md. The first run takes about five minutes per compute capability; later ones
find the machine code in Triton's cache.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from kernels.sass import Compiled, read

from tri_apsp.configs import CompleteConfig, default_config, invalid_because
from tri_apsp.device import Device
from tri_apsp.engines.nvidia import _RATES
from tri_apsp.gpu.ahead import GPUS, META
from tri_apsp.gpu.launcher import _STARTED
from tri_apsp.tune.candidates import RANKED_PATH
from tri_apsp.tune.measurement import Compilation, outcome_of
from tri_apsp.tune.tasks import TuningTask
from tri_apsp.tuned.records import RECORDS, Choice, TunableKernel

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "tuner.md"
FIRST = 10
"""How many neighbours a search tries first."""


class Limits(NamedTuple):
    """What the programs of a multiprocessor share: KiB of shared memory, warps, programs."""

    kilobytes: int
    warps: int
    programs: int


# "Technical Specifications per Compute Capability" in NVIDIA's CUDA programming guide.
LIMITS = {
    "sm_80": Limits(164, 64, 32),
    "sm_86": Limits(100, 48, 16),
    "sm_89": Limits(100, 48, 24),
    "sm_90": Limits(228, 64, 32),
    "sm_100": Limits(228, 64, 32),
    "sm_120": Limits(100, 48, 24),
}


@dataclass
class Row:
    """What the machine code of one configuration shows; of several kernels, the worst.

    Attributes:
        gpu: a key of GPUS.
        engine: of the task.
        kernel: of the task.
        dtype: of the task.
        parameter: the parameter that differs from the default; None: the default itself.
        value: its value.
        fits: whether registers and shared memory suffice.
        error: why it does not compile.
        registers: per thread.
        local_bytes: of local memory per thread, which hold what did not fit the registers.
        local_share: the largest share of an innermost loop's instructions that load or store local
            memory.
        shared: bytes per program.
        warps: resident on a multiprocessor.
        rate: the predicted rate, for comparison with others of the same task.
    """

    gpu: str
    engine: str
    kernel: str
    dtype: str
    parameter: str | None
    value: Choice | None
    fits: bool
    error: str = ""
    registers: int = 0
    local_bytes: int = 0
    local_share: float = 0.0
    shared: int = 0
    warps: int = 0
    rate: float = 0.0

    @property
    def spills(self) -> bool:
        """Whether local memory takes more than 1% of an innermost loop. A few addresses that
        several programs per multiprocessor push out of registers cost less than they gain.
        """
        return self.local_share > 0.01

    @property
    def runs(self) -> bool:
        """Whether it fits and compiles."""
        return self.fits and not self.error


def rows_of(
    gpu: str, engines: Sequence[str], dtypes: Sequence[str], *, neighbours: bool
) -> Iterator[Row]:
    """Yield a row for each default, and for each of its neighbours that repeats no other. From now
    on this process compiles for `gpu`.
    """
    for record in RECORDS.values():
        # A whole solve has no kernels of its own.
        if record.engine in engines and not record.is_solve:
            for dtype in record.dtypes:
                if dtype in dtypes and _is_run(record, dtype, GPUS[gpu]):
                    yield from _rows_of_kernel(record, dtype, gpu, neighbours)


def _is_run(record: TunableKernel[Any], dtype: str, facts: Device) -> bool:
    """Return whether the engine runs the kernel on a GPU."""
    if record.name == "exponents":
        return facts.has_wgmma
    return record.engine == "portable" or dtype != "int16" or (facts.capability or (0,)) >= (9, 0)


def _rows_of_kernel(
    record: TunableKernel[Any], dtype: str, gpu: str, neighbours: bool
) -> Iterator[Row]:
    sign = "nonnegative" if dtype in record.signed_dtypes else "any"
    n, facts = (record.quick_sizes or record.full_sizes)[0], GPUS[gpu]
    task = TuningTask(record.engine, record.name, dtype, sign, n, record.batch(n))
    compilation = Compilation(task, META, gpu=torch.device("cuda"), facts=facts)
    base = default_config(record.engine, task.torch_dtype, facts)
    own = record.space.values(base)
    steps: list[tuple[str | None, Choice | None]] = [(None, None)]
    if neighbours:
        steps += [
            (parameter.name, value)
            for parameter in record.space.parameters
            for value in parameter.choices
            if value != own[parameter.name]
        ]
    for name, value in steps:
        values = own if name is None or value is None else own | {name: value}
        config = record.space.config(values, base)
        if name is not None and record.repeats(config, base, task.torch_dtype, n):
            continue
        fits = record.fits(config, task.torch_dtype, facts)
        fits = fits and invalid_because(config, facts) is None
        row = Row(gpu, record.engine, record.name, dtype, name, value, fits)
        if fits or name is None:
            _compile(compilation, record, config, row)
        yield row


def _compile(
    compilation: Compilation, record: TunableKernel[Any], config: CompleteConfig, row: Row
) -> None:
    """Compile a configuration, and complete its row by the kernels of the record."""
    kernels: dict[str, Any] = {}
    token = _STARTED.set(lambda kernel: kernels.setdefault(kernel.hash, kernel))
    try:
        compilation.compile(config, odd=False)
    except Exception as error:
        row.error = outcome_of(error).message
        return
    finally:
        _STARTED.reset(token)
    found = []
    for kernel in kernels.values():
        module = kernel.src.fn.__module__.removeprefix("tri_apsp.kernels.")
        if f"{module.replace('.', '/')}.py" in record.sources:
            found.append((read(kernel), kernel.metadata.num_warps))
    row.registers = max(each.registers for each, _ in found)
    row.local_bytes = max(each.stack for each, _ in found)
    row.shared = max(each.shared for each, _ in found)
    loops = [loop for each, _ in found for loop in each.inner_loops]
    shares = [(loop["STL"] + loop["LDL"]) / loop.total() for loop in loops]
    row.local_share = max(shares, default=0.0)
    most = config.closure_programs if record.name == "closure" and row.engine == "nvidia" else 99
    row.warps = min(
        warps * min(most, resident(each, warps, LIMITS[row.gpu])) for each, warps in found
    )
    row.fits &= row.shared <= GPUS[row.gpu].shared_memory
    row.rate = next((rate for below, rate in _RATES.items() if row.warps < below), 1)
    if "product" in record.name:
        tiles, (compiled, warps) = getattr(config, record.name), found[-1]
        pairs = math.prod((tiles.block_m, tiles.block_n, tiles.block_k)) / (32 * warps)
        row.rate *= pairs / compiled.main_loop().total()


def resident(compiled: Compiled, warps: int, limits: Limits) -> int:
    """Return how many programs of `warps` warps a multiprocessor holds: a warp gets registers in
    steps of 256, and a program 1 KiB of shared memory besides its own, which comes in steps of 128
    bytes.
    """
    registers = -(-32 * compiled.registers // 256) * 256 * warps
    shared = 1024 + -(-compiled.shared // 128) * 128
    return min(
        65536 // registers,
        limits.kilobytes * 1024 // shared,
        limits.warps // warps,
        limits.programs,
    )


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the neighbours that run and do not spill, the most promising first, at most FIRST."""
    running = [row for row in rows if row.runs and not row.spills and row.parameter is not None]
    return sorted(running, key=lambda row: (-row.rate, -row.warps, row.local_bytes))[:FIRST]


def compiled_apart(gpu: str, *arguments: str) -> list[Row]:
    """Return the rows of a GPU, from a process of its own."""
    command = [sys.executable, "-m", "kernels.neighbourhood", "--compile", gpu, *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    printed = subprocess.run(
        command, stdout=subprocess.PIPE, env=environment, cwd=ROOT, text=True, check=True
    ).stdout
    return [Row(**each) for each in json.loads(printed)]


def _table(by_kernel: dict[tuple[str, str], list[Row]]) -> str:
    lines = [
        "| kernel | neighbours | do not fit | spill | default: registers, local bytes, warps "
        "| warps of the first ten |",
        "|---|---|---|---|---|---|",
    ]
    for (engine, kernel), rows in by_kernel.items():
        default, others, first = rows[0], rows[1:], [row.warps for row in ranked(rows)]
        cells = (
            f"{engine} {kernel}",
            len(others),
            sum(not row.runs for row in others),
            sum(row.runs and row.spills for row in others),
            f"{default.registers}, {default.local_bytes}, {default.warps}",
            f"{min(first)} to {max(first)}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _as_json(listed: dict[str, dict[str, Any]]) -> str:
    """Return a text with one line per kernel."""
    gpus = []
    for gpu, kernels in listed.items():
        lines = (f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in kernels.items())
        gpus.append(f" {json.dumps(gpu)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(gpus) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", nargs="+", default=list(GPUS), choices=GPUS, help="default: all")
    # In a process of its own.
    parser.add_argument("--compile", choices=GPUS, help=argparse.SUPPRESS)
    parser.add_argument("--dtypes", nargs="+", default=["float32"], help=argparse.SUPPRESS)
    parser.add_argument("--defaults", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile is not None:
        rows = rows_of(
            options.compile,
            ("nvidia", "portable"),
            options.dtypes,
            neighbours=not options.defaults,
        )
        json.dump([asdict(row) for row in rows], sys.stdout)
        return
    from reports.studies.markdown import write_page

    listed = json.loads(RANKED_PATH.read_text("utf-8")) if RANKED_PATH.exists() else {}
    blocks = {}
    for gpu in options.gpu:
        by_kernel: dict[tuple[str, str], list[Row]] = {}
        for row in compiled_apart(gpu):
            by_kernel.setdefault((row.engine, row.kernel), []).append(row)
        major, minor = GPUS[gpu].capability or (0, 0)
        listed[f"{major}.{minor}"] = {
            f"{engine} {kernel} {rows[0].dtype}": [
                [row.parameter, row.value] for row in ranked(rows)
            ]
            for (engine, kernel), rows in by_kernel.items()
        }
        blocks[f"compute capability {major}.{minor}"] = _table(by_kernel)
        print(f"{gpu}: {sum(map(len, by_kernel.values()))} configurations", file=sys.stderr)
    RANKED_PATH.write_text(_as_json(listed), encoding="utf-8")
    write_page(PAGE, "The tuner", blocks)


if __name__ == "__main__":
    main()
