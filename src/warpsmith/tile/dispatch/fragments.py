"""What a warp's matrix instructions have in common: lanes by their bits, and a lane's elements in registers.

In: digits of a call.  Out: `halves`, the same digits as factors of 2, so that each of the five bits of a lane's number
is a digit of its own; `read_registers` and `write_registers`, for a vector whose elements lie anywhere in a thread's
array.  Which of a lane's registers holds an element is free: only which lane holds it is the hardware's.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.indexing import Expr, add, const
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import vector
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import Digit, Placement, Step
from warpsmith.tile.dispatch.emission import Term
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.registry import Predicate
from warpsmith.tile.model.scopes import WARP

__all__ = ["WHOLE_WARPS", "halves", "read_registers", "take", "write_registers"]


def halves(digits: Sequence[Digit]) -> list[Digit]:
    """The digits as digits of 2, and of odd extents outside of those; outermost first."""
    found: list[Digit] = []
    for digit in digits:
        odd, twos = digit.extent, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        scales = [(odd, 1 << twos)] if odd > 1 else []
        scales += [(2, 1 << k) for k in range(twos - 1, -1, -1)]
        found += [
            Digit(extent, tuple(Step(s.stride * scale, s.is_thread, s.by) for s in digit.steps))
            for extent, scale in scales
        ]
    return found


def take(digits: list[Digit], count: int, operand: int) -> list[Digit]:
    """Up to `count` digits of 2, those of the smallest steps of an operand first; they are gone from `digits`."""
    chosen = sorted((d for d in digits if d.extent == 2), key=lambda d: d.steps[operand].stride)[:count]
    for each in chosen:
        digits.remove(each)
    return chosen


def _one_vector(place: Placement, steps: Sequence[int], offsets: Sequence[int]) -> bool:
    """Whether elements at `offsets` are one vector in the array, wherever the turns' `steps` lead."""
    count = len(offsets)
    copies = [step.stride for _, step in place.replicas if not step.is_thread]
    starts = (*steps, *copies, place.offset_divisor())
    return list(offsets) == list(range(count)) and all(each % count == 0 for each in starts)


def read_registers(
    call: CallContext, role: str, term: Term, start: Expr, offsets: Sequence[int], steps: Sequence[int]
) -> Value:
    """The elements at `offsets` from `start` on, as a vector; `steps` are those that `start` is a sum of."""
    if _one_vector(call.place(role), steps, offsets):
        return read(call, role, term, start, len(offsets))
    return vector.from_elements(call.b, [read(call, role, term, add(start, const(each))) for each in offsets])


def write_registers(
    call: CallContext, value: Value, role: str, term: Term, start: Expr, offsets: Sequence[int], steps: Sequence[int]
) -> None:
    """Write a vector's elements to `offsets` from `start` on."""
    if _one_vector(call.place(role), steps, offsets):
        write(call, role, term, start, value, len(offsets))
        return
    for number, each in enumerate(offsets):
        write(call, role, term, add(start, const(each)), vector.extract(call.b, value, number))


def _whole_warps(call: CallContext) -> str | None:
    if call.scope == "thread":
        return "it is a call of one thread"
    return f"the scope has {call.threads} threads" if call.threads % WARP else None


WHOLE_WARPS = Predicate("the scope is whole warps", _whole_warps)
