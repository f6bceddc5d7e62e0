"""How far from the exact result each op may be, in ulp of its dtype: the accuracy part of the numerics contract.

`bound(opcode, dtype)` is against the correctly rounded result of the op's own inputs; comparison, tests and the
documentation page read it.  0 means correctly rounded (or exact): so is every op that isn't an elementary function
(`functions/table.py`), for the interpreter computes no other op inexactly.  f32 bounds are the measured worst cases of
`functions/`; 16-bit and narrower results are computed in f32 and rounded once; f64 is the platform's libm.
Complex results are bounded relative to the larger component.
"""

from __future__ import annotations

from warpsmith.dtypes import BY_NAME, DType
from warpsmith.numerics.functions.table import BY_OPCODE

__all__ = ["bound", "table"]

_NARROW = 1  # one rounding of an f32 result, which lies within a small part of an ulp
_DOUBLE = 4  # libm promises no more; glibc keeps 1 or 2
# c64 and c128: several real functions and products a result.
_COMPLEX_FUNCTION = 16
_COMPLEX: dict[str, int] = {"multiply": 2, "divide": 8, "abs": 2, "sqrt": 8, "sign": 8}


def bound(opcode: str, dtype: DType) -> int:
    """Largest error of one op with results of `dtype`, in ulp."""
    function = BY_OPCODE.get(opcode)
    if dtype.is_complex:
        return _COMPLEX.get(opcode, _COMPLEX_FUNCTION if function else 0)
    if function is None or function.max_ulp == 0 or not dtype.is_float:
        return 0
    if dtype.bits < 32:
        return _NARROW
    return function.max_ulp if dtype.bits == 32 else _DOUBLE


def table() -> list[tuple[str, dict[str, int]]]:
    """(opcode, {dtype name: ulp}) for each op that isn't exact in some dtype, in order of opcode."""
    opcodes = sorted({*BY_OPCODE, *_COMPLEX})
    dtypes = [row for row in BY_NAME.values() if row.is_float or row.is_complex]
    return [(opcode, {row.name: bound(opcode, row) for row in dtypes}) for opcode in opcodes]
