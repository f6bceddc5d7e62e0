"""Pretty forms that rows of several dialects have, and what the hand-written ones of single dialects share.

In: a printer and an op, or a parser and a row.  Out: text, or the op.  A `print_...` function writes what follows the
op's name; it raises `Unprintable`, before it opens a region, where the pretty form can't say what the op holds (the
generic form is printed then).  Each `read_...` function reads what the function of the same name prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.diagnostics import types_of
from warpsmith.ir.core.ssa import Block, Operation, OpRow, Region, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.format import Form, described
from warpsmith.ir.text.format_kinds import parse_flags, print_flags
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


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


# ------------------------------------------------------------------------------------------------ forms of many rows
_FLAG_NAMES = ("fastmath", "overflowFlags")
_HAS_FLAGS = frozenset(_FLAG_NAMES)


# ------------------------------------------------------------------------------------------------- arithmetic, by hand
def _print_flags(p: Printer, op: Operation) -> None:
    for name in _FLAG_NAMES:
        value = op.attributes.get(name)
        if value is not None:
            text = print_flags(value, op.row)
            if text is None or name not in op.row.optional:
                raise Unprintable
            p.write(text)
    p.attributes(op, _HAS_FLAGS)


def _read_flags(p: Parser, row: OpRow) -> dict[str, Attribute]:
    """Flags and braces after the operands."""
    found: dict[str, Attribute] = {}
    token = p.tokens[p.i]
    if token == ":":
        return found
    for name in row.optional:
        if name in _HAS_FLAGS:
            value = parse_flags(p, row, name)
            if value is not None:
                found[name] = value
    found.update(p.optional_dict())
    return found


def _print_same(p: Printer, op: Operation) -> None:
    """` %a, %b : T`."""
    operands = op.operands
    if not operands:
        raise Unprintable
    type = operands[0].type
    names = p.names
    for value in operands:
        if value.type is not type:
            raise Unprintable
    for result in op.results:
        if result.type is not type:
            raise Unprintable
    p.write(f" {', '.join([names[v] for v in operands])}")
    if op.attributes:
        _print_flags(p, op)
    p.write(f" : {type.text}")


def _parse_same(p: Parser, row: OpRow) -> Operation:
    start = p.i - 1
    refs = p.operand_list()
    if len(refs) != len(row.operands):
        raise p.error(f"{row.name} takes {len(row.operands)} operand(s), not {len(refs)}", start)
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    type = p.type()
    resolve = p.resolve
    return Operation(row, [resolve(r, type) for r in refs], [type] * len(row.results), attributes)


def _print_cast(p: Printer, op: Operation) -> None:
    """` %a : T to U`."""
    if len(op.operands) != 1 or len(op.results) != 1:
        raise Unprintable
    value = op.operands[0]
    p.write(f" {p.names[value]}")
    if op.attributes:
        _print_flags(p, op)
    p.write(f" : {value.type.text} to {op.results[0].type.text}")


def _parse_cast(p: Parser, row: OpRow) -> Operation:
    ref = p.operand()
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    source = p.type()
    p.expect("to", "and the type of the result")
    return Operation(row, [p.resolve(ref, source)], [p.type()], attributes)


def _print_constant(p: Printer, op: Operation) -> None:
    """` 1.000000e+00 : f32`, ` true`; other attributes in braces first."""
    value = op.attributes.get("value")
    if value is None or _constant_type(value) is not op.results[0].type:
        raise Unprintable
    p.attributes(op, ("value",))
    p.write(f" {p.attribute(value)}")


def _constant_type(value: Attribute) -> ty.Type | None:
    """The type of a constant's value."""
    type = getattr(value, "type", None)
    return type if isinstance(type, ty.Type) and not isinstance(value, at.TypeAttr) else None


def _parse_constant(p: Parser, row: OpRow) -> Operation:
    attributes = p.optional_dict()
    index = p.i
    value = p.attribute()
    type = _constant_type(value)
    if type is None:
        raise p.error("a constant that is no number", index, "a constant is an integer, a float, or dense<...>")
    attributes["value"] = value
    return Operation(row, (), [type], attributes)


def _print_select(p: Printer, op: Operation) -> None:
    """` %c, %a, %b : T`; with a vector condition both types are written."""
    if len(op.operands) != 3 or op.operands[1].type is not op.results[0].type:
        raise Unprintable
    p.write(f" {p.operands(op.operands)}")
    _print_flags(p, op)
    condition = op.operands[0].type
    p.write(f" : {op.results[0].type}" if condition is ty.I1 else f" : {condition}, {op.results[0].type}")


def _parse_select(p: Parser, row: OpRow) -> Operation:
    start = p.i - 1
    refs = p.operand_list()
    attributes = _read_flags(p, row)
    p.expect(":", "and a type")
    type = p.type()
    condition: ty.Type = ty.I1
    if p.accept(","):
        condition, type = type, p.type()
    if len(refs) != 3:
        raise p.error(f"{row.name} takes 3 operands, not {len(refs)}", start)
    return Operation(row, p.resolve_all(refs, [condition, type, type]), [type], attributes)


_INTRINSIC = described("($*){} : %fn")


def _print_intrinsic(p: Printer, op: Operation) -> None:
    if "is_zero_poison" in op.attributes:  # MLIR has no pretty form for these
        raise Unprintable
    _INTRINSIC.print(p, op)


def _print_yield(p: Printer, op: Operation) -> None:
    """` %a, %b : T, U`, or nothing."""
    if op.results:
        same_types(op.operands, op.results)
    if op.operands:
        p.write(f" {p.operands(op.operands)}")
        p.attributes(op)
        p.write(f" : {join(types_of(op.operands))}")
    else:
        p.attributes(op)


def _parse_yield(p: Parser, row: OpRow) -> Operation:
    """An op that hands on values: `%a, %b : types`."""
    operands, attributes = read_yield(p)
    return Operation(row, operands, (), attributes)


def _parse_sync(p: Parser, row: OpRow) -> Operation:
    """An op whose results are its operands, synchronised: `%a, %b : types`."""
    operands, attributes = read_yield(p)
    return Operation(row, operands, types_of(operands), attributes)


SAME = Form(_print_same, _parse_same)
CAST = Form(_print_cast, _parse_cast)
CONSTANT = Form(_print_constant, _parse_constant)
SELECT = Form(_print_select, _parse_select)
YIELD = Form(_print_yield, _parse_yield)
SYNC = Form(_print_yield, _parse_sync)
INTRINSIC = Form(_print_intrinsic, _INTRINSIC.parse)
CALL = described(" <sym:callee>($*){} : %fn")
FROM_ELEMENTS = described(" $0*{} : type(r0)", "0=elem(r0)")
BARE = described("{}")
TYPED = described("{} : type(r0)")
