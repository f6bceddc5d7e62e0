"""Ops on tensors (value form, above `lower-tensors`) and memrefs (buffer form, below it).

Tensor values are in destination-passing style: `tensor.insert` gives the tensor that its destination becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Trait, Value
from warpsmith.ir.core.types import I32, MemRefType, element_type
from warpsmith.ir.dialects import forms
from warpsmith.ir.dialects.memory_rules import access, from_elements
from warpsmith.ir.text.attribute_text import symbol_text
from warpsmith.ir.text.format import Form, described
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


# --------------------------------------------------------------------------------------------------------------- rules
def _global(op: Operation) -> None:
    type = op.attributes["type"]
    if not isinstance(type, at.TypeAttr) or not isinstance(type.type, ty.MemRefType):
        raise invalid(op, "its type is no memref")
    value = op.attributes.get("initial_value")
    if isinstance(value, at.DenseAttr) and (value.type.shape, value.type.element) != (
        type.type.shape,
        type.type.element,
    ):
        raise invalid(op, f"a value of type {value.type} for a global of type {type.type}")


# --------------------------------------------------------------------------------------------------------------- forms
def _print_global(p: Printer, op: Operation) -> None:
    """` "private" constant @name : memref<4xf32> = dense<...>`; `uninitialized` is the unit attribute."""
    name, type = op.attributes.get("sym_name"), op.attributes.get("type")
    if (
        not isinstance(name, at.StringAttr)
        or not isinstance(type, at.TypeAttr)
        or not isinstance(type.type, ty.MemRefType)
    ):
        raise Unprintable
    visibility, value = op.attributes.get("sym_visibility"), op.attributes.get("initial_value")
    memref = type.type
    elements = ty.tensor(memref.shape, memref.element)
    if value is not None and value is not at.UNIT and not (isinstance(value, at.DenseAttr) and value.type is elements):
        raise Unprintable
    if isinstance(visibility, at.StringAttr):
        p.write(f' "{visibility.value}"')
    p.write(" constant" if "constant" in op.attributes else "")
    p.write(f" {symbol_text(name.value)} : {memref}")
    if value is at.UNIT:
        p.write(" = uninitialized")
    elif value is not None:
        p.write(f" = {p.attribute(value).rpartition(' : ')[0]}")
    p.attributes(op, ("sym_name", "type", "sym_visibility", "initial_value", "constant"))


def _parse_global(p: Parser, row: OpRow) -> Operation:
    """`memref.global "private" constant @name : type = value`, after the op's name."""
    attributes: dict[str, at.Attribute] = {}
    if p.tokens[p.i][:1] == '"':
        attributes["sym_visibility"] = at.string(p.string())
    if p.accept("constant"):
        attributes["constant"] = at.UNIT
    attributes["sym_name"] = at.string(p.symbol_name())
    p.expect(":", "and the type")
    index = p.i
    type = p.type()
    if not isinstance(type, ty.MemRefType):
        raise p.error(f"a global of type {type}", index, "memref.global holds a memref")
    attributes["type"] = at.type_attr(type)
    if p.accept("="):
        attributes["initial_value"] = (
            at.UNIT if p.accept("uninitialized") else p.dense_of(ty.tensor(type.shape, type.element))
        )
    attributes.update(p.optional_dict())
    return Operation(row, (), (), attributes)


# ---------------------------------------------------------------------------------------------------------------- rows
ROWS = [
    OpRow(
        "tensor.extract",
        ("tensor", "indices*"),
        traits=Trait.GUARDED,
        verify=access(0, 1, (ty.TensorType,), "a tensor"),
        form=described(" $tensor[$indices*]{} : type(tensor)", "indices=index result=elem(tensor)"),
        result_hint="extracted",
    ),
    OpRow(
        "tensor.insert",
        ("scalar", "dest", "indices*"),
        traits=Trait.GUARDED,
        verify=access(1, 2, (ty.TensorType,), "a tensor"),
        form=described(" $scalar into $dest[$indices*]{} : type(dest)", "scalar=elem(dest) indices=index result=dest"),
        result_hint="inserted",
    ),
    OpRow("tensor.from_elements", ("elements*",), verify=from_elements, form=forms.FROM_ELEMENTS),
    OpRow(
        "memref.load",
        ("memref", "indices*"),
        optional=("nontemporal", "alignment", "invariant"),
        effects=((Effect.READ, "memref"),),
        verify=access(0, 1, (ty.MemRefType,), "a memref"),
        form=described(" $memref[$indices*]{} : type(memref)", "indices=index result=elem(memref)"),
    ),
    OpRow(
        "memref.store",
        ("value", "memref", "indices*"),
        (),
        optional=("nontemporal", "alignment"),
        effects=((Effect.WRITE, "memref"),),
        verify=access(1, 2, (ty.MemRefType,), "a memref"),
        form=described(" $value, $memref[$indices*]{} : type(memref)", "value=elem(memref) indices=index"),
    ),
    OpRow(
        "memref.atomic_rmw",
        ("value", "memref", "indices*"),
        attributes=("kind",),
        effects=((Effect.READ, "memref"), (Effect.WRITE, "memref")),
        form=described(
            " <atomic_kind:kind> $value, $memref[$indices*]{} : (type(value), type(memref)) -> type(r0)",
            "indices=index",
        ),
    ),
    OpRow(
        "memref.alloca",
        ("dynamicSizes*", "symbolOperands*"),
        attributes=("operandSegmentSizes",),
        optional=("alignment",),
        effects=((Effect.ALLOCATE, None),),
        form=described("($dynamicSizes*){} : type(r0)", "dynamicSizes=index"),
    ),
    OpRow(
        "memref.global",
        (),
        (),
        attributes=("sym_name", "type"),
        optional=("sym_visibility", "initial_value", "constant", "alignment"),
        traits=Trait.SYMBOL,
        verify=_global,
        form=Form(_print_global, _parse_global),
    ),
    OpRow("memref.get_global", (), attributes=("name",), form=described(" <sym:name>{} : type(r0)")),
]


def extract(b: Builder, source: Value, indices: Sequence[Value]) -> Value:
    """`tensor.extract`: one element, by an index a dim."""
    return b.op1("tensor.extract", (source, *indices), element_type(source.type))


def insert(b: Builder, scalar: Value, dest: Value, indices: Sequence[Value]) -> Value:
    """`tensor.insert`: the tensor with one element replaced."""
    return b.op1("tensor.insert", (scalar, dest, *indices), dest.type)


def load(b: Builder, source: Value, index: Value) -> Value:
    """One element of a rank-1 memref."""
    return b.op1("memref.load", (source, index), element_type(source.type))


def store(b: Builder, value: Value, dest: Value, index: Value) -> Operation:
    """`memref.store` at one flat index."""
    return b.create("memref.store", (value, dest, index))


def alloca(
    b: Builder, type: MemRefType, alignment: int, name: str = "", attributes: Mapping[str, at.Attribute] | None = None
) -> Value:
    """Memory of a known size until the function returns; `alignment` in bytes."""
    found: dict[str, at.Attribute] = {
        "operandSegmentSizes": at.dense_array((0, 0), I32),
        "alignment": at.integer_attr(alignment, at.I64),
        **(attributes or {}),
    }
    return b.op1("memref.alloca", (), type, found, name)


def atomic_rmw(b: Builder, kind: str, value: Value, dest: Value, index: Value) -> Value:
    """Combine a value into an element of a rank-1 memref in one step; what was there before."""
    number = at.integer_attr(ATOMIC_KINDS.index(kind), at.I64)
    return b.op1("memref.atomic_rmw", (value, dest, index), value.type, {"kind": number})
