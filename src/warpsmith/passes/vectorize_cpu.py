"""vectorize-cpu: iterations of the innermost contiguous loop become lanes of full-width vectors.

    scf.for %i = 0 to %n { %x = memref.load %in[%i] ; %y = mulf %x, %x ; memref.store %y, %out[%i] }
      ->  scf.for %i = 0 to %m step 16 { %x = vector.load ... : vector<16xf32> ; mulf ; vector.store }
          scf.if %m < %n { the same body once, with a mask of %n - %m lanes }

A loop qualifies when every store in it is contiguous in its induction variable, every op has a lane form, and no
iteration reads or writes what another one writes (lane_dependence).  The number of lanes fills a register with the
narrowest stored type.  A contiguous load is a vector load; a uniform one is loaded once and broadcast; one that runs
backwards, or skips up to three elements, is vector loads and shuffles; any other is a gather.  A branch on a varying
condition runs both sides under masks, in which a division divides by 1 where its lane is not active.  Loops inside with
uniform bounds run once for all lanes.  There is no scalar tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.ir import attributes as at
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Block, Operation, Trait, Value
from warpsmith.ir.dialects import arith, cpu, func, scf
from warpsmith.ir.dialects import vector as vec
from warpsmith.ir.effects import is_pure, is_speculatable
from warpsmith.ir.types import I1, INDEX, MemRefType, Type, VectorType, bit_width, element_type, integer, vector
from warpsmith.passes.affine_lanes import Lanes, known_multiple
from warpsmith.passes.lane_dependence import iterations_are_independent

NAME = "vectorize-cpu"
CONTRACT = "bit-exact"

_MAX_REGISTERS = 4  # a value of the widest type may take this many
_LONG = 64  # ops, from which on a body computes more than it moves: one register then is as fast, and half the code
_MATH_OPS = 16  # ops that a function of `math` stands for
_NARROWEST_BITS = 8
_MAX_STRIDE = 4  # loads of neighbours and a choice among them, up to here; a gather beyond

STREAMS = "warpsmith.streams"
"""The attribute of a function in which a store is nontemporal: its caller must align the large outputs."""

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
            if op.name == "scf.for" and op.operands and arith.constant_int(op.operands[2]) == 1:
                lanes = Lanes(op)
                if _qualifies(op, lanes):
                    _Vectorizer(function, op, lanes, _lane_count(op, vector_bits), *streaming).run()


def _qualifies(loop: Operation, lanes: Lanes) -> bool:
    """No iter args, stores that are all contiguous, a lane form for every op, and no iteration that needs another."""
    if loop.results:
        return False
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
        elif op.name not in _FORMS and not op.row.has(Trait.ELEMENTWISE) and not op.row.has(Trait.CONSTANT):
            return False
    return stores > 0 and iterations_are_independent(loop, lanes)


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


@dataclass(slots=True)
class _Scope:
    """Values of the vector body: scalars that all lanes share (or lane 0's, of a linear one), and vectors."""

    scalar: dict[Value, Value]
    vector: dict[Value, Value]


class _Vectorizer:
    """One loop's rewrite."""

    def __init__(
        self, function: Operation, loop: Operation, lanes: Lanes, count: int, nontemporal_bits: int, stream_from: int
    ) -> None:
        self.function = function
        self.loop = loop
        self.lanes = lanes
        self.count = count
        self.nontemporal_bits = nontemporal_bits
        self.stream_from = stream_from
        self.scope = _Scope({}, {})
        self.mask: Value | None = None
        self.tail = False

    def run(self) -> None:
        loop, b = self.loop, Builder.before(self.loop)
        lower, upper = loop.operands[:2]
        width = arith.index(b, self.count)
        extent = _constant_extent(loop)
        if extent is not None:
            whole = extent - extent % self.count
            main_upper = arith.binary(b, "addi", lower, arith.index(b, whole))
        else:
            # A loop that may be empty has a negative extent; the remainder must not round it up past zero.
            trip = arith.binary(b, "maxsi", arith.binary(b, "subi", upper, lower), arith.index(b, 0))
            rest = arith.binary(b, "remui", trip, width)
            main_upper = arith.binary(b, "addi", lower, arith.binary(b, "subi", trip, rest))
        main = scf.for_(b, lower, main_upper, width, iv_name=loop.body.args[0].name)
        self.body(Builder.at_end(main.body, loop.location), main.body.args[0])
        if extent is None or extent % self.count:
            left = arith.binary(b, "subi", upper, main_upper)
            check = scf.if_(b, arith.cmpi(b, "sgt", left, arith.index(b, 0)))
            inner = Builder.at_end(check.body, loop.location)
            self.mask = vec.create_mask(inner, left, self.count)
            self.tail = True
            self.body(inner, main_upper)
        loop.erase()

    def body(self, b: Builder, iv: Value) -> None:
        self.scope = _Scope({self.loop.body.args[0]: iv}, {})
        self.block(b, self.loop.body)
        scf.yield_(b)

    # -- values
    def scalar(self, value: Value) -> Value:
        """The value that all lanes share, or lane 0's of a linear one."""
        return self.scope.scalar.get(value, value)

    def as_vector(self, b: Builder, value: Value) -> Value:
        found = self.scope.vector.get(value)
        if found is not None:
            return found
        stride = self.lanes[value]
        scalar = self.scalar(value)
        constant = arith.constant_value(scalar)
        if constant is not None:
            result = arith.constant(b, constant, vector((self.count,), value.type))
        else:
            result = vec.broadcast(b, scalar, self.count)
        if stride:
            result = arith.binary(b, "addi", result, self.steps(b, stride))
        self.scope.vector[value] = result
        return result

    def steps(self, b: Builder, stride: int) -> Value:
        """`[0, stride, 2 * stride, ..]`."""
        steps = vec.step(b, self.count)
        return steps if stride == 1 else arith.binary(b, "muli", steps, arith.constant(b, stride, steps.type))

    def lanes_of(self, type: Type) -> VectorType:
        return vector((self.count,), type)

    # -- ops
    def block(self, b: Builder, block: Block) -> None:
        for op in block:
            if op is block.last and op.row.has(Trait.TERMINATOR):
                return
            b.location = op.location
            form = _FORMS.get(op.name)
            if form is not None:
                form(self, b, op)
            else:
                self.elementwise(b, op)

    def elementwise(self, b: Builder, op: Operation) -> None:
        # A division: where no lane is active it must divide by something.
        mask = None if is_speculatable(op) else self.mask
        if all(self.lanes[r] is not None for r in op.results):
            clone = self.copy(b, op)
            if mask is not None and not self.tail:
                at_clone = Builder.before(clone)
                clone.set_operand(1, _or_one(at_clone, self.some_lane(at_clone), clone.operands[1]))
            return
        operands = [self.as_vector(b, v) for v in op.operands]
        if mask is not None:
            operands[1] = _or_one(b, mask, operands[1])
        attributes = {k: v for k, v in op.attributes.items() if k != "xla.range"}
        new = b.create(op.name, operands, [self.lanes_of(r.type) for r in op.results], attributes)
        for old, result in zip(op.results, new.results, strict=True):
            result.name = old.name
            self.scope.vector[old] = result

    def copy(self, b: Builder, op: Operation) -> Operation:
        """The op once, for all lanes (or for lane 0 of linear values)."""
        clone = op.clone({v: self.scalar(v) for v in op.operands})
        if any(self.lanes[r] for r in op.results):
            clone.attributes.pop("xla.range", None)
        b.insert(clone)
        self.scope.scalar.update(zip(op.results, clone.results, strict=True))
        return clone

    def some_lane(self, b: Builder) -> Value:
        """Whether the mask has a lane."""
        assert self.mask is not None
        bits = integer(self.count)
        packed = b.op1("vector.bitcast", (self.mask,), vector((1,), bits))
        return arith.cmpi(b, "ne", vec.extract(b, packed, 0), arith.constant(b, 0, bits))

    def load(self, b: Builder, op: Operation) -> None:
        base, index = op.operands
        if self.lanes[op.result] == 0:
            self.uniform_load(b, op)
            return
        type = self.lanes_of(op.result.type)
        stride = self.lanes[index]
        if self.mask is None and stride is not None and (stride == -1 or 1 < stride <= _MAX_STRIDE):
            result = self.reversed(b, base, index, type) if stride < 0 else self.spaced(b, base, index, type, stride)
        elif stride == 1:
            if self.mask is None:
                result = b.op1("vector.load", (base, self.scalar(index)), type)
            else:
                result = b.op1("vector.maskedload", (base, self.scalar(index), self.mask, self.zeros(b, type)), type)
        else:
            # A linear index is lane 0's and constant distances, which are short enough for 32-bit index registers.
            indices = self.as_vector(b, index) if stride is None else self.steps(b, stride)
            start = arith.index(b, 0) if stride is None else self.scalar(index)
            mask = self.mask or arith.constant(b, 1, vector((self.count,), I1))
            result = b.op1("vector.gather", (base, start, indices, mask, self.zeros(b, type)), type)
        result.name = op.result.name
        self.scope.vector[op.result] = result

    def uniform_load(self, b: Builder, op: Operation) -> None:
        """One load for all lanes; where a condition guards it and it may be out of bounds, only if a lane is active."""
        position = arith.constant_int(op.operands[1])
        buffer = op.operands[0].type
        inside = position is not None and isinstance(buffer, MemRefType) and 0 <= position < buffer.elements
        if self.mask is None or self.tail or inside:
            self.copy(b, op)
            return
        branch = scf.if_(b, self.some_lane(b), [op.result.type], with_else=True)
        then, otherwise = (Builder.at_end(region.blocks[0], op.location) for region in branch.regions)
        loaded = then.insert(op.clone({v: self.scalar(v) for v in op.operands}))
        scf.yield_(then, loaded.results)
        scf.yield_(otherwise, [self.zeros(otherwise, op.result.type)])
        branch.results[0].name = op.result.name
        self.scope.scalar[op.result] = branch.results[0]

    def reversed(self, b: Builder, base: Value, index: Value, type: VectorType) -> Value:
        """Lane i reads element `index - i`: a load that ends at `index`, turned round."""
        last = self.count - 1
        loaded = vec.load(b, base, arith.binary(b, "subi", self.scalar(index), arith.index(b, last)), type)
        return vec.shuffle(b, loaded, loaded, range(last, -1, -1))

    def spaced(self, b: Builder, base: Value, index: Value, type: VectorType, stride: int) -> Value:
        """Lane i reads element `index + i * stride`: `stride` loads side by side, whose elements are picked together.

        The last load ends at the last lane's element, so that nothing beyond it is read.
        """
        starts = [j * self.count for j in range(stride - 1)] + [(stride - 1) * (self.count - 1)]
        result: Value | None = None
        for start in starts:
            at_start = (
                arith.binary(b, "addi", self.scalar(index), arith.index(b, start)) if start else self.scalar(index)
            )
            loaded = vec.load(b, base, at_start, type)
            if result is None:
                picked = [i * stride if i * stride < self.count else 0 for i in range(self.count)]
                result = vec.shuffle(b, loaded, loaded, picked)
                continue
            inside = [start <= i * stride < start + self.count for i in range(self.count)]
            picked = [self.count + i * stride - start if inside[i] else i for i in range(self.count)]
            result = vec.shuffle(b, result, loaded, picked)
        assert result is not None
        return result

    def zeros(self, b: Builder, type: Type) -> Value:
        return arith.constant(b, 0, type)

    def store(self, b: Builder, op: Operation) -> None:
        value, base, index = op.operands
        stored = self.as_vector(b, value)
        if self.mask is not None:
            b.create("vector.maskedstore", (base, self.scalar(index), self.mask, stored))
            return
        attributes: dict[str, at.Attribute] = {}
        if self._fills_lines(stored.type, base, index):
            self.function.attributes[STREAMS] = at.UNIT
            attributes = {
                "nontemporal": at.boolean(True),
                "alignment": at.integer_attr(self.nontemporal_bits // 8, at.I64),
            }
        vec.store(b, stored, base, self.scalar(index), attributes)

    def _fills_lines(self, type: Type, base: Value, index: Value) -> bool:
        """Whether a store writes whole cache lines of a kernel's own buffer, and only then may it pass the cache by."""
        if not self.nontemporal_bits or bit_width(type) % self.nontemporal_bits or base.defining_op is not None:
            return False
        buffer = base.type
        assert isinstance(buffer, MemRefType)
        if buffer.elements * bit_width(buffer.element) < 8 * self.stream_from:
            return False
        lower = self.loop.operands[0]
        start = known_multiple(lower, {})
        return known_multiple(index, {self.loop.body.args[0]: math.gcd(start, self.count)}) % self.count == 0

    def lookup(self, b: Builder, op: Operation) -> None:
        table, value = op.operands
        if self.lanes[op.result] == 0:
            self.copy(b, op)
            return
        self.scope.vector[op.result] = cpu.lookup(b, self.scalar(table), self.as_vector(b, value))

    def select(self, b: Builder, op: Operation) -> None:
        condition, *values = op.operands
        if all(self.lanes.is_uniform(v) for v in op.operands):
            self.copy(b, op)
            return
        chosen = self.scalar(condition) if self.lanes.is_uniform(condition) else self.as_vector(b, condition)
        true, false = (self.as_vector(b, v) for v in values)
        result = arith.select(b, chosen, true, false)
        result.name = op.result.name
        self.scope.vector[op.result] = result

    # -- control flow
    def if_(self, b: Builder, op: Operation) -> None:
        if self.lanes.is_uniform(op.operands[0]):
            self.uniform_if(b, op)
            return
        condition = self.as_vector(b, op.operands[0])
        outer, was_tail = self.mask, self.tail
        true = arith.constant(b, 1, condition.type)
        masks = [condition, arith.binary(b, "xori", condition, true)]
        yields: list[list[Value]] = []
        for region, mask in zip(op.regions, masks, strict=True):
            for block in region.blocks:
                self.mask = mask if outer is None else arith.binary(b, "andi", outer, mask)
                self.tail = False
                if all(is_pure(o) and is_speculatable(o) for o in block if not o.row.has(Trait.TERMINATOR)):
                    self.mask, self.tail = outer, was_tail
                self.block(b, block)
                yields.append([self.as_vector(b, v) for v in block.terminator.operands])
        self.mask, self.tail = outer, was_tail
        for i, result in enumerate(op.results):
            self.scope.vector[result] = arith.select(b, condition, yields[0][i], yields[1][i])

    def uniform_if(self, b: Builder, op: Operation) -> None:
        types = [r.type if self.lanes.is_uniform(r) else self.lanes_of(r.type) for r in op.results]
        new = scf.if_(b, self.scalar(op.operands[0]), types, with_else=bool(op.regions[1].blocks))
        for region, target in zip(op.regions, new.regions, strict=True):
            for block, copy in zip(region.blocks, target.blocks, strict=True):
                saved = _Scope(dict(self.scope.scalar), dict(self.scope.vector))
                inner = Builder.at_end(copy, op.location)
                self.block(inner, block)
                scf.yield_(
                    inner,
                    [self.carried(inner, v, r) for v, r in zip(block.terminator.operands, op.results, strict=True)],
                )
                self.scope = saved
        self.bind(op, new)

    def for_(self, b: Builder, op: Operation) -> None:
        lower, upper, step, *inits = op.operands
        starts = [self.carried(b, v, r) for v, r in zip(inits, op.results, strict=True)]
        names = [a.name for a in op.body.args[1:]]
        low, high, by = self.scalar(lower), self.scalar(upper), self.scalar(step)
        new = scf.for_(b, low, high, by, starts, op.body.args[0].name, names)
        saved = _Scope(dict(self.scope.scalar), dict(self.scope.vector))
        self.scope.scalar[op.body.args[0]] = new.body.args[0]
        for old, argument, result in zip(op.body.args[1:], new.body.args[1:], op.results, strict=True):
            (self.scope.scalar if self.lanes.is_uniform(result) else self.scope.vector)[old] = argument
        inner = Builder.at_end(new.body, op.location)
        self.block(inner, op.body)
        scf.yield_(
            inner, [self.carried(inner, v, r) for v, r in zip(op.body.terminator.operands, op.results, strict=True)]
        )
        self.scope = saved
        self.bind(op, new)

    def carried(self, b: Builder, value: Value, result: Value) -> Value:
        """A value as the op's result carries it: one for all lanes, or a vector."""
        return self.scalar(value) if self.lanes.is_uniform(result) else self.as_vector(b, value)

    def bind(self, op: Operation, new: Operation) -> None:
        for old, result in zip(op.results, new.results, strict=True):
            (self.scope.scalar if self.lanes.is_uniform(old) else self.scope.vector)[old] = result


def _or_one(b: Builder, condition: Value, divisor: Value) -> Value:
    return arith.select(b, condition, divisor, arith.constant(b, 1, divisor.type))


def _constant_extent(loop: Operation) -> int | None:
    """The loop's trip count when both bounds are constants."""
    lower, upper = arith.constant_int(loop.operands[0]), arith.constant_int(loop.operands[1])
    return max(0, upper - lower) if lower is not None and upper is not None else None


_FORMS: dict[str, Callable[[_Vectorizer, Builder, Operation], None]] = {
    "memref.load": _Vectorizer.load,
    "memref.store": _Vectorizer.store,
    "xla_cpu.lookup": _Vectorizer.lookup,
    "arith.select": _Vectorizer.select,
    "scf.if": _Vectorizer.if_,
    "scf.for": _Vectorizer.for_,
}
