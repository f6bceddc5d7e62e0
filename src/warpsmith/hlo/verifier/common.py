"""What all rules share: the error that they raise, looks at operands, and when two shapes agree.

In: an instruction.  Out: shapes of operands and attributes that were checked, or InvalidHlo, which names the rule and
the instruction and points at its line.  A rule checks an instruction's operands and attributes and returns the shape
that its result has; what the result's shape alone decides (a convert's type, a reshape's sizes) it takes from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.dtypes import BY_NAME, DType
from warpsmith.errors import InvalidHlo, did_you_mean
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier.statements import STATEMENTS

__all__ = [
    "PRED_SCALAR",
    "TOKEN",
    "Rule",
    "agree",
    "array_operand",
    "array_result",
    "brief",
    "check_rank",
    "choice",
    "compatible",
    "dimensions",
    "fail",
    "is_static",
    "of_dims",
    "one_or_tuple",
    "same_layout",
    "scalar",
    "scalar_operand",
]

Rule = Callable[[HloInstruction], AnyShape]


def scalar(dtype: str | DType) -> Shape:
    """A rank-0 shape."""
    return Shape(BY_NAME[dtype] if isinstance(dtype, str) else dtype)


TOKEN = scalar("token")
PRED_SCALAR = scalar("pred")


def fail(instruction: HloInstruction, rule: str, cause: str, help: str | None = None) -> InvalidHlo:
    """The error that `instruction` breaks `rule`; without `help`, the rule's statement is the next step."""
    statement = STATEMENTS[rule]
    return InvalidHlo(f"{cause} (in '{instruction.name}')", span=instruction.span, help=help or statement, rule=rule)


def brief(shape: AnyShape) -> str:
    """A shape for a message: without layouts, cut where it is long."""
    text = shape.text(layout=False)
    return text if len(text) <= 120 else text[:117] + "..."


def array_operand(instruction: HloInstruction, index: int) -> Shape:
    """The shape of operand `index`, an array."""
    shape = instruction.operands[index].shape
    if not isinstance(shape, Shape) or not shape.dtype.is_array_element:
        name = instruction.operands[index].name
        raise fail(
            instruction,
            "operand.array",
            f"operand '{name}' of {instruction.opcode} is {brief(shape)}, not an array",
        )
    return shape


def scalar_operand(instruction: HloInstruction, index: int) -> Shape:
    """The shape of operand `index`, an array of rank 0."""
    shape = array_operand(instruction, index)
    if shape.dims:
        name = instruction.operands[index].name
        raise fail(instruction, "operand.scalar", f"operand '{name}' is {brief(shape)}, not a scalar")
    return shape


def array_result(instruction: HloInstruction) -> Shape:
    """The shape of the result, an array."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or not shape.dtype.is_array_element:
        raise fail(instruction, "result.array", f"{instruction.opcode} makes an array, not {brief(shape)}")
    return shape


def is_static(*shapes: AnyShape) -> bool:
    """Whether all sizes are known."""
    return not any(UNBOUNDED in leaf.dims for shape in shapes for leaf in shape.leaves())


def agree(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether sizes are equal; an unknown size equals any."""
    return a == b or (len(a) == len(b) and all(x == y or UNBOUNDED in (x, y) for x, y in zip(a, b, strict=True)))


def compatible(a: AnyShape, b: AnyShape) -> bool:
    """Whether element types and sizes agree: layouts, dynamic marks and `b(...)` don't matter."""
    if a is b:
        return True
    if isinstance(a, Shape):
        return isinstance(b, Shape) and a.dtype is b.dtype and agree(a.dims, b.dims)
    return (
        isinstance(b, TupleShape)
        and len(a.elements) == len(b.elements)
        and all(map(compatible, a.elements, b.elements))
    )


def same_layout(a: AnyShape, b: AnyShape) -> bool:
    """Whether the elements of two compatible shapes lie in the same order; dimensions of size 1 don't matter."""
    if a is b:
        return True
    if isinstance(a, Shape) and isinstance(b, Shape):
        if a.layout == b.layout or a.minor_to_major == b.minor_to_major:
            return True
        return 0 in a.dims or [d for d in a.minor_to_major if a.dims[d] != 1] == [
            d for d in b.minor_to_major if b.dims[d] != 1
        ]
    return isinstance(a, TupleShape) and isinstance(b, TupleShape) and all(map(same_layout, a.elements, b.elements))


def of_dims(dtype: DType, dims: Sequence[int]) -> Shape:
    """A shape without a layout whose unknown sizes are marked dynamic."""
    sizes = tuple(dims)
    return Shape(dtype, sizes, None, tuple(size == UNBOUNDED for size in sizes) if UNBOUNDED in sizes else ())


def one_or_tuple(parts: Sequence[AnyShape]) -> AnyShape:
    """The shape itself when there is one, else their tuple: what variadic ops make."""
    return parts[0] if len(parts) == 1 else TupleShape(tuple(parts))


def dimensions(
    instruction: HloInstruction,
    rank: int,
    name: str = "dimensions",
    *,
    default: tuple[int, ...] | None = None,
    ascending: bool = False,
) -> tuple[int, ...]:
    """The attribute `name`: distinct dimensions below `rank`, `ascending` where their order must be."""
    dims = instruction.ints(name, default)
    for dim in dims:
        if not 0 <= dim < rank:
            raise fail(instruction, "dimensions.range", f"{name} names dimension {dim} of an array of rank {rank}")
    if len(set(dims)) != len(dims):
        raise fail(instruction, "dimensions.distinct", f"{name} names a dimension twice")
    if ascending and tuple(sorted(dims)) != dims:
        raise fail(instruction, "dimensions.sorted", f"{name}={{{','.join(map(str, dims))}}} isn't in ascending order")
    return dims


def check_rank(instruction: HloInstruction, index: int, least: int) -> Shape:
    """The shape of operand `index`, an array of rank `least` or more."""
    shape = array_operand(instruction, index)
    if shape.rank < least:
        name = instruction.operands[index].name
        raise fail(
            instruction,
            "operand.rank",
            f"{instruction.opcode} needs {least} dimension{'s' * (least > 1)} or more, '{name}' is {brief(shape)}",
        )
    return shape


def choice(instruction: HloInstruction, name: str, words: Sequence[str], default: str | None = None) -> str:
    """The attribute `name`, one of `words`."""
    word = str(instruction.attributes.get(name, default))
    if word not in words:
        raise fail(
            instruction,
            "attribute.word",
            f"{name} of {instruction.opcode} is '{word}'",
            help=did_you_mean(word, words) or f"one of {', '.join(words)}",
        )
    return word
