"""What the lowerings of sum, max and min share: the digits of a reduction, and one output's partial result.

In: a call.  Out: `Reduction`: its digits over (src, dst), kept apart from those that are reduced.  Partial results
start with the first element, so that no identity is needed: a row of -inf has the maximum -inf, and NaN propagates.
Floats narrower than 32 bits are reduced in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from warpsmith.indexing import Expr, add, mul
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith, scf
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Factors, Placement, Step, extent_of, refine
from warpsmith.tile.dispatch.emission import Term, digit_sum
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.model.dtypes import TileType
from warpsmith.tile.model.reductions import accumulation_type, has_slots, reduced_shape

__all__ = ["REDUCTIONS", "Reduction", "combine", "finish", "fold", "partial", "reduction"]

REDUCTIONS = ("sum", "max", "min")


@dataclass(frozen=True, slots=True)
class Reduction:
    """Operand 0 of each digit is src, 1 is dst.  `type` is what partial results are held in.  With `slots`, dst has a
    place for each thread that the reduced digits are spread over: such digits step in dst too."""

    src: Placement
    dst: Placement
    kept: list[Digit]
    reduced: list[Digit]
    type: TileType
    slots: bool


def reduction(call: CallContext) -> Reduction:
    """A call's digits.  Decline where dst isn't src without its reduced dims (left out, or of extent 1, or slots)."""
    try:
        return _reduction(call)
    except Decline:
        if not call.give_way("src", "dst"):
            raise
        return _reduction(call)


def _reduction(call: CallContext) -> Reduction:
    src, dst = call.place("src", anyhow=True), call.place("dst", anyhow=True)
    axes = frozenset(call.config["axes"])
    extents = [extent_of(factors) for factors in src.dims]
    slots = has_slots(dst.region.extents, src.region.extents, axes)
    found: list[Factors] = list(dst.dims)
    if slots:
        found = [
            _slots(call, s, own) if d in axes else own for d, (s, own) in enumerate(zip(src.dims, found, strict=True))
        ]
    wanted = reduced_shape(extents, axes)
    if not slots and tuple(map(extent_of, found)) != wanted:
        found = _aligned(found, wanted)
    if not slots and tuple(map(extent_of, found)) != wanted:
        raise Decline(f"dst {dst.region} isn't {src.region} reduced over axes {sorted(axes)}: expected shape {wanted}")
    marks = tuple(((extent, Step(1 if d in axes else 0)),) for d, extent in enumerate(extents))
    placed = replace(dst, dims=tuple(tuple(factors) for factors in found))
    digits = refine([src, placed, replace(src, dims=marks)])
    kept = [d for d in digits if d.steps[2].stride == 0]
    reduced = [d for d in digits if d.steps[2].stride != 0]
    return Reduction(src, dst, kept, reduced, accumulation_type(dst.buffer.type, src.buffer.type), slots)


def _aligned(dims: Sequence[Factors], wanted: Sequence[int]) -> list[Factors]:
    """dst's dims, one for each extent that is wanted: those of extent 1 may stand anywhere, or be left out."""
    real = [each for each in dims if extent_of(each) != 1]
    if len(real) != sum(extent != 1 for extent in wanted):
        return list(dims)
    rest = iter(real)
    return [((1, Step(0)),) if extent == 1 else next(rest) for extent in wanted]


def _slots(call: CallContext, src: Factors, dst: Factors) -> Factors:
    """dst's factors over a whole reduced dim of src: its own along src's threads, none along a thread's elements."""
    own = [each for each in dst if each[0] != 1]
    if not own:
        return dst
    found: list[tuple[int, Step]] = []
    for extent, step in reversed(src):
        if not step.is_thread:
            found.insert(0, (extent, Step(0)))
            continue
        while extent > 1:
            size, slot = own.pop() if own else (1, Step(0))
            part = min(size, extent)
            if slot != step or size % part or extent % part:
                raise Decline(_NO_SLOTS.format(call.region("dst").buffer.name, call.region("src").buffer.name))
            found.insert(0, (part, step))
            extent, step = extent // part, Step(step.stride * part, True)
            if size > part:
                own.append((size // part, step))
    if own:
        raise Decline(_NO_SLOTS.format(call.region("dst").buffer.name, call.region("src").buffer.name))
    return found


_NO_SLOTS = "dst {} has neither extent 1 along a reduced dim nor one slot on each thread that {} spreads it over"


def combine(call: CallContext, lhs: Operand, rhs: Operand) -> Scalar:
    """The primitive's operator on two partial results."""
    return call.scalars.scalar(call.row.evaluate(call.scalars, [lhs, rhs]))


def fold(
    call: CallContext, first: Scalar, lower: Value, upper: Value, step: Value, element: Callable[[Value], Scalar]
) -> Scalar:
    """`first` combined with the elements from number `lower` on, below `upper`, each `step`-th."""
    b = call.b
    begin, end, stride = (arith.constant_int(each) for each in (lower, upper, step))
    if begin is not None and end is not None and stride is not None and begin < end <= begin + stride:
        return combine(call, first, element(lower))
    op = scf.for_(b, lower, upper, step, [first.value], "r", ["partial"])
    with b.inside(op.body):
        scf.yield_(b, [combine(call, Scalar(op.body.args[1], first.type), element(op.body.args[0])).value])
    return Scalar(op.results[0], first.type)


def partial(
    call: CallContext,
    found: Reduction,
    base: Expr,
    term: Term,
    digits: Sequence[Digit],
    lanes: int = 1,
    lane: Value | None = None,
) -> Scalar:
    """The elements of src that `digits` step over, from `base` on, as one; of them each `lanes`-th, from `lane` on.

    There must be an element for each lane.
    """
    b = call.b
    values = list(term.values)
    length = math.prod(d.extent for d in digits)
    even = length % lanes == 0

    def element(number: Value) -> Scalar:
        here = Term(b)
        here.values = list(values)
        position = here.var(number)
        if even and lane is not None:
            position = add(mul(position, lanes), here.var(lane))
        loaded = Scalar(read(call, "src", here, add(base, digit_sum(position, digits, 0))), found.src.buffer.type)
        return call.scalars.cast(loaded, found.type)

    if even:
        first = element(arith.index(b, 0))
        turns = length // lanes
        if turns == 1:
            return first
        return fold(call, first, arith.index(b, 1), arith.index(b, turns), arith.index(b, 1), element)
    assert lane is not None
    step = arith.index(b, lanes)
    return fold(call, element(lane), arith.binary(b, "addi", lane, step), arith.index(b, length), step, element)


def finish(call: CallContext, found: Reduction, total: Scalar, term: Term, distance: Expr) -> None:
    """Write one output; with accum, combined with what was there."""
    if call.config.get("accum"):
        old = Scalar(read(call, "dst", term, distance), found.dst.buffer.type)
        total = combine(call, total, call.scalars.cast(old, found.type))
    write(call, "dst", term, distance, call.scalars.cast(total, found.dst.buffer.type).value)
