"""pack-sub-byte: buffers of 4- and 2-bit elements become buffers of bytes.

    %x = memref.load %in[%i] : memref<7xi4>
      ->  %b = memref.load %in[%i >> 1] : memref<4xi8> ; %x = trunci (%b >> 4 * (%i & 1))

Packed (GPUs, as XLA has it): element 0 is in the low bits of byte 0.  A vector of whole bytes is loaded and stored as
bytes, its lanes taken apart and put together by shifts and shuffles; vector accesses start at a multiple of their
length.  A single element is stored into part of a byte.  In an entry marked `warpsmith.whole_bytes` one thread writes
all elements of a byte, in ascending order, so it keeps what is below its own and clears what is above: no atomic, and
what follows the last element is zero.  Elsewhere neighbours belong to others: an element's bits are cleared, then set,
each by an atomic operation, and so is the byte read.  Shared memory, which nobody else reads, takes a byte an element,
unless all that is ever stored there is whole bytes.

On a CPU every buffer takes a byte an element, upper bits zero: what numpy has, so arrays come and go without a copy,
and no two threads share a byte.  A packed entry keeps the former types of its buffers in `warpsmith.unpacked`, for
whoever launches it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.dtypes import pack
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import (
    I8,
    FloatType,
    IntegerType,
    MemRefType,
    Type,
    VectorType,
    bit_width,
    element_type,
    integer,
    memref,
    tensor,
)
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import arith, func, memory, vector
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.legality import Types

CONTRACT = "bit-exact"
ILLEGAL_AFTER = (
    Types("buffers of 4- and 2-bit elements", lambda type: isinstance(type, MemRefType) and _is_narrow(type.element)),
)


def run(module: Operation, *, target: str = "") -> None:
    """Rewrite all functions and globals for `target` ("cpu", "sm_90"...); by default the entry function's own."""
    functions = list(func.functions(module))
    if not any(_is_sub_byte(v.type) for op in functions for v in _values(op)):
        return
    packed = capabilities(module, target).packs_sub_byte
    loose = _written_in_parts(functions)
    for op in functions:
        _Packing(op, packed, loose).run()
    for op in module.body:
        if op.name == "memref.global":
            _global(op, packed and op.str_attr("sym_name") not in loose)


def _written_in_parts(functions: Sequence[Operation]) -> set[str]:
    """The shared buffers that some store writes less than a byte of."""
    found: set[str] = set()
    for function in functions:
        for op in function.walk():
            if op.name not in ("memref.store", "vector.store"):
                continue
            value, base = op.operands[:2]
            source = base.defining_op
            if source is None or source.name != "memref.get_global" or not _is_sub_byte(base.type):
                continue
            if bit_width(value.type) % 8:
                found.add(source.str_attr("name"))
    return found


def _values(function: Operation) -> list[Value]:
    found: list[Value] = list(function.body.args)
    for op in function.walk():
        if op.name == "memref.get_global":
            found += op.results
    return found


def _is_sub_byte(type: Type) -> bool:
    return isinstance(type, MemRefType) and _is_narrow(type.element)


def _is_narrow(element: Type) -> bool:
    return isinstance(element, (IntegerType, FloatType)) and element.width in (2, 4)


def _stored(type: MemRefType, packed: bool) -> MemRefType:
    """The buffer of bytes in place of `type`."""
    if packed:
        return memref((-(-type.elements * bit_width(type.element) // 8),), I8, type.space)
    return memref(type.shape, I8, type.space)


def _global(op: Operation, packed: bool) -> None:
    type = op.attributes["type"]
    assert isinstance(type, at.TypeAttr)
    if not isinstance(type.type, MemRefType) or not _is_narrow(type.type.element):
        return
    stored = _stored(type.type, packed)
    op.attributes["type"] = at.type_attr(stored)
    value = op.attributes.get("initial_value")
    if isinstance(value, at.DenseAttr):
        codes = np.ascontiguousarray(value.array).reshape(-1).view(np.uint8)
        bits = bit_width(type.type.element)
        data = pack(codes, bits) if packed else codes & np.uint8((1 << bits) - 1)
        op.attributes["initial_value"] = at.dense(data.view(np.int8), tensor(stored.shape, I8))


class _Packing:
    """One function's rewrite.  `former` maps a buffer to the type that it had; `loose` are globals that stay loose.

    `contended` are buffers into which single elements are stored.
    """

    def __init__(self, function: Operation, packed: bool, loose: set[str]) -> None:
        self.function = function
        self.packed = packed
        self.loose = loose
        self.owned = "warpsmith.whole_bytes" in function.attributes
        self.former: dict[Value, MemRefType] = {}
        self.contended = {op.operands[1] for op in function.walk() if op.name == "memref.store"}

    def run(self) -> None:
        function = self.function
        buffers = [a.type for a in function.body.args if isinstance(a.type, MemRefType)]
        for value in _values(function):
            if isinstance(value.type, MemRefType) and _is_narrow(value.type.element):
                self.former[value] = value.type
                value.type = _stored(value.type, self._is_packed(value))
        type = func.function_type(function)
        func.set_function_type(function, [a.type for a in function.body.args], type.results)
        if self.packed and "xla.entry" in function.attributes and any(map(_is_sub_byte, buffers)):
            function.attributes["warpsmith.unpacked"] = at.array(at.type_attr(t) for t in buffers)
        for op in list(function.walk()):
            access = _TABLE.get(op.name)
            if access is not None:
                base = op.operands[_BASE[op.name]]
                if base in self.former:
                    access(self, op, self._bits(base))

    def _bits(self, base: Value) -> int:
        """Bits of an element in this buffer: 8 where it takes a byte of its own."""
        return bit_width(self.former[base].element) if self._is_packed(base) else 8

    def _is_packed(self, base: Value) -> bool:
        source = base.defining_op
        if source is not None and source.name == "memref.get_global" and source.str_attr("name") in self.loose:
            return False
        return self.packed

    # -- elements
    def load(self, op: Operation, bits: int) -> None:
        base, index = op.operands
        b = Builder.before(op)
        byte, shift = self._place(b, index, bits)
        if shift is not None and base in self.contended and not self.owned:
            value = memory.atomic_rmw(b, "ori", arith.constant(b, 0, I8), base, byte)
        else:
            value = b.op1("memref.load", (base, byte), I8, op.attributes, op.result.name)
        if shift is not None:
            value = arith.binary(b, "shrui", value, shift)
        op.replace_by((self._element(b, value, op.result.type),))

    def store(self, op: Operation, bits: int) -> None:
        value, base, index = op.operands
        b = Builder.before(op)
        byte, shift = self._place(b, index, bits)
        code = self._code(b, value)
        if shift is None:
            b.create("memref.store", (code, base, byte), (), op.attributes)
        else:
            self._store_part(b, arith.binary(b, "shli", code, shift), base, byte, shift, bits)
        op.erase()

    def _store_part(self, b: Builder, moved: Value, base: Value, byte: Value, shift: Value, bits: int) -> None:
        """`moved` (in its place within the byte already) into the byte."""
        if self.owned:
            one = arith.constant(b, 1, I8)
            below = arith.binary(b, "subi", arith.binary(b, "shli", one, shift), one)
            kept = arith.binary(b, "andi", b.op1("memref.load", (base, byte), I8), below)
            b.create("memref.store", (arith.binary(b, "ori", kept, moved), base, byte))
            return
        ones = arith.constant(b, (1 << bits) - 1, I8)
        mask = arith.binary(b, "xori", arith.binary(b, "shli", ones, shift), arith.constant(b, -1, I8))
        # Others change other bits of the byte, so it may be done in two steps.
        memory.atomic_rmw(b, "andi", mask, base, byte)
        memory.atomic_rmw(b, "ori", moved, base, byte)

    def rmw(self, op: Operation, bits: int) -> None:
        """An atomic step on an element becomes one on its byte."""
        base, index = op.operands
        b = Builder.before(op)
        byte, shift = self._place(b, index, bits)
        op.set_operands((base, byte))
        for result in op.results:
            result.type = base.type
        body, old = op.body, op.body.args[0]
        new = body.terminator.operands[0]
        head = Builder.at_start(body)
        current = body.add_arg(I8, "current")
        moved = current if shift is None else arith.binary(head, "shrui", current, shift)
        element = self._element(head, moved, old.type)
        code = self._code(Builder.before(body.terminator), element if new is old else new)
        old.replace_by(element)
        tail = Builder.before(body.terminator)
        if shift is not None:
            ones = arith.constant(tail, (1 << bits) - 1, I8)
            mask = arith.binary(tail, "xori", arith.binary(tail, "shli", ones, shift), arith.constant(tail, -1, I8))
            kept = arith.binary(tail, "andi", current, mask)
            code = arith.binary(tail, "ori", kept, arith.binary(tail, "shli", code, shift))
        body.terminator.set_operands((code,))
        body.erase_arg(0)

    def _place(self, b: Builder, index: Value, bits: int) -> tuple[Value, Value | None]:
        """The byte of an element, and by how much the element is shifted in it (None: it has the byte to itself)."""
        if bits == 8:
            return index, None
        per_byte = 8 // bits
        byte = arith.binary(b, "shrui", index, arith.index(b, per_byte.bit_length() - 1))
        part = arith.binary(b, "andi", index, arith.index(b, per_byte - 1))
        narrow = b.op1("arith.index_castui", (part,), I8)
        return byte, arith.binary(b, "shli", narrow, arith.constant(b, bits.bit_length() - 1, I8))

    def _element(self, b: Builder, byte: Value, type: Type) -> Value:
        """The low bits of bytes as elements of `type` (a scalar or a vector)."""
        element = element_type(type)
        value = arith.cast(b, "trunci", byte, integer(bit_width(element)))
        return arith.cast(b, "bitcast", value, element) if isinstance(element, FloatType) else value

    def _code(self, b: Builder, value: Value) -> Value:
        """Elements as bytes, upper bits zero."""
        element = element_type(value.type)
        if isinstance(element, FloatType):
            value = arith.cast(b, "bitcast", value, integer(element.width))
        return arith.cast(b, "extui", value, I8)

    # -- vectors
    def load_vector(self, op: Operation, bits: int) -> None:
        base, index = op.operands
        type = op.result.type
        assert isinstance(type, VectorType)
        b = Builder.before(op)
        lanes, per_byte = type.elements, 8 // bits
        if lanes % per_byte:
            op.replace_by((self._load_lanes(b, base, index, type, bits),))
            return
        byte, _ = self._place(b, index, bits)
        codes = b.op1("vector.load", (base, byte), vector_type((lanes // per_byte,), I8), op.attributes, op.result.name)
        if per_byte > 1:
            parts = [
                arith.binary(b, "shrui", codes, arith.constant(b, bits * i, codes.type)) if i else codes
                for i in range(per_byte)
            ]
            codes = _interleave(b, parts)
        op.replace_by((self._element(b, codes, type),))

    def _load_lanes(self, b: Builder, base: Value, index: Value, type: VectorType, bits: int) -> Value:
        """Less than a byte: its elements one by one."""
        elements: list[Value] = []
        for lane in range(type.elements):
            at_lane = arith.binary(b, "addi", index, arith.index(b, lane)) if lane else index
            byte, shift = self._place(b, at_lane, bits)
            assert shift is not None
            code = arith.binary(b, "shrui", b.op1("memref.load", (base, byte), I8), shift)
            elements.append(self._element(b, code, type.element))
        return b.op1("vector.from_elements", elements, type)

    def store_vector(self, op: Operation, bits: int) -> None:
        value, base, index = op.operands
        type = value.type
        assert isinstance(type, VectorType)
        b = Builder.before(op)
        lanes, per_byte = type.elements, 8 // bits
        codes = self._code(b, value)
        if lanes % per_byte:
            for lane in range(lanes):
                at_lane = arith.binary(b, "addi", index, arith.index(b, lane)) if lane else index
                byte, shift = self._place(b, at_lane, bits)
                assert shift is not None
                moved = arith.binary(b, "shli", vector.extract(b, codes, lane), shift)
                self._store_part(b, moved, base, byte, shift, bits)
        else:
            byte, _ = self._place(b, index, bits)
            b.create("vector.store", (_gathered(b, codes, bits), base, byte), (), op.attributes)
        op.erase()


def _interleave(b: Builder, parts: Sequence[Value]) -> Value:
    """Lane 0 of every part, then lane 1 of every part..."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [_zip(b, low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


def _zip(b: Builder, even: Value, odd: Value) -> Value:
    assert isinstance(even.type, VectorType)
    lanes = even.type.elements
    return vector.shuffle(b, even, odd, [lane for i in range(lanes) for lane in (i, lanes + i)])


def _gathered(b: Builder, codes: Value, bits: int) -> Value:
    """Bytes of which each holds `8 / bits` neighbouring lanes of `codes`."""
    assert isinstance(codes.type, VectorType)
    lanes, per_byte = codes.type.elements, 8 // bits
    result: Value | None = None
    for part in range(per_byte):
        chosen = codes if per_byte == 1 else vector.shuffle(b, codes, codes, range(part, lanes, per_byte))
        if part:
            chosen = arith.binary(b, "shli", chosen, arith.constant(b, bits * part, chosen.type))
        result = chosen if result is None else arith.binary(b, "ori", result, chosen)
    assert result is not None
    return result


_BASE = {"memref.load": 0, "memref.store": 1, "vector.load": 0, "vector.store": 1, "xla_gpu.atomic_rmw": 0}
_TABLE: dict[str, Callable[[_Packing, Operation, int], None]] = {
    "memref.load": _Packing.load,
    "memref.store": _Packing.store,
    "vector.load": _Packing.load_vector,
    "vector.store": _Packing.store_vector,
    "xla_gpu.atomic_rmw": _Packing.rmw,
}
