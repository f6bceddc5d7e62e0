"""Arithmetic of the kernel language: operators and functions on scalars, as arith and math ops.

In: scalars and Python numbers; where all are numbers the answer is one too.  Out: scalars.  Operands meet in
`dtypes.common`; a Python number takes the type of the other operand.  `//` and `%` round down, as Python's do.
"""

from __future__ import annotations

import math as pymath
import operator
from collections.abc import Callable
from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.indexing import IndexingMap, Interval, Variable, dim, floordiv, mod
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I1, INDEX
from warpsmith.ir.dialects import arith, gpu, math
from warpsmith.tile.frontend.values import Number, Scalar
from warpsmith.tile.model.dtypes import BOOL, FLOAT32, INT32, TileType, common
from warpsmith.tile.model.dtypes import INDEX as INDEX_TYPE

__all__ = ["Operand", "Scalars"]

Operand = Scalar | Number

_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": operator.mod,
    "truncdiv": lambda a, b: a // b if (a < 0) == (b < 0) else -(-a // b),
    "truncmod": lambda a, b: a - b * (a // b if (a < 0) == (b < 0) else -(-a // b)),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "pow": lambda a, b: a**b,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "max": max,
    "min": min,
}
_BITWISE = {"and": "andi", "or": "ori", "xor": "xori", "shl": "shli"}
_FLOATS = {"add": "addf", "sub": "subf", "mul": "mulf", "div": "divf", "max": "maximumf", "min": "minimumf"}
_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))

_MATH_NAMES = {"round": "roundeven"}


class Scalars:
    """Makes ops at a builder's place."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    # -- constants and types
    def constant(self, number: Number, type: TileType) -> Scalar:
        """A Python number as a scalar of `type`.  InvalidTileProgram where the type can't hold it."""
        if type.is_float:
            return Scalar(arith.constant(self.b, float(number), type.ir), type)
        if isinstance(number, float) and not number.is_integer():
            raise InvalidTileProgram(f"{number} is no {type}", help="write an integer, or cast")
        whole = int(number)
        if type.kind == "bool":
            return Scalar(arith.constant(self.b, whole != 0, I1), type)
        if type is INDEX_TYPE:
            return Scalar(arith.index(self.b, whole), type)
        low, high = (0, 1 << type.bits) if type.kind == "uint" else (-(1 << type.bits - 1), 1 << type.bits - 1)
        if not low <= whole < high:
            raise InvalidTileProgram(f"{whole} doesn't fit into {type}")
        return Scalar(arith.constant(self.b, whole, type.ir), type)

    def scalar(self, operand: Operand, like: TileType | None = None) -> Scalar:
        """An operand as a scalar; a number takes type `like`, else int32, float32 or bool by what it is."""
        if isinstance(operand, Scalar):
            return operand
        natural = BOOL if isinstance(operand, bool) else FLOAT32 if isinstance(operand, float) else INT32
        if like is not None and not (isinstance(operand, float) and not like.is_float):
            natural = like
        return self.constant(operand, natural)

    def index(self, operand: Operand) -> Value:
        """An operand as a coordinate."""
        if isinstance(operand, Scalar):
            if operand.type.is_float:
                raise InvalidTileProgram(f"a coordinate can't be {operand.type}")
            return self.cast(operand, INDEX_TYPE).value
        if isinstance(operand, float):
            raise InvalidTileProgram(f"a coordinate can't be {operand}")
        return arith.index(self.b, int(operand))

    def _cast_op(self, name: str, scalar: Scalar, to: TileType) -> Scalar:
        return Scalar(arith.cast(self.b, name, scalar.value, to.ir), to)

    def cast(self, operand: Operand, to: TileType) -> Scalar:
        """Conversion: to nearest even among floats, towards zero to integers, modulo 2^n among integers."""
        if not isinstance(operand, Scalar):
            return self.constant(operand if to.is_float or not isinstance(operand, float) else int(operand), to)
        source = operand.type
        if source is to:
            return operand
        if to.kind == "bool":
            return self.compare("ne", operand, 0)
        if source.is_float and to.is_float:
            if source.bits == to.bits:
                return self.cast(self.cast(operand, FLOAT32), to)
            return self._cast_op("extf" if source.bits < to.bits else "truncf", operand, to)
        if source.is_float:
            wide = to if to is not INDEX_TYPE else INT32
            found = self._cast_op("fptoui" if to.kind == "uint" else "fptosi", operand, wide)
            return found if wide is to else self.cast(found, to)
        if to.is_float:
            if source is INDEX_TYPE:
                return self.cast(self.cast(operand, INT32), to)
            return self._cast_op("sitofp" if source.is_signed else "uitofp", operand, to)
        if INDEX in (source.ir, to.ir):
            if source.kind == "bool":
                return self.cast(self.cast(operand, INT32), to)
            name = "index_castui" if "uint" in (source.kind, to.kind) else "index_cast"
            return self._cast_op(name, operand, to)
        if source.kind == "bool":
            return self._cast_op("extui", operand, to)
        if source.bits == to.bits:
            return Scalar(operand.value, to)
        name = "trunci" if source.bits > to.bits else "extsi" if source.is_signed else "extui"
        return self._cast_op(name, operand, to)

    def _meet(self, lhs: Operand, rhs: Operand) -> tuple[Scalar, Scalar]:
        if isinstance(lhs, Scalar) and isinstance(rhs, Scalar):
            type = common(lhs.type, rhs.type)
            return self.cast(lhs, type), self.cast(rhs, type)
        if isinstance(lhs, Scalar):
            type = self._type_beside(lhs.type, rhs)
            return self.cast(lhs, type), self.scalar(rhs, type)
        assert isinstance(rhs, Scalar)
        type = self._type_beside(rhs.type, lhs)
        return self.scalar(lhs, type), self.cast(rhs, type)

    @staticmethod
    def _type_beside(type: TileType, number: Operand) -> TileType:
        if isinstance(number, float) and not type.is_float:
            return FLOAT32
        return INT32 if type.kind == "bool" and not isinstance(number, bool) else type

    # -- operators
    def binary(self, name: str, lhs: Operand, rhs: Operand) -> Operand:
        """An operator by name: add, sub, mul, div, floordiv, mod, and, or, xor, shl, shr, max, min, comparisons."""
        if not isinstance(lhs, Scalar) and not isinstance(rhs, Scalar):
            try:
                return _PYTHON[name](lhs, rhs)
            except (ZeroDivisionError, TypeError, ValueError) as error:
                raise InvalidTileProgram(str(error)) from error
        if name in _COMPARE:
            return self.compare(name, lhs, rhs)
        x, y = self._meet(lhs, rhs)
        type = x.type
        if type.kind == "bool" and name in ("add", "sub", "mul", "div", "floordiv", "mod", "shl", "shr"):
            x, y, type = self.cast(x, INT32), self.cast(y, INT32), INT32
        if type.is_float:
            return self._float(name, x, y)
        if name == "div":
            return self._float("div", self.cast(x, FLOAT32), self.cast(y, FLOAT32))
        return self._integer(name, x, y)

    def _float(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        op = _FLOATS.get(name)
        if op is not None:
            return Scalar(arith.binary(self.b, op, x.value, y.value), x.type)
        if name == "pow":
            return Scalar(math.binary(self.b, "powf", x.value, y.value), x.type)
        if name in ("floordiv", "mod"):
            quotient = arith.binary(self.b, "divf", x.value, y.value)
            floor = math.unary(self.b, "floor", quotient)
            if name == "floordiv":
                return Scalar(floor, x.type)
            return Scalar(arith.binary(self.b, "subf", x.value, arith.binary(self.b, "mulf", floor, y.value)), x.type)
        raise InvalidTileProgram(f"operator '{name}' has no meaning for {x.type}")

    def _integer(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        type = x.type
        if name in ("add", "sub", "mul"):
            op = f"{name}i"
        elif name in _BITWISE:
            op = _BITWISE[name]
        elif name == "shr":
            op = "shrsi" if type.is_signed else "shrui"
        elif name in ("max", "min"):
            op = f"{name}{'si' if type.is_signed else 'ui'}"
        elif name in ("floordiv", "mod"):
            return self._divide(name, x, y)
        elif name in ("truncdiv", "truncmod"):
            if arith.constant_int(y.value) == 0:
                raise InvalidTileProgram("integer division by zero")
            op = f"{'div' if name == 'truncdiv' else 'rem'}{'si' if type.is_signed else 'ui'}"
        else:
            raise InvalidTileProgram(f"operator '{name}' has no meaning for {type}")
        return Scalar(arith.binary(self.b, op, x.value, y.value), type)

    def _divide(self, name: str, x: Scalar, y: Scalar) -> Scalar:
        """Division that rounds down, and its remainder."""
        is_quotient = name == "floordiv"
        divisor = arith.constant_int(y.value)
        if divisor == 0:
            raise InvalidTileProgram("integer division by zero")
        if not x.type.is_signed or (_is_natural(x.value) and _is_natural(y.value)):
            op = "divui" if is_quotient else "remui"
            return Scalar(arith.binary(self.b, op, x.value, y.value), x.type)
        if x.type is INDEX_TYPE and divisor is not None and divisor > 0:
            expr = floordiv(dim(0), divisor) if is_quotient else mod(dim(0), divisor)
            map = IndexingMap.make([Variable("x", range_of(x.value) or Interval.full())], [expr])
            return Scalar(gpu.apply_indexing(self.b, map, (x.value,))[0], x.type)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:  # shifts and masks round down
            op, amount = ("shrsi", divisor.bit_length() - 1) if is_quotient else ("andi", divisor - 1)
            return Scalar(arith.binary(self.b, op, x.value, self.constant(amount, x.type).value), x.type)
        return self._divide_by_any(is_quotient, x, y)

    def _divide_by_any(self, is_quotient: bool, x: Scalar, y: Scalar) -> Scalar:
        """What rounds towards zero, mended where signs differ."""
        rest = arith.binary(self.b, "remsi", x.value, y.value)
        zero = self.constant(0, x.type).value
        if _is_natural(y.value):
            adjust = arith.cmpi(self.b, "slt", rest, zero)
        else:
            signs_differ = arith.cmpi(self.b, "slt", arith.binary(self.b, "xori", rest, y.value), zero)
            adjust = arith.binary(self.b, "andi", signs_differ, arith.cmpi(self.b, "ne", rest, zero))
        if not is_quotient:
            moved = arith.binary(self.b, "addi", rest, y.value)
            return Scalar(arith.select(self.b, adjust, moved, rest), x.type)
        quotient = arith.binary(self.b, "divsi", x.value, y.value)
        less = arith.binary(self.b, "subi", quotient, self.constant(1, x.type).value)
        return Scalar(arith.select(self.b, adjust, less, quotient), x.type)

    def compare(self, name: str, lhs: Operand, rhs: Operand) -> Scalar:
        """A comparison; floats compare ordered (`!=` is true of a NaN)."""
        x, y = self._meet(lhs, rhs)
        if x.type.is_float:
            return Scalar(arith.cmpf(self.b, "une" if name == "ne" else f"o{name}", x.value, y.value), BOOL)
        if name not in ("eq", "ne"):
            name = f"{'s' if x.type.is_signed else 'u'}{name}"
        return Scalar(arith.cmpi(self.b, name, x.value, y.value), BOOL)

    def negate(self, operand: Operand) -> Operand:
        """The negated number."""
        if not isinstance(operand, Scalar):
            return -operand
        if operand.type.is_float:
            return Scalar(self.b.op1("arith.negf", (operand.value,), operand.value.type), operand.type)
        return self.binary("sub", 0, operand)

    def invert(self, operand: Operand) -> Operand:
        """`not x` of a condition, `~x` of an integer."""
        if not isinstance(operand, Scalar):
            return (not operand) if isinstance(operand, bool) else ~int(operand)
        return self.binary(
            "xor",
            operand,
            True if operand.type.kind == "bool" else -1 if operand.type.is_signed else (1 << operand.type.bits) - 1,
        )

    def condition(self, operand: Operand) -> Scalar:
        """Whether an operand isn't zero."""
        if not isinstance(operand, Scalar):
            return self.constant(bool(operand), BOOL)
        return operand if operand.type.kind == "bool" else self.compare("ne", operand, 0)

    def reinterpret(self, operand: Operand, to: TileType) -> Scalar:
        """The same bits in another type.  InvalidTileProgram where that is wider or narrower, or a condition."""
        scalar = self.scalar(operand)
        if scalar.type is INDEX_TYPE:
            scalar = self.cast(scalar, INT32)
        if scalar.type.bits != to.bits or "bool" in (scalar.type.kind, to.kind) or to is INDEX_TYPE:
            raise InvalidTileProgram(f"the bits of {scalar.type} can't be seen as {to}", help="T.cast converts numbers")
        if scalar.value.type is to.ir:
            return Scalar(scalar.value, to)
        return Scalar(arith.cast(self.b, "bitcast", scalar.value, to.ir), to)

    # -- functions
    def select(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        """One of two numbers, by a condition; both have one type in the end."""
        if not isinstance(condition, Scalar):
            return yes if condition else no
        if not isinstance(yes, Scalar) and not isinstance(no, Scalar):
            yes = self.scalar(yes, FLOAT32 if isinstance(no, float) else None)
        x, y = self._meet(yes, no)
        return Scalar(arith.select(self.b, self.condition(condition).value, x.value, y.value), x.type)

    def function(self, name: str, operand: Operand) -> Operand:
        """An elementary function of a float (UNARY_MATH), `abs`, or `sigmoid`."""
        if not isinstance(operand, Scalar):
            if name == "abs":
                return abs(operand)
            found = getattr(pymath, name, None)
            if found is None or name in ("round", "exp2"):
                return self.function(name, self.scalar(float(operand), FLOAT32))
            return found(operand)
        if name == "abs":
            return self._absolute(operand)
        if not operand.type.is_float:
            raise InvalidTileProgram(
                f"{name} takes a float, not {operand.type}", help=f'cast it: T.{name}(T.cast(x, "float32"))'
            )
        if name == "sigmoid":
            one = self.constant(1.0, operand.type)
            negated = self.negate(operand)
            return self.binary("div", one, self.binary("add", one, self.function("exp", negated)))
        return Scalar(math.unary(self.b, _MATH_NAMES.get(name, name), operand.value), operand.type)

    def _absolute(self, operand: Scalar) -> Scalar:
        if operand.type.is_float:
            return Scalar(math.unary(self.b, "absf", operand.value), operand.type)
        if not operand.type.is_signed:
            return operand
        negated = self.binary("sub", 0, operand)
        found = self.binary("max", operand, negated)
        assert isinstance(found, Scalar)
        return found

    def fma(self, a: Operand, b: Operand, c: Operand) -> Operand:
        """a * b + c, rounded once."""
        type = FLOAT32
        for each in (a, b, c):
            if isinstance(each, Scalar):
                type = each.type if each.type.is_float else type
        values = [self.cast(each, type).value for each in (a, b, c)]
        return Scalar(self.b.op1("math.fma", values, type.ir), type)


def _is_natural(value: Value) -> bool:
    found = range_of(value)
    return found is not None and found.lower >= 0
