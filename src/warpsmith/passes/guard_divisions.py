"""guard-divisions (CPU): an integer division that a processor would trap on divides by 1.

    %q = arith.divsi %a, %b    ->    %trap = b == 0 or (a == the least integer and b == -1)
                                     %d = arith.select %trap, %c1, %b
                                     %q = arith.divsi %a, %d

A GPU goes on after a division by zero, with a result that isn't said; a CPU ends the process.  The least integer over
-1 stays itself, with remainder 0, as it does on a GPU.  The simulator gives the same results (ir/dialects/semantics).
Emitted modules don't need the pass: HLO says what a division by zero is.
"""

from __future__ import annotations

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import INDEX, Type, bit_width, element_type
from warpsmith.ir.dialects import arith, func

__all__ = ["run"]

CONTRACT = "bit-exact, where a division has a result"


def run(module: Operation) -> None:
    """Rewrite all functions."""
    for function in func.functions(module):
        for op in list(function.walk()):
            if op.row.has(Trait.DIVISION) and not _is_safe(op):
                _guard(op)


def _is_signed(op: Operation) -> bool:
    return op.name.endswith("si")


def _is_safe(op: Operation) -> bool:
    divisor = arith.constant_int(op.operands[1])
    return divisor is not None and divisor != 0 and (divisor != -1 or not _is_signed(op))


def _guard(op: Operation) -> None:
    b = Builder.before(op)
    dividend, divisor = op.operands
    type = divisor.type
    trap = arith.cmpi(b, "eq", divisor, arith.constant(b, 0, type))
    if _is_signed(op):
        least = arith.cmpi(b, "eq", dividend, arith.constant(b, -1 << (_width(type) - 1), type))
        over = arith.binary(b, "andi", least, arith.cmpi(b, "eq", divisor, arith.constant(b, -1, type)))
        trap = arith.binary(b, "ori", trap, over)
    op.set_operand(1, arith.select(b, trap, arith.constant(b, 1, type), divisor))


def _width(type: Type) -> int:
    return 64 if element_type(type) is INDEX else bit_width(element_type(type))
