"""pair-registers: loops over a thread's registers take two at a time where the processor has instructions for pairs.

    scf.for %f = 0 to 8 { %x = memref.load %R[%f] ; %y = addf %x, %x ; memref.store %y, %R[%f] } {tile.unroll}
      ->  scf.for %f = 0 to 8 step 2 { %x = vector.load %R[%f] : vector<2xf32> ; addf ; vector.store } {tile.unroll}

Sums, products and differences of f32 are instructions for pairs from compute capability 10.0 on (add.rn.f32x2); so are
conversions of f32 to f16 and bf16 from 8.0 on (cvt.rn.f16x2.f32).  All round to nearest and keep subnormals, as those
for one register do, so results have the same bits.  A loop with any other op stays: LLVM would take its pairs apart.
"""

from __future__ import annotations

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.core.types import BF16, F16, F32, MemRefType, Type
from warpsmith.ir.dialects import arith, func, scf
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.passes.support.affine_lanes import Lanes
from warpsmith.passes.support.capabilities import capabilities
from warpsmith.passes.support.lane_dependence import iterations_are_independent
from warpsmith.passes.support.vector_lanes import LaneBody
from warpsmith.passes.unroll_marked_loops import MARK

CONTRACT = "bit-exact"

_PAIR = 2

_NEEDS: dict[tuple[str, Type], int] = {
    **{(name, F32): 100 for name in ("arith.addf", "arith.subf", "arith.mulf", "math.fma")},
    ("arith.truncf", F16): 80,
    ("arith.truncf", BF16): 80,
}
"""(op, type of its result) -> ten times the compute capability from which on it is an instruction for pairs."""

_MOVES = ("memref.load", "memref.store")


def run(module: Operation) -> None:
    """Pair the registers of every marked loop that allows it."""
    for function in func.functions(module):
        capability = capabilities(function).compute_capability
        for op in list(function.walk()):
            if op.row.name == "scf.for" and MARK in op.attributes and _takes_pairs(op, capability):
                _paired(function, op)


def _takes_pairs(loop: Operation, capability: int) -> bool:
    """Whether two iterations are one of pairs."""
    lower, upper, step = (arith.constant_int(v) for v in loop.operands[:3])
    if lower != 0 or upper is None or upper % _PAIR or step != 1 or loop.results:
        return False
    lanes, computes = Lanes(loop), False
    for op in loop.body:
        if op.name in _MOVES:
            type, index = op.operands[-2].type, op.operands[-1]
            if not isinstance(type, MemRefType) or type.space != PRIVATE or type.rank != 1:
                return False
            if lanes[index] != 1 and (op.name == "memref.store" or not lanes.is_uniform(index)):
                return False
        elif not op.row.has(Trait.TERMINATOR) and not op.row.has(Trait.CONSTANT):
            needed = _NEEDS.get((op.name, op.results[0].type)) if len(op.results) == 1 else None
            if needed is None or capability < needed:
                return False
            if op.name == "arith.truncf" and op.operands[0].type is not F32:
                return False
            computes = True
    return computes and iterations_are_independent(loop, lanes)


def _paired(function: Operation, loop: Operation) -> None:
    """The loop over pairs in its place."""
    b = Builder.before(loop)
    made = scf.for_(b, loop.operands[0], loop.operands[1], arith.index(b, _PAIR), iv_name=loop.body.args[0].name)
    made.attributes.update(loop.attributes)
    made.location = loop.location
    with b.inside(made.body):
        LaneBody(function, loop, Lanes(loop), _PAIR, 0, 0).emit(b, made.body.args[0])
        scf.yield_(b)
    loop.erase()
