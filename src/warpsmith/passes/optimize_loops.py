"""optimize-loops: unrolling.

    scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) {        %b0 = "f"(%x, %c0)
      %b = "f"(%a, %i)                                      ->   %b1 = "f"(%b0, %c1)
      scf.yield %b
    }

Loops from 0 in steps of 1 to a constant T, inner ones first: all of it when T is at most the limit, else by the largest
divisor of T that keeps the body small (XLA's `optimize_loops.cc`).  The limit is the option `max_unroll`; 0 takes the
entry's `warpsmith.unroll`, else 4.
"""

from __future__ import annotations

from warpsmith.indexing import IndexingMap, Interval, Variable, dim
from warpsmith.ir.core.attributes import IntegerAttr, integer_attr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.rewriter import Rewriter
from warpsmith.ir.core.ssa import Operation, Trait, Value
from warpsmith.ir.core.types import INDEX, VectorType, is_float
from warpsmith.ir.dialects import gpu

CONTRACT = "bit-exact"

_DEFAULT_LIMIT = 4
_MAX_SIZE = 400
_MATH_SIZE = 20
_CHEAP_MATH = frozenset(
    f"math.{n}" for n in ("absf", "ceil", "copysign", "floor", "fma", "roundeven", "round", "rsqrt", "sqrt", "trunc")
)
_NEVER = frozenset(("func.call", *(f"math.{n}" for n in ("acos", "acosh", "asin", "asinh", "atanh", "sinh"))))


def run(module: Operation, max_unroll: int = 0) -> None:
    """Unroll the loops of every function."""
    limit = max_unroll or _entry_limit(module)
    constants = Rewriter()
    for op in list(module.walk_post()):
        if op.row.name == "scf.for":
            factor = _factor(op, limit)
            if factor > 1:
                unroll(op, factor, constants)


def _entry_limit(module: Operation) -> int:
    for op in module.body:
        found = op.attributes.get("warpsmith.unroll")
        if isinstance(found, IntegerAttr) and found.value > 0:
            return found.value
    return _DEFAULT_LIMIT


def _trips(loop: Operation) -> int | None:
    lower, upper, step = (constant_of(v) for v in loop.operands[:3])
    if lower is None or upper is None or step is None or lower.value != 0 or step.value != 1:
        return None
    return upper.value


def _size(loop: Operation) -> int | None:
    """The weight of the body; None when it can't be unrolled."""
    size = 0
    for op in loop.walk():
        if op is loop:
            continue
        name = op.row.name
        if name in _NEVER or op.row.traits & Trait.LOOP:
            return None
        costly = name.startswith("math.") and name not in _CHEAP_MATH and op.results and is_float(op.results[0].type)
        lanes = op.results[0].type.elements if op.results and isinstance(op.results[0].type, VectorType) else 1
        size += (_MATH_SIZE if costly else 1) * lanes
    return size


def _factor(loop: Operation, limit: int) -> int:
    trips = _trips(loop)
    if trips is None or trips < 1:
        return 1
    size = _size(loop)
    if size is None:
        return 1
    if trips <= limit:
        return trips
    factor = min(trips, _MAX_SIZE // size)
    while factor > 1 and trips % factor:
        factor -= 1
    return factor


def unroll(loop: Operation, factor: int, constants: Rewriter) -> None:
    """Repeat the body of a loop from 0 in steps of 1 `factor` times; `factor` divides the trip count."""
    trips = _trips(loop)
    if trips == factor:
        unroll_fully(loop, range(factor), constants)
        return
    assert trips is not None
    body, terminator = loop.body, loop.body.terminator
    originals = [op for op in body if op is not terminator]
    iv = body.args[0]
    yielded = list(terminator.operands)
    b = Builder.before(terminator)
    for k in range(1, factor):
        # The result of the iteration before is what this one starts from.
        variable = Variable("", Interval(0, trips - factor))
        shifted = gpu.apply_indexing(b, IndexingMap.make((variable,), (dim(0) + k,)), [iv])[0]
        mapping: dict[Value, Value] = {iv: shifted}
        mapping.update(zip(body.args[1:], yielded, strict=True))
        for op in originals:
            b.insert(op.clone(mapping))
        yielded = [mapping.get(v, v) for v in terminator.operands]
    terminator.set_operands(yielded)
    loop.set_operand(2, constants.constant(loop, integer_attr(factor, INDEX), INDEX))


def unroll_fully(loop: Operation, turns: range, constants: Rewriter) -> None:
    """Write a loop out; `turns` are what its variable takes."""
    body, terminator = loop.body, loop.body.terminator
    b = Builder.before(loop)
    carried = loop.operands[3:]
    originals = [op for op in body if op is not terminator]
    for k in turns:
        index = constants.constant(loop, integer_attr(k, INDEX), INDEX)
        mapping: dict[Value, Value] = {body.args[0]: index}
        mapping.update(zip(body.args[1:], carried, strict=True))
        for op in originals:
            b.insert(op.clone(mapping))
        carried = [mapping.get(v, v) for v in terminator.operands]
    for result in loop.results:
        result.name = ""
    loop.replace_by(carried)
