#!/usr/bin/env python3
"""Compare the machine code of all kernels between two checkouts: a step for a maintainer who has
renamed or split something.

    python tests/kernels/compare_compiled.py --before PATH_OF_OTHER_CHECKOUT [--only TEXT]
    [--rehash]

Compiles every variant of variants.py (and the CPU kernels for this CPU) from both checkouts, each
in a process of its own, and compares the instructions with their operands, the registers and the
shared memory; names, addresses and lines of source do not count. Prints what differs, and exits
with 1 if anything does. Variants that only one checkout has are listed, and not compared.

A tuned file names the hash of the sources that were measured, which a rename changes too. --rehash
replaces it in tuning/, for each engine whose kernels are all the same in both checkouts, where it
is that of the other checkout. Tuned files name the release of Triton that they were measured with:
run the comparison with that one too, by a PYTHONPATH that holds it.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("cpu", "nvidia", "portable")
_SHOWN = 10


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="the checkout to compare with"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="compare only variants whose name contains TEXT"
    )
    parser.add_argument(
        "--rehash",
        action="store_true",
        help="rewrite kernel_hash in tuning/ where the code is the same",
    )
    # In a process of its own.
    parser.add_argument("--compile", type=Path, metavar="CHECKOUT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile is not None:
        json.dump(compile_all(options.compile, options.only), sys.stdout)
        return 0
    if options.before is None:
        parser.error("--before is needed: the checkout to compare with")
    if options.only and options.rehash:
        parser.error("--rehash needs the comparison of every variant; leave out --only")
    before, after = _compile_in_processes([options.before.resolve(), ROOT], options.only)
    differing = compare(before["code"], after["code"])
    if options.rehash:
        for engine in ENGINES:
            if not any(name.startswith(engine) for name in differing):
                rehash(engine, before["hashes"], after["hashes"])
    return 1 if differing else 0


def _compile_in_processes(checkouts: list[Path], only: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        # Assembly cannot be read from what Numba kept.
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--only", only, "--compile"]
        started = [
            subprocess.Popen(
                [*command, str(checkout)], stdout=subprocess.PIPE, env=environment, text=True
            )
            for checkout in checkouts
        ]
        printed = [process.communicate()[0] for process in started]
    for process, checkout in zip(started, checkouts, strict=True):
        if process.returncode != 0:
            sys.exit(f"the kernels of {checkout} did not compile; see above.")
    return [json.loads(text) for text in printed]


def compile_all(checkout: Path, only: str) -> dict[str, Any]:
    """Return the code of every variant of a checkout by name, as lines of text, and the hashes of
    its sources.
    """
    sys.path[:0] = [str(checkout), str(checkout / "tests")]
    from kernels.variants import all_variants

    import tri_apsp
    from tri_apsp.tuned import KERNELS, kernel_hash

    assert Path(tri_apsp.__file__).is_relative_to(checkout), (
        f"{tri_apsp.__file__} is not in {checkout}"
    )

    hashes = {
        f"{engine}-{kernel}": kernel_hash(engine, kernel)
        for engine in ENGINES
        for kernel in KERNELS[engine]
    }
    code = _compile_cpu_kernels(only)
    for name, make in all_variants().items():
        if only in name:
            print(f"{checkout.name}: {name}", file=sys.stderr)
            compiled = make().compile()
            code[name] = [
                f"registers {compiled.registers}, shared memory {compiled.shared}",
                *compiled.code,
            ]
    return {"code": code, "hashes": hashes}


def _compile_cpu_kernels(only: str) -> dict[str, list[str]]:
    import numpy as np

    from tri_apsp.kernels.cpu import min_plus

    code = {}
    for dtype in ("float32", "float64", "int16", "int32", "int64"):
        for kernel in (min_plus.product_kernel, min_plus.closure_kernel):
            name = f"cpu {kernel.__name__} {dtype}"
            if only in name:
                (assembly,) = kernel(np.dtype(dtype)).inspect_asm().values()
                code[name] = _instructions(assembly)
    return code


def _instructions(assembly: str) -> list[str]:
    """Return the lines of assembly without directives and comments, and every symbol by the same
    name.
    """
    lines = (line.split("#")[0].strip() for line in assembly.splitlines())
    kept = (line for line in lines if line and (not line.startswith(".") or line.endswith(":")))
    return [re.sub(r"[\w.$]*(_ZN|numba|cfunc)[\w.$@]*", "SYMBOL", line) for line in kept]


def compare(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Print how each variant differs; return the names of those that do.

    A variant that only one checkout has is printed, and cannot be compared.
    """
    for name in sorted(before.keys() ^ after.keys()):
        print(f"{name}: only in the checkout {'before' if name in before else 'after'}")
    names = sorted(before.keys() & after.keys())
    differing = [name for name in names if before[name] != after[name]]
    for name in differing:
        old, new = before[name], after[name]
        changes = [
            line
            for line in difflib.unified_diff(old, new, lineterm="", n=0)
            if line[:2] not in ("--", "++", "@@")
        ]
        print(f"{name}: {len(old)} lines before, {len(new)} after; the first {_SHOWN} that differ:")
        print(*changes[:_SHOWN], sep="\n")
    print(f"{len(differing)} of {len(names)} variants differ")
    return differing


def rehash(engine: str, before: dict[str, str], after: dict[str, str]) -> None:
    """Replace the hash of the sources of `before` in the tuned files of an engine."""
    for path in sorted((ROOT / "tuning").glob(f"*/{engine}-*.json")):
        text = path.read_text(encoding="utf-8")
        kernel = "-".join(path.stem.split("-")[:2])
        replaced = text.replace(
            f'"kernel_hash": "{before[kernel]}"', f'"kernel_hash": "{after[kernel]}"'
        )
        if replaced != text:
            path.write_text(replaced, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: kernel_hash is {after[kernel][:12]}... now")


if __name__ == "__main__":
    sys.exit(main())
