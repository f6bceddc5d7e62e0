"""PTX as data: what the parser makes and what the decoder reads.

A register is a slot number in its function; its declared type gives its width.  Labels are positions in the list of
instructions.  Nothing here knows what an instruction does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpsmith.errors import Span
from warpsmith.simt.core.results import Site

__all__ = [
    "TYPE_BITS",
    "Address",
    "Function",
    "Immediate",
    "Instruction",
    "Negated",
    "Operand",
    "Pair",
    "PtxModule",
    "Register",
    "Sink",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
]

TYPE_BITS: dict[str, int] = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 128,
    "pred": 1,
    "f16": 16,
    "f16x2": 32,
    "bf16": 16,
    "bf16x2": 32,
    "f32": 32,
    "f32x2": 64,
    "f64": 64,
    "e4m3": 8,
    "e5m2": 8,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e2m1x2": 8,
    "tf32": 32,
    "u16x2": 32,
    "s16x2": 32,
}
"""Width of each type in bits, as an instruction or a declaration names it."""


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register: its slot in the function, its declared type, its name."""

    slot: int
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal.  `kind` is "int", "f32", "f64" (bits, as 0f... and 0d... give them) or "decimal" (an f64's bits)."""

    kind: str
    value: int


@dataclass(frozen=True, slots=True)
class Negated:
    """!p: the opposite of a predicate."""

    register: Register


@dataclass(frozen=True, slots=True)
class Special:
    """%tid.x and the like."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, function or label, plus a number of bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Vector:
    """{a, b, ...}"""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """p|q: two predicate results, or a shuffle's value and predicate."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Address:
    """[base + offset]"""

    base: Register | Symbol | Immediate
    offset: int = 0


Operand = Register | Immediate | Negated | Special | Symbol | Sink | Vector | Pair | Address


@dataclass(slots=True)
class Instruction:
    """One instruction.  `parts` is the opcode split at its dots; `source` is the `.loc` above it (file, line, column).

    `text_line` is its line in the PTX; `arguments` the operand lists in parentheses of a call.
    """

    opcode: str
    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    text_line: int
    predicate: Register | None = None
    negated: bool = False
    source: tuple[int, int, int] | None = None
    arguments: tuple[tuple[Operand, ...], ...] = ()


@dataclass(slots=True)
class Variable:
    """A named piece of memory.  `initial` holds the first bytes, or (position, symbol) pairs in `addresses`."""

    name: str
    space: str
    type: str
    size: int
    align: int
    initial: bytes = b""
    addresses: tuple[tuple[int, Symbol], ...] = ()
    external: bool = False
    pointer: bool = False


@dataclass(slots=True)
class Function:
    """A kernel (`.entry`) or a device function (`.func`).  Without a body it's only declared."""

    name: str
    kernel: bool
    parameters: list[Variable] = field(default_factory=list[Variable])
    results: list[Variable] = field(default_factory=list[Variable])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    registers: list[Register] = field(default_factory=list[Register])
    variables: list[Variable] = field(default_factory=list[Variable])
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    exact_threads: tuple[int, ...] | None = None
    most_threads: int | None = None
    has_body: bool = False
    text_line: int = 0


@dataclass(slots=True)
class PtxModule:
    """A PTX file.  `lines` is its text, for messages; `files` the `.file` table; `origins` the HLO instructions of each
    line that a `.loc` may name.
    """

    file: str
    lines: list[str]
    version: str = ""
    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    variables: list[Variable] = field(default_factory=list[Variable])
    files: dict[int, str] = field(default_factory=dict[int, str])
    origins: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])

    def site(self, instruction: Instruction) -> Site:
        """An instruction's place, for findings and counters."""
        number, line = instruction.source[:2] if instruction.source is not None else (0, 0)
        text = self.lines[instruction.text_line - 1] if 0 < instruction.text_line <= len(self.lines) else ""
        return Site(
            instruction.opcode,
            " ".join(text.split("//")[0].split()),
            instruction.text_line,
            self.origins.get(line, ()),
            self.files.get(number, "") if line else "",
            line,
        )

    def span(self, line: int) -> Span:
        """The whole instruction on a line, as an error shows it."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        shown = text.expandtabs(4)
        start = len(shown) - len(shown.lstrip())
        return Span(self.file, line, start + 1, shown, max(1, len(shown.split("//")[0].strip())))

    def kernel(self, name: str | None) -> Function | None:
        """The kernel of that name; the only one, or the first, when no name is given."""
        kernels = {f.name: f for f in self.functions.values() if f.kernel and f.has_body}
        if name is not None:
            return kernels.get(name)
        return next(iter(kernels.values()), None)
