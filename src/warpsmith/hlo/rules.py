"""What all verifier rules share: the error that they raise and the looks at operands.

In: an instruction.  Out: its operands' array shapes, or InvalidHlo that names the instruction and points at its line.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.errors import InvalidHlo
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape

__all__ = ["Rule", "array_operand", "array_result", "check", "check_dims", "check_type", "fail", "is_static"]

Rule = Callable[[HloInstruction], None]


def fail(instruction: HloInstruction, cause: str, help: str | None = None) -> InvalidHlo:
    """The error that `instruction` breaks a rule."""
    return InvalidHlo(f"{cause} (in '{instruction.name}')", span=instruction.span, help=help)


def check(holds: bool, instruction: HloInstruction, cause: str, help: str | None = None) -> None:
    """Raise `fail` unless `holds`."""
    if not holds:
        raise fail(instruction, cause, help)


def array_operand(instruction: HloInstruction, index: int) -> Shape:
    """The shape of operand `index`, an array."""
    operand = instruction.operands[index]
    if not isinstance(operand.shape, Shape) or not operand.shape.is_array:
        raise fail(instruction, f"operand '{operand.name}' of {instruction.opcode} is {operand.shape}, not an array")
    return operand.shape


def array_result(instruction: HloInstruction) -> Shape:
    """The shape of the result, an array."""
    if not isinstance(instruction.shape, Shape) or not instruction.shape.is_array:
        raise fail(instruction, f"{instruction.opcode} makes an array, not {instruction.shape}")
    return instruction.shape


def is_static(*shapes: AnyShape) -> bool:
    """Whether all sizes are known."""
    return not any(UNBOUNDED in leaf.dims for shape in shapes for leaf in shape.leaves())


def check_type(instruction: HloInstruction, result: Shape, operand: Shape) -> None:
    """The result has the operand's element type."""
    check(
        result.dtype is operand.dtype,
        instruction,
        f"{instruction.opcode} of {operand.dtype} makes {operand.dtype}, not {result.dtype}",
    )


def check_dims(instruction: HloInstruction, result: Shape, expected: tuple[int, ...]) -> None:
    """The result has sizes `expected`."""
    check(
        result.dims == expected or not is_static(result) or UNBOUNDED in expected,
        instruction,
        f"{instruction.opcode} makes sizes [{','.join(map(str, expected))}] here, not {result.text(layout=False)}",
        help=f"write {result.dtype}[{','.join(map(str, expected))}]",
    )
