"""How errors pass through elementwise ops.

In: an instruction, its operands as float64 numbers with their errors, its result.  Out: the error that the operands'
errors cause ("propagated"), before the op's own rounding.  A function that never falls, or never rises, is evaluated
at both ends of its operand's interval, in the instruction's own type: exact, whatever the size of the error.  A
discrete result that the interval doesn't settle (a comparison, say) has an infinite error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind
from warpsmith.hlo.evaluator.arithmetic.formats import round_once
from warpsmith.hlo.evaluator.bounds.values import grow, number
from warpsmith.hlo.evaluator.ops.elementwise import Function, apply_lanes
from warpsmith.hlo.module import HloInstruction
from warpsmith.numerics.functions.table import BY_OPCODE, implemented

__all__ = ["PROPAGATE", "Operand", "Situation", "monotone", "unsettled"]


@dataclass(slots=True)
class Operand:
    """An operand: its array, its elements as float64, its error (zeros when it is `exact`)."""

    array: Array
    number: Array
    error: Array
    exact: bool
    dtype: DType


@dataclass(slots=True)
class Situation:
    """One evaluation of one instruction: `function` computes it, `number` is its result as float64."""

    instruction: HloInstruction
    function: Function
    operands: Sequence[Operand]
    number: Array
    dtype: DType


Propagate = Callable[[Situation], Array]
_LEAST = 5e-324


def _first(at: Situation) -> Array:
    """For functions that move by no more than their operand does."""
    return at.operands[0].error


def _sum(at: Situation) -> Array:
    a, b = at.operands
    total = a.error if b.exact else b.error if a.exact else a.error + b.error
    if np.isfinite(at.number).all():
        return total
    # An infinity that is itself certain makes the result certain; NaN likewise.
    infinite = (np.isinf(a.number) | np.isinf(b.number)) & np.isfinite(total)
    return np.where(infinite | _certain_nan(a) | _certain_nan(b), 0.0, total)


def _certain_nan(operand: Operand) -> Array:
    return np.isnan(operand.number) & np.isfinite(operand.error)


def _largest(at: Situation) -> Array:
    total = at.operands[0].error
    for operand in at.operands[1:]:
        total = np.maximum(total, operand.error)
    return total


def _parts(at: Situation) -> Array:
    """complex: the moduli of both parts' errors."""
    return np.hypot(at.operands[0].error, at.operands[1].error)


def _product(at: Situation) -> Array:
    a, b = at.operands
    if a.exact or b.exact:
        sure, loose = (a, b) if a.exact else (b, a)
        total = np.abs(sure.number) * loose.error
    else:
        total = np.abs(a.number) * b.error + (np.abs(b.number) + b.error) * a.error
    if np.isfinite(total).all() and np.isfinite(at.number).all():
        return total
    total = grow(a.number, b.error) + grow(b.number, a.error) + a.error * b.error
    settled = (np.abs(a.number) > a.error) & (np.abs(b.number) > b.error)
    nan = _certain_nan(a) | _certain_nan(b)
    infinite = (np.isinf(a.number) | np.isinf(b.number)) & settled
    return np.where(nan | infinite, 0.0, np.where(np.isnan(total), np.inf, total))


def _quotient(at: Situation) -> Array:
    a, b = at.operands
    room = np.abs(b.number) - b.error
    total = np.where(room > 0, (grow(a.number / b.number, b.error) + a.error) / room, np.inf)
    total = np.where((a.error == 0) & (b.error == 0), 0.0, total)
    nan = _certain_nan(a) | _certain_nan(b)
    infinite = np.isinf(a.number) & np.isfinite(a.error) & (room > 0) & np.isfinite(b.number)
    return np.where(nan | infinite, 0.0, np.where(np.isnan(total), np.inf, total))


def _ends(operand: Operand) -> tuple[Array, Array]:
    """The least and greatest element that the operand may be, in its own type (the kernel's element lies between,
    and rounding keeps order)."""
    low, high = operand.number - operand.error, operand.number + operand.error
    if operand.dtype.is_float:
        return round_once(low, operand.dtype), round_once(high, operand.dtype)
    return low, high


def monotone(at: Situation) -> Array:
    """For functions that never fall, or never rise: the larger distance of the values at both ends of the interval."""
    (operand,) = at.operands
    if not operand.dtype.is_float:
        return np.where(operand.error > 0, np.inf, 0.0)
    worst = np.zeros_like(at.number)
    for end in _ends(operand):
        there = number(apply_lanes(at.function, [end]), at.dtype)
        same = (there == at.number) & (np.signbit(there) == np.signbit(at.number))
        same |= np.isnan(there) & np.isnan(at.number)
        # Zeros of unlike sign are no distance apart, but what follows (1/x, atan2) may tell them apart.
        distance = np.where(same, 0.0, np.maximum(np.abs(there - at.number), _LEAST))
        worst = np.maximum(worst, np.where(np.isnan(distance), np.inf, distance))
    return worst


def _wave(at: Situation) -> Array:
    """Sine and cosine."""
    error = at.operands[0].error
    return np.where(np.isnan(at.number) & np.isfinite(error), 0.0, np.minimum(error, 2.0))


def _tangent(at: Situation) -> Array:
    """Rising between poles; anything across one."""
    (operand,) = at.operands
    low, high = operand.number - operand.error, operand.number + operand.error
    branch = np.floor(low / np.pi + 0.5) != np.floor(high / np.pi + 0.5)
    return np.where(branch & (operand.error > 0), np.inf, monotone(at))


def _angle(at: Situation) -> Array:
    """atan2: the angle that the box around (x, y) takes up, a full turn where it may cross the branch cut."""
    y, x = at.operands
    reach, radius = np.hypot(x.error, y.error), np.hypot(x.number, y.number)
    turn = 2 * np.pi
    angle = np.where(radius > reach, np.arcsin(np.minimum(reach / np.where(radius > 0, radius, 1.0), 1.0)), turn)
    cut = (x.number - x.error <= 0) & (np.abs(y.number) <= y.error)
    total = np.where(cut, turn, angle)
    certain = (reach == 0) | (np.isnan(radius) & np.isfinite(reach))
    return np.where(certain, 0.0, np.where(np.isnan(total), turn, total))


def _power(at: Situation) -> Array:
    """For a base that stays positive the extremes are at corners."""
    base, exponent = at.operands
    worst = np.zeros_like(at.number)
    for one in (-1.0, 1.0):
        for other in (-1.0, 1.0):
            there = np.power(base.number + one * base.error, exponent.number + other * exponent.error)
            same = (there == at.number) | (np.isnan(there) & np.isnan(at.number))
            worst = np.maximum(worst, np.where(same, 0.0, np.abs(there - at.number)))
    exact = (base.error == 0) & (exponent.error == 0)
    known = base.number - base.error > 0
    return np.where(exact, 0.0, np.where(known & ~np.isnan(worst), worst, np.inf))


def _remainder(at: Situation) -> Array:
    """Continuous while the truncated quotient stays the same."""
    a, b = at.operands
    room = np.abs(b.number) - b.error
    least = (np.abs(a.number) - a.error) / (np.abs(b.number) + b.error)
    most = (np.abs(a.number) + a.error) / np.where(room > 0, room, 1.0)
    same = (np.trunc(least) == np.trunc(most)) & (room > 0) & (np.abs(a.number) > a.error)
    total = np.where(same, a.error + grow(np.trunc(least), b.error), np.inf)
    return np.where((a.error == 0) & (b.error == 0), 0.0, total)


def _compare(at: Situation) -> Array:
    a, b = at.operands
    reach = a.error + b.error
    near = np.abs(a.number - b.number) <= reach
    return np.where((reach > 0) & (near | np.isinf(reach)), np.inf, 0.0)


def _is_finite(at: Situation) -> Array:
    (operand,) = at.operands
    edge = np.isfinite(operand.number) & (np.abs(operand.number) + operand.error > operand.dtype.format.most)
    return np.where((operand.error > 0) & (edge | np.isinf(operand.error)), np.inf, 0.0)


def _select(at: Situation) -> Array:
    pred, on_true, on_false = at.operands
    taken = np.where(pred.array, on_true.error, on_false.error)
    other = np.where(pred.array, on_false.error, on_true.error)
    apart = np.abs(on_true.number - on_false.number)
    same = (on_true.number == on_false.number) | (np.isnan(on_true.number) & np.isnan(on_false.number))
    either = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)) + other
    return np.where(pred.error > 0, np.maximum(taken, either), taken)


def unsettled(at: Situation) -> Array:
    """Nothing is known once any operand is in doubt."""
    return np.where(_largest(at) > 0, np.inf, 0.0)


def _and(at: Situation) -> Array:
    return _logic(at, settles=0.0)


def _or(at: Situation) -> Array:
    return _logic(at, settles=1.0)


def _logic(at: Situation, settles: float) -> Array:
    """On pred, an operand that is certain and decides the result makes it certain."""
    doubt = unsettled(at)
    if at.dtype.kind is not Kind.PRED:
        return doubt
    settled = np.zeros(at.number.shape, np.bool_)
    for operand in at.operands:
        settled = settled | ((operand.error == 0) & (operand.number == settles))
    return np.where(settled, 0.0, doubt)


def _convert(at: Situation) -> Array:
    (operand,) = at.operands
    if at.dtype.kind is Kind.PRED:
        return np.where((operand.error > 0) & (np.abs(operand.number) <= operand.error), np.inf, 0.0)
    if operand.dtype.kind is Kind.PRED:
        return np.minimum(operand.error, 1.0)
    if operand.dtype.is_float and not at.dtype.is_complex:
        return monotone(at)
    return operand.error


_OWN: dict[str, Propagate] = {
    "atan2": _angle,
    "cosine": _wave,
    "power": _power,
    "sine": _wave,
    "tan": _tangent,
}
"""Elementary functions that rise and fall, or have two arguments."""


def _functions() -> dict[str, Propagate]:
    known = {row.opcode: monotone for row in BY_OPCODE.values() if row.monotone} | _OWN
    return implemented("hlo/evaluator/bounds/elementwise.py", known, BY_OPCODE)


PROPAGATE: Mapping[str, Propagate] = {
    **dict.fromkeys(("abs", "negate", "copy", "real", "imag"), _first),
    **dict.fromkeys(("add", "subtract"), _sum),
    **dict.fromkeys(("maximum", "minimum", "clamp"), _largest),
    **dict.fromkeys(("ceil", "floor", "reduce-precision", "round-nearest-afz", "round-nearest-even", "sign"), monotone),
    **_functions(),
    "and": _and,
    "compare": _compare,
    "complex": _parts,
    "convert": _convert,
    "divide": _quotient,
    "is-finite": _is_finite,
    "multiply": _product,
    "or": _or,
    "remainder": _remainder,
    "select": _select,
    **dict.fromkeys(
        (
            *("not", "xor", "shift-left", "shift-right-arithmetic", "shift-right-logical", "mulhi", "popcnt"),
            "count-leading-zeros",
        ),
        unsettled,
    ),
}
