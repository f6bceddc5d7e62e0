"""simplify-affine: `apply_indexing` becomes arithmetic on `index`.

    %d = xla_gpu.apply_indexing #map<"(th_x, bl_x) -> (th_x * 4 + bl_x * 512)">(%t, %b)
      ->  %0 = arith.muli %b, %c512 ; %1 = arith.muli %t, %c4 ; %d = arith.addi %0, %1

A dividend that its ranges prove non-negative is divided unsigned, which is the cheap form; another gets floor
semantics by a signed division and a correction.  Summands that are defined farthest out come first, so that
`licm` can hoist the outer part of a sum.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.errors import PassFailed
from warpsmith.indexing import IndexingMap, Interval, RangeEvaluator
from warpsmith.indexing.expr import Add, Binary, CeilDiv, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Var
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects import arith, gpu

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.apply_indexing",)


def run(module: Operation) -> None:
    """Rewrite every apply_indexing of the module."""
    for op in list(module.walk()):
        if op.name == "xla_gpu.apply_indexing":
            _lower(op)


def _lower(op: Operation) -> None:
    emitter = ExprEmitter(Builder.before(op), gpu.map_of(op), op.operands)
    op.replace_by([emitter.emit(e) for e in gpu.map_of(op).results])


class ExprEmitter:
    """Emits the expressions of one map at given operands (dims, then symbols), each subexpression once."""

    def __init__(self, b: Builder, map: IndexingMap, operands: list[Value]) -> None:
        self.b = b
        self.operands = list(operands)
        self.dims = len(map.dim_vars)
        bounds = [v.bounds for v in (*map.dim_vars, *map.range_vars)]
        known = [range_of(value) for value in operands]
        self.ranges = [bound if r is None else bound.intersect(r) for bound, r in zip(bounds, known, strict=True)]
        self.evaluator = RangeEvaluator(self.ranges[: self.dims], self.ranges[self.dims :])
        self.values: dict[Expr, Value] = {}
        self.depths: dict[Value, int] = {}

    def emit(self, expr: Expr) -> Value:
        """The value of an expression; equal ones are computed once."""
        found = self.values.get(expr)
        if found is None:
            found = self.values[expr] = _EMITTERS[type(expr)](self, expr)
        return found

    def range_of(self, expr: Expr) -> Interval:
        """The values that an expression may have."""
        return self.evaluator.range_of(expr)

    def binary(self, name: str, lhs: Value, rhs: Value) -> Value:
        """`arith.name` of two values."""
        return arith.binary(self.b, name, lhs, rhs)

    # -- leaves
    def const(self, expr: Expr) -> Value:
        """A constant."""
        assert isinstance(expr, Const)
        return arith.index(self.b, expr.value)

    def var(self, expr: Expr) -> Value:
        """The operand that a dim or symbol stands for."""
        assert isinstance(expr, Var)
        return self.operands[expr.id + (self.dims if expr.is_symbol else 0)]

    # -- sums: outermost operands first, constants last
    def depth(self, value: Value) -> int:
        """How many regions enclose the definition of `value`."""
        found = self.depths.get(value)
        if found is None:
            found, block = 0, value.parent_block
            parent = block.parent_op if block is not None else None
            while parent is not None:
                found, parent = found + 1, parent.parent
            self.depths[value] = found
        return found

    def innermost(self, expr: Expr) -> int:
        """The depth of the deepest operand that `expr` needs; a constant is deeper than all."""
        ids = [*expr.dims, *(self.dims + s for s in expr.symbols)]
        return max((self.depth(self.operands[i]) for i in ids), default=1 << 30)

    def add(self, expr: Expr) -> Value:
        """A sum, what changes in the innermost loop last, so that the rest can move out."""
        assert isinstance(expr, Add)
        total, *rest = sorted(expr.terms, key=self.innermost)
        value = self.emit(total)
        for term in rest:
            value = self.binary("addi", value, self.emit(term))
        return value

    def mul(self, expr: Expr) -> Value:
        """A product."""
        assert isinstance(expr, Mul)
        return self.binary("muli", self.emit(expr.lhs), self.emit(expr.rhs))

    # -- divisions: floor semantics
    def _division(self, expr: Binary) -> tuple[Value, Value, bool]:
        divisor = self.range_of(expr.rhs)
        if divisor.lower <= 0:
            raise PassFailed(f"simplify-affine: the divisor of '{expr}' is not proven positive")
        return self.emit(expr.lhs), self.emit(expr.rhs), self.range_of(expr.lhs).lower >= 0

    def floordiv(self, expr: Expr) -> Value:
        """A floor division, unsigned where both sides are known to be non-negative."""
        assert isinstance(expr, Binary)
        lhs, rhs, unsigned = self._division(expr)
        if unsigned:
            return self.binary("divui", lhs, rhs)
        quotient = self.binary("divsi", lhs, rhs)
        negative = arith.cmpi(self.b, "slt", self.binary("remsi", lhs, rhs), arith.index(self.b, 0))
        return arith.select(self.b, negative, self.binary("subi", quotient, arith.index(self.b, 1)), quotient)

    def mod(self, expr: Expr) -> Value:
        """A remainder, unsigned where both sides are known to be non-negative."""
        assert isinstance(expr, Binary)
        lhs, rhs, unsigned = self._division(expr)
        if unsigned:
            return self.binary("remui", lhs, rhs)
        remainder = self.binary("remsi", lhs, rhs)
        negative = arith.cmpi(self.b, "slt", remainder, arith.index(self.b, 0))
        return arith.select(self.b, negative, self.binary("addi", remainder, rhs), remainder)

    def ceildiv(self, expr: Expr) -> Value:
        """A division upwards, as a floor division."""
        assert isinstance(expr, Binary)
        return self.emit((expr.lhs + expr.rhs - 1) // expr.rhs)

    def max(self, expr: Expr) -> Value:
        """The larger value."""
        assert isinstance(expr, Binary)
        return self.binary("maxsi", self.emit(expr.lhs), self.emit(expr.rhs))

    def min(self, expr: Expr) -> Value:
        """The smaller value."""
        assert isinstance(expr, Binary)
        return self.binary("minsi", self.emit(expr.lhs), self.emit(expr.rhs))


_EMITTERS: dict[type[Expr], Callable[[ExprEmitter, Expr], Value]] = {
    Const: ExprEmitter.const,
    Var: ExprEmitter.var,
    Add: ExprEmitter.add,
    Mul: ExprEmitter.mul,
    FloorDiv: ExprEmitter.floordiv,
    Mod: ExprEmitter.mod,
    CeilDiv: ExprEmitter.ceildiv,
    Max: ExprEmitter.max,
    Min: ExprEmitter.min,
}
