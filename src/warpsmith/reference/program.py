"""A tile program by the meaning of its primitives: each is done to whole tiles at once, in the order of the text.

In: a kernel before dispatch, its arguments.  Out: its buffers afterwards.  Control flow and scalars run on the
simulator's lockstep interpreter; primitives here, by numpy, on elements found through their layouts.  No lowering has a
part in it, so that the dispatched program can be compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, numpy_dtype
from warpsmith.ir.dialects import func, tile
from warpsmith.reference.memory import array_of, memory_of
from warpsmith.reference.places import Places
from warpsmith.reference.primitives import MEANINGS
from warpsmith.simt.ir.control import run_blocks
from warpsmith.simt.ir.handlers import HANDLERS
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter, Machine
from warpsmith.simt.ir.memory import Buffer
from warpsmith.tile.dispatch.early_exits import lower_early_exits
from warpsmith.tile.model.buffers import buffer_of, memory_elements
from warpsmith.tile.model.scopes import Launch
from warpsmith.tile.program import Kernel

__all__ = ["run_reference"]


def run_reference(kernel: Kernel, buffers: Mapping[str, Array], scalars: Mapping[str, int | float]) -> dict[str, Array]:
    """The buffers after the kernel.  SimulationError where a primitive is called by a part of its scope's threads."""
    module = kernel.module.clone()
    entry = func.entry(module)
    lower_early_exits(entry)
    launch = kernel.launch
    blocks, per_block = int(np.prod(launch.grid)), launch.threads
    memory: dict[str, Buffer] = {}
    given: list[Any] = []
    for parameter, argument in zip(kernel.parameters, entry.body.args, strict=True):
        if parameter.shape is None:
            given.append(np.array([scalars[parameter.name]]).astype(numpy_dtype(argument.type)))
            continue
        type = argument.type
        assert isinstance(type, MemRefType)
        flat = memory_of(parameter, buffers[parameter.name], type).copy()
        memory[parameter.name] = Buffer(parameter.name, flat, flat.size)
        given.append(memory[parameter.name])
    machine = Machine(module, _ids(launch, blocks), blocks, per_block, {}, shape=(launch.grid, launch.block))
    Interpreter(machine, _HANDLERS, run_blocks).call(Frame(blocks * per_block), entry, given)
    result: dict[str, Array] = {}
    for parameter in kernel.parameters:
        if parameter.name in memory:
            name = parameter.name
            result[name] = array_of(parameter, memory[name].data, buffers[name])
    return result


def _ids(launch: Launch, blocks: int) -> dict[str, Array]:
    per_block = launch.threads
    found: dict[str, Array] = {}
    for name, linear, dims in (
        ("thread_id", np.tile(np.arange(per_block, dtype=np.int64), blocks), launch.block),
        ("block_id", np.repeat(np.arange(blocks, dtype=np.int64), per_block), launch.grid),
    ):
        rest = linear
        for axis, extent in zip("xyz", dims, strict=True):
            found[f"{name}.{axis}"] = rest % extent
            rest = rest // extent
    return found


# ------------------------------------------------------------------------------------------------------------- handlers
def _same_memory(_: Interpreter, frame: Frame, op: Operation) -> None:
    """A parameter's buffer, or a view: the memory of its operand."""
    source = frame.buffer(op.operands[0])
    wanted = numpy_dtype(op.result.type)
    if source.data.dtype == wanted:
        frame[op.result] = source
    else:
        data = source.data.view(wanted)
        frame[op.result] = Buffer(source.name, data, data.size // source.copies, source.copies)


def _alloc(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    buffer = buffer_of(op.result)
    machine = interpreter.machine
    copies = machine.blocks * (machine.threads_per_block if buffer.scope == "local" else 1)
    size = memory_elements(buffer.layout, buffer.shape)
    if op.result not in frame.values:
        frame[op.result] = Buffer(buffer.name, np.zeros(size * copies, numpy_dtype(op.result.type)), size, copies)


def _scope_id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    kind, ids = op.str_attr("kind"), interpreter.machine.ids
    if kind in ("cta_id", "thread_id"):
        name = "block_id" if kind == "cta_id" else "thread_id"
        found = [ids[f"{name}.{axis}"] for axis in "xyz"]
        if len(op.results) == 1 and kind == "thread_id":
            frame[op.result] = np.arange(frame.threads) % interpreter.machine.threads_per_block
            return
        frame.bind(op.results, found[: len(op.results)])
        return
    thread = np.arange(frame.threads) % interpreter.machine.threads_per_block
    number = {
        "lane_id": thread % 32,
        "warp_id": thread // 32,
        "warpgroup_id": thread // 128,
        "warp_id_in_wg": thread // 32 % 4,
        "thread_id_in_wg": thread % 128,
    }[kind]
    extents = op.attributes.get("extents")
    if len(op.results) == 1 or not isinstance(extents, at.DenseArrayAttr):
        frame[op.results[0]] = number
        return
    for result, extent in zip(op.results, extents.values, strict=True):
        frame[result] = number % extent
        number = number // extent


def _region(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = frame.buffer(op.operands[0])


def _nothing(_: Interpreter, frame: Frame, op: Operation) -> None:
    """A mark in the text."""


def _load(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    places = Places(interpreter, frame)
    frame[op.result] = frame.buffer(op.operands[0]).data[places.of_element(op, op.operands[0], op.operands[1:])]


def _store(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = Places(interpreter, frame).of_element(op, op.operands[1], op.operands[2:])
    value = np.broadcast_to(frame.array(op.operands[0]), where.shape)
    active = np.ones(where.shape, np.bool_) if frame.mask is None else np.broadcast_to(frame.mask, where.shape)
    frame.buffer(op.operands[1]).data[where[active]] = value[active]


def _primitive(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    meaning = MEANINGS.get(op.name.removeprefix("tile."))
    if meaning is None:
        raise SimulationError(f"{op.name} has no meaning in the simulator")
    meaning(Places(interpreter, frame), op)


_HANDLERS: dict[str, Handler] = {
    **HANDLERS,
    "tile.match_buffer": _same_memory,
    "tile.view": _same_memory,
    "tile.alloc": _alloc,
    "tile.scope_id": _scope_id,
    "tile.region": _region,
    "tile.device_entry": _nothing,
    "tile.load": _load,
    "tile.store": _store,
    "gpu.barrier": _nothing,
    "nvvm.barrier": _nothing,
    "nvvm.bar.warp.sync": _nothing,
    "nvvm.cp.async.commit.group": _nothing,
    "nvvm.cp.async.wait.group": _nothing,
    **{f"tile.{name}": _primitive for name in tile.PRIMITIVES},
}
