"""prefetch-rows (CPU): what the next round of an outer loop reads is asked for, where processors don't foresee it.

    scf.for %r = ... {                          scf.for %r = ... {
      scf.for %c = 0 to 4096 step 16 {            scf.for %c = 0 to 4096 step 16 {
        vector.load %in[%r * 65536 + %c]   ->       xla_cpu.prefetch %in[%r * 65536 + %c + 65536]
                                                    vector.load %in[%r * 65536 + %c]

A processor follows streams of neighbours, within a page.  Stretches of rows that lie further apart than they are long
begin anew in each round.  Applies to vector loads from a kernel's arguments, straight in an innermost loop whose own
stretch is long enough to be worth it.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import MemRefType, VectorType, bit_width
from warpsmith.ir.dialects import arith, cpu, func
from warpsmith.passes.support.affine_lanes import Lanes

CONTRACT = "bit-exact"

PAGE_BYTES = 4096
LINE_BYTES = 64
LEAST_ROUNDS = 20  # of the outer loop: what is asked for in the last one is for nothing
LEAST_BYTES = 1 << 20  # of an array: a smaller one is in a cache anyway


def run(module: Operation) -> None:
    """Insert prefetches in all functions."""
    for function in func.functions(module):
        for op in list(function.walk()):
            if op.name == "scf.for" and not any(inner.name == "scf.for" for inner in op.body):
                loads = [each for each in op.body if each.name == "vector.load" and _is_large(each.operands[0])]
                if loads:
                    _loop(op, loads)


def _loop(loop: Operation, loads: Sequence[Operation]) -> None:
    lower, upper = arith.constant_int(loop.operands[0]), arith.constant_int(loop.operands[1])
    outer = _rounds(loop)
    if outer is None or lower is None or upper is None:
        return
    step = arith.constant_int(outer.operands[2])
    inside, outside = Lanes(loop), Lanes(outer)
    for op in loads:
        stride = outside[op.operands[1]]
        if step is None or stride is None or inside[op.operands[1]] != 1:
            continue
        distance, bits = stride * step, bit_width(op.result.type) // _lanes(op)
        if distance * bits >= 8 * PAGE_BYTES and upper - lower < distance:
            _ask(op, distance, 8 * LINE_BYTES // bits)


def _rounds(loop: Operation) -> Operation | None:
    """The innermost loop around it that goes round often."""
    op = loop.parent
    while op is not None:
        if op.name == "scf.for":
            first, last = arith.constant_int(op.operands[0]), arith.constant_int(op.operands[1])
            if first is None or last is None or last - first >= LEAST_ROUNDS:
                return op
        op = op.parent
    return None


def _is_large(base: Value) -> bool:
    """An argument, not memory of the work group's own."""
    type = base.type
    return (
        base.defining_op is None
        and isinstance(type, MemRefType)
        and type.elements * bit_width(type.element) >= 8 * LEAST_BYTES
    )


def _lanes(op: Operation) -> int:
    type = op.result.type
    assert isinstance(type, VectorType)
    return type.elements


def _ask(op: Operation, distance: int, line: int) -> None:
    """One prefetch a line that the load touches, `distance` elements on."""
    b = Builder.before(op)
    base, index = op.operands
    for start in range(0, _lanes(op), line):
        cpu.prefetch(b, base, arith.binary(b, "addi", index, arith.index(b, distance + start)))
