"""The rules of ops that access tensors, memrefs and vectors, beyond their rows and pretty forms.

In: an op whose operand and result counts are right.  Out: nothing, or InvalidIr.  The rows hold them.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.diagnostics import ints, invalid, need, need_index, need_types, types_of
from warpsmith.ir.core.operands import operand_groups
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import Type

Rule = Callable[[Operation], None]


def need_integers(op: Operation) -> None:
    """Operands are integers or of index type, scalars or vectors."""
    need(op, op.operands[0], ty.is_integer(op.operands[0].type), "an integer or index")


def bitcast(op: Operation) -> None:
    """A bitcast keeps the number of bits, and isn't one of index."""
    a, b = op.operands[0].type, op.results[0].type
    if ty.bit_width(a) != ty.bit_width(b) or isinstance(ty.element_type(a), ty.IndexType):
        raise invalid(op, f"a bitcast from {a} to {b}", "both have the same number of bits")


# ------------------------------------------------------------------------------------------------------ tensor, memory
def access(container: int, leading: int, kinds: tuple[type[Type], ...], what: str) -> Rule:
    """An access to one element: operand `container` has rank many indices, which start at operand `leading`."""

    def rule(op: Operation) -> None:
        type = op.operands[container].type
        if not isinstance(type, ty.ShapedType) or not isinstance(type, kinds):
            raise invalid(op, f"an operand of type {type} where {what} is needed")
        count = len(operand_groups(op)[leading])
        if count != type.rank:
            raise invalid(op, f"{count} indices for {type}", f"one index a dimension: {type.rank}")

    return rule


def from_elements(op: Operation) -> None:
    """As many elements as the tensor or vector has."""
    type = op.results[0].type
    if not isinstance(type, (ty.TensorType, ty.VectorType)) or type.elements != len(op.operands):
        raise invalid(op, f"{len(op.operands)} elements for {type}")


# --------------------------------------------------------------------------------------------------------------- vector
def _vector_type(op: Operation, type: Type) -> ty.VectorType:
    if not isinstance(type, ty.VectorType):
        raise invalid(op, f"type {type} where a vector is needed")
    return type


def position(source: int, leading: int) -> Rule:
    """vector.extract and insert: the position fits the vector, and the scalar (or part) fits what is there."""

    def rule(op: Operation) -> None:
        vector = _vector_type(op, op.operands[source].type)
        static = ints(op, "static_position")
        dynamic = op.operands[leading:]
        need_index(op, dynamic)
        if static.count(-(1 << 63)) != len(dynamic):
            raise invalid(
                op, f"{len(dynamic)} dynamic positions, but static_position has {static.count(-(1 << 63))} gaps"
            )
        if len(static) > vector.rank:
            raise invalid(op, f"a position of {len(static)} numbers in {vector}")
        for number, extent in zip(static, vector.shape, strict=False):
            if number != -(1 << 63) and not 0 <= number < extent:
                raise invalid(op, f"position {number} in {vector}", f"positions are 0 to {extent - 1}")
        rest = vector.shape[len(static) :]
        part = ty.vector(rest, vector.element) if rest else vector.element
        value = op.results[0].type if source == 0 else op.operands[0].type
        if value is not part:
            raise invalid(op, f"a value of type {value} where {part} stands")
        if source == 1:
            need_types(op, types_of(op.results), [vector], "the result")

    return rule


def transfer(op: Operation) -> None:
    """A tensor or memref with the vector's elements, an index a dimension, padding and bounds that fit."""
    reads = op.row.name == "vector.transfer_read"
    groups = operand_groups(op)
    base = (groups[0] if reads else groups[1])[0].type
    vector = _vector_type(op, op.results[0].type if reads else groups[0][0].type)
    if not isinstance(base, (ty.TensorType, ty.MemRefType)) or base.element is not vector.element:
        raise invalid(op, f"a transfer between {base} and {vector}", "a tensor or memref with the vector's elements")
    if len(groups[1 if reads else 2]) != base.rank:
        raise invalid(op, f"{len(groups[1 if reads else 2])} indices for {base}")
    for values in groups:
        for value in values[:]:
            if values is groups[1 if reads else 2]:
                need_index(op, [value])
    if reads and groups[2][0].type is not base.element:
        raise invalid(op, f"padding of type {groups[2][0].type} for {base}")
    if not reads:
        wanted = [base] if isinstance(base, ty.TensorType) else []
        need_types(op, types_of(op.results), wanted, "the results")
    bounds = op.attributes["in_bounds"]
    if not isinstance(bounds, at.ArrayAttr) or len(bounds.items) != vector.rank:
        raise invalid(op, "in_bounds doesn't fit the vector", "one truth value a dimension of the vector")


def vector_memory(op: Operation) -> None:
    """vector.load, store and their masked forms: a memref, an index a dimension, vectors of its elements."""
    groups = dict(zip((n.rstrip("*?") for n in op.row.operands), operand_groups(op), strict=True))
    base = groups["base"][0].type
    value = (groups.get("valueToStore") or op.results)[0].type
    vector = _vector_type(op, value)
    if not isinstance(base, ty.MemRefType) or base.element is not vector.element:
        raise invalid(op, f"an access to {base} by {vector}", "a memref with the vector's elements")
    indices = groups.get("offsets") or groups.get("indices") or []
    if len(indices) != base.rank:
        raise invalid(op, f"{len(indices)} indices for {base}")
    need_index(op, indices)
    for name in ("mask", "pass_thru"):
        for extra in groups.get(name, ()):
            wanted = ty.with_element(vector, ty.I1) if name == "mask" else vector
            if extra.type is not wanted:
                raise invalid(op, f"'{name}' has type {extra.type}, but {wanted} is needed")


def broadcast(op: Operation) -> None:
    """To more dimensions, or of one element."""
    target = _vector_type(op, op.results[0].type)
    source = op.operands[0].type
    if ty.element_type(source) is not target.element:
        raise invalid(op, f"a broadcast from {source} to {target}")
    if (
        isinstance(source, ty.VectorType)
        and source.shape != target.shape[target.rank - source.rank :]
        and source.elements != 1
    ):
        raise invalid(op, f"a broadcast from {source} to {target}")


def shuffle(op: Operation) -> None:
    """Lanes of two vectors of one element type."""
    first, second = (_vector_type(op, v.type) for v in op.operands)
    mask = ints(op, "mask")
    lanes = first.shape[0] + second.shape[0] if first.shape and second.shape else 0
    if any(not -1 <= m < lanes for m in mask):
        raise invalid(op, f"a mask outside 0 to {lanes - 1}")
    if first.element is not second.element:
        raise invalid(op, f"vectors of {first.element} and {second.element}")
    need_types(op, types_of(op.results), [ty.vector((len(mask),), first.element)], "the result")


def strided_slice(op: Operation) -> None:
    """A slice without gaps that lies in the whole vector."""
    extract = len(op.operands) == 1
    part = _vector_type(op, op.results[0].type if extract else op.operands[0].type)
    whole = _vector_type(op, op.operands[0 if extract else 1].type)
    offsets = ints(op, "offsets")
    if part.element is not whole.element or len(offsets) > whole.rank:
        raise invalid(op, f"a slice between {whole} and {part}")
    if any(s != 1 for s in ints(op, "strides")):
        raise invalid(op, "a stride other than 1")
    if extract and ints(op, "sizes") != part.shape[: len(offsets)]:
        raise invalid(op, f"sizes {list(ints(op, 'sizes'))} for {part}")
    for offset, size, extent in zip(offsets[-part.rank :], part.shape, whole.shape[-part.rank :], strict=False):
        if offset < 0 or offset + size > extent:
            raise invalid(op, f"a slice of {size} at {offset} in {extent}")


def step(op: Operation) -> None:
    """A vector of index."""
    type = _vector_type(op, op.results[0].type)
    if type.element is not ty.INDEX or type.rank != 1:
        raise invalid(op, f"a result of type {type}", "it is a vector of index")


def mask_sizes(op: Operation) -> None:
    """One size a dimension of a vector of i1."""
    type = _vector_type(op, op.results[0].type)
    if type.element is not ty.I1 or len(op.operands) != type.rank:
        raise invalid(
            op, f"a mask of type {type} from {len(op.operands)} sizes", "a vector of i1, one size a dimension"
        )


def compress(op: Operation) -> None:
    """A vector under a mask of its shape."""
    value, mask = (_vector_type(op, each.type) for each in op.operands)
    if mask.element is not ty.I1 or mask.shape != value.shape or op.result.type is not value:
        raise invalid(
            op, f"{op.result.type} of {value} under {mask}", "a vector, as many i1, and a vector of the first's type"
        )
