"""Compiles a Triton kernel for a GPU that is not here and reads its machine code: no GPU is needed to see it."""

from __future__ import annotations

import collections
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Compiled:
    """Registers a thread, bytes of shared memory, and instruction counts, in all and by loop."""

    registers: int
    shared: int
    instructions: collections.Counter[str]
    loops: list[collections.Counter[str]]

    @property
    def spills(self) -> int:
        """Loads and stores of local memory inside loops: registers that did not fit."""
        return sum(loop["STL"] + loop["LDL"] for loop in self.loops)

    def main_loop(self) -> collections.Counter[str]:
        return max(self.loops, key=lambda loop: loop.total())


def compile_kernel(
    kernel: Any,
    signature: dict[str, str],
    constants: dict[str, Any],
    *,
    capability: int,
    num_warps: int,
    maxnreg: int | None = None,
) -> Compiled:
    """Compile as for an aligned matrix: all that Triton specialises is a multiple of 16."""
    names = kernel.arg_names
    unspecialised = {names[i] if isinstance(i, int) else i for i in kernel.do_not_specialize}
    assert set(names) == set(signature) | set(constants), "every argument needs a type or a value"
    source = (GluonASTSource if kernel.is_gluon() else ASTSource)(
        fn=kernel,
        signature={name: signature.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in signature if name not in unspecialised},
    )
    target = GPUTarget("cuda", capability, 32)
    built = triton.compile(source, target=target, options={"num_warps": num_warps, "num_stages": 1, "maxnreg": maxnreg})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        usage = _run("cuobjdump", "--dump-resource-usage", file.name)
        listing = _run("nvdisasm", "-c", file.name)
    registers = re.search(r"REG:(\d+)", usage)
    assert registers is not None
    instructions, loops = _parse(listing)
    return Compiled(int(registers[1]), built.metadata.shared, instructions, loops)


def _run(tool: str, *arguments: str) -> str:
    return subprocess.run([str(TOOLS / tool), *arguments], capture_output=True, text=True, check=True).stdout


def _parse(listing: str) -> tuple[collections.Counter[str], list[collections.Counter[str]]]:
    """Count opcodes in all, and in each loop of more than 16 instructions: what a backward branch spans."""
    labels: dict[str, int] = {}
    code: list[str] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(code)
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            code.append(re.sub(r"^@!?U?P\w+\s+", "", instruction[1]))
    opcodes = [text.split()[0].split(".")[0] for text in code]
    loops = []
    for end, text in enumerate(code):
        branch = re.match(r"BRA.*`\((\.L_x_\d+)\)", text)
        if branch and labels.get(branch[1], end + 1) <= end - 16:
            loops.append(collections.Counter(opcodes[labels[branch[1]] : end + 1]))
    return collections.Counter(opcodes), loops
