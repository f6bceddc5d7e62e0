"""convert-to-llvm: what is left becomes the llvm and nvvm dialects.

    func.func @main(%in: memref<8xf32>, %i: index)              llvm.func @main(%in: !llvm.ptr, %i: i32)
      %x = memref.load %in[%i]                            ->      %p = llvm.getelementptr %in[%i] ; %x = llvm.load %p
      %y = arith.addf %x, %x : f32                                %y = llvm.fadd %x, %x : f32

Ops with a one-to-one form (`OpRow.llvm`) are renamed where they stand; the others have a function in one of this
package's tables.  `index` becomes an integer of the kernel's index width, a memref a bare pointer, an f8 or f4 an
integer of its width.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import REGISTRY, Operation
from warpsmith.ir.core.types import IndexType, MemRefType, TensorType
from warpsmith.ir.dialects import func
from warpsmith.passes.convert_to_llvm import amdgcn, arithmetic, functions, memory, nvgpu, vectors
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, where
from warpsmith.passes.support.legality import Types

CONTRACT = "bit-exact"
ILLEGAL_AFTER = (
    *(
        f"{dialect}.*"
        for dialect in ("arith", "cf", "func", "gpu", "math", "memref", "nvgpu", "scf", "tensor", "vector")
    ),
    "xla_cpu.*",
    "xla_gpu.*",
    "builtin.unrealized_conversion_cast",
    Types("tensors, buffers and index", lambda type: isinstance(type, (TensorType, MemRefType, IndexType))),
)

_HANDLERS: dict[str, Handler] = {
    **functions.TABLE,
    **memory.TABLE,
    **vectors.TABLE,
    **arithmetic.TABLE,
    **nvgpu.TABLE,
}
_OTHERS: dict[str, dict[str, Handler]] = {"amdgcn": {**_HANDLERS, **amdgcn.TABLE}}
"""Whose intrinsics a module calls -> what is done otherwise for it."""


def run(module: Operation) -> None:
    """Rewrite the module; LoweringError names an op without a form here."""
    if not list(func.functions(module)):
        return
    low = Lowering(module)
    handlers = _OTHERS.get(low.can.intrinsics, _HANDLERS)
    for op in list(module.body):
        if op.name == "memref.global":
            functions.convert_global(low, op)
        elif op.name == "func.func":
            inner = list(op.walk())[1:]
            nvgpu.note_elements(inner)
            functions.convert_function(low, op)
            for nested in inner:
                _convert(low, nested, handlers)


def _convert(low: Lowering, op: Operation, handlers: Mapping[str, Handler]) -> None:
    if op.name == "memref.alloca":
        memory.alloca(low, op)
        return
    for result in op.results:
        result.type = low.type(result.type)
    handler = handlers.get(op.name)
    if handler is not None:
        handler(low, op)
        return
    name = op.row.llvm
    if name is None:
        if op.row.dialect == "llvm" or (op.row.dialect == "nvvm" and low.can.intrinsics != "amdgcn"):
            return
        raise LoweringError(
            f"{op.name} has no LLVM form{where(op)}",
            help="an earlier pass should have expanded it; see the pass list of the target",
        )
    op.row = REGISTRY[name]
    op.attributes.pop("xla.range", None)
    flags = op.attributes.pop("fastmath", None)
    if flags is not None and name == "llvm.fdiv":  # a reciprocal that may be approximate (expand-approximate)
        op.attributes["warpsmith.flags"] = flags
    if name in ("llvm.intr.ctlz", "llvm.intr.cttz"):
        op.attributes["is_zero_poison"] = at.boolean(False)
