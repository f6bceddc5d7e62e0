"""Making index arithmetic, loops and moves: what the variants have in common.

Addresses are indexing maps (`xla_gpu.apply_indexing`) over threads, turns and beginnings, whose ranges are known; they
are simplified here and become arithmetic with the fusions' maps, in the same pass.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Var,
    Variable,
    add,
    const,
    dim,
    floordiv,
    mod,
    mul,
    substitute,
)
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import MemRefType, VectorType
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import arith, gpu, memory, scf, vector
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, Step
from warpsmith.tile.dispatch.irregular import place_of
from warpsmith.tile.layout import ComposeLayout
from warpsmith.tile.model import affine

__all__ = [
    "Distance",
    "Term",
    "address",
    "apply",
    "conjunction",
    "counted",
    "digit_sum",
    "distance_of",
    "load",
    "loop",
    "store",
    "when",
]


class Term:
    """Index values by name in an expression under construction: `var(value)` stands for a value."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.values: list[Value] = []

    def var(self, value: Value) -> Expr:
        """The variable of an affine term that stands for a value."""
        if value not in self.values:
            self.values.append(value)
        return dim(self.values.index(value))

    def emit(self, expr: Expr, hint: str = "") -> Value:
        """The value of an expression."""
        return apply(self.b, expr, self.values, hint)


def apply(b: Builder, expr: Expr, values: Sequence[Value], hint: str = "") -> Value:
    """An expression over dims as a value."""
    ranges = [affine.bounds(value) or Interval.full() for value in values]
    map = IndexingMap.make([Variable(f"d{i}", r) for i, r in enumerate(ranges)], [expr]).simplify()
    result = map.results[0]
    if not _dims(result):
        return arith.index(b, int(str(result)))
    used = sorted(_dims(result))
    if len(used) == 1 and result == dim(used[0]):
        return values[used[0]]
    compact = substitute(result, {dim(i): dim(new) for new, i in enumerate(used)})
    small = IndexingMap.make([Variable(f"d{i}", ranges[i]) for i in used], [compact])
    found = gpu.apply_indexing(b, small, [values[i] for i in used])[0]
    found.name = hint
    return found


def _dims(expr: Expr) -> set[int]:
    found: set[int] = set()
    stack = [expr]
    while stack:
        each = stack.pop()
        if isinstance(each, Var):
            found.add(each.id)
        stack.extend(each.children)
    return found


@dataclass(frozen=True, slots=True)
class Distance:
    """Elements in memory: a known expression, and expressions that count in strides known when the kernel runs."""

    known: Expr
    scaled: tuple[tuple[Expr, Value], ...] = ()


def distance_of(number: Expr, digits: Sequence[Digit], operand: int) -> Distance:
    """As `digit_sum`, for operands whose strides may be known only when the kernel runs."""
    known: list[Digit] = []
    scaled: list[tuple[Expr, Value]] = []
    block = 1
    for digit in reversed(digits):
        step = digit.steps[operand]
        if step.by is None:
            known.insert(0, digit)
        else:
            is_first = block * digit.extent == math.prod(d.extent for d in digits)
            scaled.append((_part(number, block, digit.extent, step.stride, last=is_first), step.by))
            still = tuple(Step(0) if i == operand else each for i, each in enumerate(digit.steps))
            known.insert(0, Digit(digit.extent, still))
        block *= digit.extent
    return Distance(digit_sum(number, known, operand), tuple(scaled))


def digit_sum(number: Expr, digits: Sequence[Digit], operand: int) -> Expr:
    """The distance that element `number` of the digits (outermost first) lies from the first one, for an operand.

    Decline where a stride is known only when the kernel runs (`distance_of` takes those).
    """
    if any(digit.steps[operand].by is not None for digit in digits):
        raise Decline("a stride is known only when the kernel runs")
    total: Expr = const(0)
    block = 1
    run_extent, run_stride, run_block = 1, 0, 1
    for digit in reversed(digits):  # digits that step together for this operand are one
        stride = digit.steps[operand].stride
        if run_extent > 1 and stride == run_stride * run_extent:
            run_extent *= digit.extent
        else:
            total = add(total, _part(number, run_block, run_extent, run_stride))
            run_extent, run_stride, run_block = digit.extent, stride, block
        block *= digit.extent
    return add(total, _part(number, run_block, run_extent, run_stride, last=True))


def _part(number: Expr, block: int, extent: int, stride: int, *, last: bool = False) -> Expr:
    if stride == 0 or extent == 1:
        return const(0)
    found = floordiv(number, block) if block > 1 else number
    return mul(found if last else mod(found, extent), stride)


def address(term: Term, placement: Placement, distance: Expr | Distance, *, hint: str = "") -> Value:
    """Where the element at `distance` from an operand's beginning lies in its flat memory."""
    whole = distance if isinstance(distance, Distance) else Distance(distance)
    total = add(whole.known, const(placement.offset))
    if placement.irregular:
        total = place_of(placement, whole.known, term.var)
    for expr, value in placement.terms:
        total = add(total, substitute(expr, {dim(0): term.var(value)}))
    counts: dict[Value, Expr] = {}
    for expr, by in whole.scaled:
        counts[by] = add(counts.get(by, const(0)), expr)
    for expr, value, by in placement.scaled:
        count = expr if value is None else substitute(expr, {dim(0): term.var(value)})
        counts[by] = add(counts.get(by, const(0)), count)
    found = term.emit(total, hint)
    for by, count in counts.items():
        found = arith.binary(term.b, "addi", arith.binary(term.b, "muli", term.emit(count), by), found)
    swizzle = placement.swizzle
    return swizzled(term.b, swizzle, found) if swizzle is not None else found


def swizzled(b: Builder, layout: ComposeLayout, address: Value) -> Value:
    """An address with the layout's xor applied."""
    if layout.swizzle_len == 0:
        return address
    m, s, bits = layout.per_element, layout.atom_len, (1 << layout.swizzle_len) - 1
    source, target = (m + s, m) if layout.inner else (m, m + s)
    shifted = arith.binary(b, "shrui", address, arith.index(b, source)) if source else address
    known = affine.bounds(address)
    fits = known is not None and known.lower >= 0 and known.upper >> source <= bits
    masked = shifted if fits else arith.binary(b, "andi", shifted, arith.index(b, bits))
    moved = arith.binary(b, "shli", masked, arith.index(b, target)) if target else masked
    return arith.binary(b, "xori", address, moved)


@contextmanager
def loop(b: Builder, turns: int, name: str = "f", *, unroll: bool = False) -> Generator[Value]:
    """A loop of so many turns around what is built inside; nothing around a single turn."""
    if turns == 1:
        yield arith.index(b, 0)
        return
    op = scf.for_(b, arith.index(b, 0), arith.index(b, turns), arith.index(b, 1), iv_name=name)
    if unroll:
        op.attributes["tile.unroll"] = at.UNIT
    with b.inside(op.body):
        yield op.body.args[0]
        scf.yield_(b)


@contextmanager
def when(b: Builder, condition: Value | None) -> Generator[None]:
    """A branch around what is built inside; nothing where the condition is None."""
    if condition is None:
        yield
        return
    op = scf.if_(b, condition)
    with b.inside(op.body):
        yield
        scf.yield_(b)


def conjunction(b: Builder, conditions: Sequence[Value]) -> Value | None:
    """All of them; None of none."""
    found: Value | None = None
    for each in conditions:
        found = each if found is None else arith.binary(b, "andi", found, each)
    return found


def counted(b: Builder, index: Value, total: int) -> Value | None:
    """`index < total`; None where that is plain."""
    known = affine.bounds(index)
    if known is not None and known.upper < total:
        return None
    if total == 1:
        return arith.cmpi(b, "eq", index, arith.index(b, 0))
    return arith.cmpi(b, "slt", index, arith.index(b, total))


def _moved(base: Value, lanes: int) -> VectorType:
    type = base.type
    assert isinstance(type, MemRefType)
    return vector_type((lanes,), type.element)


def load(b: Builder, base: Value, index: Value, lanes: int, bytes: int) -> Value:
    """`lanes` elements that lie together; `bytes` is an element's size."""
    if lanes == 1:
        return memory.load(b, base, index)
    return vector.load(b, base, index, _moved(base, lanes), {"alignment": at.integer_attr(lanes * bytes, at.I64)})


def store(b: Builder, value: Value, base: Value, index: Value, lanes: int, bytes: int) -> None:
    """Write `lanes` elements that lie together."""
    if lanes == 1:
        memory.store(b, value, base, index)
    else:
        vector.store(b, value, base, index, {"alignment": at.integer_attr(lanes * bytes, at.I64)})
