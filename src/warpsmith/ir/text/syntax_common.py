"""What the hand-written pretty forms share: lists of types, start values, yields.

Each `read_...` function reads what the function or form of the same name prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import Block, Region, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.format import Unprintable

if TYPE_CHECKING:
    from warpsmith.ir.text.parser import Parser
    from warpsmith.ir.text.printer import Printer


def types_of(values: Sequence[Value]) -> list[Type]:
    """The types of values."""
    return [v.type for v in values]


def join(types: Sequence[Type]) -> str:
    """Types separated by commas."""
    return ", ".join([t.text for t in types])


def single_block(region: Region) -> Block:
    """A region's only block; Unprintable (in the pretty form) if it has more, or none."""
    if len(region.blocks) != 1:
        raise Unprintable
    return region.blocks[0]


def same_types(a: Sequence[Value], b: Sequence[Value]) -> None:
    """Unprintable (in the pretty form) unless values have the same types one by one."""
    if len(a) != len(b) or any(x.type is not y.type for x, y in zip(a, b, strict=True)):
        raise Unprintable


def type_run(p: Parser) -> list[Type]:
    """`T, U`."""
    types = [p.type()]
    while p.accept(","):
        types.append(p.type())
    return types


def read_types(p: Parser) -> list[Type]:
    """`: type, type`."""
    p.expect(":", "and the types")
    return type_run(p)


def read_yield(p: Parser) -> tuple[list[Value], dict[str, Attribute]]:
    """Operands with their types, and attributes, of an op that only hands on."""
    refs = p.operand_list()
    attributes = p.optional_dict()
    return (p.resolve_all(refs, read_types(p)) if refs else []), attributes


def inits_text(p: Printer, args: Sequence[Value], inits: Sequence[Value]) -> str:
    """`(%arg = %init, ...)`."""
    return f"({', '.join([f'{p.names[a]} = {p.names[v]}' for a, v in zip(args, inits, strict=True)])})"


def read_inits(p: Parser) -> tuple[list[int], list[int]]:
    """`(%a = %x, %b = %y)`: the arguments, and what they start from."""
    p.expect("(", "and the values that go round")
    pairs = p.comma_separated(")", lambda: (p.operand(), p.expect("=", "and a start value"), p.operand()))
    return [a for a, _, _ in pairs], [v for _, _, v in pairs]
