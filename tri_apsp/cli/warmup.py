"""python -m tri_apsp warmup"""

import argparse
import dataclasses
import os
import time
from pathlib import Path

import torch

from tri_apsp.cache_folder import VARIABLE, Entry, begin_to_fill, cache_folder, record
from tri_apsp.console.options import (
    BATCH,
    DEVICE,
    DTYPES,
    add_options,
    at_least,
    counts_for,
    json_of,
    option,
)
from tri_apsp.console.output import duration, print_result
from tri_apsp.device import describe, resolve
from tri_apsp.errors import EngineError, InputError
from tri_apsp.gpu.ahead import GPUS, META, only_compile
from tri_apsp.gpu.launcher import has_triton
from tri_apsp.graphs.files import to_path
from tri_apsp.memory import byte_size
from tri_apsp.messages import file_errors, remedy_of_extra
from tri_apsp.progress import progress_bar
from tri_apsp.semirings import DTYPES_BY_NAME

_CAPABILITIES = ", ".join(GPUS)
# Files of which each kernel has one, of Numba and of Triton.
_ONE_EACH = {"cpu": "*.nbc", "gpu": "__grp__*"}
_N = 256
_LATER = (
    "compiled at the first call: hops, measures, reachability and negative weights of graphs "
    "without an order, and sweeps of an order with another number of live values"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `warmup`."""
    add_options(
        parser,
        option("--n", type=at_least(1), nargs="+", default=[_N], help=f"vertices; default: {_N}"),
        BATCH,
        DTYPES,
        option("--predecessors", action="store_true", help="also those of predecessors"),
        option(
            "--prepared",
            action="store_true",
            help="also those of sparse graphs: prepare, rows, tables, pairs and measures",
        ),
        DEVICE.but(
            help=f"{DEVICE.settings['help']}; or the compute capability of a GPU that is not here, "
            f"{_CAPABILITIES}"
        ),
        option(
            "--units",
            type=at_least(1),
            metavar="N",
            help="multiprocessors of that GPU, by which kernels are chosen; default: those of "
            + ", ".join(f"{gpu.name} ({gpu.units})" for gpu in GPUS.values()),
        ),
        option(
            "--folder",
            metavar="DIR",
            help=f"write to this folder; set {VARIABLE} to it, so that solves use it; default: the "
            "one that this names now, else the caches of the user",
        ),
        json_of(
            "device, compiled (kernels by kind, cpu and gpu), seconds, folder, bytes (of all "
            "machine code there), later (what a capability leaves out)"
        ),
    )


def run(args: argparse.Namespace) -> None:
    """Compile what the options name, and print how many kernels that were."""
    shapes = [
        (n, n) if batch == 1 else (batch, n, n)
        for n, batch in zip(args.n, counts_for(args.batch, args.n), strict=True)
    ]
    device = _device_of(args)
    if args.folder is not None:
        for name in ("NUMBA_CACHE_DIR", "TRITON_CACHE_DIR"):
            if os.environ.get(name):
                raise InputError(
                    f"--folder must not be given with {name} in the environment, which comes "
                    "before it; unset that."
                )
        os.environ[VARIABLE] = str(to_path(args.folder, "folder").absolute())
    from tri_apsp import warm_up  # once the variable is set, which kernels read
    from tri_apsp.kernels.cpu import compilation

    caches, entries = {"cpu": compilation.cache_path()}, list[Entry | None]()
    if device.type == "cpu" or args.prepared:
        entries.append(compilation.folder_entry())
    if device.type != "cpu":
        from tri_apsp.gpu import cache  # needs Triton

        caches["gpu"] = cache.cache_paths()[0]
        entries.append(cache.folder_entry(device))
    folder = cache_folder()
    if args.folder is not None:
        assert folder is not None
        with file_errors("folder", folder, "written", "give another folder"):
            begin_to_fill(folder)
    before = {kind: _kernels(path, kind) for kind, path in caches.items()}
    began = time.perf_counter()
    steps = warm_up.steps(
        [DTYPES_BY_NAME[name] for name in args.dtype],
        shapes,
        device,
        predecessors=args.predecessors,
        prepared=args.prepared,
    )
    with progress_bar(not args.json, "compiling") as report:
        for done, _ in enumerate(warm_up.run(steps, device), 1):
            if report is not None:
                report(done / len(steps))
    if folder is not None:
        # One that only lies in the environment may be read-only, and filled.
        with file_errors("folder", folder, "written", "give another folder"):
            record(folder, filter(None, entries))
    seconds, name = time.perf_counter() - began, describe(device).name
    compiled = {kind: len(_kernels(path, kind) - before[kind]) for kind, path in caches.items()}
    files = [file for path in caches.values() for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    where = folder or " and ".join(map(str, caches.values()))
    later = _LATER if args.prepared and device == META else ""
    kernels = " and ".join(f"{count} {kind.upper()} kernels" for kind, count in compiled.items())
    print_result(
        args.json,
        {
            "device": name,
            "compiled": compiled,
            "seconds": seconds,
            "folder": str(where),
            "bytes": size,
            "later": later or None,
        },
        [
            ("device", name),
            ("compiled", f"{kernels} in {duration(seconds)}"),
            ("folder", f"{where}, {byte_size(size)} of machine code"),
            ("later", later),
        ],
    )


def _device_of(args: argparse.Namespace) -> torch.device:
    """Return the device to compile for, which is META for one that is not here."""
    gpu = GPUS.get(args.device)
    if gpu is None:
        if args.units is not None:
            raise InputError(
                f"--units must stand beside a compute capability, but --device is {args.device}; "
                "leave it out."
            )
        return resolve(args.device, f"auto, cpu, cuda, cuda:N or one of {_CAPABILITIES}")
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise EngineError(
            f"--device {args.device} compiles kernels, but TRITON_INTERPRET=1 lets Triton "
            "interpret them; unset it."
        )
    if not has_triton():
        raise EngineError(
            f"--device {args.device} needs Triton, but it is not installed; "
            f"{remedy_of_extra('gpu')}, or give cpu."
        )
    only_compile(dataclasses.replace(gpu, units=args.units or gpu.units))
    return META


def _kernels(path: Path, kind: str) -> set[tuple[Path, int]]:
    """Return the kernels in a cache: a file of each, and when it was written."""
    return {(file, file.stat().st_mtime_ns) for file in path.rglob(_ONE_EACH[kind])}
