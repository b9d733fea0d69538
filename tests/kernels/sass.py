"""Compiles a Triton kernel for a GPU that is not here and reads its machine code: no GPU is needed
for that.
"""

import collections
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
needs_disassembler = [
    pytest.mark.compiled,
    pytest.mark.skipif(
        not (TOOLS / "nvdisasm").exists(), reason="this Triton contains no disassembler"
    ),
]
"""Marks of the tests that read machine code."""


@dataclass(frozen=True)
class Compiled:
    """The machine code of a kernel.

    Attributes:
        registers: per thread.
        shared: bytes of shared memory per program.
        code: the instructions with their operands and predicates, and the labels that they branch
            to.
        instructions: how often each opcode occurs.
        loops: the same for each loop.
        inner_loops: the same for each loop that contains no other.
        stack: bytes of local memory per thread, which hold what did not fit the registers.
    """

    registers: int
    shared: int
    code: list[str]
    instructions: collections.Counter[str]
    loops: list[collections.Counter[str]]
    inner_loops: list[collections.Counter[str]]
    stack: int

    @property
    def spills(self) -> int:
        """Loads and stores of local memory inside loops: registers that did not fit."""
        return sum(loop["STL"] + loop["LDL"] for loop in self.loops)

    def main_loop(self) -> collections.Counter[str]:
        return max(self.loops, key=lambda loop: loop.total())


@dataclass(frozen=True)
class Variant:
    """A kernel with all that Triton compiles it for: types of run-time arguments, values of
    constexprs, and options.
    """

    kernel: Any
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    capability: int
    num_warps: int
    maxnreg: int | None = None
    num_stages: int = 1

    def compile(self) -> Compiled:
        """Compile as for an aligned matrix: every size, stride and address that Triton specialises
        is a multiple of 16.
        """
        names = self.kernel.arg_names
        unspecialised = {
            names[i] if isinstance(i, int) else i for i in self.kernel.do_not_specialize
        }
        assert set(names) == set(self.signature) | set(self.constants), (
            "every argument needs a type or a value"
        )
        source = (GluonASTSource if self.kernel.is_gluon() else ASTSource)(
            fn=self.kernel,
            signature={name: self.signature.get(name, "constexpr") for name in names},
            constexprs={(names.index(name),): value for name, value in self.constants.items()},
            attrs={
                (names.index(name),): [["tt.divisibility", 16]]
                for name in self.signature
                if name not in unspecialised
            },
        )
        options = {
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
        }
        built = triton.compile(
            source, target=GPUTarget("cuda", self.capability, 32), options=options
        )
        return read(built)


def read(built: Any) -> Compiled:
    """Return what is in the machine code of a kernel that Triton compiled."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        usage = _run("cuobjdump", "--dump-resource-usage", file.name)
        listing = _run("nvdisasm", "-c", file.name)
    ((registers, stack),) = re.findall(r"REG:(\d+) STACK:(\d+)", usage)
    return _parse(listing, int(registers), int(stack), built.metadata.shared)


def _run(tool: str, *arguments: str) -> str:
    return subprocess.run(
        [str(TOOLS / tool), *arguments], capture_output=True, text=True, check=True
    ).stdout


def _parse(listing: str, registers: int, stack: int, shared: int) -> Compiled:
    """Count opcodes in all, and in each loop of more than 16 instructions: what a backward branch
    spans.
    """
    labels: dict[str, int] = {}
    code: list[str] = []
    instructions: list[str] = []
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(instructions)
            code.append(f"{label[1]}:")
        elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            code.append(re.sub(r"\s+", " ", instruction[1]))
            instructions.append(re.sub(r"^@!?U?P\w+\s+", "", instruction[1]))
    opcodes = [text.split()[0].split(".")[0] for text in instructions]
    spans = []
    for end, text in enumerate(instructions):
        branch = re.match(r"BRA.*`\((\.L_x_\d+)\)", text)
        if branch and labels.get(branch[1], end + 1) <= end - 16:
            spans.append((labels[branch[1]], end + 1))
    inner = [
        (begin, end)
        for begin, end in spans
        if not any(begin <= a < b <= end and (a, b) != (begin, end) for a, b in spans)
    ]
    loops, inner_loops = (
        [collections.Counter(opcodes[begin:end]) for begin, end in each] for each in (spans, inner)
    )
    instructions_of = collections.Counter(opcodes)
    return Compiled(registers, shared, code, instructions_of, loops, inner_loops, stack)
