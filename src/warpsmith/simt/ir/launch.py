"""Launching a kernel in the simulator: the entry function over its grid, batch by batch.

In: a module at any stage from emission to the llvm dialect, and the input arrays.  Out: the output arrays.  The grid
and block come from the entry's attributes, so a dump alone can be run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import warpsmith.ir.dialects
from warpsmith.arrays import Array, Dim3
from warpsmith.dtypes import pack, unpack
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.llvm_types import LLVMArrayType
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import (
    IntegerType,
    MemRefType,
    PointerType,
    ShapedType,
    TensorType,
    bit_width,
    numpy_dtype,
    vector,
)
from warpsmith.ir.launch import Launch
from warpsmith.simt.core.checks import Checks, check_limits, check_memory
from warpsmith.simt.core.results import WARP, Counters, LaunchResult
from warpsmith.simt.core.sampling import chosen_blocks
from warpsmith.simt.core.tracked import Tracked
from warpsmith.simt.core.watch import Watch
from warpsmith.simt.ir.control import run_blocks
from warpsmith.simt.ir.handlers import HANDLERS
from warpsmith.simt.ir.interpreter import FUNCTIONS, Frame, Interpreter, Machine
from warpsmith.simt.ir.memory import Buffer, Datum, Pointer, PointerTable, output_buffer, shared_buffer, track_shared
from warpsmith.simt.ir.op_classes import site_of

__all__ = ["run_kernel", "watch_kernel"]

assert warpsmith.ir.dialects.__name__  # the handlers look up rows, so these must be registered

BATCH_THREADS = 1 << 18
Output = tuple[int, "np.dtype[Any]"]


def run_kernel(
    module: Operation, inputs: Sequence[Array], outputs: int | Sequence[Output] = 1, *, warp_size: int = WARP
) -> list[Array]:
    """The outputs of the entry function, as `watch_kernel`, with nothing but the accesses' bounds checked."""
    return _launched(module, inputs, outputs, None, warp_size)[0]


def watch_kernel(
    module: Operation,
    inputs: Sequence[Array],
    outputs: int | Sequence[Output] = 1,
    checks: Checks | None = None,
) -> tuple[list[Array], LaunchResult]:
    """Run the entry function on flat or shaped input arrays (memory order); its outputs, flat, in memory order.

    `outputs` arguments follow the inputs: how many, or (elements, dtype) of each, which a module in the llvm dialect
    needs, for its pointers have no element type.  An output that shares an input's buffer starts as a copy of it.  Then
    come lookup tables, which `NAME_setup` fills first.  `checks` is asked for names, a device, a number of blocks.
    Raises CheckFailed for an access out of bounds or misaligned and for a torn barrier, SimulationError for an op
    without semantics here.
    """
    checks = checks or Checks()
    found, result = _launched(module, inputs, outputs, checks, checks.warp_size)
    assert result is not None
    return found, result


def _launched(
    module: Operation,
    inputs: Sequence[Array],
    outputs: int | Sequence[Output],
    checks: Checks | None,
    warp_size: int,
) -> tuple[list[Array], LaunchResult | None]:
    entry = _entry(module)
    count = outputs if isinstance(outputs, int) else len(outputs)
    types = [a.type for a in entry.body.args if isinstance(a.type, (TensorType, MemRefType))]
    unpacked = _unpacked_types(entry)
    if unpacked:
        inputs = [_packed(array, type) for array, type in zip(inputs, unpacked, strict=False)]
        if not isinstance(outputs, int):
            rest = unpacked[len(inputs) :]
            outputs = [_packed_output(type, given) for type, given in zip(rest, outputs, strict=False)]
    asked = outputs if not isinstance(outputs, int) else [(t.elements, numpy_dtype(t)) for t in types[len(inputs) :]]
    check_memory(sum(each.nbytes for each in inputs) + sum(n * dtype.itemsize for n, dtype in asked))
    buffers = [Buffer(f"input{i}", _flat(array), array.size) for i, array in enumerate(inputs)]
    if types:
        buffers += _typed(types, buffers, count)
    elif isinstance(outputs, int):
        raise SimulationError("the kernel's arguments are bare pointers", help="say how many elements each output has")
    else:
        buffers += [output_buffer(f"output{i}", size, dtype) for i, (size, dtype) in enumerate(outputs)]
        buffers += [Buffer(f"table{i}", np.zeros(size, np.int8), size) for i, size in enumerate(_table_bytes(entry))]
    for output, source in _aliases(entry):
        buffers[len(inputs) + output] = buffers[source]
    tables = buffers[len(inputs) + count :]
    if tables:
        _fill_tables(module, entry, tables)
    grid, block = _launch(entry)
    blocks, per_block = int(np.prod(grid)), int(np.prod(block))
    numbers = chosen_blocks(blocks, checks.blocks if checks is not None else None)
    watch = None
    if checks is not None:
        watch = _watch(module, entry, grid, block, numbers.shape[0], checks)
        aliased = {len(inputs) + output for output, _ in _aliases(entry)}
        packed = {i for i, type in enumerate(unpacked) if bit_width(type.element) < 8}
        _track(watch, buffers[: len(inputs) + count], len(inputs), aliased, packed, checks.names)
    step = max(1, BATCH_THREADS // per_block)
    for first in range(0, numbers.shape[0], step):
        _batch(module, entry, buffers, (grid, block), numbers[first : first + step], watch, warp_size)
    results = [b.data for b in buffers[len(inputs) : len(inputs) + count]]
    if unpacked:
        results = [_unpacked(data, type) for data, type in zip(results, unpacked[len(inputs) :], strict=False)]
    if watch is None:
        return results, None
    watch.finish()
    return results, LaunchResult(watch.counters, watch.findings.items)


def _watch(module: Operation, entry: Operation, grid: Dim3, block: Dim3, blocks: int, checks: Checks) -> Watch:
    """A watch of a launch, which knows already what the device can't launch."""
    whole = int(np.prod(grid, dtype=np.int64))
    shared, dynamic = _shared_bytes(module)
    counters = Counters(entry.str_attr("sym_name"), "ir", grid, block, whole, blocks, shared_bytes=shared + dynamic)
    partial = any(op.name == "nvvm.barrier" for op in module.walk())
    watch = Watch(counters, site_of, checks.found, partial=partial, warp_size=checks.warp_size)
    for finding in check_limits(checks.device, grid, block, shared, dynamic):
        watch.findings.add(finding, finding.message)
    return watch


def _track(
    watch: Watch, buffers: list[Buffer], inputs: int, aliased: set[int], packed: set[int], names: Sequence[str]
) -> None:
    """Let a watch see the kernel's buffers; one that is an input and an output is known by the output's name."""
    outputs = buffers[inputs:]
    for i, buffer in enumerate(buffers):
        fresh = i >= inputs and i not in aliased
        read_only = i < inputs and not any(buffer is output for output in outputs)
        name = names[i] if i < len(names) else buffer.name
        if buffer.tracked is None:
            size = buffer.data.itemsize
            buffer.tracked = watch.track(
                Tracked(name, "global", buffer.bytes, 0, 0, fresh, read_only, size, i in packed)
            )


def _shared_bytes(module: Operation) -> tuple[int, int]:
    """Bytes of shared memory of a block: that the kernel declares, and that is given at launch."""
    found = [0, 0]
    for op in module.walk():
        if any(isinstance(op.attributes.get(name), at.DenseAttr) for name in ("initial_value", "value")):
            continue
        held = op.attributes.get({"memref.global": "type", "llvm.mlir.global": "global_type"}.get(op.name, ""))
        type = held.type if isinstance(held, at.TypeAttr) else None
        if op.name == "xla_gpu.allocate_shared":
            type = op.results[0].type
        is_dynamic = "tile.dynamic" in op.attributes
        if isinstance(type, ShapedType):
            found[is_dynamic] += type.elements * numpy_dtype(type).itemsize
        elif isinstance(type, LLVMArrayType):
            found[is_dynamic] += type.count * numpy_dtype(type.element).itemsize
    return found[0], found[1]


def _entry(module: Operation) -> Operation:
    """The function with `xla.entry` (or the only one)."""
    functions = [op for op in module.body if op.name in FUNCTIONS]
    marked = [op for op in functions if "xla.entry" in op.attributes and "warpsmith.setup" not in op.attributes]
    found = marked or [op for op in functions if "sym_visibility" not in op.attributes]
    if not found:
        raise SimulationError("the module has no entry function", help="mark one with xla.entry")
    return found[0]


# -------------------------------------------------------------------------------------------------------------- buffers
def _flat(array: Array) -> Array:
    """The array's elements as the kernel holds them: pred is i8, unsigned integers are signless."""
    flat = np.ascontiguousarray(array).reshape(-1)
    signless = {np.dtype(np.bool_): np.dtype(np.int8), **{np.dtype(f"u{n}"): np.dtype(f"i{n}") for n in (1, 2, 4, 8)}}
    return flat.view(signless.get(flat.dtype, flat.dtype)).copy()


def _unpacked_types(entry: Operation) -> list[MemRefType]:
    """The types that the entry's buffers had before `pack-sub-byte` packed some; empty if it packed none."""
    found = entry.attributes.get("warpsmith.unpacked")
    items = found.items if isinstance(found, at.ArrayAttr) else ()
    types = [each.type for each in items if isinstance(each, at.TypeAttr)]
    return [type for type in types if isinstance(type, MemRefType)]


def _packed(array: Array, type: MemRefType) -> Array:
    bits = bit_width(type.element)
    if bits >= 8:
        return array
    return pack(np.ascontiguousarray(array).reshape(-1).view(np.uint8), bits).view(np.int8)


def _packed_output(type: MemRefType, given: Output) -> Output:
    bits = bit_width(type.element)
    return given if bits >= 8 else (-(-type.elements * bits // 8), np.dtype(np.int8))


def _unpacked(data: Array, type: MemRefType) -> Array:
    bits = bit_width(type.element)
    return data if bits >= 8 else unpack(data.view(np.uint8), bits, type.elements).view(numpy_dtype(type))


def _typed(types: Sequence[ShapedType], inputs: list[Buffer], count: int) -> list[Buffer]:
    """The buffers after the inputs; the inputs' dtypes become those of their types."""
    if len(inputs) + count > len(types):
        raise SimulationError(
            f"the kernel takes {len(types)} buffers, {len(inputs)} inputs and {count} outputs were given"
        )
    for buffer, type in zip(inputs, types, strict=False):
        dtype = numpy_dtype(type)
        if buffer.data.dtype.itemsize != dtype.itemsize or buffer.size != type.elements:
            raise SimulationError(
                f"{buffer.name} is {type}, but {buffer.size} elements of {buffer.data.dtype} were given"
            )
        buffer.data = buffer.data if buffer.data.dtype == dtype else buffer.data.view(dtype)
    rest = types[len(inputs) :]
    return [output_buffer(f"output{i}", type.elements, numpy_dtype(type)) for i, type in enumerate(rest)]


def _aliases(entry: Operation) -> list[tuple[int, int]]:
    """(output, input) pairs that are one buffer, which starts as the input."""
    found = entry.attributes.get("warpsmith.aliases")
    numbers = found.values if isinstance(found, at.DenseArrayAttr) else ()
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _table_bytes(entry: Operation) -> tuple[int, ...]:
    found = entry.attributes.get("warpsmith.tables")
    return found.values if isinstance(found, at.DenseArrayAttr) else ()


def _fill_tables(module: Operation, entry: Operation, tables: list[Buffer]) -> None:
    name = f"{entry.str_attr('sym_name')}_setup"
    setup = next((op for op in module.body if op.name in FUNCTIONS and op.str_attr("sym_name") == name), None)
    if setup is None:
        raise SimulationError("the kernel has tables, but the module has no function that fills them")
    machine = Machine(module, {}, 1, 1, _globals(module, 1))
    _run(machine, setup, tables, 1, np.zeros(1, np.int64))


def _globals(module: Operation, blocks: int) -> dict[str, Buffer]:
    """Module-level buffers by name: constants, and shared memory for `blocks` blocks."""
    result: dict[str, Buffer] = {}
    for op in module.body:
        held = op.attributes.get("type" if op.name == "memref.global" else "global_type")
        if not isinstance(held, at.TypeAttr):
            continue
        name = op.str_attr("sym_name")
        value = op.attributes.get("initial_value", op.attributes.get("value"))
        if isinstance(value, at.DenseAttr):
            data = np.ascontiguousarray(value.array).reshape(-1)
            result[name] = Buffer(name, data, data.size)
        elif isinstance(held.type, MemRefType):
            result[name] = track_shared(shared_buffer(held.type, blocks, name))
        elif isinstance(held.type, LLVMArrayType):
            held_as = vector((held.type.count,), held.type.element)
            result[name] = track_shared(shared_buffer(held_as, blocks, name))
    return result


# -------------------------------------------------------------------------------------------------------------- threads
def _launch(entry: Operation) -> tuple[Dim3, Dim3]:
    launch = Launch.of(entry)
    if launch is None:
        raise SimulationError("the entry function has no launch", help="set warpsmith.grid and warpsmith.block")
    return launch.grid, launch.block


def _batch(
    module: Operation,
    entry: Operation,
    buffers: Sequence[Buffer],
    shape: tuple[Dim3, Dim3],
    numbers: Array,
    watch: Watch | None,
    warp_size: int,
) -> None:
    """The blocks of these numbers: ids for their threads, thread x fastest."""
    grid, block = shape
    per_block, count = int(np.prod(block)), numbers.shape[0]
    if watch is not None:
        watch.begin_batch(numbers)
    threads = np.tile(np.arange(per_block, dtype=np.int64), count)
    blocks = np.repeat(numbers, per_block)
    ids: dict[str, Array] = {}
    for name, linear, dims in (
        ("thread_id", threads, block),
        ("block_id", blocks, grid),
        ("workgroup_id", blocks, grid),
    ):
        rest = linear
        for axis, dim in zip("xyz", dims, strict=True):
            ids[f"{name}.{axis}"] = rest % dim if dim > 1 else np.zeros(1, np.int64)
            rest = rest // dim
    for name, dims in (("block_dim", block), ("grid_dim", grid)):
        ids.update({f"{name}.{axis}": np.array([dim]) for axis, dim in zip("xyz", dims, strict=True)})
    shared = _globals(module, count)
    machine = Machine(module, ids, count, per_block, shared, warp_size, shape=shape, numbers=numbers, watch=watch)
    _run(machine, entry, buffers, threads.shape[0], blocks)


def _run(machine: Machine, function: Operation, buffers: Sequence[Buffer], threads: int, workgroups: Array) -> None:
    """Call an entry: its buffers as its types want them, then, of a lowered CPU kernel, one work group a thread."""
    arguments = function.body.args
    on_cpu = isinstance(arguments[0].type, PointerType) and isinstance(arguments[-1].type, IntegerType)
    given: list[Datum] = [PointerTable(tuple(buffers))] if on_cpu else []
    if not on_cpu:
        for argument, buffer in zip(arguments, buffers, strict=False):
            address = isinstance(argument.type, PointerType)
            given.append(Pointer(buffer, np.zeros(1, np.int64)) if address else buffer)
    if len(given) + 2 == len(arguments):
        kind = arguments[-1].type
        narrow = np.int32 if isinstance(kind, IntegerType) and kind.width == 32 else np.int64
        given += [workgroups.astype(narrow), (workgroups + 1).astype(narrow)]
    Interpreter(machine, HANDLERS, run_blocks).call(Frame(threads), function, given)
