"""expand-math: elementary functions of the math dialect become arithmetic.

    %y = math.tanh %x : vector<16xf32>
->
    %0 = arith.cmpf ogt, %x, %c9.02 ...  %20 = arith.divf %18, %19 : vector<16xf32>

The programs are `warpsmith.numerics.functions`, the same for scalars and vectors, exact to a few ulp (each row says how
many) and bit for bit what `NumpyBackend` computes.  f32 ops are expanded; f16 and bf16 ops are done in f32 and
rounded once, with the shorter program for that type.  So is an f32 op that `expand-float-ops` widened and marked with
`warpsmith.accuracy = "f16"` or `"bf16"`.  f64 ops stay, but for rsqrt.  sqrt and what else is exact stays.

In the mode `xla` the f32 functions that XLA:GPU has programs of its own for (`functions/xla.py`) are those.

Constants go to the top of the function, out of every loop.  The reduction of huge arguments of sin, cos and tan stands
in an `scf.if` that is entered only when some lane needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I32,
    I64,
    Type,
    VectorType,
    element_type,
    integer,
    with_element,
)
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import arith, func, scf, vector
from warpsmith.numerics.expr import Precision
from warpsmith.numerics.expr import Type as Lane
from warpsmith.numerics.functions import FUNCTIONS, expand
from warpsmith.passes.expand_approximate import full_division, is_wanted

CONTRACT = "each function within its ulp bound (numerics/bounds.py); all else bit-exact"

_ELEMENT: dict[Lane, Type] = {Lane.F32: F32, Lane.I32: I32, Lane.I1: I1}
_PRECISION: dict[Type, Precision] = {F32: Precision.F32, F16: Precision.F16, BF16: Precision.BF16}
_ACCURACY = {"f16": Precision.F16, "bf16": Precision.BF16}
_FUNCTIONS = {f"math.{row.name}": row for row in FUNCTIONS.values() if row.max_ulp}
_OP_NAMES = {"absf": "math.absf", "copysign": "math.copysign", "sqrt": "math.sqrt"} | {
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
}
_CASTS = {"sitofp": F32, "fptosi": I32}


def run(module: Operation, *, fma: bool = False) -> None:
    """Expand every function of the module.  `fma` lets polynomials use `math.fma` (for targets that have it)."""
    mode = _Mode.of(module)
    for function in func.functions(module):
        if not function.regions or not function.regions[0].blocks:
            continue
        constants = _Constants(function.regions[0].blocks[0])
        for op in list(function.walk()):
            if op.name in _FUNCTIONS:
                _rewrite(op, constants, fma, mode)


@dataclass(frozen=True, slots=True)
class _Mode:
    """Whether XLA's programs are wanted, and the module if they divide by a GPU's `div.full`."""

    xla: bool
    full_division: Operation | None

    @classmethod
    def of(cls, module: Operation) -> _Mode:
        functions = list(func.functions(module))
        numerics = func.entry(module).attributes.get("warpsmith.numerics") if functions else None
        xla = isinstance(numerics, at.StringAttr) and numerics.value == "xla"
        return cls(xla, module if is_wanted(module) else None)


def _rewrite(op: Operation, constants: _Constants, fma: bool, mode: _Mode) -> None:
    type = op.result.type
    element = element_type(type)
    b = Builder.before(op)
    if element is F64 and op.name == "math.rsqrt":
        root = b.op1("math.sqrt", op.operands, type)
        result = arith.binary(b, "divf", constants.get(1.0, type), root)
    elif element in _PRECISION:
        marked = op.attributes.get("warpsmith.accuracy")
        precision = _PRECISION[element]
        if isinstance(marked, at.StringAttr):
            precision = _ACCURACY.get(marked.value, precision)
        operands = op.operands if element is F32 else [arith.cast(b, "extf", value, F32) for value in op.operands]
        function = _FUNCTIONS[op.name]
        as_xla = mode.xla and precision is Precision.F32 and function.xla is not None
        divides = mode.full_division if as_xla else None
        backend = _IrBackend(b, with_element(type, F32), constants, fma or divides is not None, divides)
        result = expand(function.name, backend, *operands, precision=precision, xla=as_xla)
        if element is not F32:
            result = arith.cast(b, "truncf", result, element)
    else:
        return
    result.name = op.result.name
    op.replace_by((result,))


class _Constants:
    """Constants at the top of a function, each made once."""

    __slots__ = ("_entry", "_known", "_last")

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._last: Operation | None = None
        self._known: dict[tuple[str, Type], Value] = {}

    def get(self, value: float, type: Type) -> Value:
        key = (repr(value), type)  # repr tells -0.0 from 0.0, and is equal for equal NaNs
        found = self._known.get(key)
        if found is None:
            b = Builder.at_start(self._entry) if self._last is None else Builder.after(self._last)
            found = self._known[key] = arith.constant(b, value, type)
            self._last = found.defining_op
        return found


class _IrBackend:
    """The `Backend` that makes IR at a builder's place; `shape` is f32 or a vector of it.

    `full_division` is the module, if scalars are to be divided by `div.full`.
    """

    __slots__ = ("_b", "_constants", "_fma", "_full_division", "_types")

    def __init__(
        self, b: Builder, shape: Type, constants: _Constants, fma: bool, full_division: Operation | None = None
    ) -> None:
        self._b = b
        self._full_division = full_division if shape is F32 else None
        self._constants = constants
        self._fma = fma
        self._types = {lane: with_element(shape, element) for lane, element in _ELEMENT.items()}

    def constant(self, type: Lane, value: float) -> Value:
        if type is Lane.I32:
            value = (int(value) + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        return self._constants.get(value, self._types[type])

    def apply(self, op: str, *operands: Any) -> Value:
        b = self._b
        if op == "muladd":
            if self._fma:
                return b.op1("math.fma", operands, operands[0].type)
            return arith.binary(b, "addf", arith.binary(b, "mulf", operands[0], operands[1]), operands[2])
        if op == "divf" and self._full_division is not None:
            return full_division(self._full_division, b, operands[0], operands[1])
        if op in _CASTS:
            return arith.cast(b, op, operands[0], _CASTS[op])
        if op == "umulh":
            lhs, rhs = (arith.cast(b, "extui", value, I64) for value in operands)
            product = arith.binary(b, "muli", lhs, rhs)
            return arith.cast(
                b, "trunci", arith.binary(b, "shrui", product, self._constants.get(32, product.type)), I32
            )
        return b.op1(_OP_NAMES.get(op) or f"arith.{op}", operands, operands[0].type)

    def bitcast(self, type: Lane, operand: Value) -> Value:
        return arith.cast(self._b, "bitcast", operand, _ELEMENT[type])

    def compare(self, op: str, predicate: str, a: Value, b: Value) -> Value:
        return (arith.cmpf if op == "cmpf" else arith.cmpi)(self._b, predicate, a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return arith.select(self._b, condition, a, b)

    def rare(self, condition: Value, slow: Callable[[], list[Value]], fast: list[Value]) -> list[Value]:
        outer = self._b
        whole = isinstance(condition.type, VectorType)
        branch = scf.if_(outer, self._any(condition) if whole else condition, [value.type for value in fast])
        then, otherwise = (region.blocks[0] for region in branch.regions)
        self._b = Builder.at_end(then, outer.location)
        values = slow()
        if whole:
            values = [self.select(condition, s, f) for s, f in zip(values, fast, strict=True)]
        scf.yield_(self._b, values)
        self._b = outer
        scf.yield_(Builder.at_end(otherwise, outer.location), fast)
        return list(branch.results)

    def _any(self, condition: Value) -> Value:
        """Whether any lane holds: the lanes' bits as one integer."""
        assert isinstance(condition.type, VectorType)
        bits = integer(condition.type.elements)
        packed = self._b.op1("vector.bitcast", (condition,), vector_type((1,), bits))
        return arith.cmpi(self._b, "ne", vector.extract(self._b, packed, 0), self._constants.get(0, bits))
