"""Ops on tensors (value form, above `lower-tensors`) and memrefs (buffer form, below it).

Tensor values are in destination-passing style: `tensor.insert` gives the tensor that its destination becomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Trait, Value
from warpsmith.ir.core.types import I32, MemRefType, element_type
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS

ROWS = [
    OpRow("tensor.extract", ("tensor", "indices*"), syntax="tensor_extract", result_hint="extracted"),
    OpRow("tensor.insert", ("scalar", "dest", "indices*"), syntax="tensor_insert", result_hint="inserted"),
    OpRow("tensor.from_elements", ("elements*",), syntax="from_elements"),
    OpRow(
        "memref.load",
        ("memref", "indices*"),
        optional=("nontemporal", "alignment", "invariant"),
        effects=((Effect.READ, "memref"),),
        syntax="memref_load",
    ),
    OpRow(
        "memref.store",
        ("value", "memref", "indices*"),
        (),
        optional=("nontemporal", "alignment"),
        effects=((Effect.WRITE, "memref"),),
        syntax="memref_store",
    ),
    OpRow(
        "memref.atomic_rmw",
        ("value", "memref", "indices*"),
        attributes=("kind",),
        effects=((Effect.READ, "memref"), (Effect.WRITE, "memref")),
        syntax="memref_atomic_rmw",
    ),
    OpRow(
        "memref.alloca",
        ("dynamicSizes*", "symbolOperands*"),
        attributes=("operandSegmentSizes",),
        optional=("alignment",),
        effects=((Effect.ALLOCATE, None),),
        syntax="memref_alloc",
    ),
    OpRow(
        "memref.global",
        (),
        (),
        attributes=("sym_name", "type"),
        optional=("sym_visibility", "initial_value", "constant", "alignment"),
        traits=Trait.SYMBOL,
        syntax="memref_global",
    ),
    OpRow("memref.get_global", (), attributes=("name",), syntax="memref_get_global"),
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
