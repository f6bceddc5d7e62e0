"""Pretty forms of llvm ops that one line can't say: functions, globals, getelementptr, aggregates.

Reached through `syntax.py`.  Spelling is MLIR's.  What a form can't say raises `Unprintable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.llvm_types import llvm_struct
from warpsmith.ir.core.ssa import Operation, OpRow, Region, Value
from warpsmith.ir.core.types import I1, Type
from warpsmith.ir.text.attribute_text import symbol_text
from warpsmith.ir.text.format import Unprintable
from warpsmith.ir.text.format_kinds import KINDS
from warpsmith.ir.text.syntax_func import entry_arguments, print_signature, put_dicts, read_arguments

if TYPE_CHECKING:
    from warpsmith.ir.text.parser import Parser
    from warpsmith.ir.text.printer import Printer

DYNAMIC = -(1 << 31)
"""Stands in `rawConstantIndices` for an index that is an operand."""

_ORDERINGS = ("success_ordering", "failure_ordering")
_LINKAGES = (
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external"
).split()


def _linkage(op: Operation) -> str:
    """`internal ` for `#llvm.linkage<internal>`, nothing for none or external."""
    found = op.attributes.get("linkage")
    if found is None:
        return ""
    if not isinstance(found, at.OpaqueAttr):
        raise Unprintable
    name = found.text.removeprefix("#llvm.linkage<").removesuffix(">")
    if name not in _LINKAGES:
        raise Unprintable
    return f"{name} "


def _read_linkage(p: Parser, attributes: dict[str, Attribute]) -> None:
    if p.tokens[p.i] in _LINKAGES:
        attributes["linkage"] = at.opaque(f"#llvm.linkage<{p.word('a linkage')}>")


def print_func(p: Printer, op: Operation) -> None:
    """` internal @name(%a: !llvm.ptr {...}) -> f32 attributes {...} {`."""
    name, type = op.attributes.get("sym_name"), op.attributes.get("function_type")
    if (
        not isinstance(name, at.StringAttr)
        or not isinstance(type, at.TypeAttr)
        or not isinstance(type.type, lt.LLVMFunctionType)
    ):
        raise Unprintable
    signature = type.type
    given = op.attributes.get("arg_attrs")
    dicts: list[at.DictAttr | None] = [None] * len(signature.inputs)
    if isinstance(given, at.ArrayAttr):
        dicts = [d if isinstance(d, at.DictAttr) and d.items else None for d in given.items]
    if len(dicts) != len(signature.inputs) or (given is not None and not any(dicts)):
        raise Unprintable
    args = entry_arguments(op, signature.inputs)
    linkage = _linkage(op)
    restore = p.names.isolated()
    p.write(f" {linkage}{symbol_text(name.value)}")
    print_signature(p, args, signature.inputs, dicts)
    if signature.result is not lt.VOID:
        p.write(f" -> {signature.result}")
    p.attributes(op, ("sym_name", "function_type", "linkage", "arg_attrs"), "attributes ")
    if args is not None:
        p.write(" ")
        p.region(op.regions[0], scoped=True)
    restore()


def parse_func(p: Parser, row: OpRow) -> Operation:
    """`llvm.func @name(...) -> type {...}`, after the op's name."""
    attributes: dict[str, Attribute] = {}
    _read_linkage(p, attributes)
    attributes["sym_name"] = at.string(p.symbol_name())
    names, inputs, dicts = read_arguments(p)
    result: Type = p.type() if p.accept("->") else lt.VOID
    attributes["function_type"] = at.type_attr(lt.llvm_function(result, inputs))
    put_dicts(attributes, "arg_attrs", dicts)
    if p.accept("attributes"):
        attributes.update(p.attribute_dict())
    if p.tokens[p.i] != "{":
        if names:
            raise p.error("a function without a body has argument names", names[0][0])
        return Operation(row, (), (), attributes, [Region()])
    if len(names) != len(inputs):
        raise p.error("a function with a body whose arguments have no names")
    return Operation(row, (), (), attributes, [p.region(names, isolated=True, block=True)])


_GLOBAL_HIDDEN = ("sym_name", "global_type", "linkage", "value", "constant")


def print_global(p: Printer, op: Operation) -> None:
    """` internal constant @name(dense<...> : tensor<4xf32>) {addr_space = 1 : i32} : !llvm.array<4 x f32>`."""
    name, type = op.attributes.get("sym_name"), op.attributes.get("global_type")
    if not isinstance(name, at.StringAttr) or not isinstance(type, at.TypeAttr):
        raise Unprintable
    p.write(f" {_linkage(op)}{'constant ' if 'constant' in op.attributes else ''}{symbol_text(name.value)}")
    value = op.attributes.get("value")
    p.write(f"({p.attribute(value) if value is not None else ''})")
    p.attributes(op, _GLOBAL_HIDDEN)
    p.write(f" : {type.type}")
    if op.regions and op.regions[0].blocks:
        p.write(" ")
        p.region(op.regions[0])


def parse_global(p: Parser, row: OpRow) -> Operation:
    """`llvm.mlir.global internal constant @name(value) : type`, after the op's name."""
    attributes: dict[str, Attribute] = {}
    _read_linkage(p, attributes)
    attributes.setdefault("linkage", at.opaque("#llvm.linkage<external>"))
    if p.accept("constant"):
        attributes["constant"] = at.UNIT
    attributes["sym_name"] = at.string(p.symbol_name())
    p.expect("(", "and the value")
    if not p.accept(")"):
        attributes["value"] = p.attribute()
        p.expect(")", "after the value")
    attributes.update(p.optional_dict())
    p.expect(":", "and the type")
    attributes["global_type"] = at.type_attr(p.type())
    return Operation(row, (), (), attributes, [p.region() if p.tokens[p.i] == "{" else Region()])


# -------------------------------------------------------------------------------------------------------- getelementptr
_WRAP_FLAGS = {1 | 2: "inbounds", 2: "nusw", 4: "nuw", 3 | 4: "inbounds|nuw", 2 | 4: "nusw|nuw"}


def print_gep(p: Printer, op: Operation) -> None:
    """` inbounds %p[%i, 0] : (!llvm.ptr, i32) -> !llvm.ptr, bf16`."""
    element, raw = op.attributes.get("elem_type"), op.attributes.get("rawConstantIndices")
    if not isinstance(element, at.TypeAttr) or not isinstance(raw, at.DenseArrayAttr) or not op.operands:
        raise Unprintable
    dynamic = iter(op.operands[1:])
    if raw.values.count(DYNAMIC) != len(op.operands) - 1:
        raise Unprintable
    flags = op.attributes.get("noWrapFlags")
    word = ""
    if isinstance(flags, at.IntegerAttr) and flags.value:
        if flags.type is not ty.I32 or flags.value not in _WRAP_FLAGS:
            raise Unprintable
        word = " " + _WRAP_FLAGS[flags.value].replace("|", " | ")
    elif flags is not None and not isinstance(flags, at.IntegerAttr):
        raise Unprintable
    shown = [p.names[next(dynamic)] if v == DYNAMIC else str(v) for v in raw.values]
    p.write(f"{word} {p.names[op.operands[0]]}[{', '.join(shown)}]")
    p.attributes(op, ("elem_type", "rawConstantIndices", "noWrapFlags"))
    types = ty.function([v.type for v in op.operands], [op.results[0].type])
    p.write(f" : {types}, {element.type}")


def parse_gep(p: Parser, row: OpRow) -> Operation:
    """`llvm.getelementptr inbounds %p[%i, 0] : (...) -> type, type`, after the op's name."""
    start = p.i
    words: list[str] = []
    while p.tokens[p.i] in ("inbounds", "nusw", "nuw", "|"):
        if p.tokens[p.i] != "|":
            words.append(p.tokens[p.i])
        p.i += 1
    base = p.operand()
    p.expect("[", "and the indices")
    uses: list[int] = []

    def one() -> int:
        if p.tokens[p.i][:1] == "%":
            uses.append(p.operand())
            return DYNAMIC
        return p.integer("an index")

    raw = p.comma_separated("]", one)
    attributes = p.optional_dict()
    p.expect(":", "and the type")
    type = p.function_type()
    p.expect(",", "and the type of an element")
    attributes["elem_type"] = at.type_attr(p.type())
    attributes["rawConstantIndices"] = at.dense_array(raw, ty.I32)
    if words:
        bits = [k for k, v in _WRAP_FLAGS.items() if v == "|".join(words)]
        if not bits:
            raise p.error(f"unknown flags '{' '.join(words)}'", start)
        attributes["noWrapFlags"] = at.integer_attr(bits[0], ty.I32)
    return Operation(row, p.resolve_all([base, *uses], type.inputs), type.results, attributes)


# ----------------------------------------------------------------------------------------------------------- aggregates
def part_type(type: Type, position: tuple[int, ...]) -> Type | None:
    """The type of the part of an aggregate at `position`; None if there is none."""
    for index in position:
        if isinstance(type, lt.LLVMStructType) and 0 <= index < len(type.fields):
            type = type.fields[index]
        elif isinstance(type, lt.LLVMArrayType) and 0 <= index < type.count:
            type = type.element
        else:
            return None
    return type


def _position(op: Operation) -> tuple[int, ...]:
    found = op.attributes.get("position")
    if not isinstance(found, at.DenseArrayAttr) or found.element is not ty.I64:
        raise Unprintable
    return found.values


def _read_part(p: Parser) -> tuple[at.DenseArrayAttr, dict[str, Attribute], Type, Type]:
    """`[0, 1] {...} : !llvm.struct<...>`: the position, attributes, the aggregate's type, and the part's."""
    start = p.i
    p.expect("[", "and the position")
    position = at.dense_array(p.comma_separated("]", p.integer))
    attributes = p.optional_dict()
    p.expect(":", "and the aggregate's type")
    type = p.type()
    part = part_type(type, position.values)
    if part is None:
        raise p.error(f"{type} has no part at {list(position.values)}", start)
    return position, attributes, type, part


def print_cmpxchg(p: Printer, op: Operation) -> None:
    """` %p, %expected, %new monotonic monotonic : !llvm.ptr, i32`; the result is a struct of the value and an i1."""
    pointer, expected, value = op.operands
    orderings = [KINDS["ordering"].print(op.attributes[name], op.row) for name in _ORDERINGS]
    if expected.type is not value.type or op.results[0].type is not llvm_struct((value.type, I1)) or None in orderings:
        raise Unprintable
    p.write(f" {p.operands(op.operands)} {' '.join(map(str, orderings))}")
    p.attributes(op, _ORDERINGS)
    p.write(f" : {pointer.type}, {value.type}")


def parse_cmpxchg(p: Parser, row: OpRow) -> Operation:
    """`llvm.cmpxchg %p, %old, %new orders : type, type`, after the op's name."""
    refs = [p.operand()]
    for _ in range(2):
        p.expect(",", "and the other values")
        refs.append(p.operand())
    orderings = {name: KINDS["ordering"].parse(p, row, name) for name in _ORDERINGS}
    attributes = {**p.optional_dict(), **{name: found for name, found in orderings.items() if found is not None}}
    p.expect(":", "and the types")
    pointer = p.type()
    p.expect(",", "and the values' type")
    type = p.type()
    operands = [p.resolve(refs[0], pointer), p.resolve(refs[1], type), p.resolve(refs[2], type)]
    return Operation(row, operands, [llvm_struct((type, I1))], attributes)


def print_extractvalue(p: Printer, op: Operation) -> None:
    """` %s[0] : !llvm.struct<(f32, i1)>`."""
    position = _position(op)
    if len(op.operands) != 1 or part_type(op.operands[0].type, position) is not op.results[0].type:
        raise Unprintable
    p.write(f" {p.names[op.operands[0]]}[{', '.join(map(str, position))}]")
    p.attributes(op, ("position",))
    p.write(f" : {op.operands[0].type}")


def parse_extractvalue(p: Parser, row: OpRow) -> Operation:
    """`llvm.extractvalue %a[0] : type`, after the op's name."""
    container = p.operand()
    position, attributes, type, part = _read_part(p)
    return Operation(row, [p.resolve(container, type)], [part], {**attributes, "position": position})


def print_insertvalue(p: Printer, op: Operation) -> None:
    """` %v, %s[0] : !llvm.struct<(f32, i1)>`; the generic operand order is container, value."""
    position = _position(op)
    if len(op.operands) != 2 or part_type(op.operands[0].type, position) is not op.operands[1].type:
        raise Unprintable
    container, value = op.operands
    if op.results[0].type is not container.type:
        raise Unprintable
    p.write(f" {p.names[value]}, {p.names[container]}[{', '.join(map(str, position))}]")
    p.attributes(op, ("position",))
    p.write(f" : {container.type}")


def parse_insertvalue(p: Parser, row: OpRow) -> Operation:
    """`llvm.insertvalue %v, %a[0] : type`, after the op's name."""
    value = p.operand()
    p.expect(",", "and the aggregate")
    container = p.operand()
    position, attributes, type, part = _read_part(p)
    operands: list[Value] = [p.resolve(container, type), p.resolve(value, part)]
    return Operation(row, operands, [type], {**attributes, "position": position})


def print_shufflevector(p: Printer, op: Operation) -> None:
    """` %a, %b [0, 4] : vector<4xf32>`."""
    mask = op.attributes.get("mask")
    if not isinstance(mask, at.DenseArrayAttr) or mask.element is not ty.I32 or len(op.operands) != 2:
        raise Unprintable
    type = op.operands[0].type
    if (
        op.results[0].type is not ty.vector((len(mask.values),), ty.element_type(type))
        or op.operands[1].type is not type
    ):
        raise Unprintable
    p.write(f" {p.operands(op.operands)} [{', '.join(map(str, mask.values))}]")
    p.attributes(op, ("mask",))
    p.write(f" : {type}")


def parse_shufflevector(p: Parser, row: OpRow) -> Operation:
    """`llvm.shufflevector %a, %b [0, 1] : type`, after the op's name."""
    first = p.operand()
    p.expect(",", "and a second vector")
    second = p.operand()
    p.expect("[", "and the mask")
    mask = p.comma_separated("]", p.integer)
    attributes = p.optional_dict()
    p.expect(":", "and the type")
    type = p.type()
    operands = [p.resolve(first, type), p.resolve(second, type)]
    attributes["mask"] = at.dense_array(mask, ty.I32)
    return Operation(row, operands, [ty.vector((len(mask),), ty.element_type(type))], attributes)
