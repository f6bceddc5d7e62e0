"""clamp-indices (CPU): an index that memory decides stays inside of the memory that it is for.

    %i = memref.load %shared[%t]             %i = memref.load %shared[%t]
    memref.store %x, %out[%i]         ->     %j = arith.minui %i, 4095
                                             memref.store %x, %out[%j]

A tile program runs as native code once the meaning of its primitives has run, every index checked.  What follows from
ids, constants, scalar arguments and buffers that are only read is the same in both runs.  What other memory gives may
differ: a thread that races, or reads what nobody wrote, gets other numbers in native code, which checks nothing.  Such
a number in an index, or in the control flow around an access, must not reach into others' memory; that results are
wrong is seen when they are compared.

A buffer whose extent isn't known gets an argument of its elements at the end; `warpsmith.sizes` on the function
says of which arguments, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, BlockArgument, Effect, Operation, Value
from warpsmith.ir.core.types import INDEX, MemRefType, VectorType, bit_width
from warpsmith.ir.dialects import arith, func
from warpsmith.passes.support.entry_attributes import SIZES
from warpsmith.passes.threads_to_loops.levels import is_private

__all__ = ["run"]

CONTRACT = "bit-exact for programs without races that read only what was written"

_ROW = 8  # elements of a row of a matrix that ldmatrix and stmatrix access

Edge = tuple[Sequence[Value], Sequence[Value]]


def run(module: Operation) -> None:
    """Rewrite each function of buffers."""
    for function in func.functions(module):
        doubts = _Doubts(function)
        sizes: dict[Value, Value] = {}
        for op in doubts.accesses():
            for base, index, width in _places(op):
                if doubts.has(op, op.operands[index]):
                    _clamp(function, op, op.operands[base], index, width, sizes)
        if sizes:
            numbers = [buffer.index for buffer in sizes if isinstance(buffer, BlockArgument)]
            function.attributes[SIZES] = at.dense_array(numbers)
            func.set_arg_attributes(function, [*func.arg_attributes(function)[: -len(sizes)], *({} for _ in sizes)])
            func.set_function_type(function, [a.type for a in function.body.args], ())


# ------------------------------------------------------------------------------------------------------------ accesses
def _elements(value: Value) -> int:
    return value.type.elements if isinstance(value.type, VectorType) else 1


def _copied(op: Operation) -> int:
    type = op.operands[0].type
    assert isinstance(type, MemRefType)
    return op.int_attr("bytes") * 8 // bit_width(type.element)


_PLACES: dict[str, tuple[tuple[int, int], ...]] = {
    "memref.load": ((0, 1),),
    "vector.load": ((0, 1),),
    "memref.store": ((1, 2),),
    "vector.store": ((1, 2),),
    "memref.atomic_rmw": ((1, 2),),
    "nvgpu.device_async_copy": ((0, 1), (2, 3)),
    "nvgpu.ldmatrix": ((0, 1),),
    "nvgpu.stmatrix": ((1, 2),),
}
"""The operands that are a memory and the index into it."""

_WIDTHS: dict[str, Callable[[Operation], int]] = {
    "vector.load": lambda op: _elements(op.result),
    "vector.store": lambda op: _elements(op.operands[0]),
    "nvgpu.device_async_copy": _copied,
    "nvgpu.ldmatrix": lambda op: _ROW,
    "nvgpu.stmatrix": lambda op: _ROW,
}
"""How many elements an access has, where it isn't one."""


def _places(op: Operation) -> list[tuple[int, int, int]]:
    width = _WIDTHS.get(op.name, lambda _: 1)(op)
    return [(base, index, width) for base, index in _PLACES[op.name]]


def _clamp(
    function: Operation, op: Operation, buffer: Value, index: int, width: int, sizes: dict[Value, Value]
) -> None:
    """An unsigned minimum: negative indices are large ones."""
    b, type = Builder.before(op), buffer.type
    assert isinstance(type, MemRefType)
    if type.shape[0] >= 0:
        last = arith.index(b, type.elements - width)
    else:
        if buffer not in sizes:
            sizes[buffer] = function.body.add_arg(INDEX, f"{buffer.name}_elements")
        last = arith.binary(b, "subi", sizes[buffer], arith.index(b, width))
        last = arith.binary(b, "maxsi", last, arith.index(b, 0))
    op.set_operand(index, arith.binary(b, "minui", op.operands[index], last))


# -------------------------------------------------------------------------------------------------------------- doubts
class _Doubts:
    """Which values another run may have otherwise, and which ops it may not come to; raised until nothing changes."""

    def __init__(self, function: Operation) -> None:
        known = func.arg_attributes(function)
        self._only_read = {a for a, each in zip(function.body.args, known, strict=True) if "xla.invariant" in each}
        self._values: set[Value] = set()
        self._flow: dict[Operation, bool] = {}
        self._changed = True
        while self._changed:
            self._changed = False
            self._block(function.body, False)

    def accesses(self) -> list[Operation]:
        return [op for op in self._flow if op.name in _PLACES]

    def has(self, op: Operation, index: Value) -> bool:
        """Whether an access is at a place in doubt, or there at all."""
        return self._flow[op] or index in self._values

    def _add(self, values: Sequence[Value]) -> None:
        before = len(self._values)
        self._values.update(values)
        self._changed |= len(self._values) > before

    def _any(self, values: Sequence[Value]) -> bool:
        return any(v in self._values for v in values)

    def _block(self, block: Block, flow: bool) -> None:
        for op in block:
            if op.regions:
                controls, edges = _EDGES.get(op.name, _branches)(op)
                inside = self._any(controls)
                for region in op.regions:
                    for inner in region.blocks:
                        self._block(inner, flow or inside)
                for sources, targets in edges:
                    if inside or self._any(sources):
                        self._add(targets)
            else:
                self._flow[op] = flow
                self._plain(op, flow)

    def _plain(self, op: Operation, flow: bool) -> None:
        written = [v for v in self._touched(op, Effect.WRITE) if is_private(v)]
        if written and (flow or self._any(op.operands)):
            self._add(written)
        if self._any(op.operands) or self._is_source(op):
            self._add(op.results)

    def _is_source(self, op: Operation) -> bool:
        """Whether an op gives what another thread may have a part in, or what nobody may have written."""
        if op.name == "memref.alloca":
            return not _is_variable(op)
        if any(effect is Effect.BARRIER for effect, _ in op.row.effects):
            return op.name != "nvvm.elect.sync"
        return any(v not in self._only_read and not is_private(v) for v in self._touched(op, Effect.READ))

    @staticmethod
    def _touched(op: Operation, wanted: Effect) -> list[Value]:
        """The memories that an op reads, or writes."""
        if not any(effect is wanted for effect, _ in op.row.effects):
            return []
        return [op.operands[base] for base, _ in _PLACES.get(op.name, ())]


def _is_variable(op: Operation) -> bool:
    """Whether a private memory is one element that is written first of all."""
    type = op.result.type
    assert isinstance(type, MemRefType)
    first = next((each for each in _after(op) if _uses(each, op.result)), None)
    return type.elements == 1 and first is not None and first.name == "memref.store"


def _after(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    while op.next is not None:
        op = op.next
        found.append(op)
    return found


def _uses(op: Operation, value: Value) -> bool:
    return any(value in inner.operands for inner in op.walk())


# ------------------------------------------------------- what decides a loop or a branch, and what its values come from
def _for(op: Operation) -> tuple[Sequence[Value], list[Edge]]:
    variable, *carried = op.body.args
    rows = zip(op.operands[3:], op.body.terminator.operands, carried, op.results, strict=True)
    return op.operands[:3], [((), (variable,)), *(((first, then), (arg, last)) for first, then, arg, last in rows)]


def _while(op: Operation) -> tuple[Sequence[Value], list[Edge]]:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    condition, *handed = before.terminator.operands
    around = zip(op.operands, after.terminator.operands, before.args, strict=True)
    through = zip(handed, after.args, op.results, strict=True)
    return (condition,), [
        *(((first, then), (arg,)) for first, then, arg in around),
        *(((value,), (arg, last)) for value, arg, last in through),
    ]


def _branches(op: Operation) -> tuple[Sequence[Value], list[Edge]]:
    ends = [block.terminator.operands for region in op.regions for block in region.blocks]
    sides = zip(*(end for end in ends if len(end) == len(op.results)), strict=True)
    return op.operands, [(tuple(values), (result,)) for values, result in zip(sides, op.results, strict=False)]


_EDGES: dict[str, Callable[[Operation], tuple[Sequence[Value], list[Edge]]]] = {"scf.for": _for, "scf.while": _while}
