"""What the lowerings of sum, max and min share: the digits of a reduction, and one output's partial result.

In: a call.  Out: `Reduction`: its digits over (src, dst), kept apart from those that are reduced.  Partial results
start with the first element, so that no identity is needed: a row of -inf has the maximum -inf, and NaN propagates.
Floats narrower than 32 bits are summed in f32 and rounded once.  Reference: tile.md 8 (B10 and B14 don't happen here).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from warpsmith.indexing import Expr, add
from warpsmith.ir.core import Value
from warpsmith.ir.dialects import arith, memory, scf
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import Digit, Placement, Step, refine
from warpsmith.tile.dispatch.emission import Term, address, digit_sum
from warpsmith.tile.dispatch.registry import Decline
from warpsmith.tile.dtypes import TileType, tile_type
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.ops import compute_type

__all__ = ["REDUCTIONS", "Reduction", "combine", "finish", "partial", "reduction"]

REDUCTIONS = ("sum", "max", "min")


@dataclass(frozen=True, slots=True)
class Reduction:
    """Operand 0 of each digit is src, 1 is dst.  `type` is what partial results are held in."""

    src: Placement
    dst: Placement
    kept: list[Digit]
    reduced: list[Digit]
    type: TileType


def reduction(call: CallContext) -> Reduction:
    """A call's digits.  Decline where dst isn't src without its reduced dims (left out, or of extent 1)."""
    src, dst = call.place("src"), call.place("dst")
    axes = frozenset(call.config["axes"])
    extents = [math.prod(size for size, _ in factors) for factors in src.dims]
    found = list(dst.dims)
    if len(found) == len(extents) - len(axes):
        rest = iter(found)
        found = [((1, Step(0)),) if d in axes else next(rest) for d in range(len(extents))]
    wanted = [1 if d in axes else extent for d, extent in enumerate(extents)]
    if [math.prod(size for size, _ in factors) for factors in found] != wanted:
        raise Decline(f"dst {dst.region} isn't {src.region} reduced over axes {sorted(axes)}: expected shape {wanted}")
    marks = tuple(((extent, Step(1 if d in axes else 0)),) for d, extent in enumerate(extents))
    digits = refine([src, replace(dst, dims=tuple(found)), replace(src, dims=marks)])
    kept = [d for d in digits if d.steps[2].stride == 0]
    reduced = [d for d in digits if d.steps[2].stride != 0]
    return Reduction(src, dst, kept, reduced, _partial_type(dst.buffer.type, src.buffer.type))


def _partial_type(dst: TileType, src: TileType) -> TileType:
    if not src.is_float:
        return src
    wide = compute_type(dst, [src])
    return tile_type("float32") if wide.bits < 32 else wide


def combine(call: CallContext, lhs: Operand, rhs: Operand) -> Scalar:
    """The primitive's operator on two partial results."""
    return call.scalars.scalar(call.row.evaluate(call.scalars, [lhs, rhs]))


def partial(call: CallContext, found: Reduction, base: Expr, term: Term, digits: list[Digit]) -> Scalar:
    """The elements of src that `digits` step over, from `base` on, as one."""
    b = call.b
    values = list(term.values)

    def element(number: Value) -> Scalar:
        here = Term(b)
        here.values = list(values)
        place = address(here, found.src, add(base, digit_sum(here.var(number), digits, 0)))
        loaded = Scalar(memory.load(b, call.memory("src"), place), found.src.buffer.type)
        return call.scalars.cast(loaded, found.type)

    first = element(arith.index(b, 0))
    turns = math.prod(d.extent for d in digits)
    if turns == 1:
        return first
    op = scf.for_(b, arith.index(b, 1), arith.index(b, turns), arith.index(b, 1), [first.value], "r", ["partial"])
    outer = b.block, b.anchor
    b.block, b.anchor = op.body, None
    scf.yield_(b, [combine(call, Scalar(op.body.args[1], found.type), element(op.body.args[0])).value])
    b.block, b.anchor = outer
    return Scalar(op.results[0], found.type)


def finish(call: CallContext, found: Reduction, total: Scalar, place: Value) -> None:
    """Write one output; with accum, combined with what was there."""
    b, target = call.b, call.memory("dst")
    if call.config.get("accum"):
        old = Scalar(memory.load(b, target, place), found.dst.buffer.type)
        total = combine(call, total, call.scalars.cast(old, found.type))
    memory.store(b, call.scalars.cast(total, found.dst.buffer.type).value, target, place)
