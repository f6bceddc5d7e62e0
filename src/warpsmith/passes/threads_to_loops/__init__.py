"""threads-to-loops (CPU): a block of GPU threads becomes loops over its threads, between synchronisations.

    %t = gpu.thread_id x                                  scf.for %thread = 0 to 32 { store ..., %shared[%thread] }
    store ..., %shared[%t]                          ->    scf.for %thread = 0 to 32 {
    gpu.barrier                                             %x = load %shared[31 - %thread]
    %x = load %shared[31 - %t]                              ... }

A barrier is the end of a loop: all threads have done what comes before it, one after the other (or several at once, as
lanes of vectors), when the first one goes on.  So is what lanes of a warp do together: each writes what it brings to an
array, and reads the others' in the next loop.  Private memories, and values that live from one loop to another, are
arrays with an element a thread.  Control flow with a synchronisation in it stands outside of the loops; threads have to
agree on it, or ids and constants to decide which of them take it.  Blocks become work groups; scalar arguments become
buffers of one element, for a CPU's kernel takes only pointers.

    levels        how much threads differ in each value: what may stand outside of the loops (uniformity)
    refusals      what can't become loops, and why
    splitter      the walk: control flow outside, what is between synchronisations collected for a loop
    masks         which threads a loop is for: bounds, and conditions that are asked inside (branches)
    segments      one loop over threads: its values, ids and conditions
    memories      arrays with an element a thread; private memories
    collectives   shuffles, ldmatrix, mma...: what a lane does with what all lanes of its warp brought

Read `levels` and `splitter` first.  The passes `clamp-indices` before and `guard-divisions` after this one make native
code, which checks nothing, safe to run.

After MCUDA (Stratton, Stone, Hwu 2008) and POCL (Jaaskelainen and others 2015).
"""

from __future__ import annotations

import math

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I64, MemRefType, bit_width, memref
from warpsmith.ir.dialects import arith, func, gpu, memory
from warpsmith.passes.threads_to_loops.levels import Levels
from warpsmith.passes.threads_to_loops.memories import MOST_BYTES
from warpsmith.passes.threads_to_loops.refusals import check_ops
from warpsmith.passes.threads_to_loops.splitter import Splitter

__all__ = ["run"]

CONTRACT = "bit-exact for programs without races"
ILLEGAL_AFTER = ("gpu.*", "nvgpu.*", "nvvm.*")


def run(module: Operation) -> None:
    """Rewrite each function with `warpsmith.block`, whose target becomes the CPU.

    LoweringError, with the place, for a synchronisation that only some of its threads may reach, one without a form on
    a CPU, and for a block whose memory doesn't fit a stack.
    """
    for function in func.functions(module):
        if "warpsmith.block" in function.attributes:
            _rewrite(module, function)


def _rewrite(module: Operation, function: Operation) -> None:
    block, grid = (_extents(function, name) for name in ("warpsmith.block", "warpsmith.grid"))
    _one_load_a_global(function)
    _blocks_to_workgroups(function, block, grid)
    levels = Levels(function, block)
    check_ops(function, levels)
    size = Splitter(function, levels, block).run() + _shared_bytes(module)
    if size > MOST_BYTES:
        raise LoweringError(
            f"a block's shared memory, registers and exchanged values take {size} bytes; on a CPU {MOST_BYTES} fit",
            help="use fewer threads, or run it in the simulator: --platform sim",
        )
    _scalars_to_buffers(function)
    for name in ("warpsmith.block", "warpsmith.grid"):
        function.attributes.pop(name, None)
    function.attributes["warpsmith.target"] = at.string("cpu")
    function.attributes["warpsmith.index_bits"] = at.integer_attr(64, I64)


def _extents(function: Operation, name: str) -> tuple[int, int, int]:
    found = function.attributes.get(name)
    x, y, z = found.values if isinstance(found, at.DenseArrayAttr) else (1, 1, 1)
    return x, y, z


def _shared_bytes(module: Operation) -> int:
    types = [op.attributes["type"] for op in module.body if op.name == "memref.global"]
    buffers = [t.type for t in types if isinstance(t, at.TypeAttr) and isinstance(t.type, MemRefType)]
    return sum(t.elements * max(1, bit_width(t.element) // 8) for t in buffers if t.space)


def _one_load_a_global(function: Operation) -> None:
    """Each shared memory's address once, at the top: on a CPU it will be memory of its own."""
    b, found = Builder.at_start(function.body), dict[str, Value]()
    for op in list(function.walk()):
        if op.name == "memref.get_global":
            name = op.str_attr("name")
            if name not in found:
                found[name] = b.insert(op.clone()).result
            op.replace_by((found[name],))


def _blocks_to_workgroups(function: Operation, block: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
    """A block's place in the grid is arithmetic on one number; the extents are numbers."""
    b = Builder.at_start(function.body)
    group = gpu.workgroup_id(b, "x", math.prod(grid))
    places: dict[str, Value] = {}
    rest: Value = group
    for axis, extent in zip("xyz", grid, strict=True):
        places[axis] = arith.binary(b, "remui", rest, arith.index(b, extent)) if extent > 1 else arith.index(b, 0)
        rest = arith.binary(b, "divui", rest, arith.index(b, extent)) if extent > 1 else rest
    for op in list(function.walk()):
        if op.name == "gpu.block_id":
            places[gpu.dimension(op)].name = op.result.name
            op.replace_by((places[gpu.dimension(op)],))
        elif op.name in ("gpu.block_dim", "gpu.grid_dim"):
            extents = block if op.name == "gpu.block_dim" else grid
            op.replace_by((arith.index(b, extents["xyz".index(gpu.dimension(op))]),))


def _scalars_to_buffers(function: Operation) -> None:
    body, b = function.body, Builder.at_start(function.body)
    zero = arith.index(b, 0)
    for argument in body.args:
        if isinstance(argument.type, MemRefType):
            continue
        type = argument.type
        argument.type = memref((1,), type)
        value = memory.load(b, argument, zero)
        value.name = argument.name
        for user in list(argument.users):
            if user is not value.defining_op:
                user.replace_uses(argument, value)
    func.set_function_type(function, [a.type for a in body.args], ())
