"""Launching a kernel in the simulator: the entry function over its grid, batch by batch.

In: a module at any stage from emission to just before `convert-scf-to-cf`, and the input arrays.  Out: the output arrays.
The grid and block come from the entry's attributes, so a dump alone can be run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects import func
from warpsmith.ir.types import INDEX, MemRefType, ShapedType, TensorType, numpy_dtype
from warpsmith.simt.interpreter import Datum, Frame, Interpreter, Machine
from warpsmith.simt.memory import Array, Buffer, make_shared

__all__ = ["run_kernel"]

BATCH_THREADS = 1 << 18


def run_kernel(module: Operation, inputs: Sequence[Array], output_count: int = 1) -> list[Array]:
    """Run the entry function on flat or shaped input arrays (memory order); its outputs, flat, in memory order.

    `output_count` arguments after the inputs are outputs; then come lookup tables, which `NAME_setup` fills first.
    Raises SimulationError for an op without semantics here or an access out of bounds.
    """
    entry = func.entry(module)
    arguments = _arguments(module, entry, inputs, output_count)
    grid, block = _launch(entry)
    blocks = int(np.prod(grid))
    per_block = int(np.prod(block))
    step = max(1, BATCH_THREADS // per_block)
    for first in range(0, blocks, step):
        count = min(step, blocks - first)
        _batch(module, entry, arguments, grid, block, first, count)
    return [b.data for b in arguments[len(inputs) : len(inputs) + output_count] if isinstance(b, Buffer)]


def _buffer_types(entry: Operation) -> list[ShapedType]:
    return [a.type for a in entry.body.args if isinstance(a.type, (TensorType, MemRefType))]


def _arguments(module: Operation, entry: Operation, inputs: Sequence[Array], output_count: int) -> list[Datum]:
    types = _buffer_types(entry)
    if len(inputs) + output_count > len(types):
        raise SimulationError(f"the kernel takes {len(types)} buffers, {len(inputs)} inputs and {output_count} outputs were given")
    data: list[Datum] = []
    for i, type in enumerate(types):
        dtype = numpy_dtype(type)
        if i < len(inputs):
            array = np.ascontiguousarray(inputs[i]).reshape(-1)
            data.append(Buffer(f"input{i}", _as_storage(array, dtype), array.size))
        else:
            data.append(Buffer(f"output{i - len(inputs)}", np.zeros(type.elements, dtype), type.elements))
    tables = data[len(inputs) + output_count :]
    if tables:
        _fill_tables(module, entry, tables)
    return data


def _as_storage(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array's bits as the kernel's element type (pred is i8, unsigned integers are signless)."""
    if array.dtype == dtype:
        return array
    if array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    raise SimulationError(f"a buffer of {dtype} can't hold {array.dtype} elements")


def _fill_tables(module: Operation, entry: Operation, tables: list[Datum]) -> None:
    setup = func.symbols(module).get(f"{entry.str_attr('sym_name')}_setup")
    if setup is None:
        raise SimulationError("the kernel has tables, but the module has no function that fills them")
    machine = Machine(module, {}, 1, 1, _globals(module, 1))
    _call(machine, setup, tables, np.zeros(1, np.int64))


def _call(machine: Machine, function: Operation, buffers: Sequence[Datum], workgroups: Array) -> None:
    """Run a function; a lowered CPU entry's last two arguments are the range of work groups, one a thread here."""
    frame = Frame(workgroups.shape[0])
    arguments = list(buffers)
    extra = [a for a in function.body.args if a.type is INDEX]
    if len(extra) == 2:
        arguments += [workgroups, workgroups + 1]
    Interpreter(machine).call(frame, function, arguments)


def _globals(module: Operation, blocks: int) -> dict[str, Buffer]:
    result: dict[str, Buffer] = {}
    for op in module.body:
        if op.name != "memref.global":
            continue
        name, type, value = op.str_attr("sym_name"), op.attributes["type"], op.attributes.get("initial_value")
        assert isinstance(type, at.TypeAttr) and isinstance(type.type, MemRefType)
        if isinstance(value, at.DenseAttr):
            result[name] = Buffer(name, np.ascontiguousarray(value.array).reshape(-1), type.type.elements)
        else:
            result[name] = make_shared(type.type, blocks, name)
    return result


def _launch(entry: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    workgroups = entry.attributes.get("warpsmith.workgroups")
    if isinstance(workgroups, at.IntegerAttr):
        return (workgroups.value, 1, 1), (1, 1, 1)
    grid, block = entry.attributes.get("warpsmith.grid"), entry.attributes.get("warpsmith.block")
    if not isinstance(grid, at.DenseArrayAttr) or not isinstance(block, at.DenseArrayAttr):
        raise SimulationError("the entry function has no launch", help="set warpsmith.grid and warpsmith.block")
    return grid.values, block.values


def _batch(
    module: Operation,
    entry: Operation,
    arguments: Sequence[Datum],
    grid: tuple[int, ...],
    block: tuple[int, ...],
    first: int,
    count: int,
) -> None:
    """Blocks [first, first + count): ids for their threads, thread x fastest."""
    per_block = int(np.prod(block))
    threads = np.tile(np.arange(per_block, dtype=np.int64), count)
    blocks = np.repeat(np.arange(first, first + count, dtype=np.int64), per_block)
    ids: dict[str, Array] = {}
    for name, linear, dims in (("thread_id", threads, block), ("block_id", blocks, grid), ("workgroup_id", blocks, grid)):
        rest = linear
        for axis, dim in zip("xyz", dims, strict=True):
            ids[f"{name}.{axis}"] = rest % dim if dim > 1 else np.zeros(1, np.int64)
            rest = rest // dim
    for name, dims in (("block_dim", block), ("grid_dim", grid)):
        ids.update({f"{name}.{axis}": np.array([dim]) for axis, dim in zip("xyz", dims, strict=True)})
    machine = Machine(module, ids, count, per_block, _globals(module, count))
    frame_threads = threads.shape[0]
    frame = Frame(frame_threads)
    extra = [a for a in entry.body.args if a.type is INDEX]
    data = list(arguments)
    if len(extra) == 2:
        data += [blocks, blocks + 1]
    Interpreter(machine).call(frame, entry, data)
