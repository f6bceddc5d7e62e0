"""lower-tensors: the value form (tensors) becomes the buffer form (rank-1 memrefs), one to one.

    %e = tensor.extract %in[%i] : tensor<8xf32>               %e = memref.load %in[%i] : memref<8xf32>
    %r = scf.for ... iter_args(%o = %out) {            ->     scf.for ... {
      %t = tensor.insert %e into %o[%i]                         memref.store %e, %out[%i]
      scf.yield %t }                                          }
    return %r                                                 return

Destination-passing style makes this a walk, not an analysis: every tensor value stands for the buffer that its
chain of inserts began with, so its result is replaced by its destination, and loops and branches stop carrying it.
Vector transfers become vector.load/store; a shared tile and a dense constant become module-level buffers.  XLA's
`lower_tensors.cc` goes straight to LLVM.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.errors import PassFailed
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value, row
from warpsmith.ir.core.types import MemRefType, TensorType, Type, VectorType, bit_width, memref
from warpsmith.ir.dialects import arith, func
from warpsmith.passes.support.legality import TENSORS

CONTRACT = "bit-exact"
ILLEGAL_AFTER = (
    "tensor.*",
    "vector.transfer_read",
    "vector.transfer_write",
    "xla_gpu.allocate_shared",
    "xla_gpu.sync_threads",
    TENSORS,
)

SHARED = 3  # the address space of a block's shared memory
GLOBAL_ALIGNMENT = 16  # of every buffer of the module


def run(module: Operation) -> None:
    """Rewrite all functions; PassFailed for a tensor of rank 2 or more (flatten-tensors comes first)."""
    state = _Lowering(module)
    for op in list(func.functions(module)):
        state.function(op)


def buffer_type(type: Type, space: int = 0) -> MemRefType:
    """The memref of a flat tensor; a rank-0 tensor is one element."""
    if not isinstance(type, TensorType) or type.rank > 1 or type.minor_to_major is not None:
        raise PassFailed(f"lower-tensors meets {type}, which is not flat", help="run flatten-tensors first")
    return memref(type.shape or (1,), type.element, space)


class _Lowering:
    """One module's rewrite: the names of the globals made so far, and what each op becomes."""

    def __init__(self, module: Operation) -> None:
        self.module = module
        self.names = set(func.symbols(module))
        self.alignment: dict[Value, int] = {}
        self.invariant: set[Value] = set()
        self.table: dict[str, Callable[[Operation], None]] = {
            "tensor.extract": self.extract,
            "tensor.insert": self.insert,
            "vector.transfer_read": self.transfer_read,
            "vector.transfer_write": self.transfer_write,
            "arith.constant": self.constant,
            "xla_gpu.allocate_shared": self.allocate_shared,
            "xla_gpu.sync_threads": self.sync_threads,
            "xla_gpu.atomic_rmw": self.atomic_rmw,
            "func.return": self.drop_tensor_operands,
            "func.call": self.call,
        }

    def function(self, op: Operation) -> None:
        type = func.function_type(op)
        attributes = func.arg_attributes(op)
        for argument, attrs in zip(op.body.args, attributes, strict=True):
            if isinstance(argument.type, TensorType):
                argument.type = buffer_type(argument.type)
                align = attrs.get("llvm.align")
                if isinstance(align, at.IntegerAttr):
                    self.alignment[argument] = align.value
                if "xla.invariant" in attrs:
                    self.invariant.add(argument)
        results = [t for t in type.results if not isinstance(t, TensorType)]
        func.set_function_type(op, [a.type for a in op.body.args], results)
        self.block(op.body)

    def block(self, block: Block) -> None:
        for op in block:
            if op.name == "scf.for":
                self.for_(op)
            elif op.name == "scf.if":
                self.if_(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)
                handler = self.table.get(op.name)
                if handler is not None:
                    handler(op)
                elif any(isinstance(r.type, TensorType) for r in op.results):
                    raise PassFailed(f"lower-tensors has no buffer form for {op.name}")

    # -- control flow stops carrying tensors
    def for_(self, op: Operation) -> None:
        body = op.body
        carried = [i for i, r in enumerate(op.results) if isinstance(r.type, TensorType)]
        for i in carried:
            body.args[1 + i].replace_by(op.operands[3 + i])
        self.block(body)
        for i in carried:
            if body.terminator.operands[i] is not op.operands[3 + i]:
                raise _two_buffers(op, "the loop yields another buffer than it began with")
            op.results[i].replace_by(op.operands[3 + i])
        self._drop_results(op, carried)
        drop = set(carried)
        op.set_operands([v for i, v in enumerate(op.operands) if i - 3 not in drop])
        for i in reversed(carried):
            body.erase_arg(1 + i)
        _drop_operands(body.terminator, drop)

    def if_(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)
        carried = [i for i, r in enumerate(op.results) if isinstance(r.type, TensorType)]
        if not carried:
            return
        yields = [block.terminator.operands for region in op.regions for block in region.blocks]
        for i in carried:
            buffers = {operands[i] for operands in yields}
            if len(buffers) != 1:
                raise _two_buffers(op, "the branches yield different buffers")
            op.results[i].replace_by(buffers.pop())
        self._drop_results(op, carried)
        for region in op.regions:
            for block in region.blocks:
                _drop_operands(block.terminator, set(carried))
        otherwise = op.regions[1]
        if not op.results and otherwise.blocks and otherwise.blocks[0].first is otherwise.blocks[0].last:
            otherwise.blocks[0].terminator.erase()
            otherwise.blocks.clear()

    def _drop_results(self, op: Operation, dropped: list[int]) -> None:
        gone = set(dropped)
        op.results = [r for i, r in enumerate(op.results) if i not in gone]
        for i, result in enumerate(op.results):
            result.index = i

    # -- accesses
    def extract(self, op: Operation) -> None:
        op.row = row("memref.load")
        self._index_of_scalar(op, 1)
        if op.operands[0] in self.invariant:
            op.attributes["invariant"] = at.UNIT

    def insert(self, op: Operation) -> None:
        dest = op.operands[1]
        b = Builder.before(op)
        index = op.operands[2] if len(op.operands) > 2 else _zero(b)
        b.create("memref.store", (op.operands[0], dest, index))
        op.replace_by((dest,))

    def _index_of_scalar(self, op: Operation, position: int) -> None:
        if len(op.operands) == position:
            op.set_operands([*op.operands, _zero(Builder.before(op))])

    def _vector_attributes(self, base: Value, type: Type) -> dict[str, at.Attribute]:
        """A transfer's position is a multiple of its length, so it's as aligned as its buffer allows."""
        attributes: dict[str, at.Attribute] = {}
        known = self.alignment.get(base)
        if known is not None:
            assert isinstance(type, VectorType)
            size = bit_width(type) // 8
            attributes["alignment"] = at.integer_attr(min(known, max(1, size & -size)), at.I64)
        if base in self.invariant:
            attributes["invariant"] = at.UNIT
        return attributes

    def transfer_read(self, op: Operation) -> None:
        base, index = op.operands[:2]
        new = Builder.before(op).create(
            "vector.load", (base, index), (op.result.type,), self._vector_attributes(base, op.result.type)
        )
        new.result.name = op.result.name
        op.replace_by(new.results)

    def transfer_write(self, op: Operation) -> None:
        value, base, index = op.operands[:3]
        attributes = self._vector_attributes(base, value.type)
        attributes.pop("invariant", None)
        Builder.before(op).create("vector.store", (value, base, index), (), attributes)
        op.replace_by((base,))

    # -- buffers of the module
    def _global(self, stem: str, type: MemRefType, attributes: dict[str, at.Attribute]) -> str:
        number = 0
        while f"{stem}_{number}" in self.names:
            number += 1
        name = f"{stem}_{number}"
        self.names.add(name)
        attrs: dict[str, at.Attribute] = {
            "sym_name": at.string(name),
            "type": at.type_attr(type),
            "sym_visibility": at.string("private"),
            **attributes,
        }
        Builder.at_start(self.module.body).create("memref.global", (), (), attrs)
        return name

    def _get_global(self, op: Operation, name: str, type: MemRefType) -> Value:
        new = Builder.before(op).create("memref.get_global", (), (type,), {"name": at.symbol(name)})
        new.result.name = op.result.name
        op.replace_by(new.results)
        return new.result

    def constant(self, op: Operation) -> None:
        value = op.attributes["value"]
        if isinstance(op.result.type, TensorType) and isinstance(value, at.DenseAttr):
            type = buffer_type(op.result.type)
            attributes: dict[str, at.Attribute] = {"initial_value": value, "constant": at.UNIT}
            self._get_global(op, self._global("global_cst", type, attributes), type)

    def allocate_shared(self, op: Operation) -> None:
        type = buffer_type(op.result.type, SHARED)
        shared = self._get_global(op, self._global("shared", type, {"initial_value": at.UNIT}), type)
        self.alignment[shared] = GLOBAL_ALIGNMENT

    def atomic_rmw(self, op: Operation) -> None:
        self._index_of_scalar(op, 1)
        op.results[0].replace_by(op.operands[0])
        op.results[0].type = op.operands[0].type

    def sync_threads(self, op: Operation) -> None:
        Builder.before(op).create("gpu.barrier")
        op.replace_by(op.operands)

    # -- calls and returns
    def drop_tensor_operands(self, op: Operation) -> None:
        op.set_operands([v for v in op.operands if not isinstance(v.type, (TensorType, MemRefType))])

    def call(self, op: Operation) -> None:
        if any(isinstance(r.type, TensorType) for r in op.results):
            raise PassFailed(
                f"lower-tensors: the call of @{op.str_attr('callee')} returns a tensor", help="inline it first"
            )


def _two_buffers(op: Operation, why: str) -> PassFailed:
    return PassFailed(
        f"lower-tensors: a result of {op.name} has no one buffer: {why}",
        help="every tensor that a loop or a branch carries must be one destination, with inserts into it",
    )


def _drop_operands(op: Operation, dropped: set[int]) -> None:
    op.set_operands([v for i, v in enumerate(op.operands) if i not in dropped])


def _zero(b: Builder) -> Value:
    return arith.index(b, 0)
