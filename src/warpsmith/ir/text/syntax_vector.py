"""Pretty forms of vector ops that one line can't say: positions that mix numbers and values, transfers, slices.

Reached through `syntax.py`.  Spelling is MLIR's.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.operands import SEGMENTS, operand_groups
from warpsmith.ir.core.ssa import Operation, OpRow, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.format import Unprintable

if TYPE_CHECKING:
    from warpsmith.ir.text.parser import Parser
    from warpsmith.ir.text.printer import Printer

DYNAMIC = -(1 << 63)


@cache
def minor_identity(base: Type, vector: Type) -> at.OpaqueAttr:
    """The permutation map that transfers have by default: the last dims of the base, in order."""
    rank = base.rank if isinstance(base, ty.ShapedType) else 1
    kept = vector.rank if isinstance(vector, ty.VectorType) else 1
    dims = [f"d{i}" for i in range(rank)]
    return at.opaque(f"affine_map<({', '.join(dims)}) -> ({', '.join(dims[max(0, rank - kept) :])})>")


# ------------------------------------------------------------------------------------------------------------ positions
def _position_text(p: Printer, op: Operation, dynamic: list[Value]) -> str:
    static = op.attributes.get("static_position")
    if not isinstance(static, at.DenseArrayAttr) or static.values.count(DYNAMIC) != len(dynamic):
        raise Unprintable
    rest = iter(dynamic)
    return f"[{', '.join([p.names[next(rest)] if v == DYNAMIC else str(v) for v in static.values])}]"


def _read_position(p: Parser) -> tuple[list[int], at.DenseArrayAttr]:
    """`[%i, 3]`: the uses, and the numbers with DYNAMIC for each use."""
    p.expect("[", "and a position")
    uses: list[int] = []

    def one() -> int:
        if p.tokens[p.i][:1] == "%":
            uses.append(p.operand())
            return DYNAMIC
        return p.integer("a position")

    static = p.comma_separated("]", one)
    return uses, at.dense_array(static)


def print_extract(p: Printer, op: Operation) -> None:
    """` %v[%i] : f32 from vector<4xf32>`."""
    if len(op.results) != 1 or not op.operands:
        raise Unprintable
    source = op.operands[0]
    p.write(f" {p.names[source]}{_position_text(p, op, op.operands[1:])}")
    p.attributes(op, ("static_position",))
    p.write(f" : {op.results[0].type} from {source.type}")


def parse_extract(p: Parser, row: OpRow) -> Operation:
    """`vector.extract %v[0] : type from type`, after the op's name."""
    source = p.operand()
    uses, static = _read_position(p)
    attributes = p.optional_dict()
    p.expect(":", "and a type")
    result = p.type()
    p.expect("from", "and the vector's type")
    operands = [p.resolve(source, p.type()), *(p.resolve(u, ty.INDEX) for u in uses)]
    return Operation(row, operands, [result], {**attributes, "static_position": static})


def print_insert(p: Printer, op: Operation) -> None:
    """` %x, %v [%i] : f32 into vector<4xf32>`."""
    if len(op.operands) < 2 or len(op.results) != 1 or op.results[0].type is not op.operands[1].type:
        raise Unprintable
    value, dest = op.operands[:2]
    p.write(f" {p.names[value]}, {p.names[dest]} {_position_text(p, op, op.operands[2:])}")
    p.attributes(op, ("static_position",))
    p.write(f" : {value.type} into {dest.type}")


def parse_insert(p: Parser, row: OpRow) -> Operation:
    """`vector.insert %x, %v[0] : type into type`, after the op's name."""
    value = p.operand()
    p.expect(",", "and the vector")
    dest = p.operand()
    uses, static = _read_position(p)
    attributes = p.optional_dict()
    p.expect(":", "and a type")
    value_type = p.type()
    p.expect("into", "and the vector's type")
    type = p.type()
    operands = [p.resolve(value, value_type), p.resolve(dest, type), *(p.resolve(u, ty.INDEX) for u in uses)]
    return Operation(row, operands, [type], {**attributes, "static_position": static})


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


# ------------------------------------------------------------------------------------------------- shuffles and slices
def print_shuffle(p: Printer, op: Operation) -> None:
    """` %a, %b [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>`."""
    mask = op.attributes.get("mask")
    if not isinstance(mask, at.DenseArrayAttr) or len(op.operands) != 2:
        raise Unprintable
    if op.results[0].type is not ty.vector((len(mask.values),), ty.element_type(op.operands[0].type)):
        raise Unprintable
    p.write(f" {p.operands(op.operands)} [{', '.join(map(str, mask.values))}]")
    p.attributes(op, ("mask",))
    p.write(f" : {op.operands[0].type}, {op.operands[1].type}")


def parse_shuffle(p: Parser, row: OpRow) -> Operation:
    """`vector.shuffle %a, %b [0, 1] : type, type`, after the op's name."""
    first = p.operand()
    p.expect(",", "and a second vector")
    second = p.operand()
    p.expect("[", "and the mask")
    mask = p.comma_separated("]", p.integer)
    attributes = p.optional_dict()
    p.expect(":", "and the types")
    a = p.type()
    p.expect(",", "and the second type")
    operands = [p.resolve(first, a), p.resolve(second, p.type())]
    return Operation(
        row, operands, [ty.vector((len(mask),), ty.element_type(a))], {**attributes, "mask": at.dense_array(mask)}
    )


def print_strided_slice(p: Printer, op: Operation) -> None:
    """` %v {offsets = [2], sizes = [2], strides = [1]} : T to U`, or ` %a, %b {...} : T into U`."""
    p.write(f" {p.operands(op.operands)}")
    p.attributes(op)
    if len(op.operands) == 1:
        p.write(f" : {op.operands[0].type} to {op.results[0].type}")
    elif len(op.operands) == 2 and op.results[0].type is op.operands[1].type:
        p.write(f" : {op.operands[0].type} into {op.operands[1].type}")
    else:
        raise Unprintable


def parse_strided_slice(p: Parser, row: OpRow) -> Operation:
    """`vector.extract_strided_slice %v {...} : type to type` and its counterpart, after the op's name."""
    start = p.i - 1
    refs = p.operand_list()
    attributes = p.optional_dict()
    p.expect(":", "and a type")
    if len(refs) != len(row.operands):
        raise p.error(f"{row.name} takes {len(row.operands)} operand(s), not {len(refs)}", start)
    first = p.resolve(refs[0], p.type())
    if len(refs) == 1:
        p.expect("to", "and the type of the result")
        return Operation(row, [first], [p.type()], attributes)
    p.expect("into", "and the type of the result")
    type = p.type()
    return Operation(row, [first, p.resolve(refs[1], type)], [type], attributes)
