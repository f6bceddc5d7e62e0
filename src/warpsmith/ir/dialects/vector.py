"""The vector dialect: rank-1 vectors in registers, and their loads and stores."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Trait, Value
from warpsmith.ir.core.types import I1, I32, INDEX, TensorType, Type, VectorType, element_type, vector
from warpsmith.ir.dialects import forms, vector_forms
from warpsmith.ir.dialects import memory_rules as rules
from warpsmith.ir.text.format import Form, described

DYNAMIC = -(1 << 63)  # stands for "see the operand" in a static_position

_READ = ((Effect.READ, "base"),)
_WRITE = ((Effect.WRITE, "base"),)

ROWS = [
    # A transfer on a tensor has value semantics; the verifier and `ir/core/effects.py` look at the base's type.
    OpRow(
        "vector.transfer_read",
        ("base", "indices*", "padding", "mask?"),
        ("vector",),
        attributes=("in_bounds", "permutation_map", "operandSegmentSizes"),
        optional=("alignment",),
        traits=Trait.GUARDED,
        effects=_READ,
        verify=rules.transfer,
        form=Form(vector_forms.print_transfer, vector_forms.parse_transfer_read),
    ),
    OpRow(
        "vector.transfer_write",
        ("valueToStore", "base", "indices*", "mask?"),
        ("result?",),
        attributes=("in_bounds", "permutation_map", "operandSegmentSizes"),
        optional=("alignment",),
        traits=Trait.GUARDED,
        effects=_WRITE,
        verify=rules.transfer,
        form=Form(vector_forms.print_transfer, vector_forms.parse_transfer_write),
    ),
    OpRow(
        "vector.extract",
        ("source", "dynamic_position*"),
        attributes=("static_position",),
        verify=rules.position(0, 1),
        form=described(
            " $source[$dynamic_position*|i64:static_position]{} : type(r0) from type(source)", "dynamic_position=index"
        ),
    ),
    OpRow(
        "vector.insert",
        ("valueToStore", "dest", "dynamic_position*"),
        attributes=("static_position",),
        verify=rules.position(1, 2),
        form=described(
            " $valueToStore, $dest [$dynamic_position*|i64:static_position]{} : type(valueToStore) into type(dest)",
            "dynamic_position=index r0=dest",
        ),
    ),
    OpRow(
        "vector.load",
        ("base", "indices*"),
        optional=("nontemporal", "alignment", "invariant"),
        effects=_READ,
        verify=rules.vector_memory,
        form=described(" $base[$indices*]{} : type(base), type(r0)", "indices=index"),
    ),
    OpRow(
        "vector.store",
        ("valueToStore", "base", "indices*"),
        (),
        optional=("nontemporal", "alignment"),
        effects=_WRITE,
        verify=rules.vector_memory,
        form=described(" $valueToStore, $base[$indices*]{} : type(base), type(valueToStore)", "indices=index"),
    ),
    OpRow(
        "vector.maskedload",
        ("base", "indices*", "mask", "pass_thru"),
        optional=("alignment",),
        effects=_READ,
        verify=rules.vector_memory,
        form=described(
            " $base[$indices*], $mask, $pass_thru{} : type(base), type(mask), type(pass_thru) into type(r0)",
            "indices=index",
        ),
    ),
    OpRow(
        "vector.maskedstore",
        ("base", "indices*", "mask", "valueToStore"),
        (),
        optional=("alignment",),
        effects=_WRITE,
        verify=rules.vector_memory,
        form=described(
            " $base[$indices*], $mask, $valueToStore{} : type(base), type(mask), type(valueToStore)", "indices=index"
        ),
    ),
    OpRow(
        "vector.gather",
        ("base", "offsets*", "indices", "mask", "pass_thru"),
        optional=("alignment",),
        traits=Trait.GUARDED,
        effects=_READ,
        verify=rules.vector_memory,
        form=described(
            " $base[$offsets*] [$indices], $mask, $pass_thru{}"
            " : type(base), type(indices), type(mask), type(pass_thru) into type(r0)",
            "offsets=index",
        ),
    ),
    OpRow("vector.broadcast", ("source",), ("vector",), verify=rules.broadcast, form=forms.CAST),
    OpRow("vector.step", (), verify=rules.step, form=forms.TYPED),
    OpRow(
        "vector.shuffle",
        ("v1", "v2"),
        ("vector",),
        attributes=("mask",),
        verify=rules.shuffle,
        form=described(" $v1, $v2 <ints:mask>{} : type(v1), type(v2)", "r0=lanes(v1)"),
    ),
    OpRow("vector.bitcast", ("source",), verify=rules.bitcast, form=forms.CAST),
    OpRow(
        "vector.create_mask", ("operands*",), verify=rules.mask_sizes, form=described(" $0*{} : type(r0)", "0=index")
    ),
    OpRow("vector.from_elements", ("elements*",), ("dest",), verify=rules.from_elements, form=forms.FROM_ELEMENTS),
    OpRow(
        "vector.extract_strided_slice",
        ("source",),
        attributes=("offsets", "sizes", "strides"),
        verify=rules.strided_slice,
        form=described(" $source{} : type(source) to type(r0)"),
    ),
    OpRow(
        "vector.insert_strided_slice",
        ("valueToStore", "dest"),
        ("res",),
        attributes=("offsets", "strides"),
        verify=rules.strided_slice,
        form=described(" $valueToStore, $dest{} : type(valueToStore) into type(dest)", "res=dest"),
    ),
]

_IDENTITY = at.opaque("affine_map<(d0) -> (d0)>")
_IN_BOUNDS = at.array((at.boolean(True),))


def transfer_read(b: Builder, base: Value, index: Value, padding: Value, type: VectorType) -> Value:
    """`type`'s elements of the rank-1 `base` from `index` on; all in bounds."""
    attributes: dict[str, at.Attribute] = {
        "in_bounds": _IN_BOUNDS,
        "permutation_map": _IDENTITY,
        "operandSegmentSizes": at.dense_array((1, 1, 1, 0), I32),
    }
    return b.op1("vector.transfer_read", (base, index, padding), type, attributes)


def transfer_read_row(b: Builder, base: Value, indices: Sequence[Value], padding: Value, type: VectorType) -> Value:
    """`type`'s elements of `base`, of any rank, from `indices` on along the last dimension; all in bounds."""
    return b.op1("vector.transfer_read", (base, *indices, padding), type, _along_last(1, len(indices), 1, 0))


def transfer_write_row(b: Builder, value: Value, base: Value, indices: Sequence[Value]) -> Value:
    """The tensor `base`, of any rank, with a vector put along the last dimension from `indices` on."""
    attributes = _along_last(1, 1, len(indices), 0)
    return b.op1("vector.transfer_write", (value, base, *indices), base.type, attributes)


def _along_last(*sizes: int) -> dict[str, at.Attribute]:
    """The attributes of a transfer along the last dimension whose operand groups have `sizes`."""
    rank = max(sizes)
    dims = ", ".join(f"d{i}" for i in range(rank))
    return {
        "in_bounds": _IN_BOUNDS,
        "permutation_map": at.opaque(f"affine_map<({dims}) -> (d{rank - 1})>"),
        "operandSegmentSizes": at.dense_array(sizes, I32),
    }


def transfer_write(b: Builder, value: Value, base: Value, index: Value) -> Operation:
    """Put a vector into the rank-1 `base` at `index`; on a tensor the op gives the new tensor."""
    attributes: dict[str, at.Attribute] = {
        "in_bounds": _IN_BOUNDS,
        "permutation_map": _IDENTITY,
        "operandSegmentSizes": at.dense_array((1, 1, 1, 0), I32),
    }
    results: tuple[Type, ...] = (base.type,) if isinstance(base.type, TensorType) else ()
    return b.create("vector.transfer_write", (value, base, index), results, attributes)


def extract(b: Builder, source: Value, position: int | Value) -> Value:
    """One element of a rank-1 vector."""
    static, dynamic = _position(position)
    return b.op1("vector.extract", (source, *dynamic), element_type(source.type), {"static_position": static})


def insert(b: Builder, value: Value, dest: Value, position: int | Value) -> Value:
    """`vector.insert`: the vector with one lane replaced."""
    static, dynamic = _position(position)
    return b.op1("vector.insert", (value, dest, *dynamic), dest.type, {"static_position": static})


def _position(position: int | Value) -> tuple[at.DenseArrayAttr, tuple[Value, ...]]:
    if isinstance(position, int):
        return at.dense_array((position,)), ()
    return at.dense_array((DYNAMIC,)), (position,)


def broadcast(b: Builder, value: Value, lanes: int) -> Value:
    """A scalar in every lane."""
    return b.op1("vector.broadcast", (value,), vector((lanes,), value.type))


def from_elements(b: Builder, elements: Sequence[Value]) -> Value:
    """A rank-1 vector of scalars."""
    return b.op1("vector.from_elements", elements, vector((len(elements),), elements[0].type))


def bitcast(b: Builder, source: Value, type: VectorType) -> Value:
    """The same bits as another vector; i1 lanes are single bits, the first the lowest."""
    return b.op1("vector.bitcast", (source,), type)


def step(b: Builder, lanes: int) -> Value:
    """`[0, 1, .. lanes-1]` of index."""
    return b.op1("vector.step", (), vector((lanes,), INDEX))


def load(
    b: Builder, base: Value, index: Value, type: VectorType, attributes: dict[str, at.Attribute] | None = None
) -> Value:
    """`vector.load` of adjacent elements from a flat index on."""
    return b.op1("vector.load", (base, index), type, attributes)


def store(
    b: Builder, value: Value, base: Value, index: Value, attributes: dict[str, at.Attribute] | None = None
) -> Operation:
    """`vector.store` to adjacent elements from a flat index on."""
    return b.create("vector.store", (value, base, index), (), attributes)


def create_mask(b: Builder, count: Value, lanes: int) -> Value:
    """True in the first `count` lanes."""
    return b.op1("vector.create_mask", (count,), vector((lanes,), I1))


def shuffle(b: Builder, v1: Value, v2: Value, mask: Sequence[int]) -> Value:
    """`vector.shuffle`: lanes of two vectors, by their numbers in both together."""
    return b.op1(
        "vector.shuffle", (v1, v2), vector((len(mask),), element_type(v1.type)), {"mask": at.dense_array(mask)}
    )
