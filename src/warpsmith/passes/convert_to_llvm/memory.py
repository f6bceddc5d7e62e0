"""Loads, stores, masked and atomic accesses: a memref and an index become an address."""

from __future__ import annotations

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.llvm_types import llvm_struct
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import (
    I1,
    I32,
    I64,
    MemRefType,
    Type,
    VectorType,
    bit_width,
    integer,
    pointer,
    with_element,
)
from warpsmith.ir.text.format_kinds import ATOMIC_KINDS, LLVM_ATOMICS, LLVM_ORDERINGS
from warpsmith.passes.convert_to_llvm.alignment import element_alignment
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, where

DYNAMIC_GEP = -(1 << 31)  # stands for "see the operand" in rawConstantIndices
SECOND_CACHE = 2  # a prefetch's hint: not the first
GEP_INBOUNDS = 3  # the bits of noWrapFlags that MLIR prints as `inbounds`
_ATOMICS = dict(
    zip(
        "addf addi andi ori xori maxs maxu mins minu".split(),
        "fadd add _and _or _xor max umax min umin".split(),
        strict=True,
    )
)


def gep(
    b: Builder,
    base: Value,
    element: Type,
    dynamic: tuple[Value, ...],
    constants: tuple[int, ...],
    *,
    inbounds: bool = True,
) -> Value:
    """The address of an element, by indices of which some are constants."""
    attributes: dict[str, at.Attribute] = {
        "elem_type": at.type_attr(element),
        "rawConstantIndices": at.dense_array(constants, I32),
    }
    if inbounds:
        attributes["noWrapFlags"] = at.integer_attr(GEP_INBOUNDS, I32)
    return b.op1("llvm.getelementptr", (base, *dynamic), base.type, attributes)


def address(b: Builder, base: Value, index: Value, element: Type, *, masked: bool = False) -> Value:
    """The address of an element; of a masked access it may lie outside the buffer where no lane is active."""
    return gep(b, base, element, (index,), (DYNAMIC_GEP,), inbounds=not masked)


def access_attributes(
    low: Lowering, op: Operation, element: Type, base: Value, index: Value
) -> dict[str, at.Attribute]:
    """Alignment (the element's unless the op claims more) and the flags that LLVM knows."""
    attributes = {k: op.attributes[k] for k in ("invariant", "nontemporal", "alignment") if k in op.attributes}
    known = max(1, bit_width(element) // 8)
    if low.can.assumes_alignment:
        known = element_alignment(base, index, known)
    else:
        attributes.pop("invariant", None)
    attributes.setdefault("alignment", at.integer_attr(known, I64))
    return attributes


def load(low: Lowering, op: Operation) -> None:
    """`memref.load` and `vector.load` to `llvm.load`, of the type that memory holds."""
    base, index = op.operands
    b = Builder.before(op)
    element = low.storage(op.result.type)
    pointer_ = address(b, base, index, element)
    type = op.result.type
    stored = with_element(type, element)
    value = b.op1("llvm.load", (pointer_,), stored, access_attributes(low, op, element, base, index), op.result.name)
    if stored is not type:
        value = b.op1("llvm.trunc", (value,), type)
    op.replace_by((value,))


def store(low: Lowering, op: Operation) -> None:
    """`memref.store` and `vector.store` to `llvm.store`, of the type that memory holds."""
    value, base, index = op.operands
    b = Builder.before(op)
    element = low.storage(value.type)
    stored = with_element(value.type, element)
    if stored is not value.type:
        value = b.op1("llvm.zext", (value,), stored)
    attributes = access_attributes(low, op, element, base, index)
    b.create("llvm.store", (value, address(b, base, index, element)), (), attributes)
    op.erase()


def masked_load(low: Lowering, op: Operation) -> None:
    """`vector.maskedload` to LLVM's intrinsic."""
    base, index, mask, fallback = op.operands
    b = Builder.before(op)
    element = low.storage(op.result.type)
    where = address(b, base, index, element, masked=True)
    attributes = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
    value = _widened(b, fallback, element)
    loaded = b.op1("llvm.intr.masked.load", (where, mask, value), value.type, attributes)
    op.replace_by((_narrowed(b, loaded, op.result.type),))


def masked_store(low: Lowering, op: Operation) -> None:
    """`vector.maskedstore` to LLVM's intrinsic."""
    base, index, mask, value = op.operands
    b = Builder.before(op)
    element = low.storage(value.type)
    where = address(b, base, index, element, masked=True)
    attributes = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
    b.create("llvm.intr.masked.store", (_widened(b, value, element), where, mask), (), attributes)
    op.erase()


def gather(low: Lowering, op: Operation) -> None:
    """`vector.gather` to LLVM's intrinsic."""
    base, offset, indices, mask, fallback = op.operands
    b = Builder.before(op)
    element = low.storage(op.result.type)
    start = address(b, base, offset, element)
    lanes = op.result.type
    assert isinstance(lanes, VectorType)
    attributes: dict[str, at.Attribute] = {
        "elem_type": at.type_attr(element),
        "rawConstantIndices": at.dense_array((DYNAMIC_GEP,), I32),
    }
    pointers = b.op1("llvm.getelementptr", (start, indices), with_element(lanes, pointer()), attributes)
    value = _widened(b, fallback, element)
    alignment = {"alignment": at.integer_attr(max(1, bit_width(element) // 8), I32)}
    loaded = b.op1("llvm.intr.masked.gather", (pointers, mask, value), value.type, alignment)
    op.replace_by((_narrowed(b, loaded, op.result.type),))


def atomic_rmw(low: Lowering, op: Operation) -> None:
    """`memref.atomic_rmw` to `llvm.atomicrmw`."""
    value, base, index = op.operands
    b = Builder.before(op)
    kind = ATOMIC_KINDS[op.int_attr("kind")]
    if kind not in _ATOMICS:
        raise LoweringError(f"{op.name} {kind} has no LLVM form{where(op)}")
    attributes = {
        "bin_op": at.integer_attr(LLVM_ATOMICS.index(_ATOMICS[kind]), I64),
        "ordering": at.integer_attr(LLVM_ORDERINGS.index("monotonic"), I64),
    }
    pointer_ = address(b, base, index, low.storage(value.type))
    op.replace_by((b.op1("llvm.atomicrmw", (pointer_, value), value.type, attributes),))


def compare_exchange(low: Lowering, op: Operation) -> None:
    """By the bits: that is how LLVM compares."""
    base, index, expected, new = op.operands
    b = Builder.before(op)
    type = expected.type
    bits = integer(bit_width(type))
    monotonic = at.integer_attr(LLVM_ORDERINGS.index("monotonic"), I64)
    old, wanted = (v if v.type is bits else b.op1("llvm.bitcast", (v,), bits) for v in (expected, new))
    pointer_ = address(b, base, index, low.storage(type))
    attributes = {"success_ordering": monotonic, "failure_ordering": monotonic}
    packed = b.op1("llvm.cmpxchg", (pointer_, old, wanted), llvm_struct((bits, I1)), attributes)
    seen = b.op1("llvm.extractvalue", (packed,), bits, {"position": at.dense_array((0,))})
    done = b.op1("llvm.extractvalue", (packed,), I1, {"position": at.dense_array((1,))})
    op.replace_by((seen if type is bits else b.op1("llvm.bitcast", (seen,), type), done))


def _widened(b: Builder, value: Value, element: Type) -> Value:
    stored = with_element(value.type, element)
    return value if stored is value.type else b.op1("llvm.zext", (value,), stored)


def _narrowed(b: Builder, value: Value, type: Type) -> Value:
    return value if value.type is type else b.op1("llvm.trunc", (value,), type)


def alloca(low: Lowering, op: Operation) -> None:
    """A buffer on the stack; asked for before its type becomes a pointer, which no longer says how long it is."""
    b = Builder.before(op)
    type = op.result.type
    assert isinstance(type, MemRefType)
    count = b.op1("llvm.mlir.constant", (), I64, {"value": at.integer_attr(type.elements, I64)})
    attributes = {
        "elem_type": at.type_attr(low.storage(type.element)),
        "alignment": op.attributes["alignment"],
    }
    op.replace_by((b.op1("llvm.alloca", (count,), low.type(type), attributes, op.result.name),))


def prefetch(low: Lowering, op: Operation) -> None:
    """Into the second cache: the first has no room for lines of rows that lie a power of two apart."""
    base, index = op.operands
    b = Builder.before(op)
    element = op.attributes["elem_type"]
    assert isinstance(element, at.TypeAttr)
    where_ = address(b, base, index, low.storage(element.type), masked=True)
    attributes: dict[str, at.Attribute] = {
        "rw": at.integer_attr(0, I32),
        "hint": at.integer_attr(SECOND_CACHE, I32),
        "cache": at.integer_attr(1, I32),
    }
    b.create("llvm.intr.prefetch", (where_,), (), attributes)
    op.erase()


TABLE: dict[str, Handler] = {
    "memref.load": load,
    "memref.store": store,
    "memref.atomic_rmw": atomic_rmw,
    "xla_gpu.compare_exchange": compare_exchange,
    "vector.load": load,
    "vector.store": store,
    "vector.maskedload": masked_load,
    "vector.maskedstore": masked_store,
    "vector.gather": gather,
    "xla_cpu.prefetch": prefetch,
}
