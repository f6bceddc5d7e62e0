"""Index values as sums: what an SSA index is in terms of the ids, loop variables and parameters it comes from.

In: an index value.  Out: `Linear`: a constant plus multiples of atoms, where two atoms are the same when they are made
the same way.  Bounds, divisibility and differences that hold for every thread and turn follow from it; where nothing
can be proved the answer is no.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from warpsmith.indexing import Interval
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.attributes import Attribute, DenseArrayAttr, IntegerAttr, OpaqueAttr, StringAttr
from warpsmith.ir.core.ssa import Effect, Operation, OpResult, Value
from warpsmith.ir.dialects.arith import constant_int

__all__ = ["Linear", "bounds", "difference", "divisor", "linear"]


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant` + the sum of factor * atom.  An atom's key is what it is made of; `values` has one value for each."""

    constant: int
    terms: Mapping[object, int]
    values: Mapping[object, Value]

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This sum plus `factor` times another."""
        terms = dict(self.terms)
        for key, each in other.terms.items():
            total = terms.get(key, 0) + factor * each
            if total:
                terms[key] = total
            else:
                terms.pop(key, None)
        return Linear(self.constant + factor * other.constant, terms, {**self.values, **other.values})

    def times(self, factor: int) -> Linear:
        """This sum times a number."""
        if factor == 0:
            return Linear(0, {}, {})
        return Linear(self.constant * factor, {k: v * factor for k, v in self.terms.items()}, self.values)

    @property
    def key(self) -> object:
        """Equal for sums that are equal."""
        return (self.constant, frozenset(self.terms.items()))


_PURE_CASTS = frozenset(("arith.index_cast", "arith.extsi"))


def linear(value: Value) -> Linear:
    """A value as a sum."""
    constant = constant_int(value)
    if constant is not None:
        return Linear(constant, {}, {})
    if isinstance(value, OpResult):
        op = value.op
        name = op.row.name
        if name == "arith.addi":
            return linear(op.operands[0]).plus(linear(op.operands[1]))
        if name == "arith.subi":
            return linear(op.operands[0]).plus(linear(op.operands[1]), -1)
        if name == "arith.muli":
            x, y = (linear(v) for v in op.operands)
            if not y.terms:
                return x.times(y.constant)
            if not x.terms:
                return y.times(x.constant)
        if name in _PURE_CASTS:
            return linear(op.operands[0])
    key = _key(value)
    return Linear(0, {key: 1}, {key: value})


def _key(value: Value) -> object:
    """Equal for values that are made alike."""
    if not isinstance(value, OpResult):
        return value
    op = value.op
    if op.row.name == "memref.load" and _is_variable(op.operands[0]):
        return (op.operands[0], _last_change(op))
    effects = [effect for effect, _ in op.row.effects]
    if op.regions or not op.operands or any(effect is not Effect.READ for effect in effects) or effects:
        return value
    attributes = tuple(sorted((k, _plain(v)) for k, v in op.attributes.items() if k != "xla.range"))
    return (op.row.name, value.index, attributes, tuple(linear(v).key for v in op.operands))


def _is_variable(memory: Value) -> bool:
    """Whether a memory is a variable of the author's, which nothing but loads and stores by its name reaches."""
    return isinstance(memory, OpResult) and "tile.variable" in memory.op.attributes


def _last_change(load: Operation) -> object:
    """The op before a load that may have given its variable another value; the block where there is none."""
    at_op = load.prev
    while at_op is not None:
        if at_op.regions or (at_op.row.name == "memref.store" and at_op.operands[1] is load.operands[0]):
            return at_op
        at_op = at_op.prev
    return load.block


def _plain(attribute: Attribute) -> str:
    match attribute:
        case IntegerAttr():
            return str(attribute.value)
        case DenseArrayAttr():
            return str(attribute.values)
        case StringAttr():
            return attribute.value
        case OpaqueAttr():
            return attribute.text
        case _:
            return str(id(attribute))  # attributes are interned


def bounds(value: Value) -> Interval | None:
    """An interval that holds the value in every thread and turn; None where none is known."""
    found = linear(value)
    low = high = found.constant
    for key, factor in found.terms.items():
        atom = _atom_range(found.values[key])
        if atom is None:
            return None
        low += factor * (atom.lower if factor > 0 else atom.upper)
        high += factor * (atom.upper if factor > 0 else atom.lower)
    return Interval(low, high)


def _atom_range(value: Value) -> Interval | None:
    known = range_of(value)
    if known is not None or not isinstance(value, OpResult):
        return known
    op = value.op
    if op.row.name in ("arith.remui", "arith.remsi") and (divisor_ := constant_int(op.operands[1])) is not None:
        inner = bounds(op.operands[0])
        if divisor_ > 0 and inner is not None and inner.lower >= 0:
            return Interval(0, min(divisor_ - 1, inner.upper))
    if op.row.name in ("arith.divui", "arith.divsi") and (divisor_ := constant_int(op.operands[1])) is not None:
        inner = bounds(op.operands[0])
        if divisor_ > 0 and inner is not None and inner.lower >= 0:
            return Interval(inner.lower // divisor_, inner.upper // divisor_)
    return None


def difference(a: Value, b: Value) -> int | None:
    """a - b where it is one number; None where it isn't, or can't be seen to be."""
    found = linear(a).plus(linear(b), -1)
    return None if found.terms else found.constant


def divisor(value: Value) -> int:
    """A number that divides the value in every thread and turn; 0 divides only zero."""
    found = linear(value)
    result = abs(found.constant)
    for key, factor in found.terms.items():
        result = gcd(result, factor * _atom_divisor(found.values[key]))
    return result


def _atom_divisor(value: Value) -> int:
    """What divides an atom: a loop variable's start and step."""
    if isinstance(value, OpResult):
        return 1
    op = value.parent_block.parent_op if value.parent_block is not None else None
    if op is not None and op.row.name == "scf.for" and op.body.args[0] is value:
        return gcd(divisor(op.operands[0]), divisor(op.operands[2])) or 1
    return 1
