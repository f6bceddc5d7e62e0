"""lower-xla-to-scf: guarded element accesses and warp reductions become scf, tensor and gpu ops.

    %r = xla_gpu.predicated_extract %t[%i] if %c else %f     ->   %r = scf.if %c -> (f32) {
                                                                    %e = tensor.extract %t[%i]
                                                                    scf.yield %e
                                                                  } else { scf.yield %f }

    %s = xla_gpu.shuffle_reduce(%a) to 2 combiner=@add       ->   %b, %_ = gpu.shuffle down %a, 2, 32
                                                                  %c = pure_call @add(%a, %b), then the same by 1

A value that isn't 32 bits wide is shuffled as the 32-bit words that hold it.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import PassFailed
from warpsmith.ir.core.attributes import opaque
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, I32, FloatType, IntegerType, Type, bit_width, integer, vector
from warpsmith.ir.dialects import arith, gpu, memory, scf
from warpsmith.ir.dialects import vector as vec
from warpsmith.passes.support.capabilities import capabilities

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.predicated_insert", "xla_gpu.predicated_extract", "xla_gpu.shuffle_reduce")


def run(module: Operation, warp_size: int = 0) -> None:
    """Rewrite predicated_insert, predicated_extract and shuffle_reduce, of `warp_size` lanes (0: the processor's)."""
    lanes = warp_size or capabilities(module).warp_size
    for op in module.walk():
        name = op.row.name
        if name == "xla_gpu.predicated_insert":
            _predicated_insert(op)
        elif name == "xla_gpu.predicated_extract":
            _predicated_extract(op)
        elif name == "xla_gpu.shuffle_reduce":
            _shuffle_reduce(op, lanes)


def _guarded(op: Operation, condition: Value, otherwise: Value) -> tuple[Operation, Builder]:
    """An scf.if before `op` whose else yields `otherwise`; and a builder into its then."""
    branch = scf.if_(Builder.before(op), condition, [op.results[0].type])
    branch.results[0].name = op.results[0].name
    scf.yield_(Builder.at_end(branch.regions[1].blocks[0], op.location), [otherwise])
    return branch, Builder.at_end(branch.body, op.location)


def _predicated_insert(op: Operation) -> None:
    value, dest, *indices, condition = op.operands
    branch, then = _guarded(op, condition, dest)
    scf.yield_(then, [memory.insert(then, value, dest, indices)])
    op.replace_by(branch.results)


def _predicated_extract(op: Operation) -> None:
    source, *indices, condition, fallback = op.operands
    branch, then = _guarded(op, condition, fallback)
    scf.yield_(then, [memory.extract(then, source, indices)])
    op.replace_by(branch.results)


def _shuffle_reduce(op: Operation, warp_size: int) -> None:
    distance = op.int_attr("max_distance")
    if distance < 1 or distance & (distance - 1) or distance >= warp_size:
        raise PassFailed(f"shuffle_reduce over {distance} lanes: not a power of two below the warp size {warp_size}")
    b = Builder.before(op)
    values: Sequence[Value] = op.operands
    types = [v.type for v in values]
    width = arith.constant(b, warp_size, I32)
    while distance:
        offset = arith.constant(b, distance, I32)
        shuffled = [_shuffle(b, v, offset, width) for v in values]
        values = gpu.pure_call(b, op.str_attr("combiner"), [*values, *shuffled], types)
        distance //= 2
    op.replace_by(values)


def _shuffle(b: Builder, value: Value, offset: Value, width: Value) -> Value:
    """`value` of the lane `offset` further down."""
    if bit_width(value.type) == 32:
        return _shuffle_word(b, value, offset, width)
    bits = bit_width(value.type)
    if not isinstance(value.type, (IntegerType, FloatType)):
        raise PassFailed(f"can't shuffle a value of type {value.type}")
    narrow, wide = integer(bits), integer(32 * -(-bits // 32))
    raw = _cast(b, "bitcast", value, narrow)
    raw = _cast(b, "extui", raw, wide)
    if wide is I32:
        raw = _shuffle_word(b, raw, offset, width)
    else:
        words = vector((bit_width(wide) // 32,), I32)
        # A one-lane vector carries the scalar into the vector bitcast.
        packed = b.op1("vector.bitcast", (vec.broadcast(b, raw, 1),), words)
        for i in range(bit_width(wide) // 32):
            word = _shuffle_word(b, vec.extract(b, packed, i), offset, width)
            packed = vec.insert(b, word, packed, i)
        raw = vec.extract(b, b.op1("vector.bitcast", (packed,), vector((1,), wide)), 0)
    return _cast(b, "bitcast", _cast(b, "trunci", raw, narrow), value.type)


def _cast(b: Builder, name: str, value: Value, type: Type) -> Value:
    return value if value.type is type else arith.cast(b, name, value, type)


def _shuffle_word(b: Builder, value: Value, offset: Value, width: Value) -> Value:
    mode = {"mode": opaque("#gpu<shuffle_mode down>")}
    return b.create("gpu.shuffle", (value, offset, width), (value.type, I1), mode).results[0]
