"""Functions, globals, calls and branches, and what a kernel asks of the hardware it runs on.

A GPU entry takes one pointer an argument.  A CPU entry takes (argv, begin, end): an array of pointers, and the work
groups that this call runs (the pass lower-workgroups made that loop).
"""

from __future__ import annotations

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.llvm_types import VOID, llvm_array, llvm_function, llvm_struct
from warpsmith.ir.core.ssa import REGISTRY, Operation, Region, Value, row
from warpsmith.ir.core.types import I32, I64, FunctionType, MemRefType, Type, numpy_dtype, pointer
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import func, gpu
from warpsmith.passes.convert_to_llvm.memory import gep
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering

KERNELS = {"nvvm": "nvvm.kernel", "amdgcn": "rocdl.kernel"}
"""Whose intrinsics a module calls -> the attribute of a function that the host launches."""

_WIDEST = 16  # bytes that one access moves; what an array is aligned to at least


def convert_function(low: Lowering, op: Operation) -> None:
    """The function itself; the ops in it stay as they are."""
    is_entry = "xla.entry" in op.attributes
    name = op.str_attr("sym_name")
    old = func.function_type(op)
    body = op.body
    attributes: dict[str, at.Attribute] = {
        "sym_name": at.string(name),
        "linkage": at.opaque("#llvm.linkage<external>"),
    }
    if is_entry and not low.can.has_grid:
        result: Type = VOID
        _cpu_arguments(low, op)
    else:
        result = _result_type(low, old)
        for argument in body.args:
            argument.type = low.type(argument.type)
        if is_entry:
            attributes[KERNELS[low.can.intrinsics]] = at.UNIT
            attributes["arg_attrs"] = at.array(_kernel_argument(a) for a in func.arg_attributes(op))
        else:
            attributes["linkage"] = at.opaque("#llvm.linkage<internal>")
    # The kernel's context stays with it, so that this dump alone can be launched.
    attributes.update((k, v) for k, v in op.attributes.items() if k.startswith("warpsmith.") or k == "xla.entry")
    inputs = [a.type for a in body.args]
    attributes["function_type"] = at.type_attr(llvm_function(result, inputs))
    op.row = row("llvm.func")
    op.attributes = attributes
    for block in op.regions[0].blocks:
        for argument in block.args:
            argument.type = low.type(argument.type)


def _result_type(low: Lowering, old: FunctionType) -> Type:
    results = [low.type(t) for t in old.results]
    return VOID if not results else results[0] if len(results) == 1 else llvm_struct(results)


def _kernel_argument(attributes: dict[str, at.Attribute]) -> at.DictAttr:
    kept = {k: v for k, v in attributes.items() if k.startswith("llvm.")}
    return at.dictionary(kept)


def _cpu_arguments(low: Lowering, op: Operation) -> None:
    """(argv, begin, end) in place of the memref arguments; the pointers are loaded once, at the top."""
    body = op.body
    buffers = [a for a in body.args if isinstance(a.type, MemRefType)]
    others = body.args[len(buffers) :]
    if len(others) != 2:
        raise LoweringError(
            f"a CPU entry takes buffers and the first and last work group, not {len(others)} more arguments",
            help="run lower-workgroups first",
        )
    b = Builder.at_start(body)
    argv = body.add_arg(pointer(), "argv")
    for i, old in enumerate(buffers):
        entry = gep(b, argv, pointer(), (), (i,))
        loaded = b.op1("llvm.load", (entry,), pointer(), {"alignment": at.integer_attr(8, I64)}, old.name)
        old.replace_by(loaded)
    body.args = [argv, *others]
    for i, argument in enumerate(body.args):
        argument.index = i
        argument.type = low.type(argument.type)


def convert_global(low: Lowering, op: Operation) -> None:
    """An array of elements as they lie in memory."""
    type = op.attributes["type"]
    assert isinstance(type, at.TypeAttr)
    assert isinstance(type.type, MemRefType)
    element = low.storage(type.type)
    asked = op.attributes.get("alignment")
    attributes: dict[str, at.Attribute] = {
        "sym_name": op.attributes["sym_name"],
        "global_type": at.type_attr(llvm_array(type.type.elements, element)),
        "linkage": at.opaque("#llvm.linkage<internal>"),
        "alignment": at.integer_attr(max(_WIDEST, asked.value if isinstance(asked, at.IntegerAttr) else 1), I64),
    }
    if "tile.dynamic" in op.attributes:
        attributes["tile.dynamic"] = at.UNIT
    if space := low.can.spaces.get(type.type.space, type.type.space):
        attributes["addr_space"] = at.integer_attr(space, I32)
    initial = op.attributes.get("initial_value")
    if isinstance(initial, at.DenseAttr):
        flat = vector_type((type.type.elements,), element)
        attributes["value"] = (
            at.dense(initial.array.reshape(-1).view(numpy_dtype(element)), flat)
            if not initial.is_splat
            else at.dense(initial.array.reshape(-1)[:1].view(numpy_dtype(element))[0], flat)
        )
        attributes["constant"] = at.UNIT
    op.row = row("llvm.mlir.global")
    op.attributes = attributes
    op.regions = [Region()]
    op.regions[0].parent = op


def get_global(low: Lowering, op: Operation) -> None:
    """`memref.get_global` to `llvm.mlir.addressof`."""
    op.attributes = {"global_name": op.attributes["name"]}
    op.row = REGISTRY["llvm.mlir.addressof"]


def call(low: Lowering, op: Operation) -> None:
    """`func.call` to `llvm.call`; several results come in a struct."""
    types = [r.type for r in op.results]
    if len(types) <= 1:
        op.row = REGISTRY["llvm.call"]
        op.attributes = {"callee": op.attributes["callee"]}
        return
    b = Builder.before(op)
    packed = b.create("llvm.call", op.operands, (llvm_struct(types),), {"callee": op.attributes["callee"]}).result
    op.replace_by(
        [b.op1("llvm.extractvalue", (packed,), t, {"position": at.dense_array((i,))}) for i, t in enumerate(types)]
    )


def return_(low: Lowering, op: Operation) -> None:
    """`func.return` to `llvm.return`; several results go in a struct."""
    if len(op.operands) > 1:
        b = Builder.before(op)
        type = llvm_struct([v.type for v in op.operands])
        packed = b.op1("llvm.mlir.poison", (), type)
        for i, value in enumerate(op.operands):
            packed = b.op1("llvm.insertvalue", (packed, value), type, {"position": at.dense_array((i,))})
        op.set_operands((packed,))
    op.row = REGISTRY["llvm.return"]


def branch(low: Lowering, op: Operation) -> None:
    """`cf.br` and `cf.cond_br` to their like."""
    op.row = REGISTRY["llvm.br" if op.name == "cf.br" else "llvm.cond_br"]


def gpu_id(low: Lowering, op: Operation) -> None:
    """`gpu.thread_id` and the like to a read of PTX's special register; LoweringError on a CPU."""
    if not low.can.has_grid:
        raise LoweringError(f"{op.name} on a CPU target")
    register = {"gpu.thread_id": "tid", "gpu.block_id": "ctaid", "gpu.block_dim": "ntid", "gpu.grid_dim": "nctaid"}[
        op.name
    ]
    b = Builder.before(op)
    replace_id(low, b, op, b.op1(f"nvvm.read.ptx.sreg.{register}.{gpu.dimension(op)}", (), I32))


def replace_id(low: Lowering, b: Builder, op: Operation, value: Value) -> None:
    """`value`, which has 32 bits, in place of an id; it is known to be in the same range."""
    value.name = op.result.name
    extent, made = op.attributes.get("xla.range"), value.defining_op
    if extent is not None and made is not None:
        made.attributes["xla.range"] = extent
    if low.index is not I32:
        value = b.op1("llvm.sext", (value,), low.index)
    op.replace_by((value,))


def barrier(low: Lowering, op: Operation) -> None:
    """`gpu.barrier` to `nvvm.barrier0`."""
    op.row = REGISTRY["nvvm.barrier0"]


TABLE: dict[str, Handler] = {
    "memref.get_global": get_global,
    "gpu.thread_id": gpu_id,
    "gpu.block_id": gpu_id,
    "gpu.block_dim": gpu_id,
    "gpu.grid_dim": gpu_id,
    "gpu.barrier": barrier,
    "func.call": call,
    "func.return": return_,
    "cf.br": branch,
    "cf.cond_br": branch,
}
