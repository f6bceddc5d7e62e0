"""Evaluates the language of `expr.py` over numpy arrays, op by op with IEEE f32 rounding.

In: arrays of float32.  Out: arrays of float32.  It is the exact reference for what the IR expansion of a function
computes, the vehicle of the accuracy tests, and it counts ops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.expr import Type

__all__ = ["NumpyBackend"]


_CAST = {Type.F32: np.dtype(np.float32), Type.I32: np.dtype(np.int32)}


def _umulh(a: Array, b: Array) -> Array:
    high = (a.astype(np.uint32).astype(np.uint64) * b.astype(np.uint32).astype(np.uint64)) >> np.uint64(32)
    return high.astype(np.uint32).view(np.int32)


def _shift_right_logical(a: Array, b: Array) -> Array:
    return (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32)


def _to_float(a: Array) -> Array:
    return a.astype(np.float32)


def _to_int(a: Array) -> Array:
    """Out-of-range values give 0 (any result would do)."""
    inside = np.abs(a) < np.float32(2147483648.0)
    return np.where(inside, a, np.float32(0)).astype(np.int32)


def _fused(a: Array, b: Array, c: Array) -> Array:
    # Exact product, sum rounded to f64 and then f32: an FMA but for a double rounding once in 2**29.
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def _unfused(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


_APPLY: dict[str, Callable[..., Array]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "negf": np.negative,
    "absf": np.abs,
    "copysign": np.copysign,
    "sqrt": np.sqrt,
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "umulh": _umulh,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrui": _shift_right_logical,
    "shrsi": np.right_shift,
    "sitofp": _to_float,
    "fptosi": _to_int,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "oeq": np.equal,
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    "eq": np.equal,
    "slt": np.less,
    "ult": lambda a, b: a.view(np.uint32) < b.view(np.uint32),
}


class NumpyBackend:
    """A `Backend` over arrays.  `fuse` rounds `muladd` once instead of twice.

    `counts` holds how often each op was applied; in `rare` the slow path's ops are counted under `rare`.
    """

    def __init__(self, *, fuse: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._muladd = _fused if fuse else _unfused
        self._fuse = fuse

    @property
    def total(self) -> int:
        """Ops outside slow paths; a compare and the select it feeds count as two, bitcasts as none."""
        return sum(number for op, number in self.counts.items() if op != "rare")

    def constant(self, type: Type, value: float) -> Array:
        """A scalar of a type; integers wrap to 32 bits."""
        if type is Type.F32:
            return np.asarray(value, np.float32)
        return np.asarray(int(value) & 0xFFFFFFFF, np.uint32).view(np.int32)

    def apply(self, op: str, *operands: Array) -> Array:
        """An op of `numerics.expr`, by its name; NumPy's arithmetic, rounded to f32 each time."""
        if op == "muladd":
            self.counts.update(("fma",) if self._fuse else ("mulf", "addf"))
            return self._muladd(*operands)
        self.counts[op] += 1
        return _APPLY[op](*operands)

    def bitcast(self, type: Type, operand: Array) -> Array:
        """The same bits as another type."""
        return np.asarray(operand).view(_CAST[type])

    def compare(self, op: str, predicate: str, a: Array, b: Array) -> Array:
        """A comparison, by MLIR's name of the predicate."""
        self.counts[op] += 1
        return _COMPARE[predicate](a, b)

    def select(self, condition: Array, a: Array, b: Array) -> Array:
        """`a` where the condition holds, else `b`."""
        self.counts["select"] += 1
        return np.where(condition, a, b)

    def rare(self, condition: Array, slow: Callable[[], list[Array]], fast: list[Array]) -> list[Array]:
        """What `slow` gives where the condition holds, `fast` elsewhere; `slow` isn't run if it holds nowhere."""
        if not np.any(condition):
            return fast
        before = self.counts.copy()
        values = slow()
        spent = (self.counts - before).total()
        self.counts = before
        self.counts["rare"] += spent
        return [self.select(condition, s, f) for s, f in zip(values, fast, strict=True)]
