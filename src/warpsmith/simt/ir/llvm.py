"""What the llvm and nvvm dialects do in the simulator: the same arithmetic, and memory by addresses in bytes.

Instructions that an op of another dialect becomes one to one share that op's numpy function.  Every active access must
lie within its buffer and be aligned as the instruction claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.llvm_types import LLVMStructType
from warpsmith.ir.core.ssa import REGISTRY, Operation
from warpsmith.ir.core.types import Type, VectorType, bit_width, element_type, numpy_dtype, vector
from warpsmith.ir.dialects import semantics as sem
from warpsmith.simt.ir.accesses import constant, no_effect
from warpsmith.simt.ir.amdgcn import AMDGCN
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.memory import AccessFault, Buffer, Datum, Pointer, PointerTable, shared_buffer, where_from
from warpsmith.simt.ir.observe import Elements, barrier, saw, saw_lanes
from warpsmith.simt.ir.vectors import bitcast, compressed_lanes, extract_lane, insert_lane, integers, shuffle_lanes
from warpsmith.simt.ir.warps import exchange, lanes, thread_ids

__all__ = ["LLVM", "places_of", "pointer_of", "read_bytes", "write_bytes"]

_DYNAMIC = -(1 << 31)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    row.llvm: row.numpy for row in REGISTRY.values() if row.llvm is not None and row.numpy is not None
}


def _elementwise(function: Callable[..., Any]) -> Handler:
    def handle(_: Interpreter, frame: Frame, op: Operation) -> None:
        frame[op.result] = function(op, *(frame.array(v) for v in op.operands))

    return handle


def _select(_: Interpreter, frame: Frame, op: Operation) -> None:
    condition, a, b = (frame.array(v) for v in op.operands)
    frame[op.result] = sem.select(op, condition, a, b)


def _poison(_: Interpreter, frame: Frame, op: Operation) -> None:
    """Some value: zeros."""
    frame[op.result] = _zeros(op.result.type)


def _zeros(type: Type) -> Datum:
    if isinstance(type, LLVMStructType):
        return tuple(_zeros(field) for field in type.fields)
    return np.zeros((1, type.elements) if isinstance(type, VectorType) else 1, numpy_dtype(type))


# --------------------------------------------------------------------------------------------------------------- memory
def _address_of(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    buffer = interpreter.machine.globals[op.str_attr("global_name")]
    offset: Array = np.zeros(1, np.int64)
    if buffer.copies > 1:
        offset = interpreter.machine.block_of(frame.threads) * buffer.size * buffer.data.itemsize
    frame[op.result] = Pointer(buffer, offset)


def _alloca(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    element, count = op.attributes["elem_type"], int(frame.array(op.operands[0])[0])
    assert isinstance(element, at.TypeAttr)
    buffer = shared_buffer(vector((count,), element.type), interpreter.machine.blocks, op.result.name or "local")
    own = interpreter.machine.block_of(frame.threads) * buffer.size * buffer.data.itemsize
    frame[op.result] = Pointer(buffer, own)


def _size_of(type: Type) -> int:
    return max(1, bit_width(type) // 8)


def _getelementptr(_: Interpreter, frame: Frame, op: Operation) -> None:
    base, element, indices = frame[op.operands[0]], op.attributes["elem_type"], integers(op, "rawConstantIndices")
    if len(indices) != 1 or not isinstance(element, at.TypeAttr):
        raise SimulationError(f"{op.name} with {len(indices)} indices")
    if isinstance(base, PointerTable) and indices[0] != _DYNAMIC:
        frame[op.result] = PointerTable(base.entries, base.index + indices[0])
        return
    if not isinstance(base, Pointer):
        raise SimulationError(f"{op.name} of what is no address{where_from(op)}")
    index: Array = np.array([indices[0]])
    if indices[0] == _DYNAMIC:
        index = frame.array(op.operands[1]).astype(np.int64)
    offset = base.offset[:, None] if index.ndim > base.offset.ndim else base.offset
    frame[op.result] = Pointer(base.buffer, offset + index * _size_of(element.type))


def pointer_of(frame: Frame, op: Operation, position: int) -> Pointer:
    """The pointers that an operand holds; SimulationError if it's something else."""
    found = frame[op.operands[position]]
    if not isinstance(found, Pointer):
        raise SimulationError(f"{op.name} of what is no address{where_from(op)}")
    return found


def places_of(frame: Frame, op: Operation, pointer: Pointer, itemsize: int, lanes: int, active: Array | None) -> Array:
    """The byte at which each thread's (and lane's) element begins, clipped to the buffer; active ones are checked."""
    offset = pointer.offset
    whole = lanes if lanes and offset.ndim == 1 else 0  # one address for all lanes
    alignment = op.int_attr("alignment") if "alignment" in op.attributes else 1
    crooked = offset % alignment != 0
    if whole:
        offset = offset[:, None] + np.arange(whole) * itemsize
        crooked = crooked[:, None]
    size = pointer.buffer.data.nbytes
    beyond = (offset < 0) | (offset + itemsize > size)
    for bad, what in ((crooked, f"isn't a multiple of {alignment}"), (beyond, "")):
        wrong = bad if active is None else bad & active
        if wrong.any():
            thread, place = int(np.argwhere(wrong)[0][0]), int(np.broadcast_to(offset, wrong.shape)[wrong][0])
            text = what or f"is outside of '{pointer.buffer.name}', which has {size} bytes"
            code = "misaligned" if what else "out-of-bounds"
            raise AccessFault(code, f"{op.name} at byte {place}, which {text}", thread, place)
    return np.clip(offset, 0, max(size - itemsize, 0))


def read_bytes(buffer: Buffer, places: Array, dtype: np.dtype[Any]) -> Array:
    """Elements of `dtype` that begin at the given bytes."""
    if buffer.data.nbytes < dtype.itemsize:
        return np.zeros(places.shape, dtype)
    bytes_ = buffer.data.reshape(-1).view(np.uint8)[places[..., None] + np.arange(dtype.itemsize)]
    return np.ascontiguousarray(bytes_).view(dtype)[..., 0]


def write_bytes(buffer: Buffer, places: Array, value: Array, active: Array | None) -> None:
    """Store each active thread's value at its byte."""
    active = np.ones(1, np.bool_) if active is None else active
    places, value, active = np.broadcast_arrays(places, value, active)
    bytes_ = np.ascontiguousarray(value[active]).reshape(-1, 1).view(np.uint8)
    where = places[active][:, None] + np.arange(value.dtype.itemsize)
    buffer.data.reshape(-1).view(np.uint8)[where] = bytes_


def _lanes(type: Type) -> int:
    return type.elements if isinstance(type, VectorType) else 0


def _active(frame: Frame, lanes: int) -> Array | None:
    return frame.mask[:, None] if lanes and frame.mask is not None else frame.mask


def _elements(kind: str, pointer: Pointer, places: Array, lanes: int, itemsize: int, active: Array | None) -> Elements:
    """An access of consecutive elements."""
    return Elements(kind, pointer.buffer, places[:, 0] if lanes else places, max(1, lanes) * itemsize, active)


def _load(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    source, type = frame[op.operands[0]], op.result.type
    if isinstance(source, PointerTable):
        frame[op.result] = Pointer(source.entries[source.index], np.zeros(1, np.int64))
        return
    pointer, dtype, lanes = pointer_of(frame, op, 0), numpy_dtype(type), _lanes(type)
    places = places_of(frame, op, pointer, dtype.itemsize, lanes, _active(frame, lanes))
    saw(interpreter, frame, op, _elements("load", pointer, places, lanes, dtype.itemsize, frame.mask))
    frame[op.result] = read_bytes(pointer.buffer, places, dtype)


def _store(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value, pointer = frame.array(op.operands[0]), pointer_of(frame, op, 1)
    lanes = _lanes(op.operands[0].type)
    active = _active(frame, lanes)
    places = places_of(frame, op, pointer, value.dtype.itemsize, lanes, active)
    made = _elements("store", pointer, places, lanes, value.dtype.itemsize, frame.mask)
    saw(interpreter, frame, op, replace(made, value=value))
    write_bytes(pointer.buffer, places, value, active)


def _masked_load(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """llvm.intr.masked.load (one address) and .gather (one a lane)."""
    pointer, type = pointer_of(frame, op, 0), op.result.type
    mask, fallback = (frame.array(v) for v in op.operands[1:])
    dtype = numpy_dtype(type)
    active = mask if frame.mask is None else mask & frame.mask[:, None]
    places = places_of(frame, op, pointer, dtype.itemsize, _lanes(type), active)
    saw_lanes(interpreter, frame, op, Elements("load", pointer.buffer, places, dtype.itemsize, active))
    frame[op.result] = np.where(active, read_bytes(pointer.buffer, places, dtype), fallback)


def _masked_store(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value, pointer, mask = frame.array(op.operands[0]), pointer_of(frame, op, 1), frame.array(op.operands[2])
    active = mask if frame.mask is None else mask & frame.mask[:, None]
    places = places_of(frame, op, pointer, value.dtype.itemsize, _lanes(op.operands[0].type), active)
    saw_lanes(interpreter, frame, op, Elements("store", pointer.buffer, places, value.dtype.itemsize, active, value))
    write_bytes(pointer.buffer, places, value, active)


# ------------------------------------------------------------------------------------------------- vectors and structs
def _extract_element(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = extract_lane(*(frame.array(v) for v in op.operands))


def _insert_element(_: Interpreter, frame: Frame, op: Operation) -> None:
    dest, value, position = (frame.array(v) for v in op.operands)
    frame[op.result] = insert_lane(value, dest, position)


def _shuffle_vector(_: Interpreter, frame: Frame, op: Operation) -> None:
    first, second = (frame.array(v) for v in op.operands)
    frame[op.result] = shuffle_lanes(first, second, integers(op, "mask"))


def _bitcast(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    source, target = op.operands[0].type, op.result.type
    same = bit_width(element_type(source)) == bit_width(element_type(target))
    if not same and not isinstance(target, VectorType):
        frame[op.result] = np.ascontiguousarray(value).view(numpy_dtype(target))[:, 0]
    else:
        frame[op.result] = sem.bitcast(op, value) if same else bitcast(op, value)


def _struct(frame: Frame, op: Operation) -> tuple[Datum, ...]:
    found = frame[op.operands[0]]
    if not isinstance(found, tuple):
        raise SimulationError(f"{op.name} of what is no struct{where_from(op)}")
    return found


def _extract_value(_: Interpreter, frame: Frame, op: Operation) -> None:
    (position,) = integers(op, "position")
    frame[op.result] = _struct(frame, op)[position]


def _insert_value(_: Interpreter, frame: Frame, op: Operation) -> None:
    (position,) = integers(op, "position")
    fields = list(_struct(frame, op))
    fields[position] = frame[op.operands[1]]
    frame[op.result] = tuple(fields)


# ---------------------------------------------------------------------------------------------------- calls and threads
def _call(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    library = op.attributes.get("warpsmith.library")
    if isinstance(library, at.StringAttr):  # a function outside the module: what the op that it stands for computes
        compute = REGISTRY[library.value].numpy
        assert compute is not None
        frame[op.result] = compute(op, *(frame.array(v) for v in op.operands))
        return
    name = op.str_attr("callee")
    if name in AMDGCN:
        AMDGCN[name](interpreter, frame, op)
        return
    if name.startswith("llvm."):
        _intrinsic(frame, op, name)
        return
    callee = interpreter.machine.function(name)
    frame.bind(op.results, interpreter.call(frame, callee, [frame[v] for v in op.operands]))


def _intrinsic(frame: Frame, op: Operation, name: str) -> None:
    """One that has no op of its own."""
    if not name.startswith("llvm.experimental.vector.compress."):
        raise SimulationError(
            f"{name} isn't simulated as a call{where_from(op)}",
            help="simulate the form before convert-to-llvm (--stage buffers), or the PTX (--stage ptx)",
        )
    value, mask, _ = (frame.array(v) for v in op.operands)
    frame[op.result] = compressed_lanes(value, mask)


_REGISTERS = {"tid": "thread_id", "ctaid": "block_id", "ntid": "block_dim", "nctaid": "grid_dim"}


def _register(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    _, register, dimension = op.name.rsplit(".", 2)
    frame[op.result] = thread_ids(interpreter, frame, f"{_REGISTERS[register]}.{dimension}").astype(np.int32)


def _lane_id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = lanes(interpreter, frame).astype(np.int32)


_SHUFFLES = {"bfly": "xor", "up": "up", "down": "down", "idx": "idx"}


def _shuffle(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    kind = op.attributes["kind"]
    text = kind.text if isinstance(kind, at.OpaqueAttr) else op.str_attr("kind")
    name = next((short for long, short in _SHUFFLES.items() if long in text), "idx")
    value, offset = frame.array(op.operands[1]), frame.array(op.operands[2]).astype(np.int64)
    frame[op.result] = exchange(interpreter, frame, op, value, offset, name)[0]


LLVM: dict[str, Handler] = {
    "llvm.intr.prefetch": no_effect,
    **{name: _elementwise(function) for name, function in _FUNCTIONS.items()},
    "llvm.select": _select,
    "llvm.bitcast": _bitcast,
    "llvm.mlir.constant": constant,
    "llvm.mlir.poison": _poison,
    "llvm.mlir.zero": _poison,
    "llvm.mlir.addressof": _address_of,
    "llvm.alloca": _alloca,
    "llvm.getelementptr": _getelementptr,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.intr.masked.load": _masked_load,
    "llvm.intr.masked.gather": _masked_load,
    "llvm.intr.masked.store": _masked_store,
    "llvm.extractelement": _extract_element,
    "llvm.insertelement": _insert_element,
    "llvm.shufflevector": _shuffle_vector,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "llvm.call": _call,
    "llvm.fence": no_effect,
    "nvvm.barrier0": barrier,
    "nvvm.read.ptx.sreg.laneid": _lane_id,
    "nvvm.shfl.sync": _shuffle,
    **{f"nvvm.read.ptx.sreg.{r}.{d}": _register for r in _REGISTERS for d in "xyz"},
}
