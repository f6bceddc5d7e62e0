"""The body of a loop as vector ops, a lane an iteration: what vectorize-cpu puts in a loop's place.  No pass itself.

In: a loop, how its values change from lane to lane, a number of lanes.  Out: vector ops at a builder.  A contiguous
load is a vector load; a uniform one is loaded once and broadcast; one that runs backwards, or skips up to three
elements, is vector loads and shuffles; any other is a gather.  A branch on a varying condition runs both sides under
masks, in which a division divides by 1 where its lane is not active.  Loops inside with uniform bounds run once for all
lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_pure, is_speculatable
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.core.types import I1, MemRefType, Type, VectorType, bit_width, integer, vector
from warpsmith.ir.dialects import arith, cpu, scf
from warpsmith.ir.dialects import vector as vec
from warpsmith.passes.support.affine_lanes import Lanes, known_multiple
from warpsmith.passes.support.entry_attributes import STREAMS

__all__ = ["FORMS", "LaneBody"]

_MAX_STRIDE = 4  # loads of neighbours and a choice among them, up to here; a gather beyond


@dataclass(slots=True)
class _Scope:
    """Values of the vector body: scalars that all lanes share (or lane 0's, of a linear one), and vectors."""

    scalar: dict[Value, Value]
    vector: dict[Value, Value]


class LaneBody:
    """One loop's body as vector ops: `count` iterations at once."""

    def __init__(
        self, function: Operation, loop: Operation, lanes: Lanes, count: int, nontemporal_bits: int, stream_from: int
    ) -> None:
        """`nontemporal_bits` (0: never) is a line's width for stores to buffers of at least `stream_from` bytes."""
        self.function = function
        self.loop = loop
        self.lanes = lanes
        self.count = count
        self.nontemporal_bits = nontemporal_bits
        self.stream_from = stream_from
        self.scope = _Scope({}, {})
        self.mask: Value | None = None
        self.tail = False
        self.starts_on_line = False

    def emit(self, b: Builder, iv: Value, mask: Value | None = None) -> list[Value]:
        """All lanes from `iv` on, or those of `mask`; the vectors that the body yields."""
        loop = self.loop
        self.mask, self.tail = mask, mask is not None
        self.scope = _Scope({loop.body.args[0]: iv}, dict(zip(loop.body.args[1:], loop.operands[3:], strict=True)))
        self.block(b, loop.body)
        return [self.as_vector(b, value) for value in loop.body.terminator.operands]

    # -- values
    def scalar(self, value: Value) -> Value:
        """The value that all lanes share, or lane 0's of a linear one."""
        return self.scope.scalar.get(value, value)

    def as_vector(self, b: Builder, value: Value) -> Value:
        """A value of all lanes; a uniform one is broadcast, once a scope."""
        found = self.scope.vector.get(value)
        if found is not None:
            return found
        if isinstance(value.type, VectorType):
            return value
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
        """The type of all lanes' values; a vector that has one lane an iteration is that already."""
        return type if isinstance(type, VectorType) else vector((self.count,), type)

    # -- ops
    def block(self, b: Builder, block: Block) -> None:
        """The ops of a block but its terminator, in order."""
        for op in block:
            if op is block.last and op.row.has(Trait.TERMINATOR):
                return
            b.location = op.location
            form = FORMS.get(op.name)
            if form is not None:
                form(self, b, op)
            else:
                self.elementwise(b, op)

    def elementwise(self, b: Builder, op: Operation) -> None:
        """An op on all lanes at once, or once where it's uniform; one that may trap goes under the mask."""
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
        """A load of all lanes: of one element, of adjacent ones, or gathered."""
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
        """A zero of a type."""
        return arith.constant(b, 0, type)

    def store(self, b: Builder, op: Operation) -> None:
        """A store of all lanes to adjacent elements, under the mask if there is one."""
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
        if not self.may_stream(type, base):
            return False
        if self.starts_on_line:
            return True
        start = known_multiple(self.loop.operands[0], {})
        return known_multiple(index, {self.loop.body.args[0]: math.gcd(start, self.count)}) % self.count == 0

    def may_stream(self, type: Type, base: Value) -> bool:
        """Whether stores of vectors of `type` to a buffer pay past the caches, where they fill lines."""
        if not self.nontemporal_bits or bit_width(type) % self.nontemporal_bits or base.defining_op is not None:
            return False
        buffer = base.type
        assert isinstance(buffer, MemRefType)
        return buffer.elements * bit_width(buffer.element) >= 8 * self.stream_from

    def wants_head(self) -> Operation | None:
        """The loop's one store, if it would fill lines but for where the loop begins."""
        stores = [op for op in self.loop.walk() if op.name == "memref.store"]
        if len(stores) != 1 or stores[0].block is not self.loop.body:
            return None
        value, base, index = stores[0].operands
        type = self.lanes_of(value.type)
        return stores[0] if self.may_stream(type, base) and not self._fills_lines(type, base, index) else None

    def extract(self, _: Builder, op: Operation) -> None:
        """Lane i takes element i: the vector as it is."""
        source = op.operands[0]
        self.scope.vector[op.result] = self.scope.vector.get(source, source)

    def insert(self, b: Builder, op: Operation) -> None:
        """Lane i gives element i: all elements are new."""
        self.scope.vector[op.result] = self.as_vector(b, op.operands[0])

    def lookup(self, b: Builder, op: Operation) -> None:
        """A table's entries for all lanes."""
        table, value = op.operands
        if self.lanes[op.result] == 0:
            self.copy(b, op)
            return
        self.scope.vector[op.result] = cpu.lookup(b, self.scalar(table), self.as_vector(b, value))

    def select(self, b: Builder, op: Operation) -> None:
        """A choice by lane, or by one condition for all."""
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
        """A branch: kept where its condition is uniform, else both sides under masks."""
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
        """A branch that all lanes take alike."""
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
        """A loop whose bounds are the same for all lanes; what it carries may differ."""
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
        """Note what an old op's results are now, scalars or vectors."""
        for old, result in zip(op.results, new.results, strict=True):
            (self.scope.scalar if self.lanes.is_uniform(old) else self.scope.vector)[old] = result


def _or_one(b: Builder, condition: Value, divisor: Value) -> Value:
    return arith.select(b, condition, divisor, arith.constant(b, 1, divisor.type))


FORMS: dict[str, Callable[[LaneBody, Builder, Operation], None]] = {
    "memref.load": LaneBody.load,
    "memref.store": LaneBody.store,
    "xla_cpu.lookup": LaneBody.lookup,
    "vector.extract": LaneBody.extract,
    "vector.insert": LaneBody.insert,
    "arith.select": LaneBody.select,
    "scf.if": LaneBody.if_,
    "scf.for": LaneBody.for_,
}
