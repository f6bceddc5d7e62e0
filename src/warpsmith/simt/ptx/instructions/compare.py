"""Comparisons and choices: setp, set, selp, slct, testp."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.rounding import FORMATS
from warpsmith.simt.ptx.spec import Compute, Form, Spec, binary, ternary, unary
from warpsmith.simt.ptx.text.module import TYPE_BITS
from warpsmith.simt.ptx.values import choose, flush

__all__ = ["BOOLEANS", "choice_spec", "comparison"]


def _ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


_INTEGER: dict[str, Compute] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_FLOAT: dict[str, Compute] = {
    "eq": np.equal,
    "ne": binary(lambda a, b: (a != b) & _ordered(a, b)),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "equ": binary(lambda a, b: ~((a != b) & _ordered(a, b))),
    "neu": np.not_equal,
    "ltu": binary(lambda a, b: ~(a >= b)),
    "leu": binary(lambda a, b: ~(a > b)),
    "gtu": binary(lambda a, b: ~(a <= b)),
    "geu": binary(lambda a, b: ~(a < b)),
    "num": _ordered,
    "nan": binary(lambda a, b: ~_ordered(a, b)),
}
BOOLEANS: dict[str, Compute] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
"""How setp and set combine the comparison with a predicate."""


def comparison(form: Form) -> Compute | None:
    """The comparison that setp or set names, on numbers of its last type; None for one that doesn't exist."""
    type = form.type
    is_float = type in FORMATS
    name = form.parts[1]
    found = (_FLOAT if is_float else _INTEGER).get(name)
    if found is None or (type[0] == "b" and not is_float and name not in ("eq", "ne")):
        return None
    if not form.ftz:
        return found
    return binary(lambda a, b: found(flush(a, type), flush(b, type)))


_CLASSES: dict[str, Compute] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": unary(lambda a: ~np.isnan(a)),
    "notanumber": np.isnan,
}


def _class(form: Form) -> Spec | None:
    type, name = form.type, form.parts[1]
    if type not in ("f32", "f64"):
        return None
    least = FORMATS[type].least_normal
    table = {
        **_CLASSES,
        "normal": unary(lambda a: np.isfinite(a) & (np.abs(a) >= least)),
        "subnormal": unary(lambda a: (a != 0) & (np.abs(a) < least)),
    }
    return Spec((type,), "pred", table[name]) if name in table else None


def choice_spec(form: Form) -> Spec | None:
    """selp, slct and testp; None for anything else."""
    if form.base == "testp":
        return _class(form)
    if not form.types or form.types[0] not in TYPE_BITS:
        return None
    raw = f"b{TYPE_BITS[form.types[0]]}"
    if form.base == "selp":
        return Spec((raw, raw, "pred"), raw, ternary(lambda a, b, p: choose(p, a, b)))
    if form.base == "slct" and len(form.types) == 2:
        return Spec((raw, raw, form.types[1]), raw, ternary(lambda a, b, c: np.where(c >= 0, a, b)))
    return None
