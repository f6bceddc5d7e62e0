"""Pretty forms of vector ops that one line can't say: positions that mix numbers and values, transfers, slices.

The rows of their dialect hold them.  Spelling is MLIR's.
"""

from __future__ import annotations

from functools import cache

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.operands import SEGMENTS, operand_groups
from warpsmith.ir.core.ssa import Operation, OpRow
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable


@cache
def minor_identity(base: Type, vector: Type) -> at.OpaqueAttr:
    """The permutation map that transfers have by default: the last dims of the base, in order."""
    rank = base.rank if isinstance(base, ty.ShapedType) else 1
    kept = vector.rank if isinstance(vector, ty.VectorType) else 1
    dims = [f"d{i}" for i in range(rank)]
    return at.opaque(f"affine_map<({', '.join(dims)}) -> ({', '.join(dims[max(0, rank - kept) :])})>")


# ------------------------------------------------------------------------------------------------------------ transfers
def print_transfer(p: Printer, op: Operation) -> None:
    """` %base[%i], %padding {in_bounds = [true]} : tensor<16xf32>, vector<4xf32>`; a write has its vector first."""
    groups = operand_groups(op)
    reads = op.name == "vector.transfer_read"
    head = [] if reads else groups[0]
    base, indices, *rest = groups if reads else groups[1:]
    vector_type = op.results[0].type if reads else head[0].type
    if not reads and any(r.type is not base[0].type for r in op.results):
        raise Unprintable
    if not reads and bool(op.results) != isinstance(base[0].type, ty.TensorType):
        raise Unprintable
    mask = rest[-1]
    if mask and mask[0].type is not ty.with_element(vector_type, ty.I1):
        raise Unprintable
    if reads and rest[0][0].type is not ty.element_type(base[0].type):
        raise Unprintable
    first = f"{p.operands(head)}, " if head else ""
    more = [v for group in rest for v in group]
    p.write(f" {first}{p.operands(base)}[{p.operands(indices)}]{', ' if more else ''}{p.operands(more)}")
    identity = op.attributes.get("permutation_map") is minor_identity(base[0].type, vector_type)
    p.attributes(op, (SEGMENTS, "permutation_map") if identity else (SEGMENTS,))
    types = (base[0].type, vector_type) if reads else (vector_type, base[0].type)
    p.write(f" : {types[0]}, {types[1]}")


def _read_transfer(p: Parser, reads: bool) -> tuple[list[int], list[int], dict[str, Attribute], Type, Type]:
    """Leading values, indices, attributes and the two types."""
    values = [p.operand()]
    if not reads:
        p.expect(",", "and the base")
        values.append(p.operand())
    p.expect("[", "and the indices")
    indices = p.operand_list()
    p.expect("]", "after the indices")
    while p.accept(","):
        values.append(p.operand())
    attributes: dict[str, Attribute] = p.optional_dict()
    p.expect(":", "and the types")
    first = p.type()
    p.expect(",", "and the other type")
    second = p.type()
    base, vector = (first, second) if reads else (second, first)
    rank = vector.rank if isinstance(vector, ty.VectorType) else 1
    attributes.setdefault("in_bounds", at.array([at.boolean(False)] * rank))
    attributes.setdefault("permutation_map", minor_identity(base, vector))
    return values, indices, attributes, first, second


def parse_transfer_read(p: Parser, row: OpRow) -> Operation:
    """`vector.transfer_read %base[...], %padding, %mask : type, type`, after the op's name."""
    start = p.i - 1
    values, indices, attributes, base_type, type = _read_transfer(p, True)
    if not 2 <= len(values) <= 3:
        raise p.error(f"{row.name} takes a base, indices, a padding value, and perhaps a mask", start)
    operands = [p.resolve(values[0], base_type), *(p.resolve(i, ty.INDEX) for i in indices)]
    operands.append(p.resolve(values[1], ty.element_type(base_type)))
    operands += [p.resolve(m, ty.with_element(type, ty.I1)) for m in values[2:]]
    attributes[SEGMENTS] = at.dense_array((1, len(indices), 1, len(values) - 2), ty.I32)
    return Operation(row, operands, [type], attributes)


def parse_transfer_write(p: Parser, row: OpRow) -> Operation:
    """`vector.transfer_write %v, %base[...], %mask : type, type`, after the op's name."""
    start = p.i - 1
    values, indices, attributes, type, base_type = _read_transfer(p, False)
    if len(values) > 3:
        raise p.error(f"{row.name} takes a vector, a base, indices, and perhaps a mask", start)
    operands = [p.resolve(values[0], type), p.resolve(values[1], base_type), *(p.resolve(i, ty.INDEX) for i in indices)]
    operands += [p.resolve(m, ty.with_element(type, ty.I1)) for m in values[2:]]
    attributes[SEGMENTS] = at.dense_array((1, 1, len(indices), len(values) - 2), ty.I32)
    return Operation(row, operands, [base_type] if isinstance(base_type, ty.TensorType) else [], attributes)
