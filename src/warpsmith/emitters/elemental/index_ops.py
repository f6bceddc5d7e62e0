"""Index arithmetic that elemental ops share: clamped start indices, and tests of a map's constraints.

In: index values.  Out: index values and i1 conditions.  XLA: `CheckConstraints` and `ClampIndex`
of `xla/codegen/emitters/elemental_hlo_to_mlir.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.emitters.elemental.emitter import ElementalEmitter
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import Expr, IndexingMap, Interval, dim
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import INDEX, IntegerType, integer
from warpsmith.ir.dialects import arith

__all__ = ["check", "clamp_start", "to_integer"]


def clamp_start(e: ElementalEmitter, start: Value, source: HloInstruction, high: int) -> Value:
    """A start index of HLO instruction `source` as an index in [0, high]."""
    signed = source.array_shape.dtype.is_signed
    top = e.index(high)
    if isinstance(start.type, IntegerType) and start.type.width < 8:
        start = arith.cast(e.b, "extsi" if signed else "extui", start, integer(32))
    if signed:
        value = arith.cast(e.b, "index_cast", start, INDEX)
        return arith.binary(e.b, "maxsi", arith.binary(e.b, "minsi", value, top), e.index(0))
    value = arith.cast(e.b, "index_castui", start, INDEX)
    return arith.binary(e.b, "minui", value, top)


def to_integer(e: ElementalEmitter, index: Value, width: int) -> Value:
    """A non-negative index as an integer of `width` bits."""
    if width >= 32:
        return arith.cast(e.b, "index_castui", index, integer(width))
    return arith.cast(e.b, "trunci", arith.cast(e.b, "index_castui", index, integer(32)), integer(width))


def check(e: ElementalEmitter, map: IndexingMap, sizes: Sequence[int], indices: Sequence[Value]) -> Value | None:
    """Whether `indices` (dims over `sizes`, then symbols) lie in the map's domain; None when they always do."""
    found: Value | None = None
    tests: list[tuple[Expr, Interval, Interval]] = []
    for i, (variable, size) in enumerate(zip(map.dim_vars, sizes, strict=True)):
        tests.append((dim(i), variable.bounds, Interval.of_size(size)))
    # Constraints are judged on the whole box of sizes: the dimension tests above narrow it only at run time.
    wide = map
    for i, size in enumerate(sizes):
        wide = wide.with_dim_bounds(i, Interval.of_size(size))
    ranges = wide.ranges()
    tests += [(expr, interval, ranges.range_of(expr)) for expr, interval in map.constraints.items()]
    for expr, wanted, known in tests:
        if wanted.contains(known):
            continue
        value = e.apply_expr(wide, expr, indices)
        for predicate, bound, needed in (
            ("sge", wanted.lower, known.lower < wanted.lower),
            ("sle", wanted.upper, known.upper > wanted.upper),
        ):
            if needed:
                test = arith.cmpi(e.b, predicate, value, e.index(bound))
                found = test if found is None else arith.binary(e.b, "andi", found, test)
    return found
