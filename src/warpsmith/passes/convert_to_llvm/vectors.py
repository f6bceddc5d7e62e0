"""Lanes: extract, insert, broadcast and shuffle, masks, table look-ups, and shuffles among a warp's threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.ssa import REGISTRY, Operation, Value
from warpsmith.ir.core.types import (
    I32,
    I64,
    IntegerType,
    Type,
    VectorType,
    bit_width,
    element_type,
    integer,
    with_element,
)
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import gpu, vector
from warpsmith.passes.convert_to_llvm.memory import address, gep
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, number, where

_SHUFFLES = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}


def vector_extract(low: Lowering, op: Operation) -> None:
    """`vector.extract` to `llvm.extractelement`."""
    b = Builder.before(op)
    new = b.op1("llvm.extractelement", (op.operands[0], _position(b, op, 1)), op.result.type)
    op.replace_by((new,))


def vector_insert(low: Lowering, op: Operation) -> None:
    """`vector.insert` to `llvm.insertelement`."""
    b = Builder.before(op)
    new = b.op1("llvm.insertelement", (op.operands[1], op.operands[0], _position(b, op, 2)), op.result.type)
    op.replace_by((new,))


def _position(b: Builder, op: Operation, first: int) -> Value:
    static = op.attributes["static_position"]
    assert isinstance(static, at.DenseArrayAttr)
    if static.values[0] == vector.DYNAMIC:
        return op.operands[first]
    return number(b, static.values[0], I64)


def broadcast(low: Lowering, op: Operation) -> None:
    """`vector.broadcast` to an insertion and a shuffle."""
    b = Builder.before(op)
    type = op.result.type
    assert isinstance(type, VectorType)
    poison = b.op1("llvm.mlir.poison", (), type)
    first = b.op1("llvm.insertelement", (poison, op.operands[0], number(b, 0, I64)), type)
    mask = at.dense_array([0] * type.elements, I32)
    op.replace_by((b.op1("llvm.shufflevector", (first, poison), type, {"mask": mask}),))


def step(low: Lowering, op: Operation) -> None:
    """`vector.step` to a constant."""
    type = op.result.type
    assert isinstance(type, VectorType)
    value = at.dense(np.arange(type.elements), type)
    op.replace_by((Builder.before(op).op1("llvm.mlir.constant", (), type, {"value": value}),))


def create_mask(low: Lowering, op: Operation) -> None:
    """Lane number < count."""
    b = Builder.before(op)
    type = op.result.type
    assert isinstance(type, VectorType)
    count = op.operands[0]
    wide = vector_type(type.shape, count.type)
    lanes = b.op1("llvm.mlir.constant", (), wide, {"value": at.dense(np.arange(type.elements), wide)})
    poison = b.op1("llvm.mlir.poison", (), wide)
    first = b.op1("llvm.insertelement", (poison, count, number(b, 0, I64)), wide)
    splat = b.op1("llvm.shufflevector", (first, poison), wide, {"mask": at.dense_array([0] * type.elements, I32)})
    op.replace_by((b.op1("llvm.icmp", (lanes, splat), type, {"predicate": at.integer_attr(2, I64)}),))


def shuffle(low: Lowering, op: Operation) -> None:
    """`vector.shuffle` to `llvm.shufflevector`."""
    mask = op.attributes["mask"]
    assert isinstance(mask, at.DenseArrayAttr)
    op.attributes["mask"] = at.dense_array(mask.values, I32)
    op.row = REGISTRY["llvm.shufflevector"]


def from_elements(low: Lowering, op: Operation) -> None:
    """`vector.from_elements` to insertions."""
    b = Builder.before(op)
    value = b.op1("llvm.mlir.poison", (), op.result.type)
    for i, element in enumerate(op.operands):
        value = b.op1("llvm.insertelement", (value, element, number(b, i, I64)), op.result.type)
    op.replace_by((value,))


def warp_shuffle(low: Lowering, op: Operation) -> None:
    """All lanes of the warp take part; lanes beyond the last one give a thread its own value.

    The instruction moves 32 bits: of 64 each half moves by itself.
    """
    value, offset, _ = op.operands
    size, kind = shuffle_size(op)
    b = Builder.before(op)
    # Towards lower lanes the clamp is the first lane, else the last one.
    everyone, clamp = number(b, -1, I32), number(b, 0 if kind == "up" else size - 1, I32)
    attributes = {"kind": at.opaque(f"#nvvm<shfl_kind {_SHUFFLES[kind]}>")}

    def moved(word: Value) -> Value:
        return b.op1("nvvm.shfl.sync", (everyone, word, offset, clamp), word.type, attributes)

    op.results[0].replace_by(each_word(b, value, moved))
    op.erase()


def shuffle_size(op: Operation) -> tuple[int, str]:
    """Among how many lanes a shuffle goes, and which way."""
    size, kind = constant_of(op.operands[2]), gpu.shuffle_mode(op)
    if size is None or op.results[1].users or kind not in _SHUFFLES:
        raise LoweringError(f"{op.name} over an unknown width, or with its second result in use{where(op)}")
    return size.value, kind


def each_word(b: Builder, value: Value, moved: Callable[[Value], Value]) -> Value:
    """A value of 32 or 64 bits, each word of it moved."""
    if bit_width(value.type) != 64:
        return moved(value)
    pair = vector_type((2,), I32)
    halves = b.op1("llvm.bitcast", (value,), pair)
    for i in range(2):
        half = b.op1("llvm.extractelement", (halves, number(b, i, I64)), I32)
        halves = b.op1("llvm.insertelement", (halves, moved(half), number(b, i, I64)), pair)
    return b.op1("llvm.bitcast", (halves,), value.type)


def lookup(low: Lowering, op: Operation) -> None:
    """Lane by lane through scalar loads: measured, vpgatherdd takes twice as long.

    When the index lanes come straight from memory they are read as 64-bit words and split by shifts.
    """
    b = Builder.before(op)
    table, value = op.operands
    type = op.result.type
    element = low.type(element_type(type))
    if not isinstance(type, VectorType):
        index = b.op1("llvm.zext", (_as_bits(b, value),), I64)
        op.replace_by((_entry(b, table, index, element),))
        return
    result = b.op1("llvm.mlir.poison", (), type)
    for lane, index in enumerate(_lane_bits(b, value, type.elements)):
        entry = _entry(b, table, index, element)
        result = b.op1("llvm.insertelement", (result, entry, number(b, lane, I64)), type)
    op.replace_by((result,))


def compress(low: Lowering, op: Operation) -> None:
    """In a register: the instruction that writes to memory at once is ten times slower on some processors."""
    b = Builder.before(op)
    type = op.result.type
    assert isinstance(type, VectorType)
    anything = b.op1("llvm.mlir.poison", (), type)
    letter = "i" if isinstance(type.element, IntegerType) else "f"
    name = f"llvm.experimental.vector.compress.v{type.elements}{letter}{bit_width(type.element)}"
    op.replace_by(low.call_intrinsic(b, name, (*op.operands, anything), type))


def _entry(b: Builder, table: Value, index: Value, element: Type) -> Value:
    alignment = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I64)}
    return b.op1("llvm.load", (address(b, table, index, element),), element, alignment)


def _as_bits(b: Builder, value: Value) -> Value:
    bits = with_element(value.type, integer(bit_width(element_type(value.type))))
    return value if value.type is bits else b.op1("llvm.bitcast", (value,), bits)


def _lane_bits(b: Builder, value: Value, lanes: int) -> list[Value]:
    """The bits of each lane, as i64."""
    width = bit_width(element_type(value.type))
    per_word = 64 // width
    source = value.defining_op
    if source is None or source.name != "llvm.load" or lanes % per_word:
        bits = _as_bits(b, value)
        element = element_type(bits.type)
        lanes_ = [b.op1("llvm.extractelement", (bits, number(b, i, I64)), element) for i in range(lanes)]
        return [b.op1("llvm.zext", (v,), I64) for v in lanes_]
    mask = number(b, (1 << width) - 1, I64)
    result: list[Value] = []
    at_source = Builder.before(source)  # further down the memory may have been written
    alignment = {"alignment": at.integer_attr(max(1, width // 8), I64)}
    for word in range(lanes // per_word):
        word_address = gep(at_source, source.operands[0], I64, (), (word,))
        loaded = at_source.op1("llvm.load", (word_address,), I64, alignment)
        for part in range(per_word):
            shifted = b.op1("llvm.lshr", (loaded, number(b, part * width, I64)), I64) if part else loaded
            result.append(shifted if part == per_word - 1 else b.op1("llvm.and", (shifted, mask), I64))
    return result


TABLE: dict[str, Handler] = {
    "xla_cpu.compress": compress,
    "xla_cpu.lookup": lookup,
    "vector.extract": vector_extract,
    "vector.insert": vector_insert,
    "vector.broadcast": broadcast,
    "vector.step": step,
    "vector.create_mask": create_mask,
    "vector.shuffle": shuffle,
    "vector.from_elements": from_elements,
    "gpu.shuffle": warp_shuffle,
}
