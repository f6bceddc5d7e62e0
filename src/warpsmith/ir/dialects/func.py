"""builtin.module and the func dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.diagnostics import invalid, need_types, types_of
from warpsmith.ir.core.ssa import UNKNOWN, Block, Effect, Location, Operation, OpRow, Region, Trait, Value, row
from warpsmith.ir.core.types import FunctionType, Type, function
from warpsmith.ir.dialects import forms, func_forms
from warpsmith.ir.text.format import Form


# --------------------------------------------------------------------------------------------------------------- rules
def _module(op: Operation) -> None:
    if len(op.regions[0].blocks) != 1 or op.regions[0].blocks[0].args:
        raise invalid(op, "a body that is no single block without arguments")


def _func(op: Operation) -> None:
    type = op.attributes["function_type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, FunctionType):
        raise invalid(op, "function_type is no function type")
    arguments_rule(op, type.type.inputs, type.type.results, "func.return")


def arguments_rule(op: Operation, inputs: Sequence[Type], results: Sequence[Type], terminator: str) -> None:
    """A function's name, attributes of arguments and results, entry block and returns fit its type."""
    if not isinstance(op.attributes["sym_name"], at.StringAttr):
        raise invalid(op, "sym_name is no string")
    for key, count in (("arg_attrs", len(inputs)), ("res_attrs", len(results))):
        dicts = op.attributes.get(key)
        if dicts is not None and not (isinstance(dicts, at.ArrayAttr) and len(dicts.items) == count):
            raise invalid(op, f"'{key}' is no array of {count} dictionaries")
    for block in op.regions[0].blocks:
        last = block.last
        if last is not None and last.row.name == terminator:
            need_types(last, types_of(last.operands), results, "the values returned")
    if op.regions[0].blocks:
        need_types(op, types_of(op.regions[0].blocks[0].args), inputs, "the arguments of the body")


# ---------------------------------------------------------------------------------------------------------------- rows
ROWS = [
    OpRow(
        "builtin.module",
        (),
        (),
        regions=1,
        traits=Trait.ISOLATED | Trait.SYMBOL,
        optional=("sym_name",),
        verify=_module,
        form=Form(func_forms.print_module, func_forms.parse_module),
        short="module",
        prints_short=True,
    ),
    OpRow(
        "builtin.unrealized_conversion_cast",
        ("inputs*",),
        ("outputs*",),
        form=Form(func_forms.print_conversion_cast, func_forms.parse_conversion_cast),
        short="unrealized_conversion_cast",
    ),
    OpRow(
        "func.func",
        (),
        (),
        attributes=("sym_name", "function_type"),
        optional=("sym_visibility", "arg_attrs", "res_attrs", "no_inline"),
        regions=1,
        traits=Trait.ISOLATED | Trait.SYMBOL,
        verify=_func,
        form=Form(func_forms.print_func, func_forms.parse_func),
    ),
    OpRow(
        "func.return", ("operands*",), (), traits=Trait.TERMINATOR, form=forms.YIELD, short="return", prints_short=True
    ),
    OpRow(
        "func.call",
        ("operands*",),
        ("results*",),
        attributes=("callee",),
        traits=Trait.CALL,
        effects=((Effect.UNKNOWN, None),),
        form=forms.CALL,
        short="call",
    ),
]


def module(location: Location = UNKNOWN) -> Operation:
    """An empty builtin.module."""
    return Operation(row("builtin.module"), regions=(Region((Block(),)),), location=location)


def build(
    b: Builder,
    name: str,
    inputs: Sequence[Type],
    results: Sequence[Type],
    *,
    arg_names: Sequence[str] = (),
    arg_attributes: Sequence[Mapping[str, at.Attribute]] = (),
    attributes: Mapping[str, at.Attribute] | None = None,
    private: bool = False,
) -> Operation:
    """A func.func with an entry block; `arg_attributes` gives one mapping an argument (or is empty)."""
    attrs: dict[str, at.Attribute] = {
        "sym_name": at.string(name),
        "function_type": at.type_attr(function(inputs, results)),
    }
    if private:
        attrs["sym_visibility"] = at.string("private")
    if any(arg_attributes):
        attrs["arg_attrs"] = at.array(at.dictionary(a) for a in arg_attributes)
    attrs.update(attributes or {})
    return b.create("func.func", (), (), attrs, (Region((Block(inputs, arg_names),)),))


def function_type(op: Operation) -> FunctionType:
    """The type of a func.func."""
    found = op.attributes["function_type"]
    if not isinstance(found, at.TypeAttr) or not isinstance(found.type, FunctionType):
        raise InternalError("func.func without a function type")
    return found.type


def set_function_type(op: Operation, inputs: Sequence[Type], results: Sequence[Type]) -> None:
    """Change the types that a function takes and returns."""
    op.attributes["function_type"] = at.type_attr(function(inputs, results))


def arg_attributes(op: Operation) -> list[dict[str, at.Attribute]]:
    """One dict an argument (empty where there is none) of a func.func, or of an llvm.func with a body."""
    found = op.attributes.get("arg_attrs")
    if isinstance(found, at.ArrayAttr):
        return [dict(item.items) if isinstance(item, at.DictAttr) else {} for item in found.items]
    return [{} for _ in (op.body.args if op.regions[0].blocks else function_type(op).inputs)]


def set_arg_attributes(op: Operation, attributes: Sequence[Mapping[str, at.Attribute]]) -> None:
    """Change the attributes of a function's arguments, one dictionary an argument."""
    if any(attributes):
        op.attributes["arg_attrs"] = at.array(at.dictionary(a) for a in attributes)
    else:
        op.attributes.pop("arg_attrs", None)


def functions(module: Operation) -> Iterator[Operation]:
    """The func.func ops of a module, in order."""
    return (op for op in module.body if op.name == "func.func")


def entry(module: Operation) -> Operation:
    """The function with `xla.entry`; else the first that isn't private."""
    public: Operation | None = None
    for op in functions(module):
        if "xla.entry" in op.attributes:
            return op
        if public is None and "sym_visibility" not in op.attributes:
            public = op
    if public is None:
        raise InternalError("the module has no entry function")
    return public


def symbols(module: Operation) -> dict[str, Operation]:
    """The ops of a module that define a symbol, by name."""
    return {op.str_attr("sym_name"): op for op in module.body if "sym_name" in op.attributes}


def ret(b: Builder, values: Sequence[Value]) -> Operation:
    """`func.return`."""
    return b.create("func.return", values)


def call(b: Builder, callee: str, operands: Sequence[Value], results: Sequence[Type]) -> Operation:
    """`func.call` of a function by its name."""
    return b.create("func.call", operands, results, {"callee": at.symbol(callee)})
