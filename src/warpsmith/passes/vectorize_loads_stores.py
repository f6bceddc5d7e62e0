"""vectorize-loads-stores: neighbouring elements that a small loop reads or writes are moved as one vector.

    scf.for %i = 0 to 4 iter_args(%o) {       %v = vector.transfer_read %t[%base] : vector<4xf32>
      %e = tensor.extract %t[%base + %i]      %r:2 = scf.for %i = 0 to 4 iter_args(%o, %w = zeros) {
      %n = tensor.insert %e into %o[...]  ->    %e = vector.extract %v[%i];  %u = vector.insert %e, %w[%i]
      scf.yield %n                              scf.yield %o, %u
    }                                         }  vector.transfer_write %r#1, %o[%base]

The loop runs from 0 in steps of 1 to a power of two of at most 32; the index is
the induction variable plus something that is a multiple of the vector's length; the vector has at most 256 bits.
"""

from __future__ import annotations

import math

from warpsmith.indexing import Add, Const, Expr, Mod, Mul, dim, symbol
from warpsmith.ir.core.attributes import Attribute, dense, float_attr, integer_attr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.rewriter import Rewriter
from warpsmith.ir.core.ssa import Operation, OpResult, Region, Value
from warpsmith.ir.core.types import (
    INDEX,
    FloatType,
    IndexType,
    IntegerType,
    TensorType,
    Type,
    VectorType,
    bit_width,
    vector,
)
from warpsmith.ir.dialects import gpu
from warpsmith.ir.dialects import vector as vec

CONTRACT = "bit-exact"

_MAX_LANES = 32
_MAX_BITS = 256


def run(module: Operation) -> None:
    """Vectorize every loop of `module`, inner ones first."""
    constants = Rewriter()
    for op in list(module.walk_post()):
        if op.row.name == "scf.for":
            lanes = _lanes(op)
            if lanes:
                _Loop(op, lanes, constants).vectorize()


def _lanes(loop: Operation) -> int:
    """The trip count when it can be a vector's length, else 0."""
    lower, upper, step = (constant_of(v) for v in loop.operands[:3])
    if lower is None or upper is None or step is None or lower.value != 0 or step.value != 1:
        return 0
    n = upper.value
    return n if 2 <= n <= _MAX_LANES and n & (n - 1) == 0 else 0


# ------------------------------------------------------------------------------------------------------ index analysis
def stride(expr: Expr, iv: Expr) -> int | None:
    """How much `expr` grows with `iv`, when that is the same everywhere and `iv` is a direct summand."""
    if expr is iv:
        return 1
    if not (expr.dim_mask & iv.dim_mask or expr.symbol_mask & iv.symbol_mask):
        return 0
    if type(expr) is not Add:
        return None
    total = 0
    for term in expr.terms:
        part = stride(term, iv)
        if part is None:
            return None
        total += part
    return total


def alignment(expr: Expr, iv: Expr | None = None) -> int:
    """A number that divides `expr`, with the summand `iv` left out (0: it is 0)."""
    if expr is iv:
        return 0
    if type(expr) is Const:
        return abs(expr.value)
    if type(expr) is Add:
        return math.gcd(*(alignment(term, iv) for term in expr.terms))
    if type(expr) is Mul:
        return alignment(expr.lhs) * alignment(expr.rhs)
    if type(expr) is Mod:
        return math.gcd(alignment(expr.lhs), alignment(expr.rhs))
    return 1


class _Loop:
    """One loop while it is rewritten."""

    def __init__(self, op: Operation, lanes: int, constants: Rewriter) -> None:
        self.op = op
        self.body = op.body
        self.iv: Value = op.body.args[0]
        self.lanes = lanes
        self.constants = constants
        self.bases: dict[Value, Value] = {}

    def vectorize(self) -> None:
        reads: dict[tuple[Value, Value], Value] = {}
        for op in self.body:
            if op.row.name == "tensor.extract":
                self._read(op, reads)
        self._writes()
        for index in self.bases:
            maker = index.defining_op
            if maker is not None and maker.block is self.body and not index.users:
                maker.erase()
        _fold_copies(self.op, self.lanes)

    def _constant(self, attribute: Attribute, type: Type) -> Value:
        return self.constants.constant(self.op, attribute, type)

    def _zero(self, type: Type) -> Value:
        element = type.element if isinstance(type, VectorType) else type
        zero = float_attr(0.0, element) if isinstance(element, FloatType) else integer_attr(0, element)
        return self._constant(dense(zero, type) if isinstance(type, VectorType) else zero, type)

    def _vector_type(self, type: Type) -> VectorType | None:
        if not isinstance(type, TensorType) or len(type.shape) != 1 or type.minor_to_major is not None:
            return None
        element = type.element
        if not isinstance(element, (IntegerType, FloatType, IndexType)) or bit_width(element) * self.lanes > _MAX_BITS:
            return None
        return vector((self.lanes,), element) if type.elements % self.lanes == 0 else None

    def _base(self, index: Value) -> Value | None:
        """The index of lane 0, made before the loop; None when lanes aren't neighbours or not aligned."""
        known = self.bases.get(index)
        if known is not None:
            return known
        zero = self._constant(integer_attr(0, INDEX), INDEX)
        if index is self.iv:
            base = zero
        else:
            if not isinstance(index, OpResult) or index.op.row.name != "xla_gpu.apply_indexing":
                return None
            map, operands = gpu.map_of(index.op), index.op.operands
            if len(index.op.results) != 1 or sum(v is self.iv for v in operands) != 1:
                return None
            if any(v.parent_block is self.body for v in operands if v is not self.iv):
                return None
            place = next(i for i, v in enumerate(operands) if v is self.iv)
            iv = dim(place) if place < map.num_dims else symbol(place - map.num_dims)
            expr = map.results[0]
            if stride(expr, iv) != 1 or alignment(expr, iv) % self.lanes:
                return None
            base = gpu.apply_indexing(Builder.before(self.op), map, [zero if v is self.iv else v for v in operands])[0]
            base.name = index.name
        self.bases[index] = base
        return base

    def _read(self, op: Operation, reads: dict[tuple[Value, Value], Value]) -> None:
        source = op.operands[0]
        type = self._vector_type(source.type)
        if type is None or source.parent_block is self.body:
            return
        base = self._base(op.operands[1])
        if base is None:
            return
        whole = reads.get((source, base))
        if whole is None:
            b = Builder(self.op.block, self.op, op.location)
            whole = vec.transfer_read(b, source, base, self._zero(type.element), type)
            reads[source, base] = whole
        element = vec.extract(Builder.before(op), whole, self.iv)
        element.name = op.results[0].name
        op.replace_by([element])

    def _writes(self) -> None:
        """All inserts that go to an iter arg and are yielded; the loop is rebuilt once for them."""
        terminator = self.body.terminator
        found: list[tuple[int, Operation, VectorType, Value]] = []
        for i, value in enumerate(terminator.operands):
            op = value.defining_op
            if op is None or op.row.name != "tensor.insert" or op.block is not self.body or not value.has_one_use:
                continue
            dest = op.operands[1]
            type = self._vector_type(dest.type)
            if type is None or dest is not self.body.args[i + 1] or not dest.has_one_use:
                continue
            base = self._base(op.operands[2])
            if base is not None:
                found.append((i, op, type, base))
        if found:
            self._rebuild(found)

    def _rebuild(self, writes: list[tuple[int, Operation, VectorType, Value]]) -> None:
        old, b = self.op, Builder.before(self.op)
        yielded = list(self.body.terminator.operands)
        zeros: list[Value] = []
        for i, op, type, _ in writes:
            zeros.append(self._zero(type))
            lane = self.body.add_arg(type, f"{self.body.args[i + 1].name or 'iter'}_vector")
            yielded[i] = op.operands[1]
            yielded.append(vec.insert(Builder.before(op), op.operands[0], lane, self.iv))
        self.body.terminator.set_operands(yielded)
        for _, op, _, _ in writes:
            op.erase()
        region: Region = old.regions.pop()
        operands = [*old.operands, *zeros]
        types = [*(r.type for r in old.results), *(z.type for z in zeros)]
        new = b.create("scf.for", operands, types, old.attributes, (region,))
        for result, value in zip(old.results, new.results, strict=False):
            value.name, result.name = result.name, ""
        vectors = new.results[len(old.results) :]
        stored: dict[int, Value] = {}
        for (i, op, _, base), value in zip(writes, vectors, strict=True):
            after = Builder(old.block, old, op.location)
            stored[i] = vec.transfer_write(after, value, old.operands[i + 3], base).results[0]
        old.replace_by([stored.get(i, value) for i, value in enumerate(new.results[: len(old.results)])])
        self.op = new


# --------------------------------------------------------------------------------------------------------------- copies
def _fold_copies(loop: Operation, lanes: int) -> None:
    """A vector that is taken apart and put together again in the same order is that vector."""
    body = loop.body
    iv = body.args[0]
    for i, value in enumerate(body.terminator.operands):
        insert = value.defining_op
        arg = body.args[i + 1]
        if insert is None or insert.row.name != "vector.insert" or insert.operands[1:] != [arg, iv]:
            continue
        extract = insert.operands[0].defining_op
        if extract is None or extract.row.name != "vector.extract" or extract.operands[1:] != [iv]:
            continue
        source = extract.operands[0]
        if source.type is not arg.type or source.type is not vector((lanes,), _element(source.type)):
            continue
        if source.parent_block is body or not (_single(value) and _single(arg) and extract.results[0].has_one_use):
            continue
        if not _is_whole_tensor(source):
            loop.results[i].replace_by(source)


def _single(value: Value) -> bool:
    return value.has_one_use


def _element(type: Type) -> Type:
    return type.element if isinstance(type, VectorType) else type


def _is_whole_tensor(value: Value) -> bool:
    """A read of all of a tensor: folding it into the write would leave "result = input", and no copy."""
    op = value.defining_op
    if op is None or op.row.name != "vector.transfer_read":
        return False
    base, type = op.operands[0].type, value.type
    return isinstance(base, TensorType) and isinstance(type, VectorType) and base.elements == type.elements
