"""flatten-tensors: tensors of rank 2 and up become rank 1, accessed by their place in memory.

    %e = tensor.extract %t[%i, %j]          %d = xla_gpu.apply_indexing #(d0, d1) -> (d0 * 16 + d1)(%i, %j)
            : tensor<8x16xf32>         ->   %e = tensor.extract %t[%d] : tensor<128xf32>

Layouts (a tensor's encoding) are applied here and gone afterwards; so are ranks of vectors.  Rank 0 and 1 stay.  As
XLA's pass of greedy patterns and casts (`flatten_tensors.cc`), except: types are changed in place in one walk, so
nothing can be left unconverted.
"""

from __future__ import annotations

from warpsmith.errors import PassFailed
from warpsmith.indexing import IndexingMap, linear_index
from warpsmith.ir.core.attributes import (
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    TypeAttr,
    array,
    boolean,
    dense,
    dense_array,
    indexing_map,
    opaque,
    type_attr,
)
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.rewriter import rewrite_ops
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import (
    I32,
    INDEX,
    FunctionType,
    ShapedType,
    TensorType,
    Type,
    VectorType,
    function,
    tensor,
    vector,
)
from warpsmith.ir.dialects import arith
from warpsmith.ir.dialects.vector import DYNAMIC
from warpsmith.passes.canonicalize import indexing, merge
from warpsmith.passes.canonicalize import tensor as tensor_patterns
from warpsmith.passes.support.legality import HIGH_RANK

CONTRACT = "bit-exact"
ILLEGAL_AFTER = (HIGH_RANK,)

# Which operand is the tensor; its indices follow.
_ACCESSES = {
    "tensor.extract": 0,
    "tensor.insert": 1,
    "xla_gpu.atomic_rmw": 0,
    "xla_gpu.predicated_extract": 0,
    "xla_gpu.predicated_insert": 1,
    "vector.transfer_read": 0,
    "vector.transfer_write": 1,
}
_POSITIONS = {"vector.extract": 0, "vector.insert": 1}
_PATTERNS = merge(indexing.PATTERNS, tensor_patterns.PATTERNS)

_Key = tuple[Block | None, Type, tuple[Value, ...]]


def run(module: Operation) -> None:
    """Flatten all tensors and vectors of `module`."""
    made: dict[_Key, Value] = {}
    touched: list[Operation] = []
    for op in module.walk():
        at = _ACCESSES.get(op.row.name)
        if at is not None:
            if _rank(op.operands[at].type) > 1:
                _flatten_access(op, at, made)
                touched.append(op)
        elif op.row.name in _POSITIONS and _rank(op.operands[_POSITIONS[op.row.name]].type) > 1:
            _flatten_position(op, _POSITIONS[op.row.name], made)
    for op in module.walk():
        for result in op.results:
            result.type = flat(result.type)
        for region in op.regions:
            for block in region.blocks:
                for arg in block.args:
                    arg.type = flat(arg.type)
        if op.attributes:
            _flatten_attributes(op)
    # The new ops come first: they take their producers in whole, which keeps thread before block in the maps.
    new = [value.defining_op for value in made.values()]
    maps = [op for op in module.walk() if op.row.name == "xla_gpu.apply_indexing"]
    rewrite_ops([op for op in (*new, *touched, *maps) if op is not None], _PATTERNS)


def _rank(type: Type) -> int:
    return len(type.shape) if isinstance(type, ShapedType) else 0


def flat(type: Type) -> Type:
    """The rank-1 type of the same elements; types of rank 0 and 1, scalars and memrefs stay."""
    if isinstance(type, TensorType) and len(type.shape) > 1:
        return tensor((type.elements,), type.element)
    if isinstance(type, VectorType) and len(type.shape) > 1:
        return vector((type.elements,), type.element)
    return type


def _linear(op: Operation, type: Type, indices: tuple[Value, ...], made: dict[_Key, Value]) -> Value:
    """The place in memory of an element of `type`; one op for all accesses of a block at the same indices."""
    key = (op.block, type, indices)
    known = made.get(key)
    if known is not None:
        return known
    assert isinstance(type, ShapedType)
    b = Builder.before(op)
    if 0 in type.shape:
        value = arith.index(b, 0)  # nothing is ever accessed
    else:
        layout = type.minor_to_major if isinstance(type, TensorType) else None
        map = IndexingMap.from_sizes([linear_index(type.shape, layout)], type.shape)
        value = b.op1("xla_gpu.apply_indexing", indices, INDEX, {"map": indexing_map(map)}, "dim")
    made[key] = value
    return value


def _flatten_access(op: Operation, at: int, made: dict[_Key, Value]) -> None:
    type = op.operands[at].type
    rank = _rank(type)
    first, last = at + 1, at + 1 + rank
    if op.row.name.startswith("vector."):
        if isinstance(type, TensorType) and type.minor_to_major is not None and type.minor_to_major[0] != rank - 1:
            raise PassFailed(f"{op.row.name} on {type} doesn't read neighbours in memory")
        op.attributes["permutation_map"] = opaque("affine_map<(d0) -> (d0)>")
        op.attributes["in_bounds"] = array((boolean(True),))
        sizes = op.attributes.get("operandSegmentSizes")
        if isinstance(sizes, DenseArrayAttr):
            place = 1 + at  # the indices' group
            op.attributes["operandSegmentSizes"] = dense_array(
                [1 if i == place else s for i, s in enumerate(sizes.values)], I32
            )
    index = _linear(op, type, tuple(op.operands[first:last]), made)
    op.set_operands([*op.operands[:first], index, *op.operands[last:]])


def _flatten_position(op: Operation, at: int, made: dict[_Key, Value]) -> None:
    """vector.extract and insert of one element of a vector of rank 2 and up."""
    type = op.operands[at].type
    positions = op.attributes["static_position"]
    if not isinstance(positions, DenseArrayAttr) or len(positions.values) != _rank(type):
        raise PassFailed(f"{op.row.name} of a part of {type}: only single elements can be flattened")
    dynamic = iter(op.operands[at + 1 :])
    b = Builder.before(op)
    indices = tuple(next(dynamic) if p == DYNAMIC else arith.index(b, p) for p in positions.values)
    index = _linear(op, type, indices, made)
    op.attributes["static_position"] = dense_array((DYNAMIC,))
    op.set_operands([*op.operands[: at + 1], index])


def _flatten_attributes(op: Operation) -> None:
    for name, attribute in op.attributes.items():
        if isinstance(attribute, TypeAttr):
            op.attributes[name] = _flat_type_attr(attribute)
        elif isinstance(attribute, DenseAttr):
            op.attributes[name] = _flat_constant(attribute)


def _flat_type_attr(attribute: TypeAttr) -> Attribute:
    type = attribute.type
    if isinstance(type, FunctionType):
        return type_attr(function([flat(t) for t in type.inputs], [flat(t) for t in type.results]))
    return type_attr(flat(type))


def _flat_constant(attribute: DenseAttr) -> Attribute:
    """The payload in memory order."""
    new = flat(attribute.type)
    if new is attribute.type or not isinstance(new, ShapedType):
        return attribute
    splat = attribute.splat
    if splat is not None:
        return dense(splat, new)
    values = attribute.array
    if isinstance(attribute.type, TensorType) and attribute.type.minor_to_major is not None:
        values = values.transpose(tuple(reversed(attribute.type.minor_to_major)))
    return dense(values.reshape(-1), new)
