"""vectorize-cpu: iterations of the innermost contiguous loop become lanes of full-width vectors.

    scf.for %i = 0 to %n { %x = memref.load %in[%i] ; %y = mulf %x, %x ; memref.store %y, %out[%i] }
      ->  scf.for %i = 0 to %m step 16 { %x = vector.load ... : vector<16xf32> ; mulf ; vector.store }
          scf.if %m < %n { the same body once, with a mask of %n - %m lanes }

    %sum = scf.for %l = 0 to 16 iter_args(%acc = %zeros) -> vector<16xf32> {
      %a = vector.extract %acc[%l] ; %b = addf %a, ... ; vector.insert %b, %acc[%l] }
      ->  %b = addf %zeros, ... : vector<16xf32>

A loop qualifies when every store in it is contiguous in its induction variable, every op has a lane form, and no
iteration reads or writes what another one writes (lane_dependence).  The number of lanes fills a register with the
narrowest stored type; a loop over the elements of vectors has as many lanes as these, one for each.  Where a store may
pass the caches by but the loop doesn't begin on a line, a masked vector goes up to the next line first.  There is no
scalar tail.  `vector_lanes` has the forms of the ops.
"""

from __future__ import annotations

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Trait, Value
from warpsmith.ir.core.types import INDEX, VectorType, bit_width, element_type
from warpsmith.ir.dialects import arith, func, scf
from warpsmith.ir.dialects import vector as vec
from warpsmith.passes.support.affine_lanes import Lanes
from warpsmith.passes.support.lane_dependence import iterations_are_independent
from warpsmith.passes.support.vector_lanes import FORMS, LaneBody

__all__ = ["LEAST_STREAMED", "run"]

CONTRACT = "bit-exact"

_MAX_REGISTERS = 4  # a value of the widest type may take this many
_LONG = 64  # ops, from which on a body computes more than it moves: one register then is as fast, and half the code
_MATH_OPS = 16  # ops that a function of `math` stands for
_NARROWEST_BITS = 8
_LEAST_VECTORS = 8  # a loop of fewer isn't worth an entry of its own up to the first line

LEAST_STREAMED = 1 << 20
"""Buffers of fewer bytes are never written past the caches; those of more must then be aligned to whole lines."""


def run(
    module: Operation, *, vector_bits: int = 512, nontemporal: bool = False, stream_from: int = LEAST_STREAMED
) -> None:
    """Vectorise all functions.

    `nontemporal` marks full-line stores to buffers of at least `stream_from` bytes, and the function (STREAMS); the
    caller promises that those are aligned to 64 bytes.
    """
    streaming = (vector_bits if nontemporal else 0, stream_from)
    for function in func.functions(module):
        for op in list(function.walk()):
            # A loop inside one that became vectors is gone, operands and all.
            if op.name != "scf.for" or not op.operands or arith.constant_int(op.operands[2]) != 1:
                continue
            lanes = Lanes(op)
            count = _vector_length(op)
            if count is not None:
                if _qualifies(op, lanes) and _yields_its_elements(op):
                    _at_once(LaneBody(function, op, lanes, count, *streaming))
            elif not op.results and _qualifies(op, lanes):
                _in_strips(LaneBody(function, op, lanes, _lane_count(op, vector_bits), *streaming))


def _qualifies(loop: Operation, lanes: Lanes) -> bool:
    """Stores that are all contiguous, a lane form for every op, and no iteration that needs another."""
    stores = 0
    for op in loop.walk():
        if op is loop or op.row.has(Trait.TERMINATOR):
            continue
        if op.name == "memref.store":
            stores += 1
            if lanes[op.operands[2]] != 1:
                return False
        elif op.name == "memref.load":
            if bit_width(op.result.type) < _NARROWEST_BITS:
                return False
        elif op.name == "scf.for":
            if not all(lanes.is_uniform(v) for v in op.operands[:3]):
                return False
        elif op.name not in FORMS and not op.row.has(Trait.ELEMENTWISE) and not op.row.has(Trait.CONSTANT):
            return False
    return (stores > 0 or bool(loop.results)) and iterations_are_independent(loop, lanes)


# ---------------------------------------------------------------------------------------- loops over vectors' elements
def _vector_length(loop: Operation) -> int | None:
    """The elements of the vectors that a loop takes apart, one an iteration; None for a loop that takes none apart."""
    iv = loop.body.args[0]
    for user in iv.users:
        if user.name in _ELEMENTS and user.operands[-1] is iv:
            type = user.operands[_ELEMENTS[user.name]].type
            assert isinstance(type, VectorType)
            return type.elements
    return None


_ELEMENTS = {"vector.extract": 0, "vector.insert": 1}  # which operand is the vector


def _yields_its_elements(loop: Operation) -> bool:
    """Whether each iteration touches element i alone of vectors that have one an iteration, and hands all others on."""
    count = _vector_length(loop)
    if arith.constant_int(loop.operands[0]) != 0 or arith.constant_int(loop.operands[1]) != count:
        return False
    body, iv = loop.body, loop.body.args[0]
    for op in loop.walk():
        if op.name in _ELEMENTS:
            vector = op.operands[_ELEMENTS[op.name]]
            if len(op.operands) != _ELEMENTS[op.name] + 2 or op.operands[-1] is not iv:
                return False
            if not isinstance(vector.type, VectorType) or vector.type.elements != count:
                return False
    yielded = body.terminator.operands
    return all(_carries(value, argument) for value, argument in zip(yielded, body.args[1:], strict=True))


def _carries(value: Value, argument: Value) -> bool:
    """Whether `value` is `argument` with elements replaced."""
    op = value.defining_op
    if value is argument:
        return True
    if op is None:
        return False
    if op.name == "vector.insert":
        return _carries(op.operands[1], argument)
    if op.name == "scf.if":
        place = next(i for i, result in enumerate(op.results) if result is value)
        return all(_carries(block.terminator.operands[place], argument) for r in op.regions for block in r.blocks)
    return False


def _at_once(body: LaneBody) -> None:
    """All iterations as one vector body, in the loop's place."""
    loop, b = body.loop, Builder.before(body.loop)
    values = body.emit(b, loop.operands[0])
    loop.replace_by(values)


# --------------------------------------------------------------------------------------------- loops over any number
def _lane_count(loop: Operation, vector_bits: int) -> int:
    """Lanes that fill a register with the narrowest type in memory, but no type takes more than _MAX_REGISTERS.

    In a long body the widest type takes one register.
    """
    narrow, wide, length = vector_bits, _NARROWEST_BITS, 0
    for op in loop.walk():
        if op.name == "memref.store":
            narrow = min(narrow, bit_width(op.operands[0].type))
        if op.row.has(Trait.ELEMENTWISE):
            length += _MATH_OPS if op.row.has(Trait.INEXACT) else 1
            for result in op.results:
                if element_type(result.type) is not INDEX:
                    wide = max(wide, bit_width(result.type))
    registers = _MAX_REGISTERS if length < _LONG else 1
    return max(2, min(vector_bits // max(narrow, _NARROWEST_BITS), registers * vector_bits // wide))


def _in_strips(body: LaneBody) -> None:
    """A loop of whole vectors, and one masked vector for what is left; before them one up to the first line, if
    that lets the loop's store fill lines."""
    loop, b, count = body.loop, Builder.before(body.loop), body.count
    lower, upper = loop.operands[:2]
    extent = _constant_extent(loop)
    store = body.wants_head() if extent is None or extent >= _LEAST_VECTORS * count else None
    start = _at(b, loop, store.operands[2], lower) if store is not None else None
    if start is not None:
        lower = _head(body, b, lower, upper, start)
        extent = None
    width = arith.index(b, count)
    if extent is not None:
        whole = extent - extent % count
        main_upper = arith.binary(b, "addi", lower, arith.index(b, whole))
    else:
        # A loop that may be empty has a negative extent; the remainder must not round it up past zero.
        trip = arith.binary(b, "maxsi", arith.binary(b, "subi", upper, lower), arith.index(b, 0))
        rest = arith.binary(b, "remui", trip, width)
        main_upper = arith.binary(b, "addi", lower, arith.binary(b, "subi", trip, rest))
    main = scf.for_(b, lower, main_upper, width, iv_name=loop.body.args[0].name)
    inner = Builder.at_end(main.body, loop.location)
    body.emit(inner, main.body.args[0])
    scf.yield_(inner)
    if extent is None or extent % count:
        left = arith.binary(b, "subi", upper, main_upper)
        check = scf.if_(b, arith.cmpi(b, "sgt", left, arith.index(b, 0)))
        inner = Builder.at_end(check.body, loop.location)
        body.emit(inner, main_upper, vec.create_mask(inner, left, count))
        scf.yield_(inner)
    loop.erase()


def _head(body: LaneBody, b: Builder, lower: Value, upper: Value, start: Value) -> Value:
    """The iterations up to the first line of what the store writes, from element `start` on; the one that follows."""
    count = body.count
    missing = arith.binary(b, "remui", arith.binary(b, "subi", arith.index(b, 0), start), arith.index(b, count))
    trip = arith.binary(b, "maxsi", arith.binary(b, "subi", upper, lower), arith.index(b, 0))
    head = arith.binary(b, "minsi", missing, trip)
    check = scf.if_(b, arith.cmpi(b, "sgt", head, arith.index(b, 0)))
    inner = Builder.at_end(check.body, body.loop.location)
    body.emit(inner, lower, vec.create_mask(inner, head, count))
    scf.yield_(inner)
    body.starts_on_line = True
    return arith.binary(b, "addi", lower, head)


def _at(b: Builder, loop: Operation, value: Value, first: Value) -> Value | None:
    """`value` of the iteration `first`, computed before the loop; None if it needs more than sums and products."""
    if value is loop.body.args[0]:
        return first
    op = value.defining_op
    if op is None or not loop.is_ancestor_of(op):
        block = value.parent_block
        owner = block.parent_op if op is None and block is not None else None
        return None if owner is not None and (owner is loop or loop.is_ancestor_of(owner)) else value
    if op.name not in ("arith.addi", "arith.subi", "arith.muli", "arith.constant"):
        return None
    operands = [_at(b, loop, operand, first) for operand in op.operands]
    if any(operand is None for operand in operands):
        return None
    return b.insert(op.clone(dict(zip(op.operands, (o for o in operands if o is not None), strict=True)))).result


def _constant_extent(loop: Operation) -> int | None:
    """The loop's trip count when both bounds are constants."""
    lower, upper = arith.constant_int(loop.operands[0]), arith.constant_int(loop.operands[1])
    return max(0, upper - lower) if lower is not None and upper is not None else None
