"""Pretty forms of builtin and func ops.  Spelling is MLIR's.

The rows of their dialect hold them.  `forms.py` says what such functions do.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute, TypeAttr
from warpsmith.ir.core.diagnostics import types_of
from warpsmith.ir.core.ssa import Operation, OpRow, Region, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.dialects.forms import join, read_types, single_block, type_run
from warpsmith.ir.text.attribute_text import attribute_name, symbol_text
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


def print_module(p: Printer, op: Operation) -> None:
    """` @name attributes {...} {`."""
    block = single_block(op.regions[0])
    if block.args or op.operands or op.results:
        raise Unprintable
    name = op.attributes.get("sym_name")
    if isinstance(name, at.StringAttr):
        p.write(f" {symbol_text(name.value)}")
    p.attributes(op, ("sym_name",) if isinstance(name, at.StringAttr) else (), "attributes ")
    p.write(" ")
    p.region(op.regions[0])


def parse_module(p: Parser, row: OpRow) -> Operation:
    """`module @name attributes {...} {...}`, after the op's name."""
    attributes: dict[str, Attribute] = {}
    if p.tokens[p.i][:1] == "@":
        attributes["sym_name"] = at.string(p.symbol_name())
    if p.accept("attributes"):
        attributes.update(p.attribute_dict())
    return Operation(row, (), (), attributes, [p.region(isolated=True, block=True)])


def print_conversion_cast(p: Printer, op: Operation) -> None:
    """` %a, %b : T, U to V`."""
    if not op.results:
        raise Unprintable
    if op.operands:
        p.write(f" {p.operands(op.operands)} : {join(types_of(op.operands))}")
    p.write(f" to {join(types_of(op.results))}")
    p.attributes(op)


def parse_conversion_cast(p: Parser, row: OpRow) -> Operation:
    """`builtin.unrealized_conversion_cast %a : types to types`, after the op's name."""
    refs = p.operand_list()
    types = read_types(p) if refs else []
    p.expect("to", "and the types of the results")
    results = type_run(p)
    return Operation(row, p.resolve_all(refs, types), results, p.optional_dict())


# --------------------------------------------------------------- functions
_FUNC_HIDDEN = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
_VISIBILITY = ("private", "public", "nested")


def _dicts(attribute: Attribute | None, count: int) -> list[at.DictAttr | None]:
    """`arg_attrs` as one dictionary a value."""
    if attribute is None:
        return [None] * count
    if not isinstance(attribute, at.ArrayAttr) or len(attribute.items) != count:
        raise Unprintable
    found: list[at.DictAttr | None] = []
    for item in attribute.items:
        if not isinstance(item, at.DictAttr):
            raise Unprintable
        found.append(item if item.items else None)
    if not any(found):
        raise Unprintable  # an array of empty dictionaries isn't the same attribute as none
    return found


def dict_text(p: Printer, attribute: at.DictAttr | None) -> str:
    """` {a = 1, b}`, or nothing where there is no dictionary."""
    if attribute is None:
        return ""
    parts = [
        attribute_name(k) if v is at.UNIT else f"{attribute_name(k)} = {p.attribute(v)}" for k, v in attribute.items
    ]
    return f" {{{', '.join(parts)}}}"


def entry_arguments(op: Operation, inputs: Sequence[Type]) -> list[Value] | None:
    """The entry block's arguments, None for a declaration; they must have the types of the function."""
    if not op.regions[0].blocks:
        return None
    args: list[Value] = list(op.regions[0].blocks[0].args)
    if len(args) != len(inputs) or any(a.type is not t for a, t in zip(args, inputs, strict=True)):
        raise Unprintable
    return args


def print_signature(
    p: Printer, args: list[Value] | None, inputs: Sequence[Type], dicts: Sequence[at.DictAttr | None]
) -> None:
    """`(%a: type {attributes}, ...)`; without arguments the types alone."""
    names = [f"{p.names[a]}: " for a in args] if args is not None else [""] * len(inputs)
    p.write(f"({', '.join([f'{n}{t}{dict_text(p, d)}' for n, t, d in zip(names, inputs, dicts, strict=True)])})")


def print_func(p: Printer, op: Operation) -> None:
    """` private @name(%a: T {...}) -> U attributes {...} {`."""
    name, type = op.attributes.get("sym_name"), op.attributes.get("function_type")
    if (
        not isinstance(name, at.StringAttr)
        or not isinstance(type, TypeAttr)
        or not isinstance(type.type, ty.FunctionType)
    ):
        raise Unprintable
    signature = type.type
    visibility = op.attributes.get("sym_visibility")
    if visibility is not None and not (isinstance(visibility, at.StringAttr) and visibility.value in _VISIBILITY):
        raise Unprintable
    dicts = _dicts(op.attributes.get("arg_attrs"), len(signature.inputs))
    result_dicts = _dicts(op.attributes.get("res_attrs"), len(signature.results))
    args = entry_arguments(op, signature.inputs)
    restore = p.names.isolated()
    p.write(f" {visibility.value} " if isinstance(visibility, at.StringAttr) else " ")
    p.write(symbol_text(name.value))
    print_signature(p, args, signature.inputs, dicts)
    _print_results(p, signature.results, result_dicts)
    p.attributes(op, _FUNC_HIDDEN, "attributes ")
    if args is not None:
        p.write(" ")
        p.region(op.regions[0], scoped=True)
    restore()


def _print_results(p: Printer, types: Sequence[Type], dicts: Sequence[at.DictAttr | None]) -> None:
    if not types:
        return
    texts = [f"{t}{dict_text(p, d)}" for t, d in zip(types, dicts, strict=True)]
    bare = len(types) == 1 and dicts[0] is None and not isinstance(types[0], ty.FunctionType)
    p.write(f" -> {texts[0]}" if bare else f" -> ({', '.join(texts)})")


def read_arguments(p: Parser) -> tuple[list[tuple[int, Type]], list[Type], list[at.DictAttr]]:
    """`(%a: T {...}, ...)` or, in a declaration, `(T {...}, ...)`: names with types, all types, all dictionaries."""
    names: list[tuple[int, Type]] = []
    types: list[Type] = []
    dicts: list[at.DictAttr] = []

    def one() -> None:
        if p.tokens[p.i][:1] == "%":
            index = p.operand()
            p.expect(":", "and the argument's type")
            type = p.type()
            names.append((index, type))
        else:
            type = p.type()
        types.append(type)
        dicts.append(at.dictionary(p.optional_dict()))
        if p.tokens[p.i] == "loc":
            p.location()

    p.expect("(", "and the arguments")
    start = p.i
    p.comma_separated(")", one)
    if names and len(names) != len(types):
        raise p.error("some arguments have names and some have none", start)
    return names, types, dicts


def _read_results(p: Parser) -> tuple[list[Type], list[at.DictAttr]]:
    if not p.accept("->"):
        return [], []
    if not p.accept("("):
        return [p.type()], [at.dictionary({})]
    found = p.comma_separated(")", lambda: (p.type(), at.dictionary(p.optional_dict())))
    return [t for t, _ in found], [d for _, d in found]


def put_dicts(attributes: dict[str, Attribute], key: str, dicts: Sequence[at.DictAttr]) -> None:
    """One dictionary a value, as an attribute; left out when all are empty."""
    if any(d.items for d in dicts):
        attributes[key] = at.array(dicts)


def parse_func(p: Parser, row: OpRow) -> Operation:
    """`func.func private @name(...) -> (...) attributes {...} {...}`, after the op's name."""
    attributes: dict[str, Attribute] = {}
    if p.tokens[p.i] in _VISIBILITY:
        attributes["sym_visibility"] = at.string(p.word("a visibility"))
    attributes["sym_name"] = at.string(p.symbol_name())
    names, inputs, dicts = read_arguments(p)
    results, result_dicts = _read_results(p)
    attributes["function_type"] = at.type_attr(ty.function(inputs, results))
    put_dicts(attributes, "arg_attrs", dicts)
    put_dicts(attributes, "res_attrs", result_dicts)
    if p.accept("attributes"):
        attributes.update(p.attribute_dict())
    if p.tokens[p.i] != "{":
        if names:
            raise p.error(
                "a function without a body has argument names",
                names[0][0],
                "write the types alone, or a body in braces",
            )
        return Operation(row, (), (), attributes, [Region()])
    if len(names) != len(inputs):
        raise p.error("a function with a body whose arguments have no names")
    return Operation(row, (), (), attributes, [p.region(names, isolated=True, block=True)])
