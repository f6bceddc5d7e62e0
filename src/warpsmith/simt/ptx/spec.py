"""An opcode taken apart, and what an instruction without memory or control flow does with its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.arrays import Array
from warpsmith.simt.ptx.text.module import TYPE_BITS

__all__ = ["ROUNDINGS", "Compute", "Form", "Spec", "binary", "form_of", "ternary", "unary"]

Compute = Callable[..., Array]

ROUNDINGS = frozenset({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"})


@dataclass(frozen=True, slots=True)
class Form:
    """`cvt.rn.satfinite.e4m3x2.f32`: base "cvt", rounding "rn", flags {satfinite}, types (e4m3x2, f32)."""

    base: str
    rounding: str
    flags: frozenset[str]
    types: tuple[str, ...]
    parts: tuple[str, ...]
    worst: bool = False

    @property
    def type(self) -> str:
        """The last type, that of the operands; "" if none is named."""
        return self.types[-1] if self.types else ""

    @property
    def ftz(self) -> bool:
        """Whether subnormal operands and results are flushed to zero."""
        return "ftz" in self.flags


@dataclass(frozen=True, slots=True)
class Spec:
    """Types of the operands read, type of the result, and the function from the ones to the other.

    `compute` takes one array of numbers an operand (see `values.reader`).  `error` is the documented error of an
    approximate instruction.
    """

    inputs: tuple[str, ...]
    output: str
    compute: Compute
    error: str = ""


def form_of(parts: tuple[str, ...], worst: bool = False) -> Form:
    """Sort an opcode's parts.  `worst` asks approximate instructions for results as wrong as is documented."""
    rounding, flags, types = "", set[str](), list[str]()
    for part in parts[1:]:
        if part in TYPE_BITS:
            types.append(part)
        elif part in ROUNDINGS:
            rounding = part
        else:
            flags.add(part)
    return Form(parts[0], rounding, frozenset(flags), tuple(types), parts, worst)


def unary(function: Callable[[Array], Array]) -> Compute:
    """A function of one operand (this only tells the type checker)."""
    return function


def binary(function: Callable[[Array, Array], Array]) -> Compute:
    """A function of two operands."""
    return function


def ternary(function: Callable[[Array, Array, Array], Array]) -> Compute:
    """A function of three operands."""
    return function
