"""What each op that isn't plain arithmetic does in the simulator: control flow, memory, vectors, ids, calls.

One function an op, in `HANDLERS`.  Semantics are MLIR's and those of pipeline reference 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects import gpu, vector
from warpsmith.ir.dialects.semantics import as_unsigned
from warpsmith.ir.types import MemRefType, ShapedType, TensorType, VectorType, numpy_dtype
from warpsmith.simt.interpreter import Datum, Frame, Handler, Interpreter, symbol_points
from warpsmith.simt.memory import Array, Buffer, linear_index, make_shared

__all__ = ["HANDLERS"]


# ------------------------------------------------------------------------------------------------------ constants, ids
def _constant(_: Interpreter, frame: Frame, op: Operation) -> None:
    value, type = op.attributes["value"], op.result.type
    if isinstance(value, at.DenseAttr):
        if isinstance(type, TensorType):
            frame[op.result] = Buffer("constant", np.ascontiguousarray(_in_layout(value.array, type)), type.elements)
        else:
            frame[op.result] = value.array[None]
    elif isinstance(value, at.FloatAttr):
        frame[op.result] = np.array([value.scalar])
    elif isinstance(value, at.IntegerAttr):
        frame[op.result] = np.array([value.value]).astype(numpy_dtype(type))


def _in_layout(array: Array, type: TensorType) -> Array:
    order = type.minor_to_major
    return (array if order is None else array.transpose(order[::-1])).reshape(-1)


def _id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    name = op.name.partition(".")[2]
    array = interpreter.machine.ids.get(f"{name}.{gpu.dimension(op)}")
    if array is None:
        raise SimulationError(f"{op.name} {gpu.dimension(op)} has no value in this launch")
    factor = frame.threads // max(array.shape[0], 1)
    frame[op.result] = array if array.shape[0] in (1, frame.threads) else np.repeat(array, factor, axis=0)


# -------------------------------------------------------------------------------------------------------- control flow
def _for(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    lower, upper, step = (frame.array(v) for v in op.operands[:3])
    carried: list[Datum] = [frame[v] for v in op.operands[3:]]
    iv, *args = op.body.args
    if lower.shape[0] == upper.shape[0] == step.shape[0] == 1:
        values = np.arange(int(lower[0]), int(upper[0]), int(step[0]), dtype=np.int64)
        if interpreter.can_spread(frame, op, carried, len(values)):
            inner = interpreter.spread(frame, len(values))
            inner[iv] = np.tile(values, frame.threads)
            for argument, datum in zip(args, carried, strict=True):
                inner[argument] = datum
            interpreter.block(inner, op.body)
        else:
            for value in values:
                frame[iv] = value[None]
                carried = _iteration(interpreter, frame, op, carried)
        _bind(frame, op, carried)
        return
    if op.results == [] or all(isinstance(d, Buffer) for d in carried):
        spans = np.broadcast_arrays(lower, upper, step)
        if (spans[1] - spans[0] == spans[2]).all():  # every thread runs one iteration
            frame[iv] = spans[0]
            _bind(frame, op, _iteration(interpreter, frame, op, carried))
            return
    _ragged(interpreter, frame, op, carried)


def _iteration(interpreter: Interpreter, frame: Frame, op: Operation, carried: list[Datum]) -> list[Datum]:
    for argument, datum in zip(op.body.args[1:], carried, strict=True):
        frame[argument] = datum
    return interpreter.block(frame, op.body)


def _ragged(interpreter: Interpreter, frame: Frame, op: Operation, carried: list[Datum]) -> None:
    """Threads with bounds of their own: run until the last is done; who is done keeps what it has."""
    lower, upper, step = np.broadcast_arrays(*(frame.array(v) for v in op.operands[:3]))
    outer, iv = frame.mask, lower.copy()
    while True:
        running = frame.masked(iv < upper) if outer is None else outer & (iv < upper)
        if not running.any():
            break
        frame.mask = running
        frame[op.body.args[0]] = iv
        carried = [_merge(running, new, old) for new, old in zip(_iteration(interpreter, frame, op, carried), carried, strict=True)]
        frame.mask = outer
        iv = iv + step
    _bind(frame, op, carried)


def _merge(condition: Array, new: Datum, old: Datum) -> Datum:
    """Per thread, `new` where the condition holds; buffers are one and the same."""
    if isinstance(new, Buffer) or isinstance(old, Buffer):
        return new
    extra = max(new.ndim, old.ndim) - condition.ndim
    return np.where(condition.reshape(condition.shape + (1,) * extra), new, old)


def _bind(frame: Frame, op: Operation, values: Sequence[Datum]) -> None:
    for result, datum in zip(op.results, values, strict=True):
        frame[result] = datum


def _if(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    condition = frame.array(op.operands[0])
    if condition.shape[0] == 1:
        region = op.regions[0 if condition[0] else 1]
        _bind(frame, op, interpreter.block(frame, region.blocks[0]) if region.blocks else [])
        return
    outer = frame.mask
    sides: list[list[Datum]] = []
    for region, side in zip(op.regions, (condition, ~condition), strict=True):
        frame.mask = side if outer is None else outer & side
        # A side that no thread takes still runs for its values when the other needs something to merge with.
        run = region.blocks and (frame.mask.any() or op.results)
        sides.append(interpreter.block(frame, region.blocks[0]) if run else [])
        frame.mask = outer
    if op.results:
        _bind(frame, op, [_merge(condition, a, b) for a, b in zip(*sides, strict=True)])


def _while(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    state: list[Datum] = [frame[v] for v in op.operands]
    outer = frame.mask
    active: Array = np.ones(1, np.bool_) if outer is None else outer
    results: list[Datum] | None = None
    while True:
        for argument, datum in zip(before.args, state, strict=True):
            frame[argument] = datum
        condition, *values = interpreter.block(frame, before)
        assert isinstance(condition, np.ndarray)
        results = values if results is None else [_merge(active, v, r) for v, r in zip(values, results, strict=True)]
        active = active & condition
        if not active.any():
            break
        frame.mask = active
        for argument, datum in zip(after.args, results, strict=True):
            frame[argument] = datum
        state = interpreter.block(frame, after)
    frame.mask = outer
    _bind(frame, op, results)


def _loop(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """xla_gpu.loop: all symbol values; points that break a bound or constraint leave the carried values alone."""
    map = gpu.map_of(op)
    dims, inits = gpu.loop_parts(op)
    carried: list[Datum] = [frame[v] for v in inits]
    symbols = symbol_points(map)
    trips = len(symbols[0]) if symbols else 1
    if interpreter.can_spread(frame, op, carried, trips):
        inner = interpreter.spread(frame, trips)
        values = [np.tile(s, frame.threads) for s in symbols]
        _loop_point(interpreter, inner, op, [inner.array(d) for d in dims], values, carried)
    else:
        ids = [frame.array(d) for d in dims]
        for i in range(trips):
            carried = _loop_point(interpreter, frame, op, ids, [s[i : i + 1] for s in symbols], carried)
    _bind(frame, op, carried)


def _loop_point(
    interpreter: Interpreter, frame: Frame, op: Operation, dims: list[Array], symbols: list[Array], carried: list[Datum]
) -> list[Datum]:
    map = gpu.map_of(op)
    inside = np.atleast_1d(map.contains(dims, symbols))
    outer = frame.mask
    mask = inside if outer is None else outer & inside
    if not mask.any():
        return carried
    frame.mask = None if mask.all() else mask
    results = [np.atleast_1d(np.asarray(r, np.int64)) for r in map.evaluate(dims, symbols)]
    for argument, datum in zip(op.body.args, [*symbols, *results, *carried], strict=True):
        frame[argument] = datum
    new = interpreter.block(frame, op.body)
    frame.mask = outer
    return new if mask.all() else [_merge(mask, n, o) for n, o in zip(new, carried, strict=True)]


def _call(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    function = interpreter.machine.functions.get(op.str_attr("callee"))
    if function is None:
        raise SimulationError(f"the module has no function @{op.str_attr('callee')}")
    _bind(frame, op, interpreter.call(frame, function, [frame[v] for v in op.operands]))


def _apply_indexing(_: Interpreter, frame: Frame, op: Operation) -> None:
    map = gpu.map_of(op)
    operands = [frame.array(v) for v in op.operands]
    split = len(map.dim_vars)
    for result, value in zip(op.results, map.evaluate(operands[:split], operands[split:]), strict=True):
        frame[result] = np.atleast_1d(np.asarray(value, np.int64))


# -------------------------------------------------------------------------------------------------------------- memory
def _shaped(type: object) -> ShapedType:
    assert isinstance(type, (TensorType, MemRefType))
    return type


def _positions(
    interpreter: Interpreter, frame: Frame, op: Operation, base: int, indices: slice, active: Array | None, lanes: int = 1
) -> Array:
    """Where in the buffer's data each thread's (first) element is."""
    buffer = frame.buffer(op.operands[base])
    arrays = [frame.array(v) for v in op.operands[indices]]
    where = linear_index(op, _shaped(op.operands[base].type), arrays, active, lanes)
    if buffer.copies > 1:
        where = where + interpreter.machine.block_offsets(frame.threads) * buffer.size
    return where


def _extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = _positions(interpreter, frame, op, 0, slice(1, None), frame.mask)
    frame[op.result] = frame.buffer(op.operands[0]).data[where]


def _write(frame: Frame, buffer: Buffer, where: Array, value: Array, active: Array | None) -> None:
    where, value = np.broadcast_arrays(where, value)
    if active is None:
        buffer.data[where] = value
    else:
        chosen = np.broadcast_to(active, where.shape)
        buffer.data[where[chosen]] = value[chosen]


def _insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = _positions(interpreter, frame, op, 1, slice(2, None), frame.mask)
    buffer = frame.buffer(op.operands[1])
    _write(frame, buffer, where, frame.array(op.operands[0]), frame.mask)
    for result in op.results:
        frame[result] = buffer


def _lanes(type: object) -> int:
    assert isinstance(type, VectorType)
    return type.elements


def _vector_read(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    lanes = _lanes(op.result.type)
    where = _positions(interpreter, frame, op, 0, slice(1, 2), frame.mask, lanes)
    frame[op.result] = frame.buffer(op.operands[0]).data[where[:, None] + np.arange(lanes)]


def _vector_write(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    lanes = _lanes(op.operands[0].type)
    where = _positions(interpreter, frame, op, 1, slice(2, 3), frame.mask, lanes)
    buffer = frame.buffer(op.operands[1])
    active = None if frame.mask is None else frame.mask[:, None]
    _write(frame, buffer, where[:, None] + np.arange(lanes), value, active)
    for result in op.results:
        frame[result] = buffer


def _masked_positions(frame: Frame, op: Operation, start: Array, offsets: Array, mask: Array) -> tuple[Array, Array]:
    """Positions of all lanes and which are active; SimulationError when an active one is outside."""
    size = _shaped(op.operands[0].type).elements
    where, mask = np.broadcast_arrays(start[:, None] + offsets, mask)
    active = mask if frame.mask is None else mask & frame.mask[:, None]
    outside = active & ((where < 0) | (where >= size))
    if outside.any():
        raise SimulationError(f"{op.name} at index {int(where[outside][0])} of a buffer of {size} elements")
    return np.clip(where, 0, max(size - 1, 0)), active


def _masked_load(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(_lanes(op.result.type)), mask)
    frame[op.result] = np.where(active, frame.buffer(op.operands[0]).data[where], fallback)


def _masked_store(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, value = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(_lanes(op.operands[3].type)), mask)
    _write(frame, frame.buffer(op.operands[0]), where, value, active)


def _gather(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, indices, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, indices, mask)
    frame[op.result] = np.where(active, frame.buffer(op.operands[0]).data[where], fallback)


def _lookup(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = np.ascontiguousarray(frame.array(op.operands[1]))
    bits = as_unsigned(value.view(f"i{value.dtype.itemsize}")).astype(np.int64)
    frame[op.result] = frame.buffer(op.operands[0]).data[bits]


def _allocate_shared(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = make_shared(_shaped(op.result.type), interpreter.machine.blocks, op.result.name or "shared")


def _get_global(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = interpreter.machine.globals[op.str_attr("name")]


def _forward(_: Interpreter, frame: Frame, op: Operation) -> None:
    """A barrier: in lockstep all threads are there already."""
    for operand, result in zip(op.operands, op.results, strict=False):
        frame[result] = frame[operand]


def _predicated_insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    active = frame.masked(frame.array(op.operands[-1]))
    where = _positions(interpreter, frame, op, 1, slice(2, -1), active)
    buffer = frame.buffer(op.operands[1])
    _write(frame, buffer, where, frame.array(op.operands[0]), active)
    frame[op.result] = buffer


def _predicated_extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    condition, fallback = frame.array(op.operands[-2]), frame.array(op.operands[-1])
    where = _positions(interpreter, frame, op, 0, slice(1, -2), frame.masked(condition))
    frame[op.result] = np.where(condition, frame.buffer(op.operands[0]).data[where], fallback)


# ------------------------------------------------------------------------------------------------------------- vectors
def _position(frame: Frame, op: Operation, first: int) -> Array:
    static = op.attributes["static_position"]
    assert isinstance(static, at.DenseArrayAttr)
    if static.values[0] == vector.DYNAMIC:
        return frame.array(op.operands[first])
    return np.array([static.values[0]])


def _vector_extract(_: Interpreter, frame: Frame, op: Operation) -> None:
    source, position = frame.array(op.operands[0]), _position(frame, op, 1)
    threads = max(source.shape[0], position.shape[0])
    rows = np.arange(threads) if source.shape[0] > 1 else np.zeros(threads, np.int64)
    frame[op.result] = source[rows, np.broadcast_to(position, (threads,))]


def _vector_insert(_: Interpreter, frame: Frame, op: Operation) -> None:
    value, dest = frame.array(op.operands[0]), frame.array(op.operands[1])
    position = _position(frame, op, 2)
    threads = max(value.shape[0], dest.shape[0], position.shape[0])
    copy = np.array(np.broadcast_to(dest, (threads, *dest.shape[1:])))
    copy[np.arange(threads), np.broadcast_to(position, (threads,))] = value
    frame[op.result] = copy


def _broadcast(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    lanes = _lanes(op.result.type)
    frame[op.result] = np.broadcast_to(value if value.ndim > 1 else value[:, None], (value.shape[0], lanes))


def _step(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.arange(_lanes(op.result.type), dtype=np.int64)[None]


def _create_mask(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.arange(_lanes(op.result.type)) < frame.array(op.operands[0])[:, None]


def _shuffle(_: Interpreter, frame: Frame, op: Operation) -> None:
    mask = op.attributes["mask"]
    assert isinstance(mask, at.DenseArrayAttr)
    both = np.broadcast_arrays(frame.array(op.operands[0]), frame.array(op.operands[1]))
    frame[op.result] = np.concatenate(both, axis=1)[:, list(mask.values)]


def _vector_bitcast(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = np.ascontiguousarray(frame.array(op.operands[0]))
    if value.dtype == np.bool_:
        value = np.packbits(value, axis=-1, bitorder="little")
    frame[op.result] = value.view(numpy_dtype(op.result.type))


def _from_elements(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.stack(np.broadcast_arrays(*(frame.array(v) for v in op.operands)), axis=-1)


def _warp_shuffle(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """gpu.shuffle: the value of another lane of the warp; the thread's own where there is none."""
    value = np.broadcast_to(frame.array(op.operands[0]), (frame.threads,))
    offset = int(frame.array(op.operands[1])[0])
    size = interpreter.machine.warp_size
    mode = op.attributes["mode"]
    kind = mode.text if isinstance(mode, at.OpaqueAttr) else op.str_attr("mode")
    lane = np.arange(frame.threads) % interpreter.machine.threads_per_block % size
    source = lane ^ offset if "xor" in kind else lane - offset if "up" in kind else np.full_like(lane, offset) if "idx" in kind else lane + offset
    first = np.arange(frame.threads) - lane
    valid = (source >= 0) & (source < size) & (first + source < frame.threads)
    frame[op.results[0]] = np.where(valid, value[np.where(valid, first + source, 0)], value)
    frame[op.results[1]] = valid


HANDLERS: dict[str, Handler] = {
    "arith.constant": _constant,
    "gpu.thread_id": _id,
    "gpu.block_id": _id,
    "gpu.block_dim": _id,
    "gpu.grid_dim": _id,
    "xla_gpu.workgroup_id": _id,
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "xla_gpu.loop": _loop,
    "xla_gpu.pure_call": _call,
    "func.call": _call,
    "xla_gpu.apply_indexing": _apply_indexing,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "memref.load": _extract,
    "memref.store": _insert,
    "vector.transfer_read": _vector_read,
    "vector.transfer_write": _vector_write,
    "vector.load": _vector_read,
    "vector.store": _vector_write,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.gather": _gather,
    "xla_cpu.lookup": _lookup,
    "xla_gpu.allocate_shared": _allocate_shared,
    "memref.get_global": _get_global,
    "xla_gpu.sync_threads": _forward,
    "gpu.barrier": _forward,
    "xla_gpu.predicated_insert": _predicated_insert,
    "xla_gpu.predicated_extract": _predicated_extract,
    "vector.extract": _vector_extract,
    "vector.insert": _vector_insert,
    "vector.broadcast": _broadcast,
    "vector.step": _step,
    "vector.create_mask": _create_mask,
    "vector.shuffle": _shuffle,
    "vector.bitcast": _vector_bitcast,
    "vector.from_elements": _from_elements,
    "gpu.shuffle": _warp_shuffle,
}
