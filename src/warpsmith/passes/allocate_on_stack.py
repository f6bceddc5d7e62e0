"""allocate-on-stack (CPU): a work group's own memory lies on the stack of the thread that runs it.

    memref.global "private" @shared_0 : memref<4096xf32, 3>
    %tile = memref.get_global @shared_0                        ->   %tile = memref.alloca() : memref<4096xf32>

What a block of GPU threads shares, one CPU thread has to itself.  The allocation stands at the top of the function, so
that work groups that run one after the other use it again; its contents are unknown when a work group begins.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, memref
from warpsmith.ir.dialects import func, memory
from warpsmith.passes.lower_tensors import SHARED
from warpsmith.passes.support.legality import Types

CONTRACT = "bit-exact"
ILLEGAL_AFTER = (Types("shared memory", lambda type: isinstance(type, MemRefType) and type.space == SHARED),)

LINE_BYTES = 64


def run(module: Operation) -> None:
    """Rewrite all uses of shared buffers; the globals go."""
    shared = {op.str_attr("sym_name"): op for op in module.body if op.name == "memref.global" and _is_shared(op)}
    if not shared:
        return
    for function in func.functions(module):
        for op in list(function.walk()):
            if op.name == "memref.get_global" and op.str_attr("name") in shared:
                _allocate(function, op)
    for op in shared.values():
        op.erase()


def _is_shared(op: Operation) -> bool:
    type = op.attributes["type"]
    return isinstance(type, at.TypeAttr) and isinstance(type.type, MemRefType) and type.type.space == SHARED


def _allocate(function: Operation, op: Operation) -> None:
    type = op.result.type
    assert isinstance(type, MemRefType)
    b = Builder.at_start(function.body, op.location)
    op.replace_by((memory.alloca(b, memref(type.shape, type.element), LINE_BYTES, op.result.name),))
