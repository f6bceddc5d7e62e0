"""Pretty forms of llvm ops that one line can't say: functions and globals.

The rows of their dialect hold them.  Spelling is MLIR's.  What a form can't say raises `Unprintable`.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import Operation, OpRow, Region
from warpsmith.ir.core.types import Type
from warpsmith.ir.dialects.func_forms import entry_arguments, print_signature, put_dicts, read_arguments
from warpsmith.ir.text.attribute_text import symbol_text
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable

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
